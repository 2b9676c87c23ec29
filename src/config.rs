//! Pipelines as text and as JSON.
//!
//! `top_k(k=40) | top_p(p=0.9) | categorical(seed=7)`: stages separated by `|`, applied left
//! to right. A value is a number, a bare word, or a JSON literal. Every refusal gives the
//! byte position in the text.

use std::fmt::{self, Write as _};

use serde_json::json;

use crate::{
    error::{Error, ErrorCode, Result},
    json::Strict,
    registry,
    spec::{ParamType, StageSpec},
};

/// The version of the JSON form.
pub const VERSION: u32 = 1;

/// The value of a parameter, already held against its declaration.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A real number.
    Number(f64),
    /// A whole number.
    Integer(u64),
    /// One of the declared words.
    Word(&'static str),
    /// A list or an object of the declared shape.
    Json(serde_json::Value),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) if *number != 0.0 && !(1e-5..1e16).contains(&number.abs()) => {
                write!(f, "{number:e}")
            }
            Self::Number(number) => number.fmt(f),
            Self::Integer(number) => number.fmt(f),
            Self::Word(word) => f.write_str(word),
            Self::Json(json) => json.fmt(f),
        }
    }
}

impl Value {
    fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Number(number) => json!(number),
            Self::Integer(number) => json!(number),
            Self::Word(word) => json!(word),
            Self::Json(json) => json.clone(),
        }
    }
}

/// A stage with the values of its parameters.
///
/// # Examples
/// ```
/// use logitscope::config::Args;
///
/// let args = Args::parse("top_p(p=0.9)")?;
/// assert_eq!(args.number("p")?, 0.9);
/// assert_eq!(args.to_string(), "top_p(p=0.9, boundary=reach, min_keep=1, mass=current)");
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Args {
    /// The declaration these are the arguments of.
    pub spec: &'static StageSpec,
    /// In the order of the declaration; `None` where there is no default, such as a seed.
    values: Vec<Option<Value>>,
}

impl PartialEq for Args {
    fn eq(&self, other: &Self) -> bool {
        self.spec.id == other.spec.id && self.values == other.values
    }
}

impl Args {
    /// All parameters at their defaults.
    ///
    /// # Panics
    /// Never: a test holds every default against its own declaration.
    #[must_use]
    pub fn defaults(spec: &'static StageSpec) -> Self {
        let values = spec.params.iter().map(|param| {
            let value = parse_value(param.default?).ok()?;
            param.check(spec.id, &value).ok()
        });
        Self { spec, values: values.collect() }
    }

    /// One stage in text form.
    ///
    /// # Errors
    /// As [`parse`].
    pub fn parse(text: &str) -> Result<Self> {
        let mut stages = parse(text)?;
        match (stages.pop(), stages.is_empty()) {
            (Some((_, args)), true) => Ok(args),
            _ => Err(Error::new(ErrorCode::Syntax, format!("`{text}` is not one stage")).position(0)),
        }
    }

    /// Sets one parameter.
    ///
    /// # Errors
    /// `unknown_param`, `wrong_type` or `out_of_range`.
    pub fn set(&mut self, name: &str, value: &serde_json::Value) -> Result<()> {
        let (place, param) = self.spec.param(name)?;
        self.values[place] = Some(param.check(self.spec.id, value)?);
        Ok(())
    }

