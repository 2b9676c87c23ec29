//! One row of logits in, the whole account of one step out: the engine of `logitscope apply`.
//!
//! A request is a line of JSON with a row and its surroundings; the answer lists the
//! distribution after every written stage, and the draw. See [`answer`] for the fields.

use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    TokenId, Vocab,
    compare::compare,
    config::Args,
    error::{Error, ErrorCode, Result},
    logits::{Logits, TokenMask},
    model::{fnv::fnv_1a, synthetic::LogitsSpec},
    pipeline::{Note, Pipeline},
    profile::{Profile, Translation},
    random::{Randomness, from_unit},
    sampler::Pick,
    step::StepContext,
    trace::{Judge, Observer},
    transform::Outcome,
};

/// The fields a line may have.
const KNOWN: [&str; 11] = [
    "id",
    "logits",
    "logits_spec",
    "history",
    "prompt_len",
    "u",
    "seed",
    "pipeline",
    "pipelines",
    "state",
    "force",
];

/// How many ids of a stage are listed when only a probe is wanted.
const PROBE: usize = 20;

/// What does not change from line to line.
#[derive(Debug, Default)]
pub struct Defaults<'a> {
    /// The pipelines of a line that names none.
    pub pipelines: Vec<String>,
    /// A framework and a request in its own parameter names, for lines that name no pipeline.
    pub profile: Option<(Profile, Value)>,
    /// What tokens stand for, if that is known.
    pub vocab: Option<&'a Vocab>,
    /// List only the first ids of each stage, and a hash of all.
    pub probe: bool,
}

/// A line of input, read.
#[derive(Debug)]
struct Request {
    row: Vec<f32>,
    history: Vec<TokenId>,
    prompt_len: usize,
    u: Option<u64>,
    seed: Option<u64>,
    pipelines: Vec<String>,
    /// Whether the line asked for a list of answers.
    several: bool,
    state: Map<String, Value>,
    force: Option<TokenId>,
    notes: Vec<Note>,
    /// What a profile made of the request, if one did.
    translation: Option<Translation>,
}

/// The distribution after one stage.
#[derive(Debug, Serialize)]
struct StageAnswer {
    stage: String,
    alive: usize,
    ids: Vec<TokenId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fnv: Option<String>,
    #[serde(serialize_with = "scores")]
    scores: Vec<f64>,
    probs: Vec<f64>,
    removed_mass: f64,
    entropy: f64,
}

/// A score divided by a tiny temperature may leave what an f64 holds; JSON has no word for that.
fn scores<S: serde::Serializer>(scores: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(scores.iter().map(|&score| match score {
        f64::INFINITY => json!("inf"),
        f64::NEG_INFINITY => json!("-inf"),
        _ => json!(score),
    }))
}

/// Answers one line. Whatever is wrong with it becomes an `error` in the answer.
///
/// - **In** `logits` (numbers or `"-inf"`) or `logits_spec`; `history` and `prompt_len`; `u`
///   in [0, 1) in place of the seeded draw; `pipeline` or `pipelines`; `seed`; `state` of a
///   stateful sampler; `force`, a token to take in place of the draw.
/// - **Out** `stages`, one entry for each written stage with the live ids, their scores (the
///   logits after the stage, divided by the temperatures so far) and probabilities; `draw`;
///   `state` after it. Several pipelines give a list of `answers`, and `partings`: where each
///   further one parts from the first.
///
/// # Examples
/// ```
/// use logitscope::apply::{answer, Defaults};
///
/// let line = r#"{"id": 1, "logits": [2, 1, 0], "u": 0.7, "pipeline": "top_k(k=2)"}"#;
/// let answer = answer(line, &Defaults::default());
/// assert_eq!(answer["stages"][0]["ids"], serde_json::json!([0, 1]));
/// assert_eq!(answer["draw"]["token"], 0);
/// ```
#[must_use]
pub fn answer(line: &str, defaults: &Defaults) -> Value {
    let quoted;
    let (fields, id) = match fields(line) {
        Ok(fields) => (fields, id_of(line)),
        Err(error) => {
            // Python writes NaN and Infinity bare, which JSON does not have.
            quoted = quote_non_finite(line);
            match fields_of(quoted.as_deref()) {
                Some(fields) => (fields, id_of(quoted.as_deref().unwrap_or_default())),
                None => return json!({ "id": null, "error": error }),
            }
        }
    };
    match read(&fields, defaults).and_then(|request| respond(&request, defaults)) {
        Ok(mut answer) => {
            let mut whole = Map::from_iter([("id".to_owned(), id)]);
            whole.append(&mut answer);
            Value::Object(whole)
        }
        Err(error) => json!({ "id": id, "error": error }),
    }
}

