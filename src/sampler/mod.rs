//! Samplers: what picks one token from the distribution that the transforms left.
//!
//! A [`Sampler`] stands last in a pipeline. It may first reshape the row once more (greedy
//! leaves one token), then picks, then learns which token was taken. Samplers with a state
//! are forked with the branch they belong to.

pub mod adaptive_p;
pub mod categorical;
pub mod greedy;
pub mod gumbel_max;
mod mirostat;
pub mod mirostat1;
pub mod mirostat2;

use std::fmt;

use crate::{
    TokenId,
    error::{Error, ErrorCode, Result},
    logits::{Cut, Logits, Standing},
    step::StepContext,
    transform::{
        Facts, Outcome, Verdict,
        kernel::{Kernel, NOT_WRITTEN},
    },
    weights,
};

/// How the token of a step is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// By the sampler's own seeded draw.
    Seeded,
    /// By this uniform draw, in units of 2^-64.
    Uniform(u64),
    /// This token, drawn or not.
    Forced(TokenId),
}

/// Picks a token.
pub trait Sampler: fmt::Debug + Send {
    /// Turns the row into the distribution that is drawn from.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    fn prepare(&mut self, logits: &mut Logits, context: &StepContext) -> Result<Outcome>;

    /// Picks a token of the prepared row. `u / 2^64` is the uniform draw.
    ///
    /// The default is the inverse of the cumulative distribution in the order of tokens.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    fn pick(&mut self, logits: &mut Logits, u: u64, _context: &StepContext) -> Result<Draw> {
        Draw::by_mass(logits, u)
    }

    /// Learns which token was taken, drawn or forced. `probability` is what the token had in
    /// the prepared row.
    fn accept(&mut self, _token: TokenId, _probability: f64) {}

    /// The state that [`accept`](Self::accept) changes, as a JSON object; empty if none.
    fn state(&self) -> serde_json::Map<String, serde_json::Value> {
        serde_json::Map::new()
    }

    /// Replaces the state.
    ///
    /// # Errors
    /// `bad_input` for a field the sampler does not have or a value out of range.
    fn set_state(&mut self, state: &serde_json::Map<String, serde_json::Value>) -> Result<()> {
        match state.keys().next() {
            None => Ok(()),
            Some(name) => {
                Err(Error::new(ErrorCode::BadInput, format!("this sampler has no state `{name}`"))
                    .param(name))
            }
        }
    }

    /// Why [`prepare`](Self::prepare) keeps or removes a token.
    fn verdict(&self, _before: &Facts, _standing: &Standing, _outcome: &Outcome) -> Option<Verdict> {
        None
    }

    /// What [`prepare`](Self::prepare) and [`pick`](Self::pick) ask of a device, in order; only
    /// for a sampler without a state.
    fn kernel(&self) -> Vec<Kernel> {
        vec![Kernel::Missing(NOT_WRITTEN)]
    }

    /// Whether a uniform draw decides anything.
    fn is_random(&self) -> bool {
        true
    }

    /// Whether noise on every score decides, so that the draw's `u` need not lie in the token's
    /// interval.
    fn adds_noise(&self) -> bool {
        false
    }

    /// An independent copy.
    fn fork(&self) -> Box<dyn Sampler>;
}

/// A picked token, and the interval of masses that stands for it.
///
/// The interval `[0, total)` is cut into the live tokens in order, each as wide as its
/// weight, and `⌊u · total / 2^64⌋` falls into exactly one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// The token.
    pub token: TokenId,
    /// The uniform draw, in units of 2^-64.
    pub u: u64,
    /// Where the token's interval begins.
    pub low: u64,
    /// Where it ends; excluded.
    pub high: u64,
    /// The mass of all live tokens.
    pub total: u64,
}

impl Draw {
    /// The first token, in order, whose cumulative mass exceeds `⌊u · total / 2^64⌋`.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    ///
    /// # Examples
    /// ```
    /// use logitscope::{Logits, TokenId, sampler::Draw};
    ///
    /// let mut logits = Logits::new(&[1.0, 0.0, 0.0])?;
    /// logits.scale_temperature(std::f64::consts::LOG2_E)?; // probabilities 1/2, 1/4, 1/4
    /// assert_eq!(Draw::by_mass(&mut logits, (1 << 63) - 1)?.token, TokenId(0));
    /// assert_eq!(Draw::by_mass(&mut logits, 1 << 63)?.token, TokenId(1)); // [low, high)
    /// # Ok::<(), logitscope::Error>(())
    /// ```
    pub fn by_mass(logits: &mut Logits, u: u64) -> Result<Self> {
        let total = logits.mass()?;
        let cut = logits.cut_at_mass(weights::drawn_mass(u, total) + 1)?;
        Ok(Self::of_cut(&cut, u, total))
    }

    fn of_cut(cut: &Cut, u: u64, total: u64) -> Self {
        Self { token: cut.last, u, low: cut.mass_before, high: cut.mass, total }
    }

    /// A live token's own interval, whatever `u` says.
    ///
    /// # Errors
    /// `empty_support` when the token is not alive.
    pub fn of_token(logits: &mut Logits, token: TokenId, u: u64) -> Result<Self> {
        let total = logits.mass()?;
        let low = logits.mass_before(token)?;
        Ok(Self { token, u, low, high: low + logits.weight(token)?, total })
    }

    /// The interval as probabilities, and how far `u` lies from its nearer end.
    #[must_use]
    pub fn interval(&self) -> (f64, f64, f64) {
        let share = |mass: u64| mass as f64 / self.total as f64;
        let (low, high) = (share(self.low), share(self.high));
        let u = crate::random::unit(self.u);
        (low, high, (u - low).min(high - u))
    }
}