    /// Whether the stage declares a parameter of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.spec.params.iter().any(|param| param.name == name)
    }

    /// The value of a parameter, if it has one.
    ///
    /// # Errors
    /// `unknown_param`.
    pub fn get(&self, name: &str) -> Result<Option<&Value>> {
        Ok(self.values[self.spec.param(name)?.0].as_ref())
    }

    fn require(&self, name: &str) -> Result<&Value> {
        self.get(name)?.ok_or_else(|| {
            Error::new(ErrorCode::MissingParam, format!("{}.{name} must be given", self.spec.id))
                .stage(self.spec.id)
                .param(name)
        })
    }

    fn mismatch(&self, name: &str) -> Error {
        Error::new(ErrorCode::WrongType, format!("{}.{name} has another type", self.spec.id))
            .stage(self.spec.id)
            .param(name)
    }

    /// A real number.
    ///
    /// # Errors
    /// `unknown_param`, `missing_param`, or `wrong_type` if it was declared as something else.
    pub fn number(&self, name: &str) -> Result<f64> {
        match self.require(name)? {
            Value::Number(number) => Ok(*number),
            _ => Err(self.mismatch(name)),
        }
    }

    /// A whole number.
    ///
    /// # Errors
    /// As [`number`](Self::number).
    pub fn integer(&self, name: &str) -> Result<u64> {
        match self.require(name)? {
            Value::Integer(number) => Ok(*number),
            _ => Err(self.mismatch(name)),
        }
    }

    /// A whole number that counts tokens.
    ///
    /// # Errors
    /// As [`number`](Self::number).
    pub fn count(&self, name: &str) -> Result<usize> {
        self.integer(name).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// One of the declared words.
    ///
    /// # Errors
    /// As [`number`](Self::number).
    pub fn word(&self, name: &str) -> Result<&'static str> {
        match self.require(name)? {
            Value::Word(word) => Ok(word),
            _ => Err(self.mismatch(name)),
        }
    }

    /// A list or an object, as JSON of the declared shape.
    ///
    /// # Errors
    /// As [`number`](Self::number).
    pub fn json(&self, name: &str) -> Result<&serde_json::Value> {
        match self.require(name)? {
            Value::Json(json) => Ok(json),
            _ => Err(self.mismatch(name)),
        }
    }

    /// The seed, if the stage has one and it was given.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        match self.get("seed") {
            Ok(Some(Value::Integer(seed))) => Some(*seed),
            _ => None,
        }
    }

    /// The stage as an object: `{"stage": "top_p", "p": 0.9, …}`.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let mut object = serde_json::Map::new();
        object.insert("stage".to_owned(), json!(self.spec.id));
        for (param, value) in self.spec.params.iter().zip(&self.values) {
            if let Some(value) = value {
                object.insert(param.name.to_owned(), value.to_json());
            }
        }
        serde_json::Value::Object(object)
    }

    /// Reads what [`to_json`](Self::to_json) writes; parameters at their default may be left
    /// out.
    ///
    /// # Errors
    /// `bad_input` if it is not such an object; else as [`set`](Self::set).
    pub fn from_json(json: &serde_json::Value) -> Result<Self> {
        let object = json.as_object().ok_or_else(|| {
            Error::new(ErrorCode::BadInput, format!("a stage is {json}, but must be an object"))
        })?;
        let id = object.get("stage").and_then(serde_json::Value::as_str).ok_or_else(|| {
            Error::new(ErrorCode::BadInput, format!("the stage {json} lacks the name of its `stage`"))
        })?;
        let mut args = Self::defaults(registry::find(id)?);
        for (name, value) in object.iter().filter(|(name, _)| *name != "stage") {
            args.set(name, value)?;
        }
        args.complete()
    }

    /// The text form without the parameters at their defaults, for sentences.
    ///
    /// # Examples
    /// ```
    /// use logitscope::config::Args;
    ///
    /// let args = Args::parse("top_p(p=0.8)")?;
    /// assert_eq!(args.to_string(), "top_p(p=0.8, boundary=reach, min_keep=1, mass=current)");
    /// assert_eq!(args.brief(), "top_p(p=0.8)");
    /// # Ok::<(), logitscope::Error>(())
    /// ```
    #[must_use]
    pub fn brief(&self) -> String {
        let defaults = Self::defaults(self.spec);
        let named = self.spec.params.iter().zip(self.values.iter().zip(&defaults.values));
        let changed = named.filter(|(_, (value, default))| value != default);
        let texts =
            changed.filter_map(|(param, (value, _))| Some(format!("{}={}", param.name, value.as_ref()?)));
        format!("{}({})", self.spec.id, texts.collect::<Vec<_>>().join(", "))
    }

    /// Refuses token ids that a vocabulary of this size does not have.
    ///
    /// # Errors
    /// `token_out_of_vocabulary`, which names stage, parameter and id.
    pub fn require_vocabulary(&self, size: usize) -> Result<()> {
        for (param, value) in self.spec.params.iter().zip(&self.values) {
            let Some(Value::Json(json)) = value else { continue };
            if let Some(id) = param.ty.ids(json).into_iter().find(|&id| id as usize >= size) {
                let message = format!(
                    "{}.{} names token {id}, which is not in a vocabulary of {size}",
                    self.spec.id, param.name
                );
                return Err(Error::new(ErrorCode::TokenOutOfVocabulary, message)
                    .stage(self.spec.id)
                    .param(param.name));
            }
        }
        Ok(())
    }

    /// Refuses when a parameter without default was not given.
    fn complete(self) -> Result<Self> {
        for (param, value) in self.spec.params.iter().zip(&self.values) {
            if value.is_none() && param.ty != ParamType::Seed {
                self.require(param.name)?;
            }
        }
        Ok(self)
    }
}

