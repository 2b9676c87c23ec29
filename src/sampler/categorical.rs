//! Draws a token with the probability it has.

use crate::{
    error::Result,
    logits::Logits,
    sampler::Sampler,
    spec::{Build, Kind, ParamSpec, ParamType, StageSpec},
    step::StepContext,
    transform::{Outcome, kernel::Kernel},
};

/// The `seed` parameter that every random sampler has.
pub const SEED: ParamSpec = ParamSpec {
    name: "seed",
    ty: ParamType::Seed,
    default: None,
    neutral: None,
    slider: None,
    unit: "",
    help: "Fixes the draws; left out, a seed is drawn and shown.",
};

/// Declares the sampler.
pub const SPEC: StageSpec = StageSpec {
    id: "categorical",
    label: "Categorical",
    kind: Kind::Sampler,
    summary: "Draws a token with the probability it has: a weighted die.",
    formula: "first i with cumulative mass > u * total",
    source: "",
    params: &[SEED],
    laws: &[],
    build: Build::Sampler(|_| Ok(Box::new(Categorical))),
};

/// Inverse-transform sampling over the integer masses.
///
/// The uniform draw is keyed by (seed, sample, position), so it does not depend on how many
/// tokens survived.
///
/// # Examples
/// ```
/// use logitscope::{Pipeline, StepContext};
///
/// let pipeline = Pipeline::parse("categorical(seed=7)")?;
/// let row = [1.0, 0.5, 0.25];
/// let token = pipeline.choose(&row, &StepContext::default())?;
/// assert_eq!(token, pipeline.choose(&row, &StepContext::default())?);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Categorical;

impl Sampler for Categorical {
    fn prepare(&mut self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        logits.mass()?;
        Ok(Outcome::default())
    }

    fn kernel(&self) -> Vec<Kernel> {
        vec![Kernel::Draw]
    }

    fn fork(&self) -> Box<dyn Sampler> {
        Box::new(*self)
    }
}
