//! Who calls the pipeline, and when: from one step to a finished sequence.
//!
//! [`Strategy`] is the text form, such as `beam(width=4)`; each file here is one way of
//! going on from a step to a sequence.

pub mod beam;
pub mod laboratory;
pub mod sample;
pub mod speculative;
pub mod tree;

use std::{fmt, str::FromStr};

use crate::{
    call::Arguments,
    error::{Error, ErrorCode, Result},
};

/// How a sequence is found.
///
/// # Examples
/// ```
/// use logitscope::strategy::Strategy;
///
/// let strategy: Strategy = "beam(width=4)".parse()?;
/// assert_eq!(
///     strategy.to_string(),
///     "beam(width=4, length_penalty=1, early_stopping=false, length_counts=generated)"
/// );
/// assert_eq!(strategy.to_string().parse::<Strategy>()?, strategy);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Strategy {
    /// One token after another.
    #[default]
    Sample,
    /// Several sequences side by side; see [`beam`].
    Beam(beam::Options),
    /// A draft proposes, the model judges; see [`speculative`].
    Speculative(speculative::Options),
}

impl FromStr for Strategy {
    type Err = Error;

    /// Reads the text form; an empty text is `sample()`.
    fn from_str(text: &str) -> Result<Self> {
        if text.trim().is_empty() {
            return Ok(Self::Sample);
        }
        let mut call = Arguments::parse(text)?;
        let strategy = match call.name() {
            "sample" => Self::Sample,
            "beam" | "diverse_beam" => Self::Beam(beam::Options::read(&mut call)?),
            "speculative" | "prompt_lookup" => Self::Speculative(speculative::Options::read(&mut call)?),
            name => {
                let message = format!("there is no strategy `{name}`; there are {}", NAMES.join(", "));
                return Err(call.fault(ErrorCode::UnknownStage, message));
            }
        };
        call.finish()?;
        Ok(strategy)
    }
}

/// The names of the strategies there are.
pub const NAMES: &[&str] = &["sample", "beam", "diverse_beam", "speculative", "prompt_lookup"];

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sample => f.write_str("sample()"),
            Self::Beam(options) => options.fmt(f),
            Self::Speculative(options) => options.fmt(f),
        }
    }
}

/// An error about a logit, with the step at which a model gave it or a stage made it.
fn placed(mut error: Error, step: usize) -> Error {
    if matches!(error.code, ErrorCode::NanLogit | ErrorCode::InfiniteLogit) {
        let from = if error.stage.is_none() { ", as the model gave it" } else { "" };
        error.message = format!("at step {step}: {}{from}", error.message);
    }
    error
}
