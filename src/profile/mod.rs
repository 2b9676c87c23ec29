//! "Run it as llama.cpp, transformers, vLLM, … would": versioned data, no new mathematics.
//!
//! A [`Profile`] is a file in `data/`: one framework at one version, with its own parameter
//! names, defaults, sentinels and order. [`Profile::translate`] turns a request in those names
//! into a pipeline text and typed notes about what is ignored, clamped, on by default, or not
//! expressible. [`copy`] goes the other way.
//!
//! To change what a framework does, change its file; to add one, write a file and list it in
//! `DATA`.

pub mod copy;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    error::{Error, ErrorCode, Result},
    order,
    pipeline::Pipeline,
};

/// Every profile by name, and its data.
const DATA: &[(&str, &str)] = &[
    ("lesson", include_str!("data/lesson.json")),
    ("transformers", include_str!("data/transformers.json")),
    ("llama.cpp", include_str!("data/llama.cpp.json")),
    ("vllm", include_str!("data/vllm.json")),
    ("sglang", include_str!("data/sglang.json")),
    ("koboldcpp", include_str!("data/koboldcpp.json")),
    ("text-generation-webui", include_str!("data/text-generation-webui.json")),
    ("transformers.js", include_str!("data/transformers.js.json")),
    ("web-llm", include_str!("data/web-llm.json")),
    ("candle", include_str!("data/candle.json")),
    ("mistral.rs", include_str!("data/mistral.rs.json")),
    ("rten", include_str!("data/rten.json")),
    ("tgi", include_str!("data/tgi.json")),
    ("openai", include_str!("data/openai.json")),
    ("anthropic", include_str!("data/anthropic.json")),
];

/// The names of all profiles, in the order in which a list shows them.
#[must_use]
pub fn names() -> Vec<&'static str> {
    DATA.iter().map(|(name, _)| *name).collect()
}

/// One framework at one version.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name, as the command line takes it.
    pub name: String,
    /// The version that was read.
    pub version: String,
    /// Which of its files or pages were read.
    pub source: String,
    /// Its parameters, in its own words.
    pub parameters: Vec<Parameter>,
    /// Values computed from them.
    #[serde(default)]
    derived: Vec<Derived>,
    /// Stages, in the framework's order.
    order: Vec<Entry>,
    /// The first whose condition holds is the sampler.
    samplers: Vec<Rule>,
    /// What its user should know.
    #[serde(default)]
    notes: Vec<NoteRule>,
    /// Other orders that the documentation allows.
    #[serde(default)]
    alternatives: Vec<Alternative>,
}

/// A parameter of a framework.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Other names it goes by.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// What values it takes.
    #[serde(default)]
    pub kind: Kind,
    /// What it is when it is not given.
    #[serde(default)]
    pub default: Value,
    /// The smallest number the framework accepts.
    #[serde(default)]
    pub min: Option<f64>,
    /// The largest.
    #[serde(default)]
    pub max: Option<f64>,
    /// Whether the smallest number itself is refused.
    #[serde(default)]
    pub min_excluded: bool,
    /// The range into which the framework forces each number of an object, without an error.
    #[serde(default)]
    clamp: Option<(f64, f64)>,
    /// What the framework makes of some values, without an error.
    #[serde(default)]
    replace: Vec<Replace>,
    /// Why the framework takes the parameter and does nothing with it.
    #[serde(default)]
    pub ignored: Option<String>,
    /// Why no pipeline can express it.
    #[serde(default)]
    pub not_expressed: Option<String>,
    /// Whether it is a constraint that masks only after the stages.
    #[serde(default)]
    pub masks_last: bool,
    /// What happens when it is not given, if that is worth knowing.
    #[serde(default)]
    pub on_by_default: Option<String>,
}

/// The type of a parameter's values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A finite number.
    #[default]
    Number,
    /// A whole number, possibly negative.
    Integer,
    /// True or false.
    Boolean,
    /// One token id, or a list of them.
    Ids,
    /// A list.
    List,
    /// An object.
    Object,
    /// Anything.
    Any,
}

