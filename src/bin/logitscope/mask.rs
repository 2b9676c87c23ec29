//! `logitscope mask`: what a constraint allows after a text.

use std::io::{self, BufRead, Write};

use logitscope::{
    Error, ErrorCode, constraint,
    model::{Precision, fnv::fnv_1a},
};
use serde_json::{Value, json};

use super::{Failure, models, write_line};

/// Read a beginning of a text a line, as a JSON string, and write what a constraint allows
/// after it.
///
/// Out: `{"allowed", "ids_head", "fnv", "eos", "accepting", "inside"}` or `{"rejected_at",
/// "token"}`, the byte at which the token begins that is not allowed, and that token.
/// Tokens that end a sequence are not counted; `eos` says whether they are allowed.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// `default` or a GGUF file
    #[arg(long)]
    model: String,
    /// The constraint, such as `regex("[0-9]+")`
    #[arg(long)]
    constraint: String,
}

/// How many ids are listed.
const HEAD: usize = 20;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = models::open(&arguments.model, Precision::Native)?;
    let fresh = constraint::open(&model, &arguments.constraint, &models::read_text)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    'lines: for line in io::stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        // An object may carry a name, or the ids of the beginning.
        let request: Value = match serde_json::from_str(&line) {
            Ok(request) => request,
            Err(error) => {
                let error = Error::new(ErrorCode::BadInput, format!("the line is not JSON: {error}"));
                write_line(&mut out, &json!({ "error": error }))?;
                continue;
            }
        };
        let (text, ids) = match &request {
            Value::Object(fields) => (fields.get("prefix").and_then(Value::as_str), fields.get("ids")),
            text => (text.as_str(), None),
        };
        let tokens = match (ids, text) {
            (Some(ids), _) => serde_json::from_value(ids.clone())
                .map_err(|error| Error::new(ErrorCode::BadInput, format!("ids cannot be read: {error}"))),
            (None, Some(text)) => model.tokenize(text, false, false),
            (None, None) => Err(Error::new(ErrorCode::BadInput, "the line is not a JSON string")),
        };
        let tokens: Vec<logitscope::TokenId> = match tokens {
            Ok(tokens) => tokens,
            Err(error) => {
                write_line(&mut out, &json!({ "error": error }))?;
                continue;
            }
        };
        let mut follower = fresh.fork();
        let mut read = 0;
        for (index, &token) in tokens.iter().enumerate() {
            follower.commit(token)?;
            if follower.standing()?.broken {
                write_line(&mut out, &json!({ "rejected_at": read, "token": index }))?;
                continue 'lines;
            }
            read += model.vocab().bytes(token).len();
        }
        let standing = follower.standing()?;
        let mut mask = follower.allowed()?.clone();
        for token in &model.vocab().eos {
            mask.remove(token.index());
        }
        let ids: Vec<usize> = mask.iter().collect();
        #[expect(clippy::cast_possible_truncation, reason = "an index is a token id")]
        let fnv = fnv_1a(ids.iter().flat_map(|&id| (id as u32).to_le_bytes()));
        write_line(
            &mut out,
            &json!({
                "allowed": ids.len(),
                "ids_head": &ids[..ids.len().min(HEAD)],
                "fnv": format!("{fnv:016x}"),
                "eos": standing.accepting,
                "accepting": standing.accepting,
                "ended": standing.ended,
                "inside": standing.inside,
            }),
        )?;
    }
    out.flush()?;
    Ok(())
}
