//! One decoding step on logits that JavaScript brings: no model, no trace.

use wasm_bindgen::prelude::wasm_bindgen;

use super::{Thrown, thrown};
use crate::{
    Error, ErrorCode, Logits, Pipeline, StepContext, TokenId,
    random::{Randomness, from_unit},
    sampler::{Pick, Sampler},
    trace::Off,
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
        let history: Vec<TokenId> = history.iter().copied().map(TokenId).collect();
        let Some(position) = history.len().checked_sub(prompt_len) else {
            let message = format!("prompt_len is {prompt_len}, but the history has {} tokens", history.len());
            return Err(thrown(Error::new(ErrorCode::OutOfRange, message).param("prompt_len")));
        };
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        let randomness = Randomness { seed: self.seed, sample: 0, position };
        let pick = match u {
            None => Pick::Seeded,
            Some(u) if (0.0..1.0).contains(&u) => Pick::Uniform(from_unit(u)),
            Some(u) => {
                let message = format!("u is {u}, but must be at least 0 and below 1");
                return Err(thrown(Error::new(ErrorCode::OutOfRange, message).param("u")));
            }
        };
        let context = StepContext::new(&history, prompt_len, randomness);
        let draw = self
            .pipeline
            .decode(row, &mut self.logits, &context, &mut *self.sampler, pick, &mut Off)
            .map_err(thrown)?;
        Ok(draw.token.0)
    }
}
