//! Reading the arguments of a call such as `beam(width=4, length_penalty=1)`.
//!
//! Strategies and constraints are written in the notation of stages, but are not stages.
//! [`Arguments`] takes the values out by name and refuses what is left over, each refusal
//! with its position.

use serde_json::Value;

use crate::{
    config::{self, Call},
    error::{Error, ErrorCode, Result},
};

/// The arguments of one call that have not been taken yet.
///
/// # Examples
/// ```
/// use logitscope::call::Arguments;
///
/// let mut call = Arguments::parse("beam(width=4, length_penalty=0.5)")?;
/// assert_eq!(call.name(), "beam");
/// assert_eq!(call.count("width", None, 1)?, 4);
/// assert_eq!(call.number("length_penalty", Some(1.0))?, 0.5);
/// call.finish()?;
///
/// let call = Arguments::parse("sample(width=4)")?;
/// assert_eq!(call.finish().unwrap_err().position, Some(7));
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Arguments {
    name: String,
    start: usize,
    left: Vec<(usize, String, Value)>,
    known: Vec<&'static str>,
}

impl Arguments {
    /// Reads one call.
    ///
    /// # Errors
    /// `syntax` and `duplicate_param`, with a position.
    pub fn parse(text: &str) -> Result<Self> {
        let Call { name: (start, name), arguments } = config::parse_call(text)?;
        for (index, (position, param, _)) in arguments.iter().enumerate() {
            if arguments[..index].iter().any(|(_, earlier, _)| earlier == param) {
                let message = if param.is_empty() {
                    format!("{name} was given two values without a name")
                } else {
                    format!("{name}.{param} is given twice")
                };
                return Err(Error::new(ErrorCode::DuplicateParam, message)
                    .stage(name)
                    .param(param)
                    .position(*position));
            }
        }
        Ok(Self { name, start, left: arguments, known: Vec::new() })
    }

    /// The name before the parenthesis.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// An error about the call as a whole.
    #[must_use]
    pub fn fault(&self, code: ErrorCode, message: impl Into<String>) -> Error {
        Error::new(code, message).stage(&self.name).position(self.start)
    }

    fn take(&mut self, param: &'static str) -> Option<(usize, Value)> {
        self.known.push(param);
        let place = self.left.iter().position(|(_, name, _)| name == param)?;
        let (position, _, value) = self.left.remove(place);
        Some((position, value))
    }

    fn wrong(&self, param: &str, position: usize, value: &Value, expected: &str) -> Error {
        Error::new(ErrorCode::WrongType, format!("{}.{param} is {value}, but must be {expected}", self.name))
            .stage(&self.name)
            .param(param)
            .position(position)
    }

    fn missing(&self, param: &str) -> Error {
        self.fault(ErrorCode::MissingParam, format!("{}.{param} must be given", self.name)).param(param)
    }

    /// A finite real number; without a default it must be given.
    ///
    /// # Errors
    /// `missing_param` or `wrong_type`.
    pub fn number(&mut self, param: &'static str, default: Option<f64>) -> Result<f64> {
        match self.take(param) {
            None => default.ok_or_else(|| self.missing(param)),
            Some((position, value)) => value
                .as_f64()
                .filter(|number| number.is_finite())
                .ok_or_else(|| self.wrong(param, position, &value, "a finite number")),
        }
    }

    /// A whole number of at least `least`; without a default it must be given.
    ///
    /// # Errors
    /// `missing_param`, `wrong_type` or `out_of_range`.
    pub fn count(&mut self, param: &'static str, default: Option<usize>, least: usize) -> Result<usize> {
        let Some((position, value)) = self.take(param) else {
            return default.ok_or_else(|| self.missing(param));
        };
        let number = value.as_f64().filter(|number| number.fract() == 0.0);
        let number = number.ok_or_else(|| self.wrong(param, position, &value, "a whole number"))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
        if number >= least as f64 && number <= f64::from(u32::MAX) {
            return Ok(number as usize);
        }
        let message = format!("{}.{param} is {value}, but must be from {least} to {}", self.name, u32::MAX);
        Err(Error::new(ErrorCode::OutOfRange, message).stage(&self.name).param(param).position(position))
    }

    /// One of a few words; the first is the default. `true` and `false` count as words.
    ///
    /// # Errors
    /// `wrong_type`, which lists the words.
    pub fn word(&mut self, param: &'static str, words: &[&'static str]) -> Result<&'static str> {
        let Some((position, value)) = self.take(param) else {
            return Ok(words.first().copied().unwrap_or_default());
        };
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let known = words.iter().find(|&&word| word == text).copied();
        known.ok_or_else(|| self.wrong(param, position, &value, &format!("one of {}", words.join(", "))))
    }

    /// A text; `None` if it was not given.
    ///
    /// # Errors
    /// `wrong_type`.
    pub fn text(&mut self, param: &'static str) -> Result<Option<String>> {
        match self.take(param) {
            None => Ok(None),
            Some((_, Value::String(text))) => Ok(Some(text)),
            Some((position, value)) => Err(self.wrong(param, position, &value, "a text")),
        }
    }

    /// The value without a name, or the one with this name, and where it stands.
    ///
    /// # Errors
    /// `missing_param`.
    pub fn only(&mut self, param: &'static str) -> Result<(usize, Value)> {
        let unnamed = self.take("");
        self.known.pop();
        let named = self.take(param);
        unnamed.or(named).ok_or_else(|| self.missing(param))
    }

    /// Refuses whatever was not taken.
    ///
    /// # Errors
    /// `unknown_param`, with its position and the names there are.
    pub fn finish(self) -> Result<()> {
        let Some((position, param, _)) = self.left.first() else { return Ok(()) };
        let what = if param.is_empty() { "a value without a name".to_owned() } else { format!("`{param}`") };
        let message = if self.known.is_empty() {
            format!("{} takes no parameters, so {what} means nothing", self.name)
        } else {
            format!("{} does not take {what}; it has {}", self.name, self.known.join(", "))
        };
        Err(Error::new(ErrorCode::UnknownParam, message)
            .stage(&self.name)
            .param(param.clone())
            .position(*position))
    }
}
