//! What stands beside a trace: comparison, penalties, words.

use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use super::{Session, Thrown, from_object, object, thrown};
use crate::{TokenId, worksheet};

/// A row worked by hand and what other pipelines make of it, as [`Session::compare`];
/// `labels` name the tokens.
#[wasm_bindgen(js_name = compareByHand)]
pub fn compare_by_hand(request: JsValue, pipelines: JsValue, labels: JsValue) -> Thrown<JsValue> {
    let request: worksheet::Request = from_object(request)?;
    let (texts, labels): (Vec<String>, Vec<String>) = (from_object(pipelines)?, from_object(labels)?);
    object(&worksheet::compared(&request, &texts, &labels).map_err(thrown)?)
}

#[wasm_bindgen]
impl Session {
    /// The tokens of the same word at a step, with the way of each through it.
    pub fn family(&mut self, step: usize, token: u32) -> Thrown<JsValue> {
        object(&self.inner.family(step, TokenId(token)).map_err(thrown)?)
    }

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