type Fields<'a> = std::collections::BTreeMap<String, &'a RawValue>;

/// The fields of a line, none of them twice.
struct Line<'a>(Fields<'a>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Line<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Once;

        impl<'de> serde::de::Visitor<'de> for Once {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut entries: A,
            ) -> Result<Fields<'de>, A::Error> {
                let mut fields = Fields::new();
                while let Some((name, value)) = entries.next_entry::<String, &RawValue>()? {
                    if fields.contains_key(&name) {
                        return Err(serde::de::Error::custom(format_args!("{name} is given twice")));
                    }
                    fields.insert(name, value);
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(Once).map(Self)
    }
}

fn fields(line: &str) -> Result<Fields<'_>> {
    serde_json::from_str::<Line<'_>>(line)
        .map(|Line(fields)| fields)
        .map_err(|error| Error::new(ErrorCode::BadInput, format!("the line cannot be read: {error}")))
}

fn fields_of(line: Option<&str>) -> Option<Fields<'_>> {
    fields(line?).ok()
}

fn id_of(line: &str) -> Value {
    serde_json::from_str::<Value>(line).ok().and_then(|line| line.get("id").cloned()).unwrap_or(Value::Null)
}

/// The line with bare `NaN`, `Infinity` and `-Infinity` as strings; `None` if it has none.
fn quote_non_finite(line: &str) -> Option<String> {
    let mut out = String::with_capacity(line.len());
    let (mut inside, mut escaped, mut changed) = (false, false, false);
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if !inside
            && let Some(word) = ["NaN", "Infinity", "-Infinity"].iter().find(|word| rest.starts_with(**word))
        {
            out.push('"');
            out.push_str(word);
            out.push('"');
            rest = &rest[word.len()..];
            changed = true;
            continue;
        }
        match c {
            '"' if !escaped => inside = !inside,
            _ => {}
        }
        escaped = inside && c == '\\' && !escaped;
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    changed.then_some(out)
}

fn bad(field: &str, message: impl Into<String>) -> Error {
    Error::new(ErrorCode::BadInput, message).param(field)
}

fn read(fields: &Fields, defaults: &Defaults) -> Result<Request> {
    let parsed = |field: &str| -> Result<Option<Value>> {
        fields
            .get(field)
            .map(|raw| serde_json::from_str::<Value>(raw.get()))
            .transpose()
            .map(|value| value.filter(|value| !value.is_null()))
            .map_err(|error| bad(field, format!("{field} cannot be read: {error}")))
    };
    let whole = |field: &str| -> Result<Option<u64>> {
        parsed(field)?
            .map(|value| {
                value
                    .as_u64()
                    .ok_or_else(|| bad(field, format!("{field} is {value}, but must be a whole number")))
            })
            .transpose()
    };
    let history: Vec<TokenId> = match parsed("history")? {
        None => Vec::new(),
        Some(value) => serde_json::from_value(value.clone())
            .map_err(|_| bad("history", format!("history is {value}, but must be a list of token ids")))?,
    };
    let prompt_len = usize::try_from(whole("prompt_len")?.unwrap_or(0)).unwrap_or(usize::MAX);
    if prompt_len > history.len() {
        let message = format!("prompt_len is {prompt_len}, but the history has {} tokens", history.len());
        return Err(Error::new(ErrorCode::OutOfRange, message).param("prompt_len"));
    }
    let u = match parsed("u")? {
        None => None,
        Some(value) => {
            let u = value.as_f64().filter(|u| (0.0..1.0).contains(u)).ok_or_else(|| {
                Error::new(ErrorCode::OutOfRange, format!("u is {value}, but must be a number in [0, 1)"))
                    .param("u")
            })?;
            Some(from_unit(u))
        }
    };
    let text = |value: &Value, field: &str| -> Result<String> {
        value
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| bad(field, format!("{field} is {value}, but must be a pipeline text")))
    };
    let several = parsed("pipelines")?;
    let mut translation = None;
    let pipelines = match (parsed("pipeline")?, &several) {
        (Some(_), Some(_)) => return Err(bad("pipelines", "give pipeline or pipelines, not both")),
        (Some(one), None) => vec![text(&one, "pipeline")?],
        (None, Some(list)) => {
            let list = list
                .as_array()
                .ok_or_else(|| bad("pipelines", format!("pipelines is {list}, but must be a list")))?;
            list.iter().map(|one| text(one, "pipelines")).collect::<Result<_>>()?
        }
        (None, None) => match &defaults.profile {
            None => defaults.pipelines.clone(),
            Some((profile, params)) => {
                let found = profile.translate(params, prompt_len)?;
                vec![translation.insert(found).pipeline.clone()]
            }
        },
    };
    let state = match parsed("state")? {
        None => Map::new(),
        Some(Value::Object(state)) => state,
        Some(value) => return Err(bad("state", format!("state is {value}, but must be an object"))),
    };
    let force = match whole("force")? {
        None => None,
        Some(id) => Some(TokenId(
            u32::try_from(id).map_err(|_| bad("force", format!("force is {id}, which is no token id")))?,
        )),
    };
    let notes = fields.keys().filter(|name| !KNOWN.contains(&name.as_str())).map(|name| Note {
        code: "unknown_field",
        stage: String::new(),
        message: format!("the field `{name}` means nothing here and was ignored"),
    });
    Ok(Request {
        row: row(fields)?,
        history,
        prompt_len,
        u,
        seed: whole("seed")?,
        several: several.is_some() || pipelines.len() > 1,
        pipelines,
        state,
        force,
        notes: notes.collect(),
        translation,
    })
}

