//! "Copy as code": from a pipeline to settings that another framework runs.
//!
//! [`copy`] writes what a framework can express and checks itself: the settings go back through
//! the framework's own [profile](super::find), and whatever comes out different, in a stage, in
//! a value or in the order, is a warning.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{ProfileNote, find, note};
use crate::{config::Args, error::Result, order, pipeline::Pipeline};

/// Where the settings are to run, and in what form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Python, `model.generate(…)`.
    Transformers,
    /// Python, `SamplingParams(…)`.
    VllmPython,
    /// The body of a request to vLLM's OpenAI-style server.
    VllmJson,
    /// Command line flags.
    LlamaCppFlags,
    /// The body of a request to llama.cpp's server.
    LlamaCppJson,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Transformers, Self::VllmPython, Self::VllmJson, Self::LlamaCppFlags, Self::LlamaCppJson];

    /// The profile that says what the settings mean.
    #[must_use]
    pub fn profile(self) -> &'static str {
        match self {
            Self::Transformers => "transformers",
            Self::VllmPython | Self::VllmJson => "vllm",
            Self::LlamaCppFlags | Self::LlamaCppJson => "llama.cpp",
        }
    }
}

/// Settings, and what they cannot say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Copied {
    /// Runnable text.
    pub text: String,
    /// The same settings by the framework's names.
    pub params: Map<String, Value>,
    /// Where the framework does something else than the pipeline.
    pub warnings: Vec<ProfileNote>,
}

/// The settings that come nearest to a pipeline.
///
/// # Errors
/// Never for a pipeline that parses: what cannot be expressed is a warning.
///
/// # Examples
/// ```
/// use logitscope::{Pipeline, profile::copy::{Target, copy}};
///
/// let pipeline = Pipeline::parse("temperature(t=0.7) | top_p(p=0.9) | categorical(seed=7)")?;
/// let vllm = copy(&pipeline, Target::VllmPython)?;
/// assert_eq!(vllm.text, "SamplingParams(temperature=0.7, top_p=0.9, seed=7)");
/// assert!(vllm.warnings.is_empty());
///
/// let typical = Pipeline::parse("typical(p=0.9) | categorical(seed=7)")?;
/// let warned = copy(&typical, Target::VllmPython)?;
/// assert_eq!(warned.warnings[0].code, "not_expressed");
/// # Ok::<(), logitscope::Error>(())
/// ```
pub fn copy(pipeline: &Pipeline, target: Target) -> Result<Copied> {
    let llama = target.profile() == "llama.cpp";
    let mut params = base(target);
    let mut named = Vec::new();
    let stages = merged(pipeline)?;
    for args in stages.iter().chain([pipeline.sampler_args()]) {
        for (name, value) in settings(target, args)? {
            params.insert(name.to_owned(), value);
        }
        if let Some(name) = sampler_name(args.spec.id).filter(|name| llama && !named.contains(name)) {
            named.push(name);
        }
    }
    if llama {
        // A temperature of 0 is greedy only where the chain has a temperature.
        if pipeline.sampler_args().spec.id == "greedy" && !named.contains(&"temperature") {
            named.push("temperature");
        }
        params.insert("samplers".to_owned(), json!(named));
    }
    let mut warnings = texts_only(target, &mut params);
    warnings.extend(differences(&stages, pipeline.sampler_args(), target, &params));
    Ok(Copied { text: text(target, &params), params, warnings })
}

/// Stages that hold a list, and its parameter: settings can give each of them once.
const LISTS: &[(&str, &str)] =
    &[("logit_bias", "bias"), ("sequence_bias", "bias"), ("suppress", "ids"), ("bad_words", "sequences")];

