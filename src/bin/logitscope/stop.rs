//! `logitscope stop`: where stop strings end a sequence of tokens.

use std::io::{self, BufRead, Write};

use logitscope::{
    Error, ErrorCode, TokenId,
    model::{LanguageModel, Precision},
    stop::{StopRules, StopState},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Failure, models, write_line};

/// Say where stop strings end a sequence: one JSON object a line in, one out.
///
/// In: `{"ids": [..], "stop": [..], "trim": true}`. Out: `{"first", "text", "held_back",
/// "stop_string"}`; `first` counts the ids consumed when it stops, or is null.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// `default` or a GGUF file
    #[arg(long)]
    model: String,
}

/// One line of input; other fields are ignored.
#[derive(Debug, Deserialize)]
struct Line {
    ids: Vec<TokenId>,
    #[serde(default)]
    stop: Vec<String>,
    #[serde(default = "yes")]
    trim: bool,
}

fn yes() -> bool {
    true
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = models::open(&arguments.model, Precision::Native)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let read = serde_json::from_str::<Line>(&line)
            .map_err(|error| Error::new(ErrorCode::BadInput, format!("the line cannot be read: {error}")));
        let mut answer =
            read.and_then(|line| answer(&*model, line)).unwrap_or_else(|error| json!({ "error": error }));
        let id = serde_json::from_str::<Value>(&line).map_or(Value::Null, |line| line["id"].clone());
        if !id.is_null() {
            answer["id"] = id;
        }
        write_line(&mut out, &answer)?;
    }
    out.flush()?;
    Ok(())
}

fn answer(model: &dyn LanguageModel, line: Line) -> Result<Value, Error> {
    let vocab = model.vocab();
    if let Some(id) = line.ids.iter().find(|id| id.index() >= vocab.len()) {
        let message = format!("token {id} is not in a vocabulary of {}", vocab.len());
        return Err(Error::new(ErrorCode::TokenOutOfVocabulary, message).param("ids"));
    }
    let rules = StopRules { eos: Vec::new(), strings: line.stop, trim: line.trim, max_tokens: usize::MAX };
    let mut state = StopState::default();
    for (index, &id) in line.ids.iter().enumerate() {
        state.push(&rules, vocab, id);
        if let Some(finish) = state.finish(&rules, false) {
            return Ok(json!({
                "first": index + 1, "text": state.text(), "held_back": "", "stop_string": finish.stop_string,
            }));
        }
    }
    Ok(json!({
        "first": null,
        "text": state.text(),
        "held_back": state.stream().held_back(),
        "partial_bytes": state.stream().partial().len(),
        "stop_string": null,
    }))
}
