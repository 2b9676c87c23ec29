//! `logitscope tokenize`: the token ids of texts.

use std::io::{self, BufRead, BufWriter, Write};

use logitscope::{Error, ErrorCode, TokenId, model::Precision};
use serde::Serialize;

use super::{Failure, models, write_line};

/// Read a JSON string a line, and write its token ids and pieces.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// `default` or a GGUF file
    #[arg(long)]
    model: String,
    /// Treat special tokens written in the text as text
    #[arg(long)]
    special_as_text: bool,
}

/// One line of the answer.
#[derive(Debug, Serialize)]
struct Line {
    ids: Vec<TokenId>,
    /// The text of each token; bytes that are no whole character appear as U+FFFD.
    pieces: Vec<String>,
    /// The bytes of each token in hexadecimal, where some piece is no whole text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pieces_hex: Option<Vec<String>>,
    /// Bytes of the text that the vocabulary has no token for, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped_hex: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = models::open(&arguments.model, Precision::Native)?;
    let mut out = BufWriter::new(io::stdout().lock());
    for (index, line) in io::stdin().lock().lines().enumerate() {
        let line = line.map_err(|error| bad_line(index, &error.to_string()))?;
        let text: String =
            serde_json::from_str(&line).map_err(|error| bad_line(index, &error.to_string()))?;
        let encoding = model.encode(&text, !arguments.special_as_text, true)?;
        let bytes = || encoding.ids.iter().map(|id| model.vocab().bytes(*id));
        let whole = bytes().all(|bytes| std::str::from_utf8(bytes).is_ok());
        let line = Line {
            pieces: encoding.ids.iter().map(|id| models::piece(&*model, *id)).collect(),
            pieces_hex: (!whole).then(|| bytes().map(hex).collect()),
            dropped_hex: (!encoding.dropped.is_empty()).then(|| hex(&encoding.dropped)),
            ids: encoding.ids,
        };
        write_line(&mut out, &line)?;
        out.flush()?;
    }
    Ok(())
}

fn bad_line(index: usize, why: &str) -> Error {
    Error::new(ErrorCode::BadInput, format!("line {} is not a JSON string: {why}", index + 1))
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}