/// The stages, with the lists of those that stand twice in one, where that is exact: where all
/// between them commute with it.
fn merged(pipeline: &Pipeline) -> Result<Vec<Args>> {
    let mut stages: Vec<Args> = Vec::new();
    for args in pipeline.stages().iter().map(|stage| &stage.args) {
        if let Some((id, list)) = LISTS.iter().find(|(id, _)| *id == args.spec.id)
            && let Some(place) = stages.iter().rposition(|other| other.spec.id == *id)
            && stages[place..].iter().all(|between| order::commute(between, args))
        {
            let both = union(stages[place].json(list)?, args.json(list)?);
            stages[place].set(list, &both)?;
        } else {
            stages.push(args.clone());
        }
    }
    Ok(stages)
}

/// Two lists, one after the other, or two objects: the biases of the same token add up, and a
/// ban stays a ban.
fn union(first: &Value, second: &Value) -> Value {
    match (first, second) {
        (Value::Array(first), Value::Array(second)) => json!([first.as_slice(), second].concat()),
        (Value::Object(first), Value::Object(second)) => {
            let mut sums = first.clone();
            for (id, bias) in second {
                let sum = match (sums.get(id), bias) {
                    (Some(Value::Number(a)), Value::Number(b)) => {
                        json!(a.as_f64().unwrap_or_default() + b.as_f64().unwrap_or_default())
                    }
                    (Some(ban @ Value::String(_)), _) => ban.clone(),
                    _ => bias.clone(),
                };
                sums.insert(id.clone(), sum);
            }
            Value::Object(sums)
        }
        _ => second.clone(),
    }
}

/// Takes out what the form of the settings has no words for.
fn texts_only(target: Target, params: &mut Map<String, Value>) -> Vec<ProfileNote> {
    let mut warnings = Vec::new();
    if let Some(Value::Array(breakers)) = params.get_mut("dry_sequence_breakers")
        && breakers.iter().any(|breaker| !breaker.is_string())
    {
        breakers.retain(Value::is_string);
        let message = "breakers are texts there: those that are token ids are left out";
        warnings.push(note("not_expressed", Some("dry_sequence_breakers"), message));
    }
    // There is no flag for it.
    if target == Target::LlamaCppFlags {
        params.remove("min_keep");
    }
    warnings
}

