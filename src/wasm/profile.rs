//! Other frameworks' settings, to a pipeline and back.

use serde_json::json;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use super::{Thrown, from_object, object, thrown};
use crate::{
    Error, ErrorCode, Pipeline,
    profile::{
        self,
        copy::{Target, copy},
    },
};

/// Every profile: `{name, version, source, parameters}`.
#[wasm_bindgen]
pub fn profiles() -> Thrown<JsValue> {
    let all: Result<Vec<_>, Error> = profile::names()
        .into_iter()
        .map(|name| {
            let found = profile::find(name)?;
            let parameters: Vec<_> = found
                .parameters
                .iter()
                .map(|parameter| json!({ "name": parameter.name, "default": parameter.default }))
                .collect();
            Ok(json!({
                "name": found.name,
                "version": found.version,
                "source": found.source,
                "parameters": parameters,
            }))
        })
        .collect();
    object(&all.map_err(thrown)?)
}

/// What a framework makes of a request in its own words, as JSON text: `{pipeline, notes,
/// alternatives, …}`. `prompt_len` serves the parameters that count the prompt.
#[wasm_bindgen]
pub fn translate(name: &str, params: &str, prompt_len: usize) -> Thrown<JsValue> {
    let params = serde_json::from_str(params).map_err(|error| {
        let message = format!("the parameters are not JSON: {error}");
        thrown(Error::new(ErrorCode::BadInput, message).param("params"))
    })?;
    let translation =
        profile::find(name).and_then(|found| found.translate(&params, prompt_len)).map_err(thrown)?;
    object(&translation)
}

/// The forms that [`copyAs`](copy_as) writes.
#[wasm_bindgen(js_name = copyTargets)]
pub fn copy_targets() -> Thrown<JsValue> {
    object(&Target::ALL)
}

/// A pipeline as settings for another framework: `{text, params, warnings}`.
#[wasm_bindgen(js_name = copyAs)]
pub fn copy_as(target: JsValue, pipeline: &str) -> Thrown<JsValue> {
    let target: Target = from_object(target)?;
    let copied = Pipeline::parse(pipeline).and_then(|pipeline| copy(&pipeline, target)).map_err(thrown)?;
    object(&json!({ "text": copied.text, "warnings": copied.warnings }))
}
