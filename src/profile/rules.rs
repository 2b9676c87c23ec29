//! What a profile's data can say: conditions, derived values, stages in an order, and texts to
//! fill in.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{ProfileNote, note};
use crate::error::{Error, ErrorCode, Result};

/// A parameter or derived value, a comparison, and a number, a word or another name.
pub(super) type Condition = (String, String, Value);

/// A value computed from others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Derived {
    pub(super) name: String,
    pub(super) op: String,
    pub(super) of: Vec<Value>,
    #[serde(default)]
    pub(super) at_least: Option<f64>,
}

/// One or several stages, if all conditions hold. `$name` in the text stands for a value.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    #[serde(default)]
    pub(super) when: Vec<Condition>,
    pub(super) text: String,
    #[serde(default)]
    pub(super) note: Option<String>,
}

/// A fixed place in the order, or one that the user orders.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Entry {
    Fixed(Rule),
    Ordered(Ordered),
}

/// Stages whose order is the value of a parameter: a list of these names.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ordered {
    pub(super) by: String,
    #[serde(default)]
    pub(super) when: Vec<Condition>,
    /// Moves the named entry to the end when the parameter is true.
    #[serde(default)]
    pub(super) last: Option<(String, String)>,
    pub(super) steps: BTreeMap<String, Vec<Rule>>,
}

impl Rule {
    pub(super) fn emit(
        &self,
        values: &Map<String, Value>,
        stages: &mut Vec<String>,
        notes: &mut Vec<ProfileNote>,
    ) {
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
    pub(super) fn emit(
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
        let unknown: Vec<_> = names.iter().filter(|name| !self.steps.contains_key(*name)).collect();
        if !unknown.is_empty() {
            let quoted: Vec<_> = unknown.into_iter().map(|name| format!("`{name}`")).collect();
            let known: Vec<_> = self.steps.keys().map(String::as_str).collect();
            let message =
                format!("{} names {}, but there are {}", self.by, quoted.join(", "), known.join(", "));
            return Err(Error::new(ErrorCode::BadInput, message).param(&self.by));
        }
        for rules in names.iter().filter_map(|name| self.steps.get(name)) {
            for rule in rules {
                rule.emit(values, stages, notes);
            }
        }
        Ok(())
    }
}

impl Derived {
    pub(super) fn value(&self, values: &Map<String, Value>) -> Value {
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

pub(super) fn all(conditions: &[Condition], values: &Map<String, Value>) -> bool {
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
pub(super) fn fill(text: &str, values: &Map<String, Value>) -> String {
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