/// The row, each number rounded once from its decimal text to f32.
fn row(fields: &Fields) -> Result<Vec<f32>> {
    match (fields.get("logits"), fields.get("logits_spec")) {
        (Some(raw), None) => {
            let entries: Vec<&RawValue> = serde_json::from_str(raw.get())
                .map_err(|_| bad("logits", "logits must be a list of numbers or \"-inf\""))?;
            entries.iter().enumerate().map(|(id, entry)| logit(id, entry.get())).collect()
        }
        (None, Some(raw)) => {
            let spec: LogitsSpec = serde_json::from_str(raw.get())
                .map_err(|error| bad("logits_spec", format!("logits_spec cannot be read: {error}")))?;
            spec.generate()
        }
        (Some(_), Some(_)) => Err(bad("logits", "give logits or logits_spec, not both")),
        (None, None) => Err(bad("logits", "the line has neither logits nor logits_spec")),
    }
}

fn logit(id: usize, text: &str) -> Result<f32> {
    match text {
        "null" => {
            let message = format!("the logit of token {id} is null, which is how JSON writes NaN");
            return Err(Error::new(ErrorCode::NanLogit, message).param("logits"));
        }
        "\"-inf\"" | "\"-Infinity\"" => return Ok(f32::NEG_INFINITY),
        "\"inf\"" | "\"+inf\"" | "\"Infinity\"" => return Ok(f32::INFINITY),
        "\"NaN\"" | "\"nan\"" => return Ok(f32::NAN),
        _ => {}
    }
    let value: f32 = text
        .parse()
        .map_err(|_| bad("logits", format!("the logit of token {id} is {text}, which is not a number")))?;
    if value.is_infinite() {
        return Err(Error::new(
            ErrorCode::OutOfRange,
            format!("the logit of token {id} is {text}, too large for f32"),
        )
        .param("logits"));
    }
    Ok(value)
}

fn respond(request: &Request, defaults: &Defaults) -> Result<Map<String, Value>> {
    let Some(first) = request.pipelines.first() else {
        return Err(bad("pipeline", "no pipeline was given, on the line or as an argument"));
    };
    let mut out = if request.several {
        let answers = request.pipelines.iter().map(|text| match step(request, text, defaults) {
            Ok(answer) => Value::Object(answer),
            Err(error) => json!({ "error": error }),
        });
        let mut out = Map::from_iter([("answers".to_owned(), answers.collect())]);
        if let Ok(partings) = partings(request, defaults) {
            out.insert("partings".to_owned(), partings);
        }
        out
    } else {
        step(request, first, defaults)?
    };
    if let Some(translation) = &request.translation {
        out.insert("profile".to_owned(), json!(translation));
    }
    if !request.notes.is_empty() {
        let notes = out.entry("notes").or_insert_with(|| json!([]));
        if let Some(notes) = notes.as_array_mut() {
            notes.extend(request.notes.iter().map(|note| json!(note)));
        }
    }
    Ok(out)
}

