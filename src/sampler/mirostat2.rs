//! Keeps the surprise near a target by removing tokens more surprising than a bound.

use serde_json::{Map, Value};

use crate::{
    TokenId,
    config::Args,
    error::Result,
    logits::{Logits, Standing},
    sampler::{
        Sampler,
        categorical::SEED,
        mirostat::{Bound, ETA, TAU},
    },
    spec::{Build, Kind, StageSpec},
    step::StepContext,
    transform::{Facts, Outcome, Verdict},
    weights,
};

/// Declares the sampler.
pub const SPEC: StageSpec = StageSpec {
    id: "mirostat2",
    label: "Mirostat 2",
    kind: Kind::Sampler,
    summary: "Removes tokens more surprising than a bound that follows the surprise of those drawn.",
    formula: "drop i if -log2 p[i] > mu; mu -= eta * (surprise - tau)",
    source: "Basu et al. 2020, https://arxiv.org/abs/2007.14966",
    params: &[TAU, ETA, SEED],
    laws: &[],
    build: Build::Sampler(|args| Ok(Box::new(Mirostat2::from_args(args)?))),
};

/// Keeps tokens whose distance is at most `mu - log2 Z` octaves, draws, and moves `mu` by the
/// error of the drawn token's surprise among those kept.
///
/// - **State** `mu` in bits, at first `2·tau`.
/// - **Edges** the likeliest token always stays.
/// - **Source** Basu et al. 2020, "Mirostat", <https://arxiv.org/abs/2007.14966>; the direct
///   cut is that of its authors' second implementation.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline};
///
/// let pipeline = Pipeline::parse("mirostat2(tau=1, eta=0.1, seed=7)")?;
/// let mut logits = Logits::from_probabilities(&[0.5, 0.3, 0.15, 0.05])?; // 1, 1.7, 2.7, 4.3 bits
/// pipeline.sampler().prepare(&mut logits, &Default::default())?; // mu = 2
/// assert_eq!(logits.support().len(), 2);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Mirostat2 {
    bound: Bound,
}

impl Mirostat2 {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self { bound: Bound::from_args(args)? })
    }
}

impl Sampler for Mirostat2 {
    fn prepare(&mut self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        let room = self.bound.mu - weights::log2_mass(logits.mass()?);
        let cut = match weights::distance_of_octaves(room) {
            Some(farthest) => logits.cut_at_distance(farthest)?,
            None => logits.cut_at_count(1)?,
        };
        logits.keep_through(&cut);
        Ok(Outcome { cut: Some(cut), limit: Some(self.bound.mu) })
    }

    fn accept(&mut self, _: TokenId, probability: f64) {
        self.bound.learn(probability);
    }

    fn state(&self) -> Map<String, Value> {
        self.bound.state()
    }

    fn set_state(&mut self, state: &Map<String, Value>) -> Result<()> {
        self.bound.set_state(state)
    }

    fn verdict(&self, _: &Facts, standing: &Standing, outcome: &Outcome) -> Option<Verdict> {
        if standing.rank == 0 {
            return Some(Verdict::at_most("its rank was", 1.0, 1.0, ("≤", ">")));
        }
        let surprise = -libm::log2(standing.probability);
        Some(Verdict::at_most("its surprise in bits was", surprise, outcome.limit?, ("≤", ">")))
    }

    fn fork(&self) -> Box<dyn Sampler> {
        Box::new(*self)
    }
}
