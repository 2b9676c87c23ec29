//! What only a browser can show: that the crate works there as it does natively.
//!
//! `wasm-pack test --headless --chrome` runs these, and so does `cargo xtask test wasm`. The
//! page has its own tests in `www/tests/`.
#![cfg(target_arch = "wasm32")]

use js_sys::{Error, Reflect};
use logitscope::model::{self, Precision};
use logitscope::session::Session;
use logitscope::wasm::{Decoder, parse_pipeline, version};
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

#[wasm_bindgen_test]
fn the_version_crosses_the_boundary() {
    assert_eq!(version(), env!("CARGO_PKG_VERSION"));
}

#[wasm_bindgen_test]
fn a_refusal_is_a_javascript_error_with_its_fields() {
    let thrown = Error::from(parse_pipeline("temperature(t=0.8) | top_p(p=1.5)").expect_err("out of range"));
    let field = |name: &str| Reflect::get(&thrown, &name.into()).expect("an object").as_string();
    assert_eq!(field("name").as_deref(), Some("LogitscopeError"));
    assert_eq!(field("code").as_deref(), Some("out_of_range"));
    assert_eq!(field("stage").as_deref(), Some("top_p"));
    assert_eq!(field("param").as_deref(), Some("p"));
    assert!(field("message").is_some_and(|message| message.contains("1.5")));
}

#[wasm_bindgen_test]
fn a_decoder_takes_logits_from_javascript() {
    // Probabilities 2/3 and 1/3 survive top-k; the draw 0.7 falls past the first.
    let row = [2.0_f32.ln(), 0.0, -1.0];
    let mut decoder = Decoder::new("top_k(k=2) | categorical(seed=1)").expect("a pipeline");
    assert_eq!(decoder.decode(&row, &[], 0, Some(0.6)).expect("a token"), 0);
    assert_eq!(decoder.decode(&row, &[], 0, Some(0.7)).expect("a token"), 1);
    assert!(decoder.decode(&row, &[], 0, Some(1.0)).is_err());
    assert!(decoder.decode(&row, &[2], 2, None).is_err());
}

#[wasm_bindgen_test]
fn traces_have_the_digests_recorded_natively() {
    let model =
        model::open(&include_bytes!("../models/default.gguf")[..], Precision::Native).expect("a model");
    let recorded: serde_json::Value =
        serde_json::from_str(include_str!("digests.json")).expect("the recorded digests");
    let cases = recorded["cases"].as_array().expect("a list of cases");
    assert!(cases.len() >= 3, "only {} cases", cases.len());
    for case in cases {
        let options = serde_json::from_value(case["options"].clone()).expect("options of a session");
        let mut session = Session::new(model.clone(), &options).expect("a session");
        while session.step().expect("a step").is_some() {}
        assert_eq!(case["digest"], session.digest().as_str(), "{options:?}");
    }
}
