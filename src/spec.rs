//! How a stage is declared: once, as data.
//!
//! From a [`StageSpec`] come the controls on the page, the text form, JSON, range errors, the
//! reference page and the property tests. Nothing about a stage is written twice.

use serde::Serialize;

use crate::{
    config::{Args, Value},
    error::{Error, ErrorCode, Result},
    sampler::Sampler,
    transform::Transform,
};

/// What a stage does to the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Changes the scores of some tokens, from the history or from a list.
    Edit,
    /// Changes the scores of all tokens.
    Reshape,
    /// Removes tokens.
    Truncate,
    /// Picks one token; stands last.
    Sampler,
}

/// A promise that a stage keeps on every row, tested on random and adversarial rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// Live tokens keep their scores; some may die.
    OnlyRemoves,
    /// The highest token survives.
    KeepsArgmax,
    /// With every parameter at its neutral value the row is unchanged.
    NeutralIsIdentity,
    /// The order of the survivors is that before.
    OrderPreserving,
    /// The survivors are the first so many in order.
    KeepsPrefix,
    /// Adding a constant to every score changes no survivor's probability.
    ShiftInvariant,
    /// Doing it twice is doing it once.
    Idempotent,
}

/// What values a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ParamType {
    /// A finite real number.
    Number {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
        /// Whether the smallest value itself is excluded.
        min_excluded: bool,
    },
    /// A whole number.
    Integer {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// One of a few words; the first is the default.
    Word {
        /// The words.
        words: &'static [&'static str],
    },
    /// A 64-bit seed; left out, one is drawn and shown.
    Seed,
    /// A list of token ids: `[1,2]`.
    Ids,
    /// Lists of token ids: `[[1,2],[3]]`.
    Sequences,
    /// Token ids with what is added to each: `{"15": 2.5, "27": "-inf"}`.
    Bias,
    /// Sequences of ids with what is added to the last: `[[[1,3],-1.5]]`.
    SequenceBias,
    /// Steps with the token forced there: `{"0": 5}`.
    Forced,
    /// Texts, or lists of token ids that stand for one: `["\n", [13]]`.
    Texts,
}

impl ParamType {
    /// The token ids in a value of this type.
    #[must_use]
    pub fn ids(self, value: &serde_json::Value) -> Vec<u32> {
        let items = || value.as_array().into_iter().flatten();
        let entries = || value.as_object().into_iter().flatten();
        let within = |ids: &serde_json::Value| Self::Ids.ids(ids);
        match self {
            Self::Ids => items().filter_map(token_id).collect(),
            Self::Sequences | Self::Texts => items().flat_map(within).collect(),
            Self::SequenceBias => items().filter_map(|pair| pair.get(0)).flat_map(within).collect(),
            Self::Bias => entries().filter_map(|(id, _)| id.parse().ok()).collect(),
            Self::Forced => entries().filter_map(|(_, id)| token_id(id)).collect(),
            Self::Number { .. } | Self::Integer { .. } | Self::Word { .. } | Self::Seed => Vec::new(),
        }
    }
}

/// A shorthand for a real number in `min..=max`.
#[must_use]
pub const fn number(min: f64, max: f64) -> ParamType {
    ParamType::Number { min, max, min_excluded: false }
}

/// A shorthand for a finite real number above zero.
#[must_use]
pub const fn positive() -> ParamType {
    ParamType::Number { min: 0.0, max: f64::MAX, min_excluded: true }
}

/// A shorthand for a finite real number, at least zero.
#[must_use]
pub const fn non_negative() -> ParamType {
    ParamType::Number { min: 0.0, max: f64::MAX, min_excluded: false }
}

/// A shorthand for any finite real number.
#[must_use]
pub const fn signed() -> ParamType {
    ParamType::Number { min: f64::MIN, max: f64::MAX, min_excluded: false }
}

/// A shorthand for a whole number from `min` up.
#[must_use]
pub const fn whole(min: u64) -> ParamType {
    ParamType::Integer { min, max: u32::MAX as u64 }
}

/// One parameter of a stage.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ParamSpec {
    /// Its name in the text form.
    pub name: &'static str,
    /// What values it takes.
    #[serde(flatten)]
    pub ty: ParamType,
    /// The default, as written in the text form; none if it must be given.
    pub default: Option<&'static str>,
    /// The value with which the parameter has no effect, as written in the text form.
    pub neutral: Option<&'static str>,
    /// The part of the range worth a slider, and its step; `None` if no slider fits.
    pub slider: Option<(f64, f64, f64)>,
    /// The unit of the value, or an empty string.
    pub unit: &'static str,
    /// What it does, in a sentence.
    pub help: &'static str,
}

/// How to build a stage from its arguments.
#[derive(Debug, Clone, Copy)]
pub enum Build {
    /// A transform.
    Transform(fn(&Args) -> Result<Box<dyn Transform>>),
    /// A sampler.
    Sampler(fn(&Args) -> Result<Box<dyn Sampler>>),
}

/// The declaration of a stage.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct StageSpec {
    /// Its name in the text form.
    pub id: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// What it does.
    pub kind: Kind,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// The formula, in plain characters.
    pub formula: &'static str,
    /// Where it was first described.
    pub source: &'static str,
    /// Its parameters, in the order they are written.
    pub params: &'static [ParamSpec],
    /// What it promises.
    pub laws: &'static [Law],
    /// How it is built.
    #[serde(skip)]
    pub build: Build,
}

