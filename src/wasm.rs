//! The surface for JavaScript: the only user of `wasm_bindgen`.
//!
//! Few, chunky, typed calls. Objects cross as plain objects with the field names of the Rust
//! structs; arrays of numbers as typed arrays that own their memory. Every refusal is thrown
//! as an `Error` named `LogitscopeError` with `code`, `stage`, `param` and `position`. Seeds
//! are decimal strings, because they have 64 bits.
#![allow(clippy::missing_errors_doc, reason = "the module header says how every refusal is thrown")]

mod decoder;
#[cfg(feature = "gpu")]
mod gpu;
mod incoming;
mod insight;
#[cfg(feature = "constraint")]
mod profile;
#[cfg(feature = "constraint")]
mod sequences;

use std::sync::Arc;

use js_sys::{Float64Array, Object, Reflect, Uint8Array, Uint32Array};
use serde::Serialize;
use serde_json::json;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use crate::{
    Error, ErrorCode, Pipeline, TokenId,
    config::Args,
    model::{self, LanguageModel, Precision},
    random, registry,
    session::{self, Options},
    worksheet,
};

pub use decoder::Decoder;
#[cfg(feature = "gpu")]
pub use gpu::{Engine, Gpu};
pub use incoming::Incoming;
pub use insight::compare_by_hand;
#[cfg(feature = "constraint")]
pub use profile::{copy_as, copy_targets, profiles, translate};
#[cfg(feature = "constraint")]
pub use sequences::{Beams, Speculation, branch_tree, compare_branches, laboratory, repetition};

type Thrown<T> = Result<T, JsValue>;

/// The version of the crate, such as `0.1.0`.
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// The declaration of every stage, in catalogue order.
#[wasm_bindgen]
pub fn catalogue() -> Thrown<JsValue> {
    object(&registry::ALL)
}

/// Reads a pipeline text: `{text, stages, notes, seed}`, every parameter filled in, the
/// sampler last, its seed as a text.
#[wasm_bindgen(js_name = parsePipeline)]
pub fn parse_pipeline(text: &str) -> Thrown<JsValue> {
    let pipeline = Pipeline::parse(text).map_err(thrown)?;
    let seed = pipeline.seed().map(|seed| seed.to_string());
    let mut stages = pipeline.to_json()["stages"].take();
    if let (Some(seed), Some(sampler)) = (&seed, stages.as_array_mut().and_then(|all| all.last_mut())) {
        sampler["seed"] = json!(seed);
    }
    object(
        &json!({ "text": pipeline.to_string(), "stages": stages, "notes": pipeline.notes(), "seed": seed }),
    )
}

/// The text of stages as objects, such as `{stage: "top_p", p: 0.9}`.
#[wasm_bindgen(js_name = printPipeline)]
pub fn print_pipeline(stages: JsValue) -> Thrown<String> {
    let stages: Vec<serde_json::Value> = from_object(stages)?;
    let texts: Result<Vec<String>, Error> =
        stages.iter().map(|stage| Ok(Args::from_json(stage)?.to_string())).collect();
    Ok(texts.map_err(thrown)?.join(" | "))
}

/// A row of logits worked by hand: `{logits, multiply, add, pipeline, u}` in, the trace with
/// the arithmetic of each stage out; see [`worksheet`].
#[wasm_bindgen(js_name = worksheet)]
pub fn work_by_hand(request: JsValue) -> Thrown<JsValue> {
    let request: worksheet::Request = from_object(request)?;
    object(&worksheet::work(&request).map_err(thrown)?)
}

/// A seed from the browser's own randomness.
#[wasm_bindgen(js_name = freshSeed)]
pub fn fresh_seed() -> Thrown<String> {
    Ok(random::fresh_seed().map_err(thrown)?.to_string())
}

/// A language model in memory.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Model {
    inner: Arc<dyn LanguageModel>,
    /// Of the whole file, where it was counted as it came.
    sha256: Option<String>,
}

#[wasm_bindgen]
impl Model {
    /// Opens the bytes of a GGUF file.
    pub fn open(bytes: Vec<u8>) -> Thrown<Self> {
        Ok(Self { inner: model::open(bytes, Precision::Native).map_err(thrown)?, sha256: None })
    }

    /// What is known about it: the file's own statements, and a hash.
    pub fn info(&self) -> Thrown<JsValue> {
        let mut info = json!(self.inner.info());
        info["hash"] = json!(format!("{:016x}", self.inner.hash()));
        info["sha256"] = json!(self.sha256);
        object(&info)
    }

    /// Ids and pieces of a text.
    pub fn tokenize(&self, text: &str) -> Thrown<JsValue> {
        let ids = self.inner.tokenize(text, true, true).map_err(thrown)?;
        object(&self.pieces(&ids))
    }

    fn pieces(&self, ids: &[TokenId]) -> serde_json::Value {
        let pieces: Vec<String> = ids.iter().map(|&id| session::piece(&*self.inner, id)).collect();
        json!({ "ids": ids, "pieces": pieces })
    }

    /// What a token stands for; bytes that are no character appear as `⟨e2⟩`.
    #[must_use]
    pub fn piece(&self, id: u32) -> String {
        session::piece(&*self.inner, TokenId(id))
    }

    /// Tokens whose text contains `text`, or whose id it is: `[{id, piece}]`.
    pub fn search(&self, text: &str, limit: usize) -> Thrown<JsValue> {
        object(&session::search(&*self.inner, text, limit))
    }
}

/// A generation with its traces.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Session {
    inner: session::Session,
}