/// A value that the framework changes silently; here it is noted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Replace {
    when: Vec<Condition>,
    by: Value,
    note: String,
}

/// A parameter or derived value, a comparison, and a number, a word or another name.
type Condition = (String, String, Value);

/// A value computed from others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Derived {
    name: String,
    op: String,
    of: Vec<Value>,
    #[serde(default)]
    at_least: Option<f64>,
}

/// One or several stages, if all conditions hold. `$name` in the text stands for a value.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(default)]
    when: Vec<Condition>,
    text: String,
    #[serde(default)]
    note: Option<String>,
}

/// A fixed place in the order, or one that the user orders.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Entry {
    Fixed(Rule),
    Ordered(Ordered),
}

/// Stages whose order is the value of a parameter: a list of these names.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ordered {
    by: String,
    #[serde(default)]
    when: Vec<Condition>,
    /// Moves the named entry to the end when the parameter is true.
    #[serde(default)]
    last: Option<(String, String)>,
    steps: BTreeMap<String, Vec<Rule>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoteRule {
    code: String,
    #[serde(default)]
    when: Vec<Condition>,
    message: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Alternative {
    reason: String,
    order: Vec<Entry>,
}

/// What the user of a profile should know about a translation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProfileNote {
    /// A stable name for the kind of note: `ignored`, `replaced`, `not_expressed`,
    /// `on_by_default`, `unknown_order`, `differs`, `truncation_before_grammar`.
    pub code: String,
    /// The parameter concerned, if one is.
    pub param: Option<String>,
    /// What is worth knowing, in a sentence.
    pub message: String,
}

/// A request in a framework's words, as a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Translation {
    /// The profile.
    pub profile: String,
    /// The version it describes.
    pub version: String,
    /// The pipeline text.
    pub pipeline: String,
    /// Pipelines in other orders that the documentation allows as well.
    pub alternatives: Vec<String>,
    /// What is worth knowing.
    pub notes: Vec<ProfileNote>,
}

/// The profile of a name.
///
/// # Errors
/// `bad_input` when there is none, with the names there are.
///
/// # Examples
/// ```
/// use logitscope::profile;
///
/// let llama = profile::find("llama.cpp")?;
/// let asked = serde_json::json!({ "temperature": 0.5, "top_k": 0, "min_p": 0.0 });
/// let found = llama.translate(&asked, 0)?;
/// // top_p 0.95 is on by default, and temperature comes last.
/// assert!(found.pipeline.starts_with("top_p(p=0.95"));
/// assert!(found.pipeline.contains("| temperature(t=0.5) |"));
/// # Ok::<(), logitscope::Error>(())
/// ```
pub fn find(name: &str) -> Result<Profile> {
    let data = DATA.iter().find(|(known, _)| *known == name).ok_or_else(|| {
        let known = names().join(", ");
        Error::new(ErrorCode::BadInput, format!("there is no profile `{name}`; there are {known}"))
            .param("profile")
    })?;
    serde_json::from_str(data.1).map_err(|error| {
        Error::new(ErrorCode::BadInput, format!("the profile `{name}` is malformed: {error}"))
    })
}