impl fmt::Display for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec.id)?;
        f.write_char('(')?;
        let mut first = true;
        for (param, value) in self.spec.params.iter().zip(&self.values) {
            if let Some(value) = value {
                if !first {
                    f.write_str(", ")?;
                }
                first = false;
                write!(f, "{}={value}", param.name)?;
            }
        }
        f.write_char(')')
    }
}

/// The stages of a pipeline text, each with the position where it begins.
///
/// An empty text has no stages.
///
/// # Errors
/// `syntax`, `unknown_stage`, `unknown_param`, `duplicate_param`, `missing_param`,
/// `wrong_type` or `out_of_range`, each with its position.
pub fn parse(text: &str) -> Result<Vec<(usize, Args)>> {
    parse_with(text, |_, _, _| false)
}

/// As [`parse`], leaving out every stage for one of whose written values `leave_out` holds:
/// for values that the text form accepts though the stage itself cannot.
pub(crate) fn parse_with(
    text: &str,
    mut leave_out: impl FnMut(&'static StageSpec, &str, &serde_json::Value) -> bool,
) -> Result<Vec<(usize, Args)>> {
    let mut reader = Reader { text, position: 0 };
    let mut stages = Vec::new();
    reader.skip_space();
    if reader.rest().is_empty() {
        return Ok(stages);
    }
    loop {
        reader.skip_space();
        let position = reader.position;
        if let Some(args) = reader.stage(&mut leave_out)? {
            stages.push((position, args));
        }
        reader.skip_space();
        if reader.rest().is_empty() {
            return Ok(stages);
        }
        reader.expect('|', "`|` and another stage, or the end")?;
    }
}

/// A value as written in the text form: a number, a bare word, or a JSON literal.
///
/// # Errors
/// `syntax`, with its position.
pub fn parse_value(text: &str) -> Result<serde_json::Value> {
    let mut reader = Reader { text, position: 0 };
    let value = reader.value()?;
    reader.skip_space();
    if reader.rest().is_empty() { Ok(value) } else { Err(reader.fault("the end of the value")) }
}

/// One call in the notation `name(param=value, …)`, without looking its names up: strategies
/// and constraints are written this way too.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The name before the parenthesis, and its position.
    pub name: (usize, String),
    /// Names, values, and their positions; a value without a name has an empty one.
    pub arguments: Vec<(usize, String, serde_json::Value)>,
}

/// Reads one [`Call`]. An argument may stand without a name.
///
/// # Errors
/// `syntax`, with its position.
pub fn parse_call(text: &str) -> Result<Call> {
    let mut reader = Reader { text, position: 0 };
    reader.skip_space();
    let call = reader.call(true)?;
    reader.skip_space();
    if reader.rest().is_empty() { Ok(call) } else { Err(reader.fault("the end")) }
}