#[wasm_bindgen]
impl Session {
    /// Starts after a prompt: `{prompt, pipeline, seed, maxTokens, stop, forced, top}`.
    #[wasm_bindgen(constructor)]
    pub fn new(model: &Model, options: JsValue) -> Thrown<Self> {
        let options: Options = from_object(options)?;
        let inner = session::Session::new(Arc::clone(&model.inner), &options).map_err(thrown)?;
        Ok(Self { inner })
    }

    /// The seed in force, in decimal.
    #[must_use]
    pub fn seed(&self) -> String {
        self.inner.generation().seed().to_string()
    }

    /// The pipeline text, every parameter filled in.
    #[must_use]
    pub fn pipeline(&self) -> String {
        self.inner.generation().pipeline().to_string()
    }

    /// What the pipeline's author should know.
    pub fn notes(&self) -> Thrown<JsValue> {
        object(&self.inner.generation().pipeline().notes())
    }

    /// Ids and pieces of the prompt.
    pub fn prompt(&self) -> Thrown<JsValue> {
        let generation = self.inner.generation();
        let model = Model { inner: Arc::clone(generation.model()), sha256: None };
        object(&model.pieces(generation.prompt()))
    }

    /// How many tokens have been generated.
    #[must_use]
    pub fn length(&self) -> usize {
        self.inner.generation().len()
    }

    /// Decodes one token; `null` when the generation has ended.
    pub fn step(&mut self) -> Thrown<JsValue> {
        object(&self.inner.step().map_err(thrown)?)
    }

    /// Takes this token in place of drawing one.
    pub fn force(&mut self, token: u32) -> Thrown<JsValue> {
        object(&self.inner.force(TokenId(token)).map_err(thrown)?)
    }

    /// Forgets every token after the first `length`.
    pub fn rewind(&mut self, length: usize) {
        self.inner.rewind(length);
    }

    /// The trace of the next step, without taking a token.
    pub fn preview(&mut self) -> Thrown<JsValue> {
        let next = self.length();
        object(&self.inner.trace(next).map_err(thrown)?)
    }

    /// The trace of a token already taken.
    pub fn trace(&mut self, step: usize) -> Thrown<JsValue> {
        object(&self.inner.trace(step).map_err(thrown)?)
    }

    /// Changes the pipeline, keeping prompt, seed and forced tokens, and begins again.
    #[wasm_bindgen(js_name = setPipeline)]
    pub fn set_pipeline(&mut self, text: &str) -> Thrown<()> {
        self.inner.set_pipeline(text).map_err(thrown)
    }

    /// The way of single tokens through a step, wherever they stand, as a trace.
    pub fn ledger(&mut self, step: usize, tokens: Vec<u32>) -> Thrown<JsValue> {
        let tokens: Vec<TokenId> = tokens.into_iter().map(TokenId).collect();
        object(&self.inner.ledger(step, &tokens).map_err(thrown)?)
    }

    /// The whole vocabulary of a step by raw rank: `{token, probability, alive}` as typed
    /// arrays, `alive` after the given stage (0 is the raw row).
    pub fn ranks(&mut self, step: usize, stage: usize) -> Thrown<JsValue> {
        let ranks = self.inner.ranks(step, stage).map_err(thrown)?;
        let tokens: Vec<u32> = ranks.token.iter().map(|token| token.0).collect();
        let alive: Vec<u8> = ranks.alive.iter().map(|&alive| u8::from(alive)).collect();
        let result = Object::new();
        Reflect::set(&result, &"token".into(), &Uint32Array::from(&tokens[..]))?;
        Reflect::set(&result, &"probability".into(), &Float64Array::from(&ranks.probability[..]))?;
        Reflect::set(&result, &"alive".into(), &Uint8Array::from(&alive[..]))?;
        Ok(result.into())
    }

    /// What may be shown of the generated text.
    #[must_use]
    pub fn text(&self) -> String {
        self.inner.generation().text().to_owned()
    }

    /// How the generation ended; `null` if it has not.
    pub fn finish(&self) -> Thrown<JsValue> {
        object(&self.inner.generation().finish())
    }

    /// The forced tokens by position.
    pub fn forced(&self) -> Thrown<JsValue> {
        object(self.inner.generation().forced())
    }

    /// Everything needed to replay the generation, as JSON text.
    #[wasm_bindgen(js_name = traceFile)]
    #[must_use]
    pub fn trace_file(&self) -> String {
        self.inner.trace_file().to_string()
    }

    /// A hash of the trace file: equal digests, equal traces.
    #[must_use]
    pub fn digest(&self) -> String {
        self.inner.digest()
    }
}

/// A value as a plain JavaScript object.
fn object(value: &impl Serialize) -> Thrown<JsValue> {
    let serializer = serde_wasm_bindgen::Serializer::json_compatible();
    value.serialize(&serializer).map_err(|error| thrown(Error::new(ErrorCode::BadInput, error.to_string())))
}

fn from_object<T: serde::de::DeserializeOwned>(value: JsValue) -> Thrown<T> {
    serde_wasm_bindgen::from_value(value)
        .map_err(|error| thrown(Error::new(ErrorCode::BadInput, error.to_string())))
}

/// The error as a JavaScript `Error` with the fields of [`Error`].
fn thrown(error: Error) -> JsValue {
    let result = js_sys::Error::new(&error.message);
    result.set_name("LogitscopeError");
    let set = |name: &str, value: JsValue| {
        // Setting a property of a fresh object cannot fail.
        let _ = Reflect::set(&result, &name.into(), &value);
    };
    set("code", error.code.as_str().into());
    set("stage", error.stage.map_or(JsValue::NULL, Into::into));
    set("param", error.param.map_or(JsValue::NULL, Into::into));
    #[expect(clippy::cast_precision_loss, reason = "a position in a text")]
    set("position", error.position.map_or(JsValue::NULL, |position| (position as f64).into()));
    result.into()
}
