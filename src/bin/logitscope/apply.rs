//! `logitscope apply`: rows of logits in, the account of one step out.

use std::io::{self, BufRead, Write};

use clap::Args;
use logitscope::{
    Pipeline, apply,
    model::{LanguageModel, Precision},
};

use super::{Failure, models, write_line};

/// Apply a pipeline to rows of logits: one JSON object a line in, one out.
///
/// In: `{"logits": [..], "history": [..], "prompt_len": n, "u": x, "pipeline": ".."}` and
/// more. Out: every stage's live ids, scores and probabilities, and the draw. A bad line is
/// answered with its error; the rest goes on.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The pipeline of lines that name none; several are compared on each row.
    pipeline: Vec<String>,
    /// A model file whose vocabulary says what tokens stand for.
    #[arg(long, value_name = "FILE|default|table:FILE")]
    model: Option<String>,
    /// List only the first 20 ids of each stage, and a hash of all.
    #[arg(long)]
    probe: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    for text in &arguments.pipeline {
        Pipeline::parse(text)?;
    }
    let model = arguments.model.as_deref().map(|name| models::open(name, Precision::Native)).transpose()?;
    let defaults = apply::Defaults {
        pipelines: arguments.pipeline.clone(),
        vocab: model.as_deref().map(LanguageModel::vocab),
        probe: arguments.probe,
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut line = Vec::new();
    let mut input = io::stdin().lock();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            write_line(&mut out, &apply::answer(text.trim(), &defaults))?;
        }
    }
    out.flush()?;
    Ok(())
}