impl StageSpec {
    /// The declaration of one parameter, and its place.
    ///
    /// # Errors
    /// `unknown_param`, which lists the names there are.
    pub fn param(&self, name: &str) -> Result<(usize, &'static ParamSpec)> {
        self.params.iter().enumerate().find(|(_, param)| param.name == name).ok_or_else(|| {
            let names: Vec<_> = self.params.iter().map(|param| param.name).collect();
            let message = if names.is_empty() {
                format!("{} takes no parameters, so `{name}` means nothing", self.id)
            } else {
                format!("{} has no parameter `{name}`; it has {}", self.id, names.join(", "))
            };
            Error::new(ErrorCode::UnknownParam, message).stage(self.id).param(name)
        })
    }
}

impl ParamSpec {
    /// Holds a JSON value against the declaration.
    ///
    /// # Errors
    /// `wrong_type` or `out_of_range`, which name stage, parameter and value.
    pub fn check(&self, stage: &'static str, value: &serde_json::Value) -> Result<Value> {
        let wrong = |expected: &str| {
            Error::new(
                ErrorCode::WrongType,
                format!("{stage}.{} is {value}, but must be {expected}", self.name),
            )
            .stage(stage)
            .param(self.name)
        };
        let outside = |range: String| {
            Error::new(
                ErrorCode::OutOfRange,
                format!("{stage}.{} is {value}, but must be {range}", self.name),
            )
            .stage(stage)
            .param(self.name)
        };
        match self.ty {
            ParamType::Number { min, max, min_excluded } => {
                let number = value.as_f64().ok_or_else(|| wrong("a number"))?;
                let inside = number <= max && if min_excluded { number > min } else { number >= min };
                if inside && number.is_finite() {
                    // -0 is 0: no parameter means anything else by it.
                    Ok(Value::Number(number + 0.0))
                } else {
                    Err(outside(match (min_excluded, max < f64::MAX, min > f64::MIN) {
                        (true, false, _) => format!("a finite number above {min}"),
                        (true, true, _) => format!("above {min} and at most {max}"),
                        (false, false, true) => format!("a finite number, at least {min}"),
                        (false, false, false) => "a finite number".to_owned(),
                        (false, true, _) => format!("from {min} to {max}"),
                    }))
                }
            }
            ParamType::Integer { min, max } => {
                let range = || format!("a whole number from {min} to {max}");
                match whole_number(value) {
                    Some(number) if (min..=max).contains(&number) => Ok(Value::Integer(number)),
                    None if !is_whole(value) => Err(wrong("a whole number")),
                    _ => Err(outside(range())),
                }
            }
            // JavaScript has no numbers of 64 bits, so it writes a seed as a text.
            ParamType::Seed => {
                let range = format!("a whole number from 0 to {}", u64::MAX);
                match whole_number(value).or_else(|| value.as_str()?.parse().ok()) {
                    Some(number) => Ok(Value::Integer(number)),
                    None if is_whole(value) => Err(outside(range)),
                    None => Err(wrong(&range)),
                }
            }
            ParamType::Word { words } => value
                .as_str()
                .and_then(|word| words.iter().find(|&&known| known == word))
                .map(|&word| Value::Word(word))
                .ok_or_else(|| wrong(&format!("one of {}", words.join(", ")))),
            ParamType::Ids => list(value, |id| token_id(id).is_some())
                .ok_or_else(|| wrong("a list of token ids, such as [1,2]")),
            ParamType::Sequences => list(value, is_sequence).ok_or_else(|| {
                wrong("a list of lists of token ids, such as [[1,2],[3]], none of them empty")
            }),
            ParamType::Bias => value
                .as_object()
                .filter(|map| map.iter().all(|(id, bias)| parses_as_id(id) && is_bias(bias)))
                .map(|_| Value::Json(value.clone()))
                .ok_or_else(|| {
                    wrong("an object from token ids to finite numbers or \"-inf\", such as {\"15\": 2.5}")
                }),
            ParamType::SequenceBias => list(value, |pair| {
                pair.as_array()
                    .is_some_and(|pair| pair.len() == 2 && is_sequence(&pair[0]) && is_bias(&pair[1]))
            })
            .ok_or_else(|| wrong("a list of pairs of token ids and a number, such as [[[1,3],-1.5]]")),
            ParamType::Forced => value
                .as_object()
                .filter(|map| map.iter().all(|(step, id)| parses_as_id(step) && token_id(id).is_some()))
                .map(|_| Value::Json(value.clone()))
                .ok_or_else(|| wrong("an object from steps to token ids, such as {\"0\": 5}")),
            ParamType::Texts => list(value, |text| text.is_string() || is_sequence(text))
                .ok_or_else(|| wrong("a list of texts or lists of token ids, such as [\"\\n\", [13]]")),
        }
    }
}

/// A whole number, also when written with a zero fraction.
fn whole_number(value: &serde_json::Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be exact")]
        ((0.0..9_007_199_254_740_992.0).contains(&number) && number.fract() == 0.0).then_some(number as u64)
    })
}

/// Whether it is a whole number of any size and sign.
fn is_whole(value: &serde_json::Value) -> bool {
    value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn token_id(value: &serde_json::Value) -> Option<u32> {
    whole_number(value).and_then(|id| u32::try_from(id).ok())
}

/// One way to write an id, so that two keys of an object never mean the same one.
fn parses_as_id(text: &str) -> bool {
    text.parse::<u32>().is_ok_and(|id| id.to_string() == text)
}

fn is_sequence(value: &serde_json::Value) -> bool {
    value.as_array().is_some_and(|ids| !ids.is_empty() && ids.iter().all(|id| token_id(id).is_some()))
}

/// A finite number, or `"-inf"`.
fn is_bias(value: &serde_json::Value) -> bool {
    value.as_str() == Some("-inf") || value.as_f64().is_some_and(f64::is_finite)
}

fn list(value: &serde_json::Value, each: impl Fn(&serde_json::Value) -> bool) -> Option<Value> {
    value.as_array().filter(|items| items.iter().all(each)).map(|_| Value::Json(value.clone()))
}
