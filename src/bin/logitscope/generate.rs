//! `logitscope generate`: from a prompt to a finished text.

use std::{
    fs,
    io::{self, BufRead, Write},
    sync::Arc,
};

use clap::Args;
use logitscope::{
    Error, ErrorCode, Pipeline,
    model::{LanguageModel, Precision},
    session::{Options, Session, Step},
};
use serde_json::{Value, json};

use super::{Failure, models, write_line};

/// Continue a prompt, showing how every token came about.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The model.
    #[arg(long, value_name = "FILE|default|table:FILE", default_value = "default")]
    model: String,
    /// The text to continue.
    #[arg(long, required_unless_present_any = ["jsonl", "prompt_ids"])]
    prompt: Option<String>,
    /// The prompt as token ids, such as "1,2,3", in place of a text.
    #[arg(long, value_name = "IDS", conflicts_with = "prompt")]
    prompt_ids: Option<String>,
    /// The pipeline; its sampler may be left out.
    #[arg(long, default_value = "categorical()")]
    pipeline: String,
    /// A seed, which overrides the pipeline's.
    #[arg(long)]
    seed: Option<u64>,
    /// A text that ends the sequence; may be given several times.
    #[arg(long)]
    stop: Vec<String>,
    /// Keep the stop string at the end of the text.
    #[arg(long)]
    keep_stop: bool,
    /// How many tokens to generate at most.
    #[arg(long, default_value_t = 64)]
    max_tokens: usize,
    /// How many independent samples.
    #[arg(long, default_value_t = 1)]
    samples: u32,
    /// Write everything needed to replay the generation to this file.
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    /// How the model multiplies.
    #[arg(long, default_value = "native")]
    precision: Precision,
    /// A line of JSON for each step, and a last one with the result.
    #[arg(long)]
    json: bool,
    /// Read one request a line from standard input, and write one answer a line.
    #[arg(long)]
    jsonl: bool,
    /// How many tokens of each stage are in view.
    #[arg(long, default_value_t = 5)]
    top: usize,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = models::open(&arguments.model, arguments.precision)?;
    let mut out = io::stdout().lock();
    if arguments.jsonl {
        return requests(&model, &mut out);
    }
    // The pipeline is read before anything runs, so that a mistake costs nothing.
    let (pipeline, seed) = Pipeline::parse(&arguments.pipeline)?.settled(arguments.seed)?;
    let mut traces = Vec::new();
    for sample in 0..arguments.samples.max(1) {
        let options = Options {
            prompt: arguments.prompt.clone().unwrap_or_default(),
            prompt_ids: arguments.prompt_ids.as_deref().map(models::parse_ids).transpose()?,
            pipeline: pipeline.to_string(),
            seed: Some(seed.to_string()),
            sample,
            max_tokens: Some(arguments.max_tokens),
            stop: arguments.stop.clone(),
            trim: Some(!arguments.keep_stop),
            eos: None,
            forced: std::collections::BTreeMap::default(),
            top: Some(arguments.top),
        };
        let mut session = Session::new(Arc::clone(&model), &options)?;
        if !arguments.json {
            writeln!(out, "{}\nseed {seed}, sample {sample}", session.generation().pipeline())?;
        }
        while session.generation().finish().is_none() {
            let Some(step) = session.step().map_err(Failure::Run)? else { break };
            if arguments.json {
                write_line(&mut out, &step)?;
            } else {
                show(&mut out, &*model, &step)?;
            }
        }
        let result = result(&session);
        if arguments.json {
            write_line(&mut out, &result)?;
        } else {
            writeln!(out, "\n{}{}", options.prompt, session.generation().text())?;
            writeln!(out, "\nended: {}", result["finish_reason"].as_str().unwrap_or_default())?;
        }
        traces.push(session.trace_file());
    }
    if let Some(path) = &arguments.trace {
        // One sample is a trace file; several are a list of them.
        let file = if traces.len() == 1 { traces.remove(0) } else { Value::Array(traces) };
        fs::write(path, format!("{file}\n")).map_err(|error| {
            Failure::Run(Error::new(ErrorCode::Io, format!("{path} could not be written: {error}")))
        })?;
    }
    Ok(())
}

