//! What several tests of sequences share: the oracle's files and SmolLM2's.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use logitscope::model::{LanguageModel, Precision, open};
use serde_json::Value;

/// A file of `tests/oracle/`.
pub(crate) fn oracle(file: &str) -> Value {
    let path = format!("{}/tests/oracle/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).expect("the oracle is JSON")
}

/// `SmolLM2`, from `LOGITSCOPE_SMOLLM2` or the ignored folder `cache/`, where
/// `cargo test --test smollm2` puts it.
pub(crate) fn smollm2(precision: Precision) -> Arc<dyn LanguageModel> {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("cache/SmolLM2-135M-Instruct.Q4_1.gguf");
    let path = std::env::var_os("LOGITSCOPE_SMOLLM2").map_or(kept, PathBuf::from);
    let bytes = fs::read(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; `cargo test --test smollm2` fetches the model", path.display())
    });
    open(bytes, precision).expect("SmolLM2 opens")
}

/// The model that ships.
pub(crate) fn default_model() -> Arc<dyn LanguageModel> {
    let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.gguf"));
    open(bytes, Precision::Native).expect("the default model opens")
}
