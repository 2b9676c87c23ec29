//! A request in a framework's words: what it says, what is refused, what is not about a step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    Profile, ProfileNote, note,
    rules::{Condition, all, fill},
};
use crate::error::{Error, ErrorCode, Result, nearest};

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
    /// The smallest number the framework accepts, of each bias for biases.
    #[serde(default)]
    pub min: Option<f64>,
    /// The largest.
    #[serde(default)]
    pub max: Option<f64>,
    /// Whether the smallest number itself is refused.
    #[serde(default)]
    pub min_excluded: bool,
    /// The range into which the framework forces each bias, without an error.
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
    /// When that happens: always, if there is no condition.
    #[serde(default)]
    on_when: Vec<Condition>,
    /// Whether biases may be a list of pairs too, with `false` for a ban and texts for tokens.
    #[serde(default)]
    pairs: bool,
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
    /// Token ids and what is added to each.
    Bias,
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

impl Parameter {
    pub(super) fn goes_by(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }

    /// The biases, each forced into the range, and a note for each that was outside.
    fn clamped(&self, mut value: Value, notes: &mut Vec<ProfileNote>) -> Value {
        let (Some((low, high)), Some(entries)) = (self.clamp, value.as_object_mut()) else { return value };
        for (id, entry) in entries {
            let number = entry.as_f64().unwrap_or(f64::NEG_INFINITY);
            if !(low..=high).contains(&number) {
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
            Kind::Bias => return self.biases(profile, value),
            Kind::Any => return Ok(value.clone()),
        };
        self.in_range(number).map_err(|range| {
            let message = format!("{profile} refuses {} = {value}: it must be {range}", self.name);
            Error::new(ErrorCode::OutOfRange, message).param(&self.name)
        })?;
        #[expect(clippy::cast_possible_truncation, reason = "checked to be whole")]
        Ok(if self.kind == Kind::Integer { json!(number as i64) } else { json!(number) })
    }

    /// Refuses a number outside the range, with the range in words.
    fn in_range(&self, number: f64) -> Result<(), String> {
        let low = self.min.is_none_or(|min| if self.min_excluded { number > min } else { number >= min });
        if low && self.max.is_none_or(|max| number <= max) {
            return Ok(());
        }
        let above = if self.min_excluded { "above" } else { "at least" };
        let bounds =
            [self.min.map(|min| format!("{above} {min}")), self.max.map(|max| format!("at most {max}"))];
        Err(bounds.into_iter().flatten().collect::<Vec<_>>().join(" and "))
    }

    /// Biases as an object from token ids to numbers, or to `"-inf"` for a ban; `null` if there
    /// are none. Several of the same token add up.
    fn biases(&self, profile: &str, value: &Value) -> Result<Value> {
        let refuse = |code, why: String| {
            Error::new(code, format!("{profile} refuses {}: {why}", self.name)).param(&self.name)
        };
        let pairs: Vec<(Value, &Value)> = match value {
            Value::Object(entries) => entries.iter().map(|(id, bias)| (json!(id), bias)).collect(),
            Value::Array(entries) if self.pairs => entries
                .iter()
                .map(|entry| match entry.as_array().map(Vec::as_slice) {
                    Some([id, bias]) => Ok((id.clone(), bias)),
                    _ => Err(refuse(
                        ErrorCode::WrongType,
                        format!("{entry} must be a pair of a token id and a number, or false"),
                    )),
                })
                .collect::<Result<_>>()?,
            _ => {
                let expected = if self.pairs { "an object, or a list of pairs" } else { "an object" };
                return Err(refuse(ErrorCode::WrongType, format!("{value} must be {expected}")));
            }
        };
        let mut sums: Map<String, Value> = Map::new();
        let mut refused = Vec::new();
        for (token, bias) in pairs {
            let id = match &token {
                Value::String(text) => text.parse::<u32>().ok(),
                number => number.as_u64().and_then(|id| u32::try_from(id).ok()),
            };
            let Some(id) = id else {
                let (code, why) = match &token {
                    Value::String(_) if self.pairs => (
                        ErrorCode::NeedsVocabulary,
                        format!(
                            "{token} is a text, which only the model's tokenizer takes apart: give its token ids"
                        ),
                    ),
                    _ => (ErrorCode::WrongType, format!("{token} is not a token id")),
                };
                refused.push(refuse(code, why));
                continue;
            };
            let number = match bias {
                Value::Bool(false) if self.pairs => Some(f64::NEG_INFINITY),
                Value::String(word) if word == "-inf" || word == "-Infinity" => Some(f64::NEG_INFINITY),
                _ => bias.as_f64(),
            };
            let Some(number) = number else {
                let or = if self.pairs { ", or false for a ban" } else { "" };
                let why = format!("the bias of {id} is {bias}, but must be a number{or}");
                refused.push(refuse(ErrorCode::WrongType, why));
                continue;
            };
            if let Err(range) = self.in_range(number) {
                let why = format!("the bias of {id} is {bias}, but must be {range}");
                refused.push(refuse(ErrorCode::OutOfRange, why));
                continue;
            }
            let before = sums.get(&id.to_string()).map(|sum| sum.as_f64().unwrap_or(f64::NEG_INFINITY));
            let sum = number + before.unwrap_or_default();
            let sum = if sum == f64::NEG_INFINITY {
                json!("-inf")
            } else if before.is_none() {
                bias.clone()
            } else {
                json!(sum)
            };
            sums.insert(id.to_string(), sum);
        }
        match joined(refused) {
            Some(error) => Err(error),
            None if sums.is_empty() => Ok(Value::Null),
            None => Ok(Value::Object(sums)),
        }
    }
}

/// Fields of a request that a step does not depend on.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Beside {
    /// The shapes in `data/requests.json` whose fields it has too.
    like: Vec<String>,
    /// What a run here can be given as well, in words, and the fields that say it.
    run: BTreeMap<String, Vec<String>>,
    /// Fields that hold a constraint.
    constraint: Vec<String>,
    /// All others.
    other: Vec<String>,
}