struct Reader<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn skip_space(&mut self) {
        self.position = self.text.len() - self.rest().trim_start().len();
    }

    fn fault(&self, expected: &str) -> Error {
        let found = match self.rest().chars().next() {
            Some(c) => format!("`{c}`"),
            None => "the end".to_owned(),
        };
        Error::new(
            ErrorCode::Syntax,
            format!("expected {expected} at position {}, found {found}", self.position),
        )
        .position(self.position)
    }

    fn expect(&mut self, wanted: char, described: &str) -> Result<()> {
        if self.rest().starts_with(wanted) {
            self.position += wanted.len_utf8();
            Ok(())
        } else {
            Err(self.fault(described))
        }
    }

    fn name(&mut self, described: &str) -> Result<&'a str> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end == 0 || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.fault(described));
        }
        self.position += end;
        Ok(&rest[..end])
    }

    fn call(&mut self, unnamed: bool) -> Result<Call> {
        let start = self.position;
        let name = self.name("the name of a stage")?;
        let mut arguments = Vec::new();
        self.skip_space();
        self.expect('(', "`(`")?;
        self.skip_space();
        if !self.rest().starts_with(')') {
            loop {
                self.skip_space();
                let position = self.position;
                let named = self.name("the name of a parameter").ok().and_then(|name| {
                    self.skip_space();
                    self.expect('=', "`=`").is_ok().then_some(name)
                });
                let param = match named {
                    Some(param) => param,
                    None if unnamed => {
                        self.position = position;
                        ""
                    }
                    None => {
                        self.position = position;
                        self.name("the name of a parameter")?;
                        self.skip_space();
                        return Err(self.fault("`=` and a value"));
                    }
                };
                self.skip_space();
                let value = self.value().map_err(|error| error.in_stage(name).param(param))?;
                arguments.push((position, param.to_owned(), value));
                self.skip_space();
                if self.rest().starts_with(')') {
                    break;
                }
                self.expect(',', "`,` or `)`")?;
            }
        }
        self.expect(')', "`)`")?;
        Ok(Call { name: (start, name.to_owned()), arguments })
    }

    fn stage(
        &mut self,
        leave_out: &mut impl FnMut(&'static StageSpec, &str, &serde_json::Value) -> bool,
    ) -> Result<Option<Args>> {
        let call = self.call(false)?;
        let (start, name) = call.name;
        let spec = registry::find(&name).map_err(|error| error.position(start))?;
        let mut args = Args::defaults(spec);
        let mut given: Vec<&str> = Vec::new();
        let mut left_out = false;
        for (position, param, value) in &call.arguments {
            if given.contains(&param.as_str()) {
                let message = format!("{}.{param} is given twice", spec.id);
                return Err(Error::new(ErrorCode::DuplicateParam, message)
                    .stage(spec.id)
                    .param(param)
                    .position(*position));
            }
            given.push(param);
            if leave_out(spec, param, value) {
                left_out = true;
            } else {
                args.set(param, value).map_err(|error| error.position(*position))?;
            }
        }
        let args = args.complete().map_err(|error| error.position(start))?;
        Ok((!left_out).then_some(args))
    }

    fn value(&mut self) -> Result<serde_json::Value> {
        self.skip_space();
        let rest = self.rest();
        if rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Ok(match self.name("a value")? {
                "true" => json!(true),
                "false" => json!(false),
                "null" => serde_json::Value::Null,
                word => json!(word),
            });
        }
        if rest.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
            let end =
                rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)).unwrap_or(rest.len());
            let written = &rest[..end];
            let value = serde_json::from_str(written).map_err(|_| self.no_number(written))?;
            self.position += end;
            return Ok(value);
        }
        if !rest.starts_with(['"', '[', '{']) {
            return Err(self.fault("a number, a word or a JSON literal"));
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Strict>();
        match values.next() {
            Some(Ok(Strict(value))) => {
                self.position += values.byte_offset();
                Ok(value)
            }
            Some(Err(error)) => Err(self.no_json(&error)),
            None => Err(self.fault("a JSON literal")),
        }
    }

    fn no_number(&self, written: &str) -> Error {
        let (code, why) = match written.parse::<f64>() {
            Ok(number) if number.is_infinite() => (ErrorCode::OutOfRange, "too large for a number"),
            _ => (ErrorCode::Syntax, "not a number as JSON writes them, such as 0.9"),
        };
        Error::new(code, format!("`{written}` at position {} is {why}", self.position))
            .position(self.position)
    }

    fn no_json(&self, error: &serde_json::Error) -> Error {
        let start = self.position;
        if error.is_eof() {
            let position = self.text.len();
            return Error::new(ErrorCode::Syntax, format!("the JSON from position {start} on does not end"))
                .position(position);
        }
        // Lines and columns count from the beginning of the literal.
        let before = self.rest().split_inclusive('\n').take(error.line().saturating_sub(1));
        let offset = before.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
        let position = (start + offset).min(self.text.len());
        let message = error.to_string();
        let why = message.split(" at line ").next().unwrap_or_default();
        Error::new(
            ErrorCode::Syntax,
            format!("the JSON from position {start} on is wrong at position {position}: {why}"),
        )
        .position(position)
    }
}
