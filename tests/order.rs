//! Suspicious orders of stages: each warning has an order that earns it, and one that does not.
#![cfg(not(target_arch = "wasm32"))]

use logitscope::config::Args;
use logitscope::order::{commute, warnings_with_constraint};
use logitscope::random::Randomness;
use logitscope::testing::DISTRIBUTIONS;
use logitscope::{Logits, Pipeline, StepContext, TokenId};

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
        ("top_k(k=40) | dynamic_temperature(low=0.5, high=2)", vec![]),
        ("top_n_sigma(n=1) | temperature(t=2)", vec![]),
        ("top_n_sigma(n=1) | quadratic(factor=0.3)", vec!["temperature_after_nucleus"]),
        ("min_p(m=0.1) | temperature(t=2)", vec!["temperature_after_nucleus"]),
        ("min_p(m=0.1) | dynamic_temperature(low=1, high=2)", vec!["temperature_after_nucleus"]),
        ("min_p(m=0) | top_k(k=40) | temperature(t=2)", vec![]),
        ("typical(p=0.9) | temperature(t=2)", vec!["temperature_after_nucleus"]),
        ("epsilon(e=0.001) | temperature(t=2)", vec!["temperature_after_nucleus"]),
        ("eta(e=0.001) | temperature(t=2)", vec!["temperature_after_nucleus"]),
        ("top_a(a=0.2) | temperature(t=2)", vec!["temperature_after_nucleus"]),
        ("top_h(h=0.4) | temperature(t=2)", vec!["temperature_after_nucleus"]),
        ("tail_free(z=0.9) | temperature(t=2)", vec!["temperature_after_nucleus"]),
        ("temperature(t=2) | xtc(probability=0.5, threshold=0.1)", vec!["high_temperature_untruncated"]),
        ("temperature(t=2) | xtc(probability=0.5, threshold=0.1) | min_p(m=0.1)", vec![]),
    ] {
        assert_eq!(codes(text), wanted, "{text}");
    }
}

#[test]
fn a_warning_names_every_truncation_concerned() {
    let text = "top_k(k=40) | top_p(p=0.9) | min_p(m=0.1) | temperature(t=2) | presence_penalty(s=1)";
    let pipeline = Pipeline::parse(text).expect("a pipeline");
    let messages: Vec<&str> = pipeline.notes().iter().map(|note| note.message.as_str()).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    // What counts tokens keeps the same ones at any temperature.
    assert!(messages[0].contains("comes after top_p(p=0.9) and min_p(m=0.1), so"), "{}", messages[0]);
    assert!(messages[1].contains("the cut of top_k(k=40), top_p(p=0.9) and min_p(m=0.1)"), "{}", messages[1]);
}

/// Stages with values at which each does something to the rows below.
const ACTIVE: &[&str] = &[
    "logit_bias(bias={\"5\": 1.5, \"3\": \"-inf\"})",
    "sequence_bias(bias=[[[1, 5], 0.75]])",
    "suppress(ids=[2])",
    "bad_words(sequences=[[1, 4]])",
    "min_new_tokens(n=9, eos=[5])",
    "length_decay(start=0, factor=1.5, eos=[5])",
    "repetition_penalty(r=1.5)",
    "presence_penalty(s=0.5)",
    "frequency_penalty(f=0.5)",
    "no_repeat_ngram(n=2)",
    "dry(multiplier=0.8, allowed_length=1, breakers=[])",
    "temperature(t=2)",
    "temperature(t=0.5)",
    "dynamic_temperature(low=0.5, high=2)",
    "top_k(k=3)",
    "top_k(k=4, ties=keep)",
    "top_p(p=0.8)",
    "min_p(m=0.2)",
    "min_p(m=0.5, min_keep=2)",
    "typical(p=0.7)",
    "epsilon(e=0.1)",
    "eta(e=0.1)",
    "top_h(h=0.6)",
    "top_a(a=0.3)",
    "tail_free(z=0.7)",
    "top_n_sigma(n=1)",
    "top_n_sigma(n=1, deviation=sample)",
    "quadratic(factor=0.3)",
    "xtc(probability=1, threshold=0.1)",
];

/// What two stages make of a row: each live token with its probability.
fn outcome(first: &str, second: &str, row: &[f32]) -> Option<Vec<(TokenId, f64)>> {
    let history = [1, 2, 1, 5, 0, 1].map(TokenId);
    let pipeline = Pipeline::parse(&format!("{first} | {second}")).expect("a pipeline");
    let mut logits = Logits::new(row).expect("a row");
    pipeline.reshape(&mut logits, &StepContext::new(&history, 2, Randomness::default())).ok()?;
    let alive = logits.support();
    Some(alive.into_iter().map(|id| (id, logits.probability(id).expect("a probability"))).collect())
}

fn differ(a: &[(TokenId, f64)], b: &[(TokenId, f64)]) -> bool {
    a.len() != b.len() || a.iter().zip(b).any(|(a, b)| a.0 != b.0 || (a.1 - b.1).abs() > 1e-6)
}

/// `commute` is held to what the stages do: wherever it says yes, no row tells the two orders
/// apart, and wherever it says no, some row does.
#[test]
fn stages_commute_where_it_is_said_and_nowhere_else() {
    let mut rows: Vec<Vec<f32>> = (0..400u64)
        .map(|seed| {
            let (_, make) = DISTRIBUTIONS[1];
            make(8, seed).into_iter().map(|score| (score * 4.0).round() / 4.0).collect()
        })
        .collect();
    rows.push(vec![1.0; 8]);
    let (mut yes, mut no) = (0, 0);
    for (place, first) in ACTIVE.iter().enumerate() {
        for second in &ACTIVE[place + 1..] {
            let args = [first, second].map(|text| Args::parse(text).expect("a stage"));
            let orders = rows.iter().map(|row| (outcome(first, second, row), outcome(second, first, row)));
            let mut told_apart = orders.filter(|(a, b)| match (a, b) {
                (Some(a), Some(b)) => differ(a, b),
                (None, None) => false,
                _ => true,
            });
            if commute(&args[0], &args[1]) {
                let apart = told_apart.next();
                assert!(apart.is_none(), "{first} and {second}: {apart:?}");
                yes += 1;
            } else if args[0].spec.id != args[1].spec.id {
                assert!(told_apart.next().is_some(), "no row tells {first} and {second} apart");
                no += 1;
            }
        }
    }
    assert!(yes > 50 && no > 200, "{yes} commute, {no} do not");
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
