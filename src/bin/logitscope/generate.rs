//! `logitscope generate`: from a prompt to a finished text.

use std::{
    fs,
    io::{self, BufRead, Write},
    sync::Arc,
};

use clap::Args;
use logitscope::{
    Error, ErrorCode, Pipeline, constraint,
    model::{
        LanguageModel, Precision,
        chat::{self, Message},
    },
    session::{Session, Step, piece},
    stop::StopRules,
    strategy::Strategy,
};
use serde_json::{Value, json};

use super::{
    Failure,
    decoder::Decoder,
    models,
    sequences::{Found, Job},
    write_line,
};

/// What a request of `--jsonl` says for itself.
const IN_REQUESTS: [&str; 17] = [
    "prompt",
    "prompt_ids",
    "chat",
    "date",
    "pipeline",
    "strategy",
    "constraint",
    "check",
    "eos",
    "seed",
    "stop",
    "keep_stop",
    "max_tokens",
    "samples",
    "slide",
    "trace",
    "top",
];

/// The fields of such a request.
const FIELDS: [&str; 13] = [
    "id",
    "prompt",
    "prompt_ids",
    "pipeline",
    "strategy",
    "constraint",
    "check",
    "eos",
    "seed",
    "stop",
    "trim",
    "max_tokens",
    "samples",
];

/// Continue a prompt, showing how every token came about.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
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
    /// Put the prompt to the model as a user's message, by the chat template of its file.
    #[arg(long, requires = "prompt")]
    chat: bool,
    /// The day that a chat template is told where it asks for the date of the day, as 2026-11-30,
    /// or with a time, as 2026-11-30T09:05:07.
    #[arg(long, requires = "chat")]
    date: Option<chat::Date>,
    /// The pipeline; its sampler may be left out, and is then `categorical()`, or `greedy()` under beams.
    #[arg(long, default_value = "")]
    pipeline: String,
    /// How sequences are found: `sample()`, `beam(width=4)`, `diverse_beam(width=4, groups=2)`,
    /// `speculative(draft="FILE")`, `prompt_lookup()`.
    #[arg(long, default_value = "sample()")]
    strategy: Strategy,
    /// What the text is held to: `regex("..")`, `json_schema(FILE)`, `json()`, `lark(FILE)`,
    /// `gbnf(FILE)`, `choice(["yes","no"])`, `tool(FILE)`, `sql_select()`.
    #[arg(long)]
    constraint: Option<String>,
    /// A constraint that the finished text is only checked against.
    #[arg(long)]
    check: Option<String>,
    /// Tokens that end the sequence, such as "1,2", in place of the model's own.
    #[arg(long, value_name = "IDS")]
    eos: Option<String>,
    /// A seed, which overrides the pipeline's.
    #[arg(long, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// A text that ends the sequence; may be given several times.
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    stop: Vec<String>,
    /// Keep the stop string at the end of the text.
    #[arg(long)]
    keep_stop: bool,
    /// How many tokens to generate at most.
    #[arg(long, default_value_t = 64, allow_negative_numbers = true)]
    max_tokens: usize,
    /// How many independent samples.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,
    /// Write everything needed to replay the generation to this file.
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    /// Let a full context forget its oldest half, in place of ending the text.
    #[arg(long)]
    slide: bool,
    /// How the model multiplies.
    #[arg(long, default_value = "native")]
    precision: Precision,
    /// A line of JSON for each step, and a last one with the result.
    #[arg(long)]
    json: bool,
    /// Read one request a line from standard input, and write one answer a line. All but the model
    /// and its precision stands in the requests.
    #[arg(long, conflicts_with_all = IN_REQUESTS)]
    jsonl: bool,
    /// How many tokens of each stage are in view; 5 if not given.
    #[arg(long, allow_negative_numbers = true)]
    top: Option<usize>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = models::open(&arguments.model, arguments.precision)?;
    let mut out = io::stdout().lock();
    if arguments.jsonl {
        return requests(&model, arguments.precision, &mut Decoder::open()?, &mut out);
    }
    let mut text = arguments.prompt.clone().unwrap_or_default();
    if arguments.chat {
        text = chat::prompt(&*model, &[Message::from_user(text)], arguments.date)?;
    }
    let prompt = match &arguments.prompt_ids {
        Some(ids) => models::parse_ids(ids)?,
        None => model.tokenize(&text, true, true)?,
    };
    let eos = match &arguments.eos {
        Some(ids) => models::parse_ids(ids)?,
        None => model.vocab().eos.clone(),
    };
    let stop = StopRules {
        eos,
        strings: arguments.stop.clone(),
        trim: !arguments.keep_stop,
        max_tokens: arguments.max_tokens,
    };
    let job = Job {
        model: Arc::clone(&model),
        precision: arguments.precision,
        prompt,
        pipeline: arguments.pipeline.clone(),
        seed: arguments.seed,
        strategy: arguments.strategy.clone(),
        constraint: arguments.constraint.clone(),
        check: arguments.check.clone(),
        stop,
        samples: arguments.samples,
    };
    if job.strategy != Strategy::Sample {
        for (name, given, what) in [
            ("slide", arguments.slide, "a context slides"),
            ("trace", arguments.trace.is_some(), "a trace is written"),
            ("top", arguments.top.is_some(), "the tokens of each stage are shown"),
        ] {
            if given {
                let message = format!("{what} under sample() only, not under {}", job.strategy);
                return Err(Error::new(ErrorCode::BadInput, message).param(name).into());
            }
        }
        // The pipeline is read before anything runs, so that a mistake costs nothing.
        Pipeline::parse(&job.pipeline)?;
        let found = job.run(&mut Decoder::open()?)?;
        return if arguments.json { list(&found, &job, &mut out) } else { tell(&found, &job, &mut out) };
    }
    arguments.trace.as_deref().map_or(Ok(()), require_writable)?;
    let (pipeline, seed) = Pipeline::parse(&job.pipeline)?.settled(arguments.seed)?;
    let compiled = job.compile()?;
    let first = job.session(&pipeline, seed, &compiled, arguments.top.unwrap_or(5), arguments.slide)?;
    let mut decoder = Decoder::open()?;
    let mut traces = Vec::new();
    for samples in job.batches(&decoder) {
        // They step together, but each is told after those before it.
        let mut sessions: Vec<Session> = samples.clone().map(|sample| first.another_sample(sample)).collect();
        let mut pages: Vec<Page> = Vec::new();
        for sample in samples.clone() {
            let title = format!("{pipeline}\nseed {seed}, sample {sample}\n");
            pages.push(Page { text: if arguments.json { Vec::new() } else { title.into() }, forgotten: 0 });
        }
        let mut told = 0;
        while told < sessions.len() {
            let steps = decoder.step(&mut sessions);
            for (step, page) in steps.into_iter().zip(&mut pages) {
                if let Some(step) = step.map_err(Failure::Run)? {
                    page.show(arguments.json, &*model, &step)?;
                }
            }
            while let Some(session) = sessions.get_mut(told) {
                out.write_all(&std::mem::take(&mut pages[told].text))?;
                if session.generation().finish().is_none() {
                    break;
                }
                told += 1;
                let mut result = result(session).map_err(Failure::Run)?;
                if let Some(check) = &compiled.check {
                    let held = constraint::accepts(&*model, &**check, session.generation().text())?;
                    result["check"] = json!(held);
                }
                // Of all samples together, with the last.
                let is_last = traces.len() + 1 == arguments.samples as usize;
                let device = if is_last { decoder.account() } else { None };
                if arguments.json {
                    if let Some(device) = &device {
                        result["device"] = device.json.clone();
                    }
                    write_line(&mut out, &result)?;
                } else {
                    conclude(session, &text, &result, &mut out)?;
                    write!(out, "{}", device.map(|device| device.words).unwrap_or_default())?;
                }
                traces.push(session.trace_file());
            }
        }
    }
    arguments.trace.as_deref().map_or(Ok(()), |path| write_traces(path, traces))
}

