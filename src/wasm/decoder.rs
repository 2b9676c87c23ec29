//! One decoding step on logits that JavaScript brings: no model.

use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use super::{Thrown, object, thrown};
use crate::{
    Error, ErrorCode, Logits, Pipeline, StepContext, TokenId,
    error::Result,
    random::{Randomness, from_unit},
    sampler::{Draw, Pick, Sampler},
    trace::{Observer, Off, Recorder},
};

/// A pipeline with the state of its sampler, for rows of logits from elsewhere.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Decoder {
    pipeline: Pipeline,
    seed: u64,
    sampler: Box<dyn Sampler>,
    logits: Logits,
}

#[wasm_bindgen]
impl Decoder {
    /// Reads a pipeline text; a seed that it leaves out is drawn.
    #[wasm_bindgen(constructor)]
    pub fn new(pipeline: &str) -> Thrown<Self> {
        let (pipeline, seed) =
            Pipeline::parse(pipeline).and_then(|text| text.seeded(None)).map_err(thrown)?;
        let sampler = pipeline.sampler();
        Ok(Self { pipeline, seed, sampler, logits: Logits::unfilled() })
    }

    /// The token for a row `[V]` in nats, after `history`, whose first `prompt_len` tokens are
    /// the prompt. `u`, in `0..1`, replaces the seeded draw.
    pub fn decode(&mut self, row: &[f32], history: &[u32], prompt_len: usize, u: Option<f64>) -> Thrown<u32> {
        let draw = self.step(row, history, prompt_len, u, &mut Off).map_err(thrown)?;
        Ok(draw.token.0)
    }

    /// As [`decode`](Self::decode), with the trace of the step in place of the token: what every
    /// stage did, with the `top` likeliest tokens after each.
    pub fn trace(
        &mut self,
        row: &[f32],
        history: &[u32],
        prompt_len: usize,
        u: Option<f64>,
        top: usize,
    ) -> Thrown<JsValue> {
        let mut recorder = Recorder::new(top);
        self.step(row, history, prompt_len, u, &mut recorder).map_err(thrown)?;
        object(&recorder.finish())
    }
}

impl Decoder {
    fn step(
        &mut self,
        row: &[f32],
        history: &[u32],
        prompt_len: usize,
        u: Option<f64>,
        observer: &mut impl Observer,
    ) -> Result<Draw> {
        let history: Vec<TokenId> = history.iter().copied().map(TokenId).collect();
        let Some(position) = history.len().checked_sub(prompt_len) else {
            let message = format!("prompt_len is {prompt_len}, but the history has {} tokens", history.len());
            return Err(Error::new(ErrorCode::OutOfRange, message).param("prompt_len"));
        };
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        let randomness = Randomness { seed: self.seed, sample: 0, position };
        let pick = match u {
            None => Pick::Seeded,
            Some(u) if (0.0..1.0).contains(&u) => Pick::Uniform(from_unit(u)),
            Some(u) => {
                let message = format!("u is {u}, but must be at least 0 and below 1");
                return Err(Error::new(ErrorCode::OutOfRange, message).param("u"));
            }
        };
        let context = StepContext::new(&history, prompt_len, randomness);
        self.pipeline.decode(row, &mut self.logits, &context, &mut *self.sampler, pick, observer)
    }
}
