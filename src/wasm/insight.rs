//! What stands beside a trace: comparison, penalties, words.

use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use super::{Model, Session, Thrown, from_object, object, thrown};
use crate::{TokenId, family::family, session::piece};

#[wasm_bindgen]
impl Model {
    /// The tokens of the same word: `[{token, kinship, piece}]`, the token itself first.
    pub fn family(&self, id: u32) -> Thrown<JsValue> {
        let relatives = family(self.inner.vocab(), TokenId(id)).into_iter().map(|relative| {
            serde_json::json!({
                "token": relative.token,
                "kinship": relative.kinship,
                "piece": piece(&*self.inner, relative.token),
            })
        });
        object(&relatives.collect::<Vec<_>>())
    }
}

#[wasm_bindgen]
impl Session {
    /// What every penalty looks at and does at a step.
    pub fn penalties(&mut self, step: usize) -> Thrown<JsValue> {
        object(&self.inner.penalties(step).map_err(thrown)?)
    }

    /// Several pipeline texts on the row of a step, all with the step's own draw: sides,
    /// tokens, and where each further side parts from the first, in words.
    pub fn compare(&mut self, step: usize, pipelines: JsValue, top: usize) -> Thrown<JsValue> {
        let texts: Vec<String> = from_object(pipelines)?;
        object(&self.inner.compare(step, &texts, top).map_err(thrown)?)
    }
}
