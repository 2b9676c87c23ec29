//! Suspicious orders of stages: each warning has an order that earns it, and one that does not.
#![cfg(not(target_arch = "wasm32"))]

use logitscope::Pipeline;
use logitscope::config::Args;
use logitscope::order::warnings_with_constraint;

fn codes(text: &str) -> Vec<&'static str> {
    let pipeline = Pipeline::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    pipeline.notes().iter().map(|note| note.code).collect()
}

#[test]
fn each_warning_has_an_order_that_earns_it_and_one_that_does_not() {
    for (text, wanted) in [
        ("temperature(t=1.8)", vec!["high_temperature_untruncated"]),
        ("temperature(t=1.1) | temperature(t=1.2)", vec!["high_temperature_untruncated"]),
        ("temperature(t=1.8) | greedy()", vec![]),
        ("temperature(t=1.8) | mirostat2()", vec![]),
        ("temperature(t=1.8) | min_p(m=0.05)", vec![]),
        ("temperature(t=1.8) | top_k(k=0)", vec!["high_temperature_untruncated"]),
        ("top_k(k=40) | repetition_penalty(r=1.1)", vec!["penalty_after_truncation"]),
        ("top_k(k=40) | repetition_penalty(r=1)", vec![]),
        ("repetition_penalty(r=1.1) | top_k(k=40)", vec![]),
        ("top_k(k=40) | suppress(ids=[1])", vec!["mask_after_truncation"]),
        ("suppress(ids=[1]) | top_k(k=40)", vec![]),
        ("top_p(p=0.9) | temperature(t=0.7)", vec!["temperature_after_nucleus"]),
        ("top_p(p=1) | temperature(t=0.7)", vec![]),
        ("temperature(t=0.7) | top_p(p=0.9)", vec![]),
        ("top_k(k=40) | temperature(t=0.7)", vec![]),
    ] {
        assert_eq!(codes(text), wanted, "{text}");
    }
}

#[test]
fn a_constraint_after_a_truncation_is_warned_about() {
    let pipeline = Pipeline::parse("temperature(t=0.7) | top_k(k=1) | greedy()").expect("a pipeline");
    let stages: Vec<&Args> = pipeline.stages().iter().map(|stage| &stage.args).collect();
    let codes =
        |at| -> Vec<_> { warnings_with_constraint(&stages, at).iter().map(|note| note.code).collect() };
    assert_eq!(codes(Some(0)), Vec::<&str>::new());
    assert_eq!(codes(Some(1)), Vec::<&str>::new());
    assert_eq!(codes(Some(2)), ["truncation_before_grammar"]);
}

#[test]
fn a_framework_that_masks_last_is_warned_about_when_it_is_given_a_grammar() {
    let llama = logitscope::profile::find("llama.cpp").expect("a profile");
    let codes = |params| -> Vec<String> {
        let found = llama.translate(&params, 0).expect("a translation");
        found.notes.into_iter().map(|note| note.code).collect()
    };
    let late = "truncation_before_grammar".to_owned();
    assert!(codes(serde_json::json!({ "grammar": "root ::= \"yes\"" })).contains(&late));
    assert!(!codes(serde_json::json!({})).contains(&late));
    let untruncated = serde_json::json!({ "grammar": "root ::= \"yes\"", "samplers": ["temperature"] });
    assert!(!codes(untruncated).contains(&late));
}