/// Fields that several frameworks share, by the name of the shape.
const SHAPES: &str = include_str!("data/requests.json");

impl Beside {
    /// With the fields of the shapes that it is like, but for those that are parameters here.
    pub(super) fn complete(mut self, parameters: &[Parameter]) -> Result<Self> {
        let malformed = |why: String| Error::new(ErrorCode::BadInput, format!("requests.json: {why}"));
        let mut shapes: BTreeMap<String, Self> =
            serde_json::from_str(SHAPES).map_err(|error| malformed(error.to_string()))?;
        for name in std::mem::take(&mut self.like) {
            let shape = shapes.remove(&name).ok_or_else(|| malformed(format!("it has no `{name}`")))?;
            for (role, names) in shape.run {
                self.run.entry(role).or_default().extend(names);
            }
            let is_beside = |field: &String| !parameters.iter().any(|param| param.goes_by(field));
            self.constraint.extend(shape.constraint.into_iter().filter(is_beside));
            self.other.extend(shape.other.into_iter().filter(is_beside));
        }
        Ok(self)
    }

    /// Every field.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.run.values().flatten().chain(self.aside())
    }

    /// Every field of which a run here has no setting.
    pub(super) fn aside(&self) -> impl Iterator<Item = &String> {
        self.constraint.iter().chain(&self.other)
    }

    /// What to say of the fields that were given, in at most two notes.
    fn notes(&self, given: &Map<String, Value>, is_parameter: impl Fn(&str) -> bool) -> Vec<ProfileNote> {
        let quoted = |names: Vec<&String>| -> String {
            names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        let mut notes = Vec::new();
        let constrains = |name: &&String| given.get(*name).is_some_and(|value| !says_nothing(value));
        let constraints: Vec<_> = self.constraint.iter().filter(constrains).collect();
        if !constraints.is_empty() {
            let message = format!(
                "A constraint, which masks tokens beside the stages and is given to a run: {}.",
                quoted(constraints.clone())
            );
            notes.push(note("not_expressed", None, &message));
        }
        let is_beside = |name: &&String| {
            !is_parameter(name) && !constraints.contains(name) && self.names().any(|known| known == *name)
        };
        let beside: Vec<_> = given.keys().filter(is_beside).collect();
        let mut sentences = Vec::new();
        if !beside.is_empty() {
            sentences.push(format!("Not about one step: {}.", quoted(beside)));
        }
        let roles = self.run.iter().filter_map(|(role, names)| {
            let named: Vec<_> = given
                .iter()
                .filter(|(name, value)| names.contains(name) && !says_nothing(value))
                .map(|(name, _)| name)
                .collect();
            (!named.is_empty()).then(|| format!("{role} ({})", quoted(named)))
        });
        let roles: Vec<_> = roles.collect();
        if !roles.is_empty() {
            sentences.push(format!("A run here can be given the same: {}.", roles.join(", ")));
        }
        if !sentences.is_empty() {
            notes.push(note("not_a_step", None, &sentences.join(" ")));
        }
        notes
    }
}

/// Whether a field is there but empty, as in settings that are written out in full.
pub(super) fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        // The format of an answer that is not held to one.
        Value::Object(entries) => entries.is_empty() || *value == json!({ "type": "text" }),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// A request that was read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Every parameter with its value: as given, or its default.
    pub(super) values: Map<String, Value>,
    /// The parameters that were given, and not as `null`.
    pub(super) given: Vec<String>,
    /// What is worth knowing about them.
    pub(super) notes: Vec<ProfileNote>,
}

