//! The same seed, pipeline and prompt give the same trace, byte for byte, everywhere.
//!
//! `tests/digests.json` holds a digest of each case's whole trace. It is compared here
//! natively and in a browser by `tests/wasm.rs`; and, with the optimised bundle, under Node by
//! `www/tests/node/digests.test.js` and in a browser by `www/tests/browser/digests.test.js`.
//! `cargo xtask update` rewrites it; a changed digest is a line under Numerics.
#![cfg(not(target_arch = "wasm32"))]

use std::path::{Path, PathBuf};

use logitscope::model::{self, Precision};
use logitscope::session::Session;
use serde_json::Value;

fn file(below_root: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below_root)
}

#[test]
fn native_traces_have_the_recorded_digests() {
    let bytes = std::fs::read(file("models/default.gguf")).expect("the default model");
    let model = model::open(bytes, Precision::Native).expect("a model");
    let text = std::fs::read_to_string(file("tests/digests.json")).expect("the recorded digests");
    let mut recorded: Value = serde_json::from_str(&text).expect("JSON");
    let before = recorded.clone();

    let cases = recorded["cases"].as_array_mut().expect("a list of cases");
    assert!(cases.len() >= 3, "only {} cases", cases.len());
    for case in cases {
        let options = serde_json::from_value(case["options"].clone()).expect("options of a session");
        let mut session = Session::new(model.clone(), &options).expect("a session");
        while session.step().expect("a step").is_some() {}
        case["tokens"] = session.generation().len().into();
        case["digest"] = session.digest().into();
        assert_eq!(session.generation().len(), 64, "a case ended early: {options:?}");
    }

    if std::env::var_os("LOGITSCOPE_UPDATE").is_some() {
        let fresh = serde_json::to_string_pretty(&recorded).expect("JSON");
        std::fs::write(file("tests/digests.json"), fresh + "\n").expect("a writable file");
    } else {
        assert_eq!(recorded, before, "tokens changed: `cargo xtask update`, and say why in CHANGELOG.md");
    }
}
