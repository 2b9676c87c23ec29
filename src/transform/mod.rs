//! Stages that reshape or restrict one next-token distribution.
//!
//! A [`Transform`] changes a row of [`Logits`] for one sequence at one step. It may edit
//! scores, multiply the temperature, or remove tokens. It never picks one (see
//! [`crate::sampler`]) and never ends generation (see [`crate::stop`]). It keeps no state:
//! history and randomness arrive in the [`StepContext`].
//!
//! Order is meaning: `temperature | top_p` and `top_p | temperature` keep different tokens.
//!
//! To add one, copy `min_p.rs`, list its `SPEC` in [`crate::registry::ALL`], and write
//! `tests/golden/<id>.toml`. Controls, docs and property tests follow from the declaration.

pub mod bad_words;
pub mod dry;
pub mod dynamic_temperature;
pub mod epsilon;
pub mod eta;
pub mod forced_tokens;
pub mod frequency_penalty;
pub mod kernel;
pub mod length_decay;
pub mod logit_bias;
pub mod min_new_tokens;
pub mod min_p;
pub mod no_repeat_ngram;
pub mod presence_penalty;
pub mod quadratic;
pub mod repetition_penalty;
pub mod sequence_bias;
mod subtraction;
pub mod suppress;
pub mod tail_free;
pub mod temperature;
pub mod top_a;
pub mod top_h;
pub mod top_k;
pub mod top_n_sigma;
pub mod top_p;
pub mod typical;
pub mod xtc;

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use crate::{
    TokenId,
    error::Result,
    logits::{Cut, Logits, Standing},
    spec::{ParamSpec, ParamType, whole},
    step::StepContext,
    transform::kernel::Kernel,
};

/// A stage that reshapes or restricts a row.
pub trait Transform: fmt::Debug + Send + Sync {
    /// What the stage does to single tokens at this step, for stages that are nothing but a
    /// list of such edits.
    ///
    /// # Errors
    /// When the context lacks something the stage needs, such as a vocabulary.
    fn edits(&self, _context: &StepContext) -> Result<Vec<Edit>> {
        Ok(Vec::new())
    }

    /// Changes the row. A stage of edits keeps this default.
    ///
    /// # Errors
    /// `empty_support` when no token is alive; what [`edits`](Self::edits) refuses; a score
    /// that would no longer be finite.
    fn apply(&self, logits: &mut Logits, context: &StepContext) -> Result<Outcome> {
        apply_edits(&self.edits(context)?, logits)
    }

    /// What the stage asks of a device at this step. A stage of edits answers
    /// with `edits_kernel`.
    ///
    /// # Errors
    /// What [`edits`](Self::edits) refuses.
    fn kernel(&self, _context: &StepContext) -> Result<Kernel> {
        Ok(Kernel::Missing(kernel::NOT_WRITTEN))
    }

    /// Whether the stage draws.
    fn is_random(&self) -> bool {
        false
    }

    /// Why a token that stood so before the stage lives or dies by it. `None` when the stage
    /// does not judge tokens.
    fn verdict(&self, _before: &Facts, _standing: &Standing, _outcome: &Outcome) -> Option<Verdict> {
        None
    }
}

/// What a stage does to one score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Op {
    /// Adds to it.
    Add(f32),
    /// Makes the token less likely by a divisor: a positive score is divided, a negative one
    /// multiplied, or also divided where a framework does so.
    Penalise {
        /// What a positive score is divided by; above zero.
        divisor: f32,
        /// Whether a negative score is multiplied (most frameworks) rather than divided.
        multiply_negative: bool,
    },
    /// Multiplies it, by a factor that depends on its sign.
    Multiply {
        /// The factor of a positive score.
        positive: f32,
        /// The factor of any other.
        other: f32,
    },
    /// Removes the token.
    Remove,
}

impl Op {
    /// The new score; `None` for a removed token. Each operation is one rounding to f32.
    #[must_use]
    pub fn apply(self, score: f32) -> Option<f32> {
        match self {
            Self::Add(amount) => Some(score + amount),
            // Zero stays zero, whatever the divisor: a power of it may have no finite value.
            Self::Penalise { .. } if score == 0.0 => Some(score),
            Self::Penalise { divisor, multiply_negative } => {
                Some(if score > 0.0 || !multiply_negative { score / divisor } else { score * divisor })
            }
            Self::Multiply { positive, other } => Some(score * if score > 0.0 { positive } else { other }),
            Self::Remove => None,
        }
    }
}

/// Applies the edits of a stage that is nothing but edits.
pub(crate) fn apply_edits(edits: &[Edit], logits: &mut Logits) -> Result<Outcome> {
    if !edits.is_empty() {
        logits.materialise()?;
    }
    for edit in edits {
        logits.edit(edit.token, |score| edit.op.apply(score))?;
    }
    Ok(Outcome::default())
}

/// The kernel of a stage that is nothing but edits.
pub(crate) fn edits_kernel(stage: &(impl Transform + ?Sized), context: &StepContext) -> Result<Kernel> {
    let edits = stage.edits(context)?.into_iter().map(|edit| (edit.token, edit.op)).collect();
    Ok(Kernel::Edits { edits, named: Vec::new() })
}

/// An operation on one token, and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    /// The token.
    pub token: TokenId,
    /// What happens to its score.
    pub op: Op,
    /// Why, in words: "seen 3 times".
    pub why: String,
}

