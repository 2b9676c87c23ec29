//! `logitscope verify`: the judgement of drafted tokens alone.

use std::io::{self, BufRead, Write};

use logitscope::{
    Error, ErrorCode, TokenId,
    strategy::speculative::{Rule, softmax, verify},
};
use serde_json::{Value, json};

use super::{Failure, write_line};

/// Judge drafted tokens: one JSON object a line in, one out.
///
/// In: `{"draft_logits": [[..]], "target_logits": [[..]], "draft_tokens": [..], "uniforms":
/// [..], "rule": "rejection"}`. Out: `{"accepted", "next_token_probs", "drafted"}`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {}

pub(super) fn run(_: &Arguments) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let (id, answer) = match serde_json::from_str::<Value>(&line) {
            Ok(request) => (request["id"].clone(), answer(&request)),
            Err(error) => {
                let message = format!("the line is not JSON: {error}");
                (Value::Null, Err(Error::new(ErrorCode::BadInput, message)))
            }
        };
        let mut answer = answer.unwrap_or_else(|error| json!({ "error": error }));
        if !id.is_null() {
            answer["id"] = id;
        }
        write_line(&mut out, &answer)?;
    }
    out.flush()?;
    Ok(())
}

fn answer(request: &Value) -> Result<Value, Error> {
    let refuse =
        |field: &str, why: &str| Error::new(ErrorCode::BadInput, format!("{field} {why}")).param(field);
    let rows = |field: &str| -> Result<Vec<Vec<f64>>, Error> {
        let rows = request[field].as_array().ok_or_else(|| refuse(field, "must be a list of rows"))?;
        let logit = |logit: &Value| match (logit.as_f64(), logit.as_str()) {
            (Some(number), _) => Some(number),
            (None, Some("-inf" | "-Infinity")) => Some(f64::NEG_INFINITY),
            _ => None,
        };
        let row = |row: &Value| -> Option<Vec<f64>> {
            let row: Option<Vec<f64>> = row.as_array()?.iter().map(logit).collect();
            row.filter(|row| row.iter().any(|logit| logit.is_finite()))
        };
        let rows: Option<Vec<Vec<f64>>> = rows.iter().map(row).collect();
        let rows =
            rows.ok_or_else(|| refuse(field, "must be rows of numbers or \"-inf\", one of them finite"))?;
        Ok(rows.iter().map(|row| softmax(row)).collect())
    };
    let tokens: Vec<TokenId> = serde_json::from_value(request["draft_tokens"].clone())
        .map_err(|_| refuse("draft_tokens", "must be a list of token ids"))?;
    let uniforms: Vec<f64> = serde_json::from_value(request["uniforms"].clone())
        .map_err(|_| refuse("uniforms", "must be a list of numbers"))?;
    let rule: Rule = request["rule"].as_str().unwrap_or("rejection").parse()?;
    let judged = verify(&rows("draft_logits")?, &rows("target_logits")?, &tokens, &uniforms, rule)?;
    Ok(json!(judged))
}
