//! Draws a token by adding noise to every score and taking the highest.

use crate::{
    TokenId,
    error::{Error, ErrorCode, Result},
    logits::Logits,
    random::{Purpose, Randomness},
    sampler::{Draw, Sampler, categorical::SEED},
    spec::{Build, Kind, StageSpec},
    step::StepContext,
    transform::Outcome,
};

/// Declares the sampler.
pub const SPEC: StageSpec = StageSpec {
    id: "gumbel_max",
    label: "Gumbel-max",
    kind: Kind::Sampler,
    summary: "Adds Gumbel noise to every score and takes the highest: the same distribution as categorical.",
    formula: "argmax z[i] - ln(-ln u[i])",
    source: "Gumbel 1954; Maddison, Tarlow and Minka 2014, https://arxiv.org/abs/1411.0030",
    params: &[SEED],
    laws: &[],
    build: Build::Sampler(|_| Ok(Box::new(GumbelMax))),
};

/// Takes the token with the least `-ln u[i] / weight[i]`, which is the highest
/// `z[i] - ln(-ln u[i])`.
///
/// The uniforms are one a token id, from a stream keyed by the step's draw, so a token's noise
/// does not depend on which others are candidates: removing losers never changes the winner.
/// The draw's interval is the token's part in the cumulative order, for comparison; `u` need
/// not lie in it.
///
/// # Examples
/// ```
/// use logitscope::Pipeline;
///
/// let row = [1.0, 0.5, 0.25, 3.0];
/// let all = Pipeline::parse("gumbel_max(seed=7)")?.choose(&row, &Default::default())?;
/// let two = Pipeline::parse(&format!("logit_bias(bias={{\"{all}\": 5}}) | top_k(k=1) | gumbel_max(seed=7)"))?;
/// assert_eq!(all, two.choose(&row, &Default::default())?);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct GumbelMax;

impl Sampler for GumbelMax {
    fn prepare(&mut self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        logits.mass()?;
        Ok(Outcome::default())
    }

    fn pick(&mut self, logits: &mut Logits, u: u64, _: &StepContext) -> Result<Draw> {
        let noise = Randomness { seed: u, sample: 0, position: 0 };
        let highest = logits.highest()?;
        let weighed = logits.weighed()?;
        let mut first: Option<(f64, TokenId)> = None;
        let mut race = |index: usize| {
            #[expect(clippy::cast_possible_truncation, reason = "an index is a token id")]
            let id = index as u32;
            // Conversions of signed integers, because those are one instruction.
            let weight = weighed.weight[index].cast_signed() as f64;
            if weight == 0.0 {
                return;
            }
            let draw = (noise.draw_at(Purpose::Gumbel, id) >> 11).cast_signed() as f64;
            // Half a step above a multiple of 2^-53: never 0, never 1.
            let uniform = (draw + 0.5) / 9_007_199_254_740_992.0;
            // -ln u is at least 1 - u; a hair of room for rounding.
            if first.is_some_and(|(earliest, _)| (1.0 - uniform) * 0.999_999 > earliest * weight) {
                return;
            }
            let arrival = -libm::log(uniform) / weight;
            if first.is_none_or(|(earliest, _)| arrival < earliest) {
                first = Some((arrival, TokenId(id)));
            }
        };
        // Beginning with the likeliest token, nearly all others need no logarithm.
        race(highest.index());
        weighed.alive.for_each(race);
        let (_, token) =
            first.ok_or_else(|| Error::new(ErrorCode::EmptySupport, "no token is left to sample from"))?;
        Draw::of_token(logits, token, u)
    }

    fn adds_noise(&self) -> bool {
        true
    }

    fn fork(&self) -> Box<dyn Sampler> {
        Box::new(*self)
    }
}