impl Profile {
    /// Turns a request in the framework's parameter names into a pipeline; a parameter left
    /// out has the framework's default. `prompt_len` serves the parameters that count the
    /// prompt.
    ///
    /// # Errors
    /// `bad_input` when `params` is not an object, `unknown_param`, `wrong_type`, and
    /// `out_of_range` for what the framework refuses.
    pub fn translate(&self, params: &Value, prompt_len: usize) -> Result<Translation> {
        let mut notes = Vec::new();
        let mut values = self.values(params, &mut notes)?;
        values.insert("prompt_len".to_owned(), json!(prompt_len));
        for derived in &self.derived {
            let value = derived.value(&values);
            values.insert(derived.name.clone(), value);
        }
        let sampler = self.samplers.iter().find(|rule| all(&rule.when, &values));
        let sampler = sampler.map_or("categorical()", |rule| rule.text.as_str());
        let write = |order: &[Entry], notes: &mut Vec<ProfileNote>| -> Result<String> {
            let mut stages = Vec::new();
            for entry in order {
                match entry {
                    Entry::Fixed(rule) => rule.emit(&values, &mut stages, notes),
                    Entry::Ordered(ordered) => ordered.emit(&values, &mut stages, notes)?,
                }
            }
            stages.push(fill(sampler, &values));
            Ok(Pipeline::parse(&stages.join(" | "))?.to_string())
        };
        let pipeline = write(&self.order, &mut notes)?;
        let mut alternatives = Vec::new();
        for alternative in &self.alternatives {
            let other = write(&alternative.order, &mut Vec::new())?;
            if other != pipeline {
                notes.push(note("unknown_order", None, &alternative.reason));
                alternatives.push(other);
            }
        }
        let given = |param: &Parameter| values.get(&param.name).is_some_and(|value| !value.is_null());
        let constrained = |param: &&Parameter| param.masks_last && given(param);
        if let Some(param) = self.parameters.iter().find(constrained) {
            let parsed = Pipeline::parse(&pipeline)?;
            let stages: Vec<_> = parsed.stages().iter().map(|stage| &stage.args).collect();
            let suspicious = order::warnings_with_constraint(&stages, Some(stages.len()));
            let late = suspicious.iter().filter(|found| found.code == "truncation_before_grammar");
            notes.extend(late.map(|found| note(found.code, Some(&param.name), &found.message)));
        }
        for rule in self.notes.iter().filter(|rule| all(&rule.when, &values)) {
            notes.push(note(&rule.code, None, &fill(&rule.message, &values)));
        }
        Ok(Translation {
            profile: self.name.clone(),
            version: self.version.clone(),
            pipeline,
            alternatives,
            notes,
        })
    }

    /// Every parameter with its value: as given, or its default.
    fn values(&self, params: &Value, notes: &mut Vec<ProfileNote>) -> Result<Map<String, Value>> {
        let empty = Map::new();
        let given = match params {
            Value::Null => &empty,
            Value::Object(given) => given,
            _ => {
                let message = format!("the parameters are {params}, but must be an object");
                return Err(Error::new(ErrorCode::BadInput, message).param("params"));
            }
        };
        for name in given.keys() {
            if !self.parameters.iter().any(|param| param.goes_by(name)) {
                let known: Vec<_> = self.parameters.iter().map(|param| param.name.as_str()).collect();
                let message = format!("{} has no parameter `{name}`; it has {}", self.name, known.join(", "));
                return Err(Error::new(ErrorCode::UnknownParam, message).param(name));
            }
        }
        let mut values = Map::new();
        for param in &self.parameters {
            let mut written = given.iter().filter(|(name, _)| param.goes_by(name));
            let first = written.next();
            if let Some((second, _)) = written.next() {
                let message = format!("{} is given twice, also as {second}", param.name);
                return Err(Error::new(ErrorCode::DuplicateParam, message).param(second));
            }
            let value = match first {
                Some((_, value)) if !value.is_null() => {
                    let value = param.check(&self.name, value)?;
                    param.clamped(value, notes)
                }
                _ => {
                    if let Some(message) = &param.on_by_default {
                        notes.push(note("on_by_default", Some(&param.name), message));
                    }
                    param.default.clone()
                }
            };
            if first.is_some() {
                for (code, why) in [("ignored", &param.ignored), ("not_expressed", &param.not_expressed)] {
                    if let Some(why) = why {
                        notes.push(note(code, Some(&param.name), why));
                    }
                }
            }
            values.insert(param.name.clone(), value);
        }
        for param in &self.parameters {
            for replace in &param.replace {
                if all(&replace.when, &values) {
                    notes.push(note("replaced", Some(&param.name), &fill(&replace.note, &values)));
                    values.insert(param.name.clone(), replace.by.clone());
                }
            }
        }
        Ok(values)
    }
}

fn note(code: &str, param: Option<&str>, message: &str) -> ProfileNote {
    ProfileNote { code: code.to_owned(), param: param.map(str::to_owned), message: message.to_owned() }
}

