//! Holds every stage to the numbers in `tests/golden/<id>.toml`.
//!
//! A case gives a row (`logits`, or `probs` whose logarithms it is), what surrounds it, and
//! what must come out: the ids kept, the scores, the probabilities, the token, the state. All
//! failures are reported at once; a stage without a file, or with fewer than five cases, is a
//! failure. A file says where its numbers come from.
#![cfg(not(target_arch = "wasm32"))]

use logitscope::apply::{Defaults, answer};
use logitscope::registry;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// Who computed the numbers; the head of the file says more.
    reference: String,
    stage: String,
    logits: Option<Vec<f64>>,
    probs: Option<Vec<f64>>,
    #[serde(default)]
    history: Vec<u32>,
    #[serde(default)]
    prompt_len: usize,
    u: Option<f64>,
    force: Option<u32>,
    state: Option<Value>,
    keep: Option<Vec<u32>>,
    scores: Option<Vec<f64>>,
    expect: Option<Vec<f64>>,
    token: Option<u32>,
    state_after: Option<Value>,
}

const TOLERANCE: f64 = 3e-5;

fn close(own: f64, wanted: f64) -> bool {
    own == wanted || (own - wanted).abs() <= TOLERANCE * wanted.abs() + 1e-6
}

fn check(case: &Case) -> Result<(), String> {
    let row: Vec<f64> = match (&case.logits, &case.probs) {
        (Some(logits), None) => logits.clone(),
        (None, Some(probs)) => probs.iter().map(|p| libm::log(*p)).collect(),
        _ => return Err("give logits or probs".to_owned()),
    };
    let quoted: Vec<Value> =
        row.iter().map(|x| if x.is_finite() { json!(x) } else { json!("-inf") }).collect();
    let mut request = json!({
        "logits": quoted, "history": case.history, "prompt_len": case.prompt_len,
        "pipeline": case.stage, "u": case.u.unwrap_or(0.5),
    });
    if let Some(state) = &case.state {
        request["state"] = state.clone();
    }
    if let Some(force) = case.force {
        request["force"] = json!(force);
    }
    let answer = answer(&request.to_string(), &Defaults::default());
    let stage = answer["stages"].as_array().and_then(|stages| stages.last());
    let stage = stage.ok_or_else(|| format!("gave {answer}"))?;
    let ids: Vec<u32> = serde_json::from_value(stage["ids"].clone()).map_err(|error| error.to_string())?;
    if let Some(keep) = &case.keep
        && *keep != ids
    {
        return Err(format!("kept {ids:?}, not {keep:?}"));
    }
    for (wanted, field, dead) in [(&case.scores, "scores", f64::NEG_INFINITY), (&case.expect, "probs", 0.0)] {
        for (id, &wanted) in wanted.iter().flatten().enumerate() {
            let place = ids.iter().position(|own| *own as usize == id);
            let own = place.and_then(|place| stage[field][place].as_f64()).unwrap_or(dead);
            if !close(own, wanted) {
                return Err(format!("{field} of {id} is {own}, not {wanted}"));
            }
        }
    }
    if let Some(token) = case.token
        && answer["draw"]["token"] != json!(token)
    {
        return Err(format!("drew {}, not {token}", answer["draw"]["token"]));
    }
    for (name, wanted) in case.state_after.iter().filter_map(Value::as_object).flatten() {
        let own = answer["state"][name].as_f64().unwrap_or(f64::NAN);
        if !wanted.as_f64().is_some_and(|wanted| close(own, wanted)) {
            return Err(format!("{name} is {own} afterwards, not {wanted}"));
        }
    }
    if [case.keep.is_none(), case.scores.is_none(), case.expect.is_none(), case.token.is_none()] == [true; 4]
    {
        return Err("asks for nothing".to_owned());
    }
    Ok(())
}

#[test]
fn every_stage_gives_its_golden_numbers() {
    let mut ran = 0;
    let mut failures = Vec::new();
    for spec in registry::ALL {
        let path = format!("{}/tests/golden/{}.toml", env!("CARGO_MANIFEST_DIR"), spec.id);
        let file = match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str::<File>(&text).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let file = match file {
            Ok(file) => file,
            Err(error) => {
                failures.push(format!("{path}: {error}"));
                continue;
            }
        };
        if file.case.len() < 5 {
            failures.push(format!("{path}: {} cases, at least five are due", file.case.len()));
        }
        for case in &file.case {
            ran += 1;
            if !case.stage.contains(spec.id) || case.reference.is_empty() {
                failures.push(format!("{}: {}: it must name the stage and a reference", spec.id, case.name));
            }
            if let Err(why) = check(case) {
                failures.push(format!("{}: {} ({}): {why}", spec.id, case.name, case.stage));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    assert!(ran >= 5 * registry::ALL.len(), "only {ran} cases ran");
}
