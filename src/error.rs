//! The one error type: a stable code, and where the fault lies.
//!
//! Every refusal in the crate is an [`Error`]. Its [`code`](Error::code) is stable and
//! meant for programs; its message is for people and names the offending value.

use std::fmt;

use serde::Serialize;

/// A stable name for a kind of refusal.
///
/// Programs match on these; they never change meaning once released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// The text of a pipeline, strategy or constraint does not follow the grammar.
    Syntax,
    /// No stage has this name.
    UnknownStage,
    /// The stage has no parameter of this name.
    UnknownParam,
    /// The same parameter was given twice.
    DuplicateParam,
    /// A parameter that has no default is missing.
    MissingParam,
    /// The value has the wrong type for its parameter.
    WrongType,
    /// The value lies outside the range its declaration gives.
    OutOfRange,
    /// A sampler stands before the end, or there are two of them.
    SamplerPosition,
    /// A logit is NaN.
    NanLogit,
    /// A logit is positive infinity.
    InfiniteLogit,
    /// The row of logits has no entries.
    EmptyRow,
    /// No token is alive, so there is nothing to draw from.
    EmptySupport,
    /// A token id is not below the vocabulary size.
    TokenOutOfVocabulary,
    /// The input is not readable as JSON or lacks a field.
    BadInput,
    /// The model file is malformed, truncated, or contradicts itself.
    ModelFormat,
    /// The model file is well formed but uses something this version does not implement.
    ModelUnsupported,
    /// The context window is full.
    ContextFull,
    /// Text and vocabulary do not fit: for instance a breaker that needs a vocabulary.
    NeedsVocabulary,
    /// The parser of a constraint gave up.
    Constraint,
    /// A constraint was asked for in a build that has no parsers.
    NeedsConstraints,
    /// A file could not be read or written.
    Io,
    /// There is not enough memory for it.
    OutOfMemory,
    /// A GPU was required, but there is none.
    GpuRequired,
}

impl ErrorCode {
    /// The code as it appears in JSON, such as `out_of_range`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::UnknownStage => "unknown_stage",
            Self::UnknownParam => "unknown_param",
            Self::DuplicateParam => "duplicate_param",
            Self::MissingParam => "missing_param",
            Self::WrongType => "wrong_type",
            Self::OutOfRange => "out_of_range",
            Self::SamplerPosition => "sampler_position",
            Self::NanLogit => "nan_logit",
            Self::InfiniteLogit => "infinite_logit",
            Self::EmptyRow => "empty_row",
            Self::EmptySupport => "empty_support",
            Self::TokenOutOfVocabulary => "token_out_of_vocabulary",
            Self::BadInput => "bad_input",
            Self::ModelFormat => "model_format",
            Self::ModelUnsupported => "model_unsupported",
            Self::ContextFull => "context_full",
            Self::NeedsVocabulary => "needs_vocabulary",
            Self::Constraint => "constraint",
            Self::NeedsConstraints => "needs_constraints",
            Self::Io => "io",
            Self::OutOfMemory => "out_of_memory",
            Self::GpuRequired => "gpu_required",
        }
    }
}

/// Why something was refused.
///
/// # Examples
/// ```
/// use logitscope::{Error, ErrorCode};
///
/// let error = Error::new(ErrorCode::OutOfRange, "top_p.p is 1.5, but must be from 0 to 1")
///     .stage("top_p")
///     .param("p")
///     .position(8);
/// assert_eq!(error.code.as_str(), "out_of_range");
/// assert_eq!(error.to_string(), "top_p.p is 1.5, but must be from 0 to 1");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Error {
    /// What kind of refusal this is.
    pub code: ErrorCode,
    /// The stage concerned, if one is.
    pub stage: Option<String>,
    /// The parameter concerned, if one is.
    pub param: Option<String>,
    /// Byte offset into the text that was read, if text was read.
    pub position: Option<usize>,
    /// What happened, in a sentence that names the value.
    pub message: String,
}

/// The result of anything that may refuse.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error with a message and no place.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, stage: None, param: None, position: None, message: message.into() }
    }

    /// Names the stage.
    #[must_use]
    pub fn stage(mut self, stage: impl Into<String>) -> Self {
        self.stage = Some(stage.into());
        self
    }

    /// Names the stage in which the fault came up, unless one is named already.
    #[must_use]
    pub fn in_stage(mut self, stage: &str) -> Self {
        self.stage.get_or_insert_with(|| stage.to_owned());
        self
    }

    /// Names the parameter.
    #[must_use]
    pub fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Gives the byte offset in the text.
    #[must_use]
    pub fn position(mut self, position: usize) -> Self {
        self.position = Some(position);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// The known name that a misspelt one was most likely meant for; of equally near ones the first.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // What shares less than half of its letters with a name was meant for none of them.
    let near = known.map(|known| (edit_distance(known, name), known));
    near.filter(|(distance, known)| 2 * distance <= known.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// How many insertions, deletions and replacements turn one name into the other.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
