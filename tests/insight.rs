//! Comparison, penalties and the ledger over a session: what the page shows beside a trace.
#![cfg(not(target_arch = "wasm32"))]

use std::sync::Arc;

use logitscope::model::table::TableModel;
use logitscope::session::Session;
use logitscope::{Pipeline, StepContext, TokenId, ledger::ledger, sampler::Pick};
use serde_json::json;

fn session() -> Session {
    // After any token the row is 3, 2, 1.
    let table: Vec<f64> = (0..48).map(|entry| 3.0 - f64::from(entry % 3)).collect();
    let table = &table[..27];
    let model = TableModel::from_json(&json!({ "vocab": 3, "eos": 2, "table": table }).to_string());
    let options = json!({
        "promptIds": [0, 1],
        "pipeline": "frequency_penalty(f=1, scope=context) | top_p(p=0.8) | categorical(seed=7)",
    });
    let options = serde_json::from_value(options).expect("options");
    Session::new(Arc::new(model.expect("a table")), &options).expect("a session")
}

#[test]
fn rivals_see_the_row_and_the_draw_of_the_step() {
    let mut session = session();
    let draw = session.trace(0).expect("a trace").draw.expect("drawn");
    let texts = ["top_p(p=0.8) | temperature(t=0.5)", "temperature(t=0.5) | top_p(p=0.8)"].map(String::from);
    let found = session.compare(0, &texts, 3).expect("a comparison");
    assert_eq!((found.sides[0].kept, found.sides[1].kept), (2, 1));
    assert_eq!(found.sides[0].taken.expect("taken").u, draw.u);
    assert!(found.partings[0].words.starts_with("A and B part at stage 1"), "{}", found.partings[0].words);
    assert!(session.compare(1, &texts, 3).is_err(), "step 1 is not reached yet");
}

#[test]
fn penalties_are_those_of_the_pipeline_in_force() {
    let mut session = session();
    let seen = session.penalties(0).expect("a view");
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].id.as_str(), seen[0].view.clone()), ("frequency_penalty", 0..2));
    let moved: Vec<_> =
        seen[0].tokens.iter().map(|token| (token.token.0, token.before, token.after)).collect();
    assert_eq!(moved, [(0, 3.0, Some(2.0)), (1, 2.0, Some(1.0))]);
}

#[test]
fn a_ledger_ends_at_the_stage_that_removed_the_token() {
    let text = "repetition_penalty(r=2) | top_k(k=2) | min_p(m=0.9) | categorical(seed=7)";
    let pipeline = Pipeline::parse(text).expect("a pipeline");
    let history = [TokenId(0)];
    let context = StepContext::new(&history, 0, logitscope::random::Randomness::default());
    let row = [3.0, 2.0, 1.9, 0.0];
    let book = |token| ledger(&pipeline, &row, &context, Pick::Uniform(0), TokenId(token)).expect("a ledger");
    let penalised = book(0);
    assert_eq!(penalised.entries[1].edit.as_deref(), Some("seen once"));
    assert!(penalised.removed_by.as_deref().is_some_and(|stage| stage.starts_with("top_k")));
    let verdict = penalised.entries[2].verdict.as_ref().expect("a verdict");
    assert_eq!((verdict.reason.as_str(), verdict.margin), ("its rank was 3 > 2", -1.0));
    let winner = book(1);
    assert_eq!((winner.removed_by, winner.drawn), (None, true));
    assert!(winner.entries.iter().all(|entry| entry.alive));
}

#[test]
fn a_rival_with_a_state_has_seen_the_tokens_before() {
    let table: Vec<f64> = (0..64).map(|entry| 3.0 - f64::from(entry % 4)).collect();
    let model = TableModel::from_json(&json!({ "vocab": 4, "eos": 3, "table": table }).to_string());
    let text = "mirostat2(tau=0.9, eta=0.9, seed=7)";
    let options = serde_json::from_value(json!({ "promptIds": [0, 1], "pipeline": text })).expect("options");
    let mut session = Session::new(Arc::new(model.expect("a table")), &options).expect("a session");
    let mut told_apart = 0;
    for step in 0..6 {
        let own = session.trace(step).expect("a trace");
        let found = session.compare(step, &[text.to_owned()], 4).expect("a comparison");
        assert_eq!(found.sides[0].kept, own.stages.last().expect("a sampler").alive, "at step {step}");
        assert_eq!(found.sides[0].taken.expect("taken").token, own.draw.expect("drawn").token);
        told_apart += usize::from(
            found.sides[0].kept != session.compare(0, &[text.to_owned()], 4).expect("first").sides[0].kept,
        );
        session.force(TokenId(0)).expect("a step");
    }
    assert!(told_apart > 0, "the state never mattered");
}

#[test]
fn a_family_stands_together_with_its_share_of_the_probability() {
    let model = logitscope::model::open(
        std::fs::read("models/default.gguf").expect("the model"),
        logitscope::model::Precision::Native,
    );
    let options = json!({ "prompt": "The dog ran to", "pipeline": "top_k(k=20) | categorical(seed=7)" });
    let options = serde_json::from_value(options).expect("options");
    let mut session = Session::new(model.expect("a model"), &options).expect("a session");
    let the = logitscope::session::search(&**session.generation().model(), " the", 1)[0].id;
    let found = session.family(0, the).expect("a family");
    assert_eq!((found.relatives[0].token, found.relatives[0].piece.as_str()), (the, " the"));
    assert!(found.relatives.len() > 2 && found.left_out == 0, "{:?}", found.relatives);
    let raw = &found.trace.stages[0].rows;
    assert_eq!(raw.len(), found.relatives.len());
    let own = raw.iter().find(|row| row.token == the).expect("the token itself");
    assert!(found.raw_mass >= own.probability && found.raw_mass <= 1.0);
    assert!(session.family(0, TokenId(9_999_999)).is_err());
}