impl Parameter {
    fn goes_by(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }

    /// The value with each of its numbers forced into the range, and a note if one was outside.
    fn clamped(&self, mut value: Value, notes: &mut Vec<ProfileNote>) -> Value {
        let (Some((low, high)), Some(entries)) = (self.clamp, value.as_object_mut()) else { return value };
        for (id, entry) in entries {
            let number = match entry.as_str() {
                Some("-inf" | "-Infinity") => Some(f64::NEG_INFINITY),
                _ => entry.as_f64(),
            };
            if let Some(number) = number.filter(|number| !(low..=high).contains(number)) {
                let forced = number.clamp(low, high);
                let message = format!("{} of {id} is {number}, which becomes {forced}.", self.name);
                notes.push(note("replaced", Some(&self.name), &message));
                *entry = json!(forced);
            }
        }
        value
    }

    fn check(&self, profile: &str, value: &Value) -> Result<Value> {
        let wrong = |expected: &str| {
            let message = format!("{profile}: {} is {value}, but must be {expected}", self.name);
            Error::new(ErrorCode::WrongType, message).param(&self.name)
        };
        let number = match self.kind {
            Kind::Number => value.as_f64().ok_or_else(|| wrong("a number"))?,
            Kind::Integer => {
                let number = value.as_f64().filter(|number| number.fract() == 0.0);
                number.ok_or_else(|| wrong("a whole number"))?
            }
            Kind::Boolean if value.is_boolean() => return Ok(value.clone()),
            Kind::Boolean => return Err(wrong("true or false")),
            Kind::Ids if value.is_u64() => return Ok(json!([value])),
            Kind::Ids if value.as_array().is_some_and(|ids| ids.iter().all(Value::is_u64)) => {
                return Ok(value.clone());
            }
            Kind::Ids => return Err(wrong("a token id or a list of them")),
            Kind::List if value.is_array() => return Ok(value.clone()),
            Kind::List => return Err(wrong("a list")),
            Kind::Object if value.is_object() => return Ok(value.clone()),
            Kind::Object => return Err(wrong("an object")),
            Kind::Any => return Ok(value.clone()),
        };
        let low = self.min.is_none_or(|min| if self.min_excluded { number > min } else { number >= min });
        if !low || self.max.is_some_and(|max| number > max) {
            let above = if self.min_excluded { "above" } else { "at least" };
            let bounds =
                [self.min.map(|min| format!("{above} {min}")), self.max.map(|max| format!("at most {max}"))];
            let bounds: Vec<_> = bounds.into_iter().flatten().collect();
            let message =
                format!("{profile} refuses {} = {value}: it must be {}", self.name, bounds.join(" and "));
            return Err(Error::new(ErrorCode::OutOfRange, message).param(&self.name));
        }
        #[expect(clippy::cast_possible_truncation, reason = "checked to be whole")]
        Ok(if self.kind == Kind::Integer { json!(number as i64) } else { json!(number) })
    }
}

impl Rule {
    fn emit(&self, values: &Map<String, Value>, stages: &mut Vec<String>, notes: &mut Vec<ProfileNote>) {
        if all(&self.when, values) {
            if !self.text.is_empty() {
                stages.push(fill(&self.text, values));
            }
            if let Some(message) = &self.note {
                notes.push(note("differs", None, &fill(message, values)));
            }
        }
    }
}

impl Ordered {
    fn emit(
        &self,
        values: &Map<String, Value>,
        stages: &mut Vec<String>,
        notes: &mut Vec<ProfileNote>,
    ) -> Result<()> {
        if !all(&self.when, values) {
            return Ok(());
        }
        let mut names: Vec<String> = values[&self.by]
            .as_array()
            .into_iter()
            .flatten()
            .map(|name| name.as_str().map_or_else(|| name.to_string(), str::to_owned))
            .collect();
        if let Some((flag, name)) = &self.last
            && values[flag] == json!(true)
            && names.contains(name)
        {
            names.retain(|other| other != name);
            names.push(name.clone());
        }
        for name in names {
            let rules = self.steps.get(&name).ok_or_else(|| {
                let known: Vec<_> = self.steps.keys().map(String::as_str).collect();
                let message = format!("{} names `{name}`, but there are {}", self.by, known.join(", "));
                Error::new(ErrorCode::BadInput, message).param(&self.by)
            })?;
            for rule in rules {
                rule.emit(values, stages, notes);
            }
        }
        Ok(())
    }
}

