//! Why and when a generation ends.

use serde::Serialize;

/// Why a generation ended.
///
/// When several reasons hold at once, the first in this order is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The constraint allows nothing but the end, so nothing was drawn.
    Grammar,
    /// An end-of-sequence token was drawn.
    Eos,
    /// A stop string was completed.
    StopString,
    /// The token budget is spent.
    MaxTokens,
    /// The model's context is full.
    ContextFull,
    /// Every token was removed.
    ConstraintUnsatisfiable,
    /// The reader cancelled.
    Cancelled,
    /// Something failed.
    Error,
}