/// What a stage reports beside the changed row.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Outcome {
    /// Where the stage cut the order, if it did.
    pub cut: Option<Cut>,
    /// The limit it computed from the row, if it did: a threshold, a temperature.
    pub limit: Option<f64>,
}

/// What was true of a row before a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// How many tokens were alive.
    pub alive: usize,
    /// Where the highest stood.
    pub highest: Standing,
    /// Entropy in nats.
    pub entropy: f64,
    /// The mass of the tokens alive when scores last changed, as a multiple of the present.
    pub original_mass: f64,
}

impl Facts {
    /// The facts of a row.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn of(logits: &mut Logits) -> Result<Self> {
        let highest = logits.highest()?;
        let entropy = logits.entropy()?;
        let original_mass = logits.original_mass()? as f64 / logits.mass()? as f64;
        let probability = logits.probability(highest)?;
        let score = logits.score(highest).unwrap_or_default();
        let highest = Standing { token: highest, rank: 0, score, probability, mass_before: 0.0 };
        Ok(Self { alive: logits.alive().count(), highest, entropy, original_mass })
    }
}

/// Why a token lives or dies: a quantity of the token held against a limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// In words: "the mass before it was 0.912 ≥ 0.9".
    pub reason: String,
    /// The token's quantity.
    pub value: f64,
    /// What it was held against.
    pub limit: f64,
    /// How far it was on the living side; negative for the dead.
    pub margin: f64,
}

impl Verdict {
    /// A quantity that must not exceed the limit, such as a rank; `fails` is how a failing
    /// comparison is written.
    #[must_use]
    pub fn at_most(quantity: &str, value: f64, limit: f64, (holds, fails): (&str, &str)) -> Self {
        let margin = limit - value;
        Self::worded(quantity, value, limit, margin, (holds, fails))
    }

    /// A quantity that must reach the limit, such as a probability.
    #[must_use]
    pub fn at_least(quantity: &str, value: f64, limit: f64, (holds, fails): (&str, &str)) -> Self {
        let margin = value - limit;
        Self::worded(quantity, value, limit, margin, (holds, fails))
    }

    fn worded(quantity: &str, value: f64, limit: f64, margin: f64, (holds, fails): (&str, &str)) -> Self {
        let relation =
            if margin > 0.0 || (margin == 0.0 && holds.contains(['≤', '≥'])) { holds } else { fails };
        let reason = format!("{quantity} {} {relation} {}", readable(value), readable(limit));
        Self { reason, value, limit, margin }
    }
}

/// A number with four significant digits, in plain notation where that is short.
#[must_use]
pub fn readable(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let size = value.abs();
    if !(1e-4..1e6).contains(&size) {
        return format!("{value:.3e}");
    }
    let mut decimals = 3usize;
    let mut bound = 1.0;
    while size < bound && decimals < 8 {
        bound /= 10.0;
        decimals += 1;
    }
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The `min_keep` parameter that most truncations have.
pub(crate) const MIN_KEEP: ParamSpec = ParamSpec {
    name: "min_keep",
    ty: whole(1),
    default: Some("1"),
    neutral: None,
    slider: Some((1.0, 20.0, 1.0)),
    unit: "tokens",
    help: "At least so many tokens stay.",
};

/// The `scope` parameter of a penalty.
pub(crate) const fn scope(words: &'static [&'static str], default: &'static str) -> ParamSpec {
    ParamSpec {
        name: "scope",
        ty: ParamType::Word { words },
        default: Some(default),
        neutral: None,
        slider: None,
        unit: "",
        help: "Which part of the history counts: prompt and output (context), output only, or prompt only.",
    }
}

/// The `window` parameter of a penalty.
pub(crate) const WINDOW: ParamSpec = ParamSpec {
    name: "window",
    ty: whole(0),
    default: Some("0"),
    neutral: None,
    slider: Some((0.0, 256.0, 1.0)),
    unit: "tokens",
    help: "Only the last so many tokens of the scope; 0 for all.",
};

/// Keeps the `count` highest tokens; if that is fewer than `min_keep`, the `min_keep` highest
/// and all tied with the last of them, as transformers does.
pub(crate) fn keep_at_least(logits: &mut Logits, count: usize, min_keep: usize) -> Result<Cut> {
    let cut = logits.cut_at_count(count.max(min_keep))?;
    if count < min_keep {
        logits.keep_through_ties(&cut);
    } else {
        logits.keep_through(&cut);
    }
    Ok(cut)
}

/// The verdict of a stage that keeps tokens by `rule`, and the `min_keep` highest whatever the
/// rule says.
pub(crate) fn or_min_keep(rule: Verdict, standing: &Standing, kept: usize) -> Verdict {
    if rule.margin < 0.0 && standing.rank < kept {
        let (rank, kept) = (standing.rank as f64 + 1.0, kept as f64);
        Verdict::at_most("its rank was", rank, kept, ("≤ min_keep", "> min_keep"))
    } else {
        rule
    }
}

/// How often each token occurs, by ascending id.
#[must_use]
pub fn counts(tokens: &[TokenId]) -> BTreeMap<TokenId, u32> {
    let mut counts = BTreeMap::new();
    for &token in tokens {
        *counts.entry(token).or_insert(0) += 1;
    }
    counts
}

/// "once", "twice", "3 times".
#[must_use]
pub fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}