impl Derived {
    fn value(&self, values: &Map<String, Value>) -> Value {
        let numbers: Option<Vec<f64>> =
            self.of.iter().map(|operand| lookup(operand, values).as_f64()).collect();
        let Some(numbers) = numbers.filter(|numbers| numbers.len() == 2) else { return Value::Null };
        let (a, b) = (numbers[0], numbers[1]);
        let result = match self.op.as_str() {
            "add" => a + b,
            "subtract" => a - b,
            "multiply" => a * b,
            _ => return Value::Null,
        };
        let result = self.at_least.map_or(result, |least| result.max(least));
        #[expect(clippy::cast_possible_truncation, reason = "whole, and far below 2^53")]
        if result.fract() == 0.0 && result.abs() < 1e15 { json!(result as i64) } else { json!(result) }
    }
}

/// A name, possibly with the index of an entry (`list.0`), stands for its value; anything else
/// for itself.
fn lookup(operand: &Value, values: &Map<String, Value>) -> Value {
    let Some(name) = operand.as_str() else { return operand.clone() };
    let (name, index) = match name.split_once('.') {
        Some((name, index)) => (name, index.parse::<usize>().ok()),
        None => (name, None),
    };
    match (values.get(name), index) {
        (Some(value), Some(index)) => value.get(index).cloned().unwrap_or(Value::Null),
        (Some(value), None) => value.clone(),
        (None, _) => operand.clone(),
    }
}

fn all(conditions: &[Condition], values: &Map<String, Value>) -> bool {
    conditions.iter().all(|(name, op, word)| {
        let value = lookup(&json!(name), values);
        let limit = lookup(word, values);
        let compare = |holds: fn(f64, f64) -> bool| {
            value.as_f64().zip(limit.as_f64()).is_some_and(|(value, limit)| holds(value, limit))
        };
        let equal = || value == limit || compare(|a, b| a == b);
        match op.as_str() {
            "==" => equal(),
            "!=" => !equal(),
            "<" => compare(|a, b| a < b),
            "<=" => compare(|a, b| a <= b),
            ">" => compare(|a, b| a > b),
            ">=" => compare(|a, b| a >= b),
            // The word itself, though a parameter may have the same name.
            "contains" => value.as_array().is_some_and(|list| list.contains(word)),
            "lacks" => !value.as_array().is_some_and(|list| list.contains(word)),
            _ => false,
        }
    })
}

/// The text with every `$name` replaced by its value.
fn fill(text: &str, values: &Map<String, Value>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        out.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        let is_part = |(place, c): (usize, char)| {
            c.is_ascii_alphanumeric()
                || c == '_'
                || (c == '.' && after[place + 1..].starts_with(|next: char| next.is_ascii_digit()))
        };
        let end = after.char_indices().find(|&at| !is_part(at)).map_or(after.len(), |(place, _)| place);
        out.push_str(&lookup(&json!(after[..end]), values).to_string());
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_reads_and_its_defaults_translate() {
        for name in names() {
            let profile = find(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(profile.name, name);
            let found = profile.translate(&json!({}), 3).unwrap_or_else(|error| panic!("{name}: {error}"));
            Pipeline::parse(&found.pipeline).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }

    #[test]
    fn an_unknown_parameter_is_refused_with_the_names_there_are() {
        let error =
            find("vllm").expect("a profile").translate(&json!({ "topp": 1 }), 0).expect_err("no such");
        assert_eq!(error.code, ErrorCode::UnknownParam);
        assert!(error.message.contains("top_p"), "{}", error.message);
    }
}
