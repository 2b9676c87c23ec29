//! `logitscope apply`: rows of logits in, the account of one step out.

use std::io::{self, BufRead, Write};

use clap::Args;
use logitscope::{
    Error, ErrorCode, Pipeline, apply,
    model::{LanguageModel, Precision},
    profile::{self, Profile},
};
use serde_json::Value;

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
    /// Run as this framework would: lesson, transformers, llama.cpp, vllm, sglang, koboldcpp,
    /// text-generation-webui, transformers.js, web-llm, candle, mistral.rs, rten, tgi, openai,
    /// anthropic.
    #[arg(long, value_name = "NAME", conflicts_with = "pipeline")]
    profile: Option<String>,
    /// The request in the framework's own parameter names, as a JSON object.
    #[arg(long, value_name = "JSON", requires = "profile", default_value = "{}")]
    params: String,
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
    let profile =
        arguments.profile.as_deref().map(|name| read_profile(name, &arguments.params)).transpose()?;
    let model = arguments.model.as_deref().map(|name| models::open(name, Precision::Native)).transpose()?;
    let defaults = apply::Defaults {
        pipelines: arguments.pipeline.clone(),
        profile,
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

/// The profile and its request, tried once so that a bad one is refused before any line.
fn read_profile(name: &str, params: &str) -> Result<(Profile, Value), Failure> {
    let profile = profile::find(name)?;
    let params: Value = serde_json::from_str(params).map_err(|error| {
        Error::new(ErrorCode::BadInput, format!("--params is not JSON: {error}")).param("params")
    })?;
    profile.translate(&params, 0)?;
    Ok((profile, params))
}