/// The last line of a generation.
fn result(session: &Session) -> Value {
    let generation = session.generation();
    let (raw, last) = session.logprob();
    let finish = generation.finish();
    json!({
        "text": generation.text(),
        "tokens": generation.tokens(),
        "finish_reason": finish.map(|finish| finish.reason),
        "also": finish.map(|finish| &finish.also),
        "stop_string": finish.and_then(|finish| finish.stop_string.as_deref()),
        "stage": finish.and_then(|finish| finish.stage.as_deref()),
        "seed": generation.seed(),
        "pipeline": generation.pipeline().to_string(),
        "logprob": { "raw": raw, "final": last },
        "digest": session.digest(),
    })
}

/// One step for people: the token, and what each stage left.
fn show(out: &mut impl Write, model: &dyn LanguageModel, step: &Step) -> io::Result<()> {
    let Some(draw) = &step.trace.draw else { return Ok(()) };
    write!(out, "{:>4} {:<16} p {:.4}", step.index, format!("{:?}", step.piece), draw.probability)?;
    if draw.random {
        write!(out, "  u {:.4} in [{:.4}, {:.4})", draw.u, draw.low, draw.high)?;
    }
    let left: Vec<String> =
        step.trace.stages.iter().map(|stage| format!("{} {}", stage.id, stage.alive)).collect();
    writeln!(out, "  {}", left.join(" > "))?;
    if let Some(raw) = step.trace.stages.first() {
        let likeliest = raw
            .rows
            .iter()
            .map(|row| format!("{:?} {:.3}", logitscope::session::piece(model, row.token), row.probability));
        writeln!(out, "       {}", likeliest.collect::<Vec<_>>().join("  "))?;
    }
    Ok(())
}

/// One request a line, one answer a line; a bad line is answered with its error.
fn requests(model: &Arc<dyn LanguageModel>, out: &mut impl Write) -> Result<(), Failure> {
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let request: Value = match serde_json::from_str(&line) {
            Ok(request) => request,
            Err(error) => {
                let error = Error::new(ErrorCode::BadInput, format!("the line is not JSON: {error}"));
                write_line(out, &json!({ "id": null, "error": error }))?;
                continue;
            }
        };
        let id = request["id"].clone();
        match answer(model, &request) {
            Ok(mut answer) => {
                answer["id"] = id;
                write_line(out, &answer)?;
            }
            Err(error) => write_line(out, &json!({ "id": id, "error": error }))?,
        }
        out.flush()?;
    }
    Ok(())
}

/// Runs one request of `--jsonl`.
fn answer(model: &Arc<dyn LanguageModel>, request: &Value) -> Result<Value, Error> {
    let field = |name: &str, error: serde_json::Error| {
        Error::new(ErrorCode::BadInput, format!("{name} cannot be read: {error}")).param(name)
    };
    let read = |name: &str| Some(request[name].clone()).filter(|value| !value.is_null());
    macro_rules! optional {
        ($name:literal) => {
            read($name).map(serde_json::from_value).transpose().map_err(|error| field($name, error))?
        };
    }
    let seed: Option<u64> = optional!("seed");
    let samples: Option<u32> = optional!("samples");
    let pipeline: Option<String> = optional!("pipeline");
    let prompt: Option<String> = optional!("prompt");
    let (pipeline, seed) = Pipeline::parse(pipeline.as_deref().unwrap_or_default())?.settled(seed)?;
    let mut options = Options {
        prompt: prompt.unwrap_or_default(),
        prompt_ids: optional!("prompt_ids"),
        pipeline: pipeline.to_string(),
        seed: Some(seed.to_string()),
        sample: 0,
        max_tokens: optional!("max_tokens"),
        stop: read("stop").map_or(Ok(Vec::new()), |stop| match stop {
            Value::String(one) => Ok(vec![one]),
            several => serde_json::from_value(several).map_err(|error| field("stop", error)),
        })?,
        trim: optional!("trim"),
        eos: optional!("eos"),
        forced: std::collections::BTreeMap::default(),
        top: Some(1),
    };
    let (mut sequences, mut scores, mut texts, mut reasons) = (vec![], vec![], vec![], vec![]);
    for sample in 0..samples.unwrap_or(1).max(1) {
        options.sample = sample;
        let mut session = Session::new(Arc::clone(model), &options)?;
        while session.generation().finish().is_none() {
            session.step()?;
        }
        sequences.push(json!(session.generation().tokens()));
        scores.push(json!(session.logprob().1));
        texts.push(json!(session.generation().text()));
        reasons.push(json!(session.generation().finish().map(|finish| finish.reason)));
    }
    Ok(json!({
        "id": null, "sequences": sequences, "scores": scores, "texts": texts, "finish_reasons": reasons,
        "seed": seed, "pipeline": pipeline.to_string(),
    }))
}
