//! Tiny random models of each architecture against the logits that transformers gives.
//!
//! `tests/architectures/generate.py` says how the files were made. They also hold what the
//! real models lack: matrices of half floats, Llama 3's slowed rotations, heads that are
//! wider than their share.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::{fs, path::Path};

use logitscope::{
    TokenId,
    model::{Precision, open},
};
use serde_json::Value;

#[test]
fn logits_are_those_of_transformers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/architectures");
    let expected: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("logits.json")).unwrap()).unwrap();
    let mut compared = 0;
    for (name, case) in expected["models"].as_object().unwrap() {
        let model = open(fs::read(folder.join(format!("{name}.gguf"))).unwrap(), Precision::F32).unwrap();
        assert_eq!(model.info().architecture, *name);
        let ids: Vec<TokenId> = serde_json::from_value(case["ids"].clone()).unwrap();
        let rows = model.start().advance(&ids, ids.len()).unwrap();
        for (position, logits) in case["logits"].as_object().unwrap() {
            let position: usize = position.parse().unwrap();
            let logits: Vec<f32> = serde_json::from_value(logits.clone()).unwrap();
            assert_eq!(logits.len(), rows[position].len());
            for (id, (have, want)) in rows[position].iter().zip(&logits).enumerate() {
                let tolerance = 2e-5 * want.abs().max(1.0);
                assert!(
                    (have - want).abs() < tolerance,
                    "{name} position {position} token {id}: {have} {want}"
                );
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 3 * 3 * 260);
}

#[test]
fn bos_is_added_where_the_pre_tokenizer_implies_it() {
    let read = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/architectures");
        open(fs::read(folder.join(name)).unwrap(), Precision::F32).unwrap()
    };
    // The files do not say, so Llama 3's rule and Qwen's apply.
    assert_eq!(read("llama.gguf").tokenize("abc", true, true).unwrap(), [TokenId(258), TokenId(257)]);
    assert_eq!(read("qwen2.gguf").tokenize("abc", true, true).unwrap(), [TokenId(257)]);
    let parsed = read("qwen3.gguf").tokenize("<|end|>", true, true).unwrap();
    assert_eq!(parsed, [TokenId(259)]);
}