impl Profile {
    /// Reads a request, and refuses all that the framework refuses.
    pub(super) fn read(&self, params: &Value) -> Result<Reading, Vec<Error>> {
        let fields = self.fields(params).map_err(|error| vec![error])?;
        let mut refused: Vec<Error> = fields.keys().filter_map(|name| self.unknown(name)).collect();
        let mut reading = Reading::default();
        let Reading { values, given, notes } = &mut reading;
        for param in &self.parameters {
            let mut written = fields.iter().filter(|(name, _)| param.goes_by(name));
            let first = written.next();
            for (second, _) in written {
                let message = format!("{} is given twice, also as {second}", param.name);
                refused.push(Error::new(ErrorCode::DuplicateParam, message).param(second));
            }
            let value = match first {
                Some((_, value)) if !value.is_null() => match param.check(&self.name, value) {
                    Ok(Value::Null) => param.default.clone(),
                    Ok(value) => {
                        given.push(param.name.clone());
                        param.clamped(value, notes)
                    }
                    Err(error) => {
                        refused.push(error);
                        continue;
                    }
                },
                _ => param.default.clone(),
            };
            if first.is_some()
                && let Some(why) = &param.ignored
            {
                notes.push(note("ignored", Some(&param.name), why));
            }
            if let Some(why) = &param.not_expressed
                && !says_nothing(&value)
                && !same(&value, &param.default)
            {
                notes.push(note("not_expressed", Some(&param.name), why));
            }
            values.insert(param.name.clone(), value);
        }
        if !refused.is_empty() {
            return Err(refused);
        }
        for param in &self.parameters {
            for replace in &param.replace {
                if all(&replace.when, values) {
                    notes.push(note("replaced", Some(&param.name), &fill(&replace.note, values)));
                    values.insert(param.name.clone(), replace.by.clone());
                }
            }
        }
        for param in &self.parameters {
            if let Some(message) = &param.on_by_default
                && !given.contains(&param.name)
                && all(&param.on_when, values)
            {
                notes.push(note("on_by_default", Some(&param.name), message));
            }
        }
        let is_parameter = |name: &str| self.parameters.iter().any(|param| param.goes_by(name));
        notes.extend(self.beside.notes(&fields, is_parameter));
        Ok(reading)
    }

    /// The fields of a request, with those of the objects in which the framework keeps some.
    fn fields(&self, params: &Value) -> Result<Map<String, Value>> {
        let must_be_object = |name: &str, value: &Value| {
            let message = format!("{name} is {value}, but must be an object");
            Error::new(ErrorCode::BadInput, message).param(name)
        };
        let mut fields = Map::new();
        let given = match params {
            Value::Null => return Ok(fields),
            Value::Object(given) => given,
            _ => return Err(must_be_object("params", params)),
        };
        for (name, value) in given {
            let inner = match value {
                _ if !self.inside.contains(name) => vec![(name, value)],
                Value::Null => Vec::new(),
                Value::Object(inner) => inner.iter().collect(),
                _ => return Err(must_be_object(name, value)),
            };
            for (name, value) in inner {
                if fields.insert(name.clone(), value.clone()).is_some() {
                    let message = format!("{name} is given twice");
                    return Err(Error::new(ErrorCode::DuplicateParam, message).param(name));
                }
            }
        }
        Ok(fields)
    }

    /// The refusal of a name that is none of the framework's.
    fn unknown(&self, name: &str) -> Option<Error> {
        let parameters =
            || self.parameters.iter().flat_map(|param| [&param.name].into_iter().chain(&param.aliases));
        let mut known = parameters().chain(self.beside.names()).chain(&self.inside);
        if known.any(|known| known == name) {
            return None;
        }
        let known = parameters().chain(self.beside.names()).map(String::as_str);
        let hint = nearest(name, known).map_or_else(
            || {
                let names: Vec<_> = self.parameters.iter().map(|param| param.name.as_str()).collect();
                format!("; it has {}", names.join(", "))
            },
            |near| format!("; did you mean `{near}`?"),
        );
        let message = format!("{} has no parameter `{name}`{hint}", self.name);
        Some(Error::new(ErrorCode::UnknownParam, message).param(name))
    }
}

/// Several refusals as one, which tells them all; its code and parameter are the first's.
pub(super) fn joined(errors: Vec<Error>) -> Option<Error> {
    let mut errors = errors.into_iter();
    let mut first = errors.next()?;
    for error in errors {
        first.message.push_str(if first.message.ends_with('?') { " " } else { "; " });
        first.message.push_str(&error.message);
    }
    Some(first)
}

/// Whether two values are the same, however a number is written.
fn same(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| a == b)
}