/// A file that cannot be written is told before a long run, not after it.
fn require_writable(path: &str) -> Result<(), Failure> {
    fs::OpenOptions::new().append(true).create(true).open(path).map_err(|error| unwritable(path, &error))?;
    Ok(())
}

/// One sample is a trace file; several are a list of them.
fn write_traces(path: &str, mut traces: Vec<Value>) -> Result<(), Failure> {
    let file = if traces.len() == 1 { traces.remove(0) } else { Value::Array(traces) };
    fs::write(path, format!("{file}\n")).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &str, error: &io::Error) -> Failure {
    Failure::Run(Error::new(ErrorCode::Io, format!("{path} could not be written: {error}")).param("trace"))
}

/// What is to be told of a sample.
#[derive(Debug)]
struct Page {
    text: Vec<u8>,
    /// How many tokens of the context were said to be seen no longer.
    forgotten: usize,
}

impl Page {
    fn show(&mut self, json: bool, model: &dyn LanguageModel, step: &Step) -> Result<(), Failure> {
        if json {
            return write_line(&mut self.text, step);
        }
        if step.forgotten > self.forgotten {
            self.forgotten = step.forgotten;
            let seen = format!("the first {} tokens are seen no longer", step.forgotten);
            writeln!(self.text, "the context is full: {seen}")?;
        }
        Ok(show(&mut self.text, model, step)?)
    }
}