/// What switches a framework's own defaults off.
fn base(target: Target) -> Map<String, Value> {
    let json = match target.profile() {
        "transformers" => json!({ "do_sample": true, "top_k": 0 }),
        "llama.cpp" => json!({ "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0 }),
        _ => json!({}),
    };
    json.as_object().cloned().unwrap_or_default()
}

/// The name by which llama.cpp's list of samplers orders a stage.
fn sampler_name(id: &str) -> Option<&'static str> {
    Some(match id {
        "repetition_penalty" | "frequency_penalty" | "presence_penalty" => "penalties",
        "dry" => "dry",
        "top_n_sigma" => "top_n_sigma",
        "top_k" => "top_k",
        "typical" => "typ_p",
        "top_p" => "top_p",
        "min_p" => "min_p",
        "xtc" => "xtc",
        "temperature" | "dynamic_temperature" => "temperature",
        "adaptive_p" => "adaptive_p",
        _ => return None,
    })
}

/// A stage's values in the framework's names; nothing when it has none for it.
fn settings(target: Target, args: &Args) -> Result<Vec<(&'static str, Value)>> {
    let get = |name: &str| -> Result<Value> { Ok(args.to_json().get(name).cloned().unwrap_or(Value::Null)) };
    let profile = target.profile();
    // llama.cpp: a window of 0 tokens is none, -1 is all.
    let window = |value: &Value| if value == &json!(0) { json!(-1) } else { value.clone() };
    let pairs: &[(&str, &str, &str, &str)] = &[
        ("transformers", "repetition_penalty", "r", "repetition_penalty"),
        ("transformers", "no_repeat_ngram", "n", "no_repeat_ngram_size"),
        ("transformers", "bad_words", "sequences", "bad_words_ids"),
        ("transformers", "sequence_bias", "bias", "sequence_bias"),
        ("transformers", "suppress", "ids", "suppress_tokens"),
        ("transformers", "min_new_tokens", "n", "min_new_tokens"),
        ("transformers", "min_new_tokens", "eos", "eos_token_id"),
        ("transformers", "length_decay", "eos", "eos_token_id"),
        ("transformers", "temperature", "t", "temperature"),
        ("transformers", "top_h", "h", "top_h"),
        ("transformers", "top_k", "k", "top_k"),
        ("transformers", "top_p", "p", "top_p"),
        ("transformers", "min_p", "m", "min_p"),
        ("transformers", "typical", "p", "typical_p"),
        ("transformers", "epsilon", "e", "epsilon_cutoff"),
        ("transformers", "eta", "e", "eta_cutoff"),
        ("vllm", "repetition_penalty", "r", "repetition_penalty"),
        ("vllm", "frequency_penalty", "f", "frequency_penalty"),
        ("vllm", "presence_penalty", "s", "presence_penalty"),
        ("vllm", "logit_bias", "bias", "logit_bias"),
        ("vllm", "min_new_tokens", "n", "min_tokens"),
        ("vllm", "min_new_tokens", "eos", "stop_token_ids"),
        ("vllm", "temperature", "t", "temperature"),
        ("vllm", "min_p", "m", "min_p"),
        ("vllm", "top_k", "k", "top_k"),
        ("vllm", "top_p", "p", "top_p"),
        ("llama.cpp", "repetition_penalty", "r", "repeat_penalty"),
        ("llama.cpp", "frequency_penalty", "f", "frequency_penalty"),
        ("llama.cpp", "presence_penalty", "s", "presence_penalty"),
        ("llama.cpp", "logit_bias", "bias", "logit_bias"),
        ("llama.cpp", "dry", "multiplier", "dry_multiplier"),
        ("llama.cpp", "dry", "base", "dry_base"),
        ("llama.cpp", "dry", "allowed_length", "dry_allowed_length"),
        ("llama.cpp", "dry", "breakers", "dry_sequence_breakers"),
        ("llama.cpp", "top_n_sigma", "n", "top_n_sigma"),
        ("llama.cpp", "top_k", "k", "top_k"),
        ("llama.cpp", "typical", "p", "typical_p"),
        ("llama.cpp", "top_p", "p", "top_p"),
        ("llama.cpp", "min_p", "m", "min_p"),
        ("llama.cpp", "xtc", "probability", "xtc_probability"),
        ("llama.cpp", "xtc", "threshold", "xtc_threshold"),
        ("llama.cpp", "temperature", "t", "temperature"),
        ("llama.cpp", "dynamic_temperature", "exponent", "dynatemp_exponent"),
        ("llama.cpp", "mirostat1", "tau", "mirostat_tau"),
        ("llama.cpp", "mirostat1", "eta", "mirostat_eta"),
        ("llama.cpp", "mirostat2", "tau", "mirostat_tau"),
        ("llama.cpp", "mirostat2", "eta", "mirostat_eta"),
        ("llama.cpp", "adaptive_p", "target", "adaptive_target"),
        ("llama.cpp", "adaptive_p", "decay", "adaptive_decay"),
    ];
    let mut found: Vec<(&'static str, Value)> = Vec::new();
    for (framework, stage, own, theirs) in pairs {
        if *framework == profile && *stage == args.spec.id {
            found.push((theirs, get(own)?));
        }
    }
    match (profile, args.spec.id) {
        ("transformers", "greedy") => found.push(("do_sample", json!(false))),
        ("vllm" | "llama.cpp", "greedy") => found.push(("temperature", json!(0.0))),
        ("transformers", "length_decay") => {
            found.push(("exponential_decay_length_penalty", json!([get("start")?, get("factor")?])));
        }
        ("llama.cpp", "repetition_penalty" | "frequency_penalty" | "presence_penalty") => {
            found.push(("repeat_last_n", window(&get("window")?)));
        }
        ("llama.cpp", "dry") => found.push(("dry_penalty_last_n", window(&get("window")?))),
        ("llama.cpp", "dynamic_temperature") => {
            let (low, high) = (args.number("low")?, args.number("high")?);
            found.push(("temperature", json!(f64::midpoint(low, high))));
            found.push(("dynatemp_range", json!((high - low) / 2.0)));
        }
        ("llama.cpp", "mirostat1") => found.push(("mirostat", json!(1))),
        ("llama.cpp", "mirostat2") => found.push(("mirostat", json!(2))),
        _ => {}
    }
    if profile == "llama.cpp" && args.has("min_keep") && args.count("min_keep")? > 1 {
        found.push(("min_keep", get("min_keep")?));
    }
    if let Some(seed) = args.seed() {
        found.push(("seed", json!(seed)));
    }
    Ok(found)
}

/// What the framework would do otherwise, found by reading the settings as it would.
fn differences(
    stages: &[Args],
    sampler: &Args,
    target: Target,
    params: &Map<String, Value>,
) -> Vec<ProfileNote> {
    let own: Vec<&Args> = stages.iter().collect();
    let mut warnings = Vec::new();
    let mut accepted = params.clone();
    let mut refused = Vec::new();
    let translated = find(target.profile()).and_then(|profile| {
        refused = profile.read(&Value::Object(params.clone())).err().unwrap_or_default();
        // What is left shows what else is different.
        for param in refused.iter().filter_map(|error| error.param.as_deref()) {
            accepted.remove(param);
        }
        profile.translate(&Value::Object(accepted.clone()), 0)
    });
    warnings.extend(refused.iter().map(|error| note("refused", error.param.as_deref(), &error.message)));
    let theirs = match translated.and_then(|found| Pipeline::parse(&found.pipeline)) {
        Ok(theirs) => theirs,
        Err(error) => {
            warnings.push(note("refused", error.param.as_deref(), &error.message));
            return warnings;
        }
    };
    let is_refused = |args: &Args| {
        let said = settings(target, args).unwrap_or_default();
        said.iter().any(|(name, _)| refused.iter().any(|error| error.param.as_deref() == Some(name)))
    };
    let there: Vec<&Args> = theirs.stages().iter().map(|stage| &stage.args).collect();
    // A stage that stands twice must be there twice.
    let mut left = there.clone();
    for args in &own {
        if let Some(place) = left.iter().position(|other| other == args) {
            left.remove(place);
            continue;
        }
        // What does nothing need not be expressed.
        if order::does_nothing(args) || is_refused(args) {
            continue;
        }
        let id = args.spec.id;
        warnings.push(match left.iter().find(|other| other.spec.id == id && !own.contains(other)) {
            Some(other) => note("differs", None, &format!("`{args}` becomes `{other}`")),
            None => note("not_expressed", None, &format!("`{args}` is not applied there")),
        });
    }
    for args in &there {
        if !own.contains(args) && !own.iter().any(|other| other.spec.id == args.spec.id) {
            warnings.push(note("differs", None, &format!("`{args}` is added by the framework")));
        }
    }
    warnings.extend(swapped(&own, &there).into_iter().map(|(before, after)| {
        note("order", None, &format!("the framework applies {after} before {before}"))
    }));
    let other = theirs.sampler_args();
    if without_seed(sampler) != without_seed(other) {
        warnings.push(note("differs", None, &format!("`{sampler}` becomes `{other}`")));
    }
    warnings
}

/// A sampler's name and values. Seeds are another matter: equal ones draw differently anyway.
fn without_seed(args: &Args) -> (&'static str, Value) {
    let mut values = args.to_json();
    if let Some(values) = values.as_object_mut() {
        values.remove("seed");
    }
    (args.spec.id, values)
}

/// The pairs of stages that stand the other way round there, where that can matter: the one
/// that stands first here, and the one that is first there.
fn swapped(here: &[&Args], there: &[&Args]) -> Vec<(&'static str, &'static str)> {
    let mut free: Vec<Option<&Args>> = there.iter().copied().map(Some).collect();
    let mut places = Vec::new();
    for args in here {
        let place = free.iter().position(|other| other.is_some_and(|other| other.spec.id == args.spec.id));
        if let Some(place) = place {
            free[place] = None;
            places.push((*args, place));
        }
    }
    let mut pairs = Vec::new();
    for (at, (first, place)) in places.iter().enumerate() {
        for (second, other) in &places[at + 1..] {
            let pair = (first.spec.id, second.spec.id);
            if other < place && !order::commute(first, second) && !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    pairs
}

fn text(target: Target, params: &Map<String, Value>) -> String {
    match target {
        Target::Transformers => {
            let mut code = String::new();
            if let Some(seed) = params.get("seed") {
                let _ = writeln!(code, "transformers.set_seed({seed})");
            }
            let settings = params.iter().filter(|(name, _)| *name != "seed");
            code + &format!("model.generate(**inputs, {})", python(settings))
        }
        Target::VllmPython => format!("SamplingParams({})", python(params.iter())),
        Target::VllmJson => Value::Object(params.clone()).to_string(),
        Target::LlamaCppJson => {
            let mut body = params.clone();
            if let Some(Value::Object(bias)) = params.get("logit_bias") {
                let pairs = bias.iter().map(|(id, bias)| {
                    let id = id.parse::<u32>().map_or(json!(id), |id| json!(id));
                    // `false` is the server's word for a ban.
                    json!([id, if bias.is_string() { json!(false) } else { bias.clone() }])
                });
                body.insert("logit_bias".to_owned(), pairs.collect());
            }
            Value::Object(body).to_string()
        }
        Target::LlamaCppFlags => flags(params),
    }
}

fn flags(params: &Map<String, Value>) -> String {
    let mut words = Vec::new();
    for (name, value) in params {
        let flag = match name.as_str() {
            "temperature" => "--temp",
            "dynatemp_exponent" => "--dynatemp-exp",
            "typical_p" => "--typical",
            "top_n_sigma" => "--top-nsigma",
            "mirostat_tau" => "--mirostat-ent",
            "mirostat_eta" => "--mirostat-lr",
            "samplers" => {
                let names: Vec<_> =
                    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                words.push(format!("--samplers \"{}\"", names.join(";")));
                continue;
            }
            "dry_sequence_breakers" => {
                let breakers = value.as_array().map(Vec::as_slice).unwrap_or_default();
                if breakers.is_empty() {
                    words.push("--dry-sequence-breaker none".to_owned());
                }
                for breaker in breakers.iter().filter_map(Value::as_str) {
                    words.push(format!("--dry-sequence-breaker {}", quoted(breaker)));
                }
                continue;
            }
            "logit_bias" => {
                for (id, bias) in value.as_object().into_iter().flatten() {
                    let bias = bias.as_f64().map_or("-inf".to_owned(), |bias| format!("{bias:+}"));
                    words.push(format!("--logit-bias {id}{bias}"));
                }
                continue;
            }
            _ => {
                words.push(format!("--{} {value}", name.replace('_', "-")));
                continue;
            }
        };
        words.push(format!("{flag} {value}"));
    }
    words.join(" ")
}

/// A word for a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Keyword arguments in Python.
fn python<'a>(params: impl Iterator<Item = (&'a String, &'a Value)>) -> String {
    fn literal(value: &Value) -> String {
        match value {
            Value::Null => "None".to_owned(),
            Value::Bool(true) => "True".to_owned(),
            Value::Bool(false) => "False".to_owned(),
            Value::String(text) if text == "-inf" => "float(\"-inf\")".to_owned(),
            Value::Array(items) => {
                format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", "))
            }
            Value::Object(entries) => {
                // The only objects are biases, whose keys are token ids.
                let entries = entries.iter().map(|(key, value)| format!("{key}: {}", literal(value)));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
            _ => value.to_string(),
        }
    }
    params.map(|(name, value)| format!("{name}={}", literal(value))).collect::<Vec<_>>().join(", ")
}
