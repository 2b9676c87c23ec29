//! What a stage asks of a device, as plain data.
//!
//! A stage that has a kernel says here what the kernel is to do at this step. It names no
//! device and no graphics library: [`crate::transform`] stays pure, and whoever owns a device
//! turns these values into words for it. The meaning of each is that of the stage's own
//! `apply`, exactly.

use crate::{TokenId, transform::Op};

/// Why a stage asks nothing, in a reader's words.
pub(crate) const NOT_WRITTEN: &str = "Logitscope has no GPU version of it yet";
pub(crate) const ONE_TOKEN_IS_LEFT: &str = "it leaves one token at this step, so nothing is drawn";
pub(crate) const TIES_BUT_NOT_OF_ALL: &str =
    "with min_keep above 1 it keeps the ties of one token and not of another, which only the CPU can";

/// What a stage asks of a device at one step.
#[derive(Debug, Clone, PartialEq)]
pub enum Kernel {
    /// Nothing: at these parameters, or at this step, the stage changes nothing.
    Nothing,
    /// Operations on single tokens.
    Edits {
        /// In this order.
        edits: Vec<(TokenId, Op)>,
        /// Tokens that the vocabulary must have, whatever happens to them at this step.
        named: Vec<TokenId>,
    },
    /// A factor on the temperature.
    Temperature(f64),
    /// A search for the place where the order is cut.
    Cut(Search),
    /// The last but one token whose weight is a share of the mass: it and those before it die.
    Exclude {
        /// The share, with 32 fractional bits.
        share: u64,
        /// Nothing dies if fewer than so many would stay.
        min_keep: usize,
        /// Nothing dies if one of these would.
        protect: Vec<TokenId>,
    },
    /// The draw of a token, last.
    Draw,
    /// There is none, and why.
    Missing(&'static str),
}

/// What is searched for. Shares have 32 fractional bits, distances as in [`crate::weights`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// The place of a count.
    Count {
        /// How many tokens stay.
        count: usize,
        /// Whether tokens tied with the last stay, too.
        ties: bool,
    },
    /// The first place at which a share of the mass is reached.
    Mass {
        /// The share.
        share: u64,
        /// Whether the share must be exceeded.
        above: bool,
        /// Whether the mass before any truncation counts.
        original: bool,
        /// At least so many tokens stay.
        min_keep: usize,
    },
    /// The last token that is no farther than a distance.
    Distance {
        /// The distance.
        farthest: u64,
        /// At least so many tokens stay.
        min_keep: usize,
    },
    /// The last token whose weight is a share of the mass.
    Weight {
        /// The share.
        share: u64,
        /// At least so many tokens stay, and all tied with the last of them.
        min_keep: usize,
    },
    /// The last token that has a share of the mass, or is no farther from the highest than the
    /// mean distance and a bit more.
    Mean {
        /// The share.
        share: u64,
        /// How much farther than the mean.
        beyond: u64,
        /// At least so many tokens stay, and all tied with the last of them.
        min_keep: usize,
    },
    /// The last token that is no farther below the highest than some standard deviations of the
    /// scores.
    Deviations {
        /// How many, with 32 fractional bits; at most 1024.
        steps: u64,
        /// Whether the whole vocabulary is a sample, every dead token a score of 0.
        sample: bool,
    },
    /// The first place, in order of distance from the mean distance, at which a share of the
    /// mass is reached.
    Typical {
        /// The share.
        share: u64,
        /// Whether the share must be exceeded.
        above: bool,
        /// Whether tokens tied with the last stay, too.
        ties: bool,
        /// At least so many tokens stay.
        min_keep: usize,
    },
}