/// The end of a sample, for people.
fn conclude(session: &Session, prompt: &str, result: &Value, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n{prompt}{}", session.generation().text())?;
    writeln!(out, "\nended: {}", result["finish_reason"].as_str().unwrap_or_default())?;
    for (name, what) in [("parsed", "parsed"), ("check", "passed the check")] {
        if let Some(held) = result[name].as_bool() {
            writeln!(out, "{what}: {held}")?;
        }
    }
    for note in session.generation().notes() {
        writeln!(out, "note: {}", note.message)?;
    }
    Ok(())
}

/// The last line of a generation.
fn result(session: &mut Session) -> Result<Value, Error> {
    let standing = session.standing()?;
    let generation = session.generation();
    let (raw, last) = session.logprob();
    let finish = generation.finish();
    let mut result = json!({
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
    });
    if let Some(standing) = standing {
        result["parsed"] = json!(standing.accepting);
        result["constraint"] = json!(standing);
    }
    if !generation.notes().is_empty() {
        result["notes"] = json!(generation.notes());
    }
    Ok(result)
}

/// A line for each step of a search or block of a speculation, and a last one.
fn list(found: &Found, job: &Job, out: &mut impl Write) -> Result<(), Failure> {
    if let Some(record) = &found.beam {
        for (index, step) in record.steps.iter().enumerate() {
            let nodes = &record.nodes[step.nodes.clone()];
            write_line(out, &json!({ "index": index, "step": step, "nodes": nodes }))?;
        }
    }
    for (sample, (_, blocks)) in found.speculation.iter().enumerate() {
        for (index, block) in blocks.iter().enumerate() {
            write_line(out, &json!({ "index": index, "sample": sample, "block": block }))?;
        }
    }
    write_line(out, &found.answer(&job.strategy))
}

/// The same for people.
fn tell(found: &Found, job: &Job, out: &mut impl Write) -> Result<(), Failure> {
    writeln!(out, "{}\n{}\nseed {}\n", job.strategy, found.pipeline, found.seed)?;
    let piece = |token| format!("{:?}", piece(&*job.model, token));
    if let Some(record) = &found.beam {
        for (index, step) in record.steps.iter().enumerate() {
            writeln!(
                out,
                "step {index}: {} beams from {}, sharing {} tokens, {} finished",
                step.beams.len(),
                step.parents,
                step.shared_prefix,
                step.hypotheses
            )?;
            for &node in &step.beams {
                let node = &record.nodes[node];
                writeln!(out, "  {:<16} {:>9.4}  sum {:>9.4}", piece(node.token), node.logprob, node.sum)?;
            }
        }
        writeln!(
            out,
            "\n{} passes over {} beams in all; contexts of {} bytes, {} with shared beginnings held once\n",
            record.passes, record.rows, record.peak_cache_bytes, record.peak_cache_bytes_shared
        )?;
    }
    for (summary, blocks) in &found.speculation {
        for block in blocks {
            for drafted in &block.drafted {
                let verdict = match drafted.accepted {
                    Some(true) => "accepted",
                    Some(false) => "rejected",
                    None => "not judged",
                };
                writeln!(
                    out,
                    "  {:<16} p {:.4}  q {:.4}  u {:.4}  {verdict}",
                    piece(drafted.token),
                    drafted.p,
                    drafted.q,
                    drafted.uniform
                )?;
            }
            if let Some(next) = &block.next {
                writeln!(out, "+ {:<16} {:?}, p {:.4}", piece(next.token), next.source, next.probability)?;
            }
        }
        writeln!(
            out,
            "\n{} tokens in {} passes of the target ({:.2} a pass) and {} of the draft; {:.0} % accepted\n",
            summary.tokens,
            summary.target_passes,
            summary.tokens_per_pass,
            summary.draft_passes,
            summary.acceptance_rate * 100.0
        )?;
    }
    for sequence in &found.sequences {
        let reason = sequence.finish.as_ref().map(|finish| json!(finish.reason));
        let reason = reason.as_ref().and_then(Value::as_str).unwrap_or_default();
        writeln!(out, "{:>9.4}  {:?}  {reason}", sequence.score, sequence.text)?;
    }
    for note in &found.notes {
        writeln!(out, "note: {}", note.message)?;
    }
    if let Some(device) = &found.device {
        write!(out, "{}", device.words)?;
    }
    Ok(())
}