/// Where each further pipeline parts from the first, in words and numbers, on the same draw.
fn partings(request: &Request, defaults: &Defaults) -> Result<Value> {
    let pipelines: Result<Vec<Pipeline>> =
        request.pipelines.iter().map(|text| Pipeline::parse(text)).collect();
    let seed = request.seed.unwrap_or(0);
    let position = u32::try_from(request.history.len() - request.prompt_len).unwrap_or(u32::MAX);
    let randomness = Randomness { seed, sample: 0, position };
    let context = StepContext {
        vocab: defaults.vocab,
        ..StepContext::new(&request.history, request.prompt_len, randomness)
    };
    let u = request.u.unwrap_or_else(|| context.draw(crate::random::Purpose::Token));
    Ok(json!(compare(&pipelines?, &request.row, &context, u, 0)?.partings))
}

/// One pipeline on the row.
fn step(request: &Request, text: &str, defaults: &Defaults) -> Result<Map<String, Value>> {
    let pipeline = Pipeline::parse(text)?;
    pipeline.require_vocabulary(request.row.len())?;
    let needs_seed = pipeline.needs_seed(request.u.is_some() || request.force.is_some());
    let (pipeline, seed) = if needs_seed || request.seed.is_some() {
        let (pipeline, seed) = pipeline.seeded(request.seed)?;
        (pipeline, Some(seed))
    } else {
        let seed = pipeline.seed();
        (pipeline, seed)
    };
    let position = u32::try_from(request.history.len() - request.prompt_len).unwrap_or(u32::MAX);
    let randomness = Randomness { seed: seed.unwrap_or(0), sample: 0, position };
    let context = StepContext {
        vocab: defaults.vocab,
        ..StepContext::new(&request.history, request.prompt_len, randomness)
    };
    let mut sampler = pipeline.sampler();
    sampler.set_state(&request.state).map_err(|error| error.in_stage(pipeline.sampler_args().spec.id))?;
    let pick = match (request.force, request.u) {
        (Some(token), _) => Pick::Forced(token),
        (None, Some(u)) => Pick::Uniform(u),
        (None, None) => Pick::Seeded,
    };
    let mut stages = Stages { probe: defaults.probe, before: None, answers: Vec::new() };
    let mut logits = Logits::unfilled();
    let draw = pipeline.decode(&request.row, &mut logits, &context, &mut *sampler, pick, &mut stages)?;
    if !pipeline.sampler_written() {
        stages.answers.pop();
    }
    let (low, high, margin) = draw.interval();
    let u = (request.u.is_some() || sampler.is_random()).then(|| crate::random::unit(draw.u));
    let mut out = Map::new();
    out.insert("pipeline".to_owned(), json!(pipeline.to_string()));
    out.insert("stages".to_owned(), json!(stages.answers));
    out.insert(
        "draw".to_owned(),
        json!({ "token": draw.token, "u": u, "low": low, "high": high, "margin": margin, "forced": request.force.is_some() }),
    );
    out.insert("state".to_owned(), Value::Object(sampler.state()));
    if let Some(seed) = seed {
        out.insert("seed".to_owned(), json!(seed));
    }
    if !pipeline.notes().is_empty() {
        out.insert("notes".to_owned(), json!(pipeline.notes()));
    }
    Ok(out)
}

/// Collects the distribution after every stage.
struct Stages {
    probe: bool,
    before: Option<(TokenMask, u64)>,
    answers: Vec<StageAnswer>,
}

impl Observer for Stages {
    const ENABLED: bool = true;

    fn before(&mut self, logits: &mut Logits) -> Result<()> {
        self.before = Some((logits.alive().clone(), logits.mass()?));
        Ok(())
    }

    fn after(&mut self, _: usize, args: &Args, _: Judge, _: &Outcome, logits: &mut Logits) -> Result<()> {
        let removed_mass = match self.before.take() {
            Some((alive, mass)) => logits.mass_lost_since(&alive) as f64 / mass as f64,
            None => 0.0,
        };
        let support = logits.support();
        let listed = if self.probe { PROBE.min(support.len()) } else { support.len() };
        let fnv =
            self.probe.then(|| format!("{:016x}", fnv_1a(support.iter().flat_map(|id| id.0.to_le_bytes()))));
        let ids = support[..listed].to_vec();
        let mut probs = Vec::with_capacity(listed);
        for &id in &ids {
            probs.push(logits.probability(id)?);
        }
        self.answers.push(StageAnswer {
            stage: args.to_string(),
            alive: support.len(),
            fnv,
            scores: ids.iter().filter_map(|&id| logits.score(id)).collect(),
            probs,
            ids,
            removed_mass,
            entropy: logits.entropy()?,
        });
        Ok(())
    }
}