/// One step for people: the token, and what each stage left.
fn show(out: &mut impl Write, model: &dyn LanguageModel, step: &Step) -> io::Result<()> {
    let Some(draw) = &step.trace.draw else { return Ok(()) };
    write!(out, "{:>4} {:<16} p {:.4}", step.index, format!("{:?}", step.piece), draw.probability)?;
    if draw.noise {
        write!(out, "  by noise on every score")?;
    } else if draw.random {
        write!(out, "  u {:.4} in [{:.4}, {:.4})", draw.u, draw.low, draw.high)?;
    }
    let left: Vec<String> =
        step.trace.stages.iter().map(|stage| format!("{} {}", stage.id, stage.alive)).collect();
    writeln!(out, "  {}", left.join(" > "))?;
    if let Some(raw) = step.trace.stages.first() {
        let likeliest =
            raw.rows.iter().map(|row| format!("{:?} {:.3}", piece(model, row.token), row.probability));
        writeln!(out, "       {}", likeliest.collect::<Vec<_>>().join("  "))?;
    }
    Ok(())
}

/// One request a line, one answer a line; a bad line is answered with its error.
fn requests(
    model: &Arc<dyn LanguageModel>,
    precision: Precision,
    decoder: &mut Decoder,
    out: &mut impl Write,
) -> Result<(), Failure> {
    // As bytes: a line that is no text is a bad line, not the end.
    for line in io::stdin().lock().split(b'\n') {
        let line = line?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let request: Value = match serde_json::from_slice(&line) {
            Ok(request) => request,
            Err(error) => {
                let error = Error::new(ErrorCode::BadInput, format!("the line is not JSON: {error}"));
                write_line(out, &json!({ "id": null, "error": error }))?;
                continue;
            }
        };
        let id = request["id"].clone();
        match answer(model, precision, decoder, &request) {
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
fn answer(
    model: &Arc<dyn LanguageModel>,
    precision: Precision,
    decoder: &mut Decoder,
    request: &Value,
) -> Result<Value, Error> {
    let field = |name: &str, error: serde_json::Error| {
        Error::new(ErrorCode::BadInput, format!("{name} cannot be read: {error}")).param(name)
    };
    let read = |name: &str| Some(request[name].clone()).filter(|value| !value.is_null());
    macro_rules! optional {
        ($name:literal) => {
            read($name).map(serde_json::from_value).transpose().map_err(|error| field($name, error))?
        };
    }
    let bad = |message: &str| Error::new(ErrorCode::BadInput, message);
    let fields = request.as_object().ok_or_else(|| bad("the line is no JSON object"))?;
    let prompt_ids: Option<Vec<logitscope::TokenId>> = optional!("prompt_ids");
    let prompt: Option<String> = optional!("prompt");
    let prompt = match (prompt_ids, prompt) {
        (Some(_), Some(_)) => {
            return Err(bad("a prompt is given twice, as text and as ids").param("prompt_ids"));
        }
        (Some(ids), None) => ids,
        (None, Some(text)) => model.tokenize(&text, true, true)?,
        (None, None) => return Err(bad("a prompt is missing, as text or as ids").param("prompt")),
    };
    let pipeline: Option<String> = optional!("pipeline");
    let strategy: Option<String> = optional!("strategy");
    let strategy: Strategy = strategy.as_deref().unwrap_or_default().parse()?;
    let eos: Option<Vec<logitscope::TokenId>> = optional!("eos");
    let max_tokens: Option<usize> = optional!("max_tokens");
    let room = model.context_length().saturating_sub(prompt.len());
    let samples: Option<u32> = optional!("samples");
    if samples == Some(0) {
        let message = "samples is 0, but at least one sequence must be asked for";
        return Err(Error::new(ErrorCode::OutOfRange, message).param("samples"));
    }
    let trim: Option<bool> = optional!("trim");
    let stop = StopRules {
        eos: eos.unwrap_or_else(|| model.vocab().eos.clone()),
        strings: read("stop").map_or(Ok(Vec::new()), |stop| match stop {
            Value::String(one) => Ok(vec![one]),
            several => serde_json::from_value(several).map_err(|error| field("stop", error)),
        })?,
        trim: trim.unwrap_or(true),
        max_tokens: max_tokens.unwrap_or(room),
    };
    let job = Job {
        model: Arc::clone(model),
        precision,
        prompt,
        pipeline: pipeline.unwrap_or_default(),
        seed: optional!("seed"),
        strategy,
        constraint: optional!("constraint"),
        check: optional!("check"),
        stop,
        samples: samples.unwrap_or(1),
    };
    let mut answer = job.run(decoder)?.answer(&job.strategy);
    for name in fields.keys().filter(|name| !FIELDS.contains(&name.as_str())) {
        let message = format!("the field `{name}` means nothing here and was ignored");
        let note = json!({ "code": "unknown_field", "stage": "", "message": message });
        match answer["notes"].as_array_mut() {
            Some(notes) => notes.push(note),
            None => answer["notes"] = json!([note]),
        }
    }
    Ok(answer)
}
