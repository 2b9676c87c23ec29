//! Keeps tokens within a few standard deviations of the highest score.

use crate::{
    config::Args,
    error::Result,
    logits::{Logits, Standing},
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec, non_negative},
    step::StepContext,
    transform::{
        Facts, Outcome, Transform, Verdict,
        kernel::{Kernel, Search},
    },
    weights::{Ruler, Scale},
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "top_n_sigma",
    label: "Top-n-sigma",
    kind: Kind::Truncate,
    summary: "Keeps tokens whose score is within n standard deviations of the highest.",
    formula: "keep i if z[i] >= max(z) - n * sigma(z)",
    source: "Tang et al. 2024, https://arxiv.org/abs/2411.07641",
    params: &[
        ParamSpec {
            name: "n",
            ty: non_negative(),
            default: Some("1"),
            neutral: None,
            slider: Some((0.0, 5.0, 0.05)),
            unit: "standard deviations",
            help: "How far below the highest score a token may lie; 0 is off with `population`, as in llama.cpp.",
        },
        ParamSpec {
            name: "deviation",
            ty: ParamType::Word { words: &["population", "sample"] },
            default: Some("population"),
            neutral: None,
            slider: None,
            unit: "",
            help: "Of the live tokens (llama.cpp), or of the vocabulary as a sample (text-generation-webui).",
        },
    ],
    laws: &[Law::OnlyRemoves, Law::KeepsArgmax, Law::OrderPreserving, Law::KeepsPrefix],
    build: Build::Transform(|args| Ok(Box::new(TopNSigma::from_args(args)?))),
};

/// Keeps tokens whose distance below the highest is at most `n · σ`.
///
/// The distances are taken in units of a power of two that spreads the whole row over 32 bits,
/// so that the result does not depend on the temperature and a far-off score counts in full;
/// sums of distances and of their squares are integers, and so is the root.
///
/// - **Shape** `[V]` → `[V]`; surviving scores are unchanged.
/// - **Units** `n` in standard deviations of the scores, from 0.
/// - **Variants** `population`: σ over the live tokens, divided by their number, as in
///   llama.cpp; there `n = 0` is "off" and changes nothing. `sample`: divided by V - 1, with
///   every dead token as a score of 0, as in text-generation-webui; there `n = 0` keeps the
///   highest and those tied with it.
/// - **Source** Tang et al. 2024, "Top-nσ: Not All Logits Are You Need",
///   <https://arxiv.org/abs/2411.07641>.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, TokenId};
///
/// let keep = |text: &str| -> logitscope::Result<Vec<TokenId>> {
///     let mut logits = Logits::new(&[2.0, 1.0, 0.0])?; // σ = 0.816, or 1 as a sample
///     Pipeline::parse(text)?.reshape(&mut logits, &Default::default())?;
///     Ok(logits.support())
/// };
/// assert_eq!(keep("top_n_sigma(n=1)")?, [TokenId(0)]);
/// assert_eq!(keep("top_n_sigma(n=1, deviation=sample)")?, [TokenId(0), TokenId(1)]);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TopNSigma {
    n: f64,
    sample: bool,
}

impl TopNSigma {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self { n: args.number("n")?, sample: args.word("deviation")? == "sample" })
    }

    /// `n` with 32 fractional bits. It is rounded up, so that a score that lies `n` deviations
    /// below the highest stays, also where `n` is no binary fraction.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0, and bounded")]
    fn steps(&self) -> u64 {
        // Among 2^18 scores the ends are less than 1024 deviations apart.
        libm::ceil(self.n.min(1024.0) * 4_294_967_296.0) as u64
    }
}

/// Distances below a reference score in units of a power of two; less than 2^32 of them.
struct Deviations {
    ruler: Ruler,
    scale: Scale,
}

impl Deviations {
    fn new(top: f32, bottom: f32) -> Self {
        let scale = Scale::spreading(top, bottom);
        Self { ruler: Ruler::new(top, scale), scale }
    }

    fn below(&self, score: f32) -> u64 {
        self.ruler.distance(score)
    }

    /// One unit in the scores' own.
    fn unit(&self) -> f64 {
        libm::scalbn(1.0, -(self.scale.exponent + 63))
    }
}

/// The standard deviation of at most 2^18 distances, of which `zeros` are `zero` and not listed;
/// an integer, as they are.
#[expect(clippy::cast_possible_truncation, reason = "no more than the largest distance")]
fn deviation(distances: &[u64], (zero, zeros): (u64, usize), sample: bool) -> u64 {
    let count = (distances.len() + zeros) as u128;
    // Halves of the squares, because sums of them fit 64 bits.
    let (mut sum, mut high, mut low) = (zero * zeros as u64, 0, 0);
    for distance in distances {
        let square = distance * distance;
        sum += distance;
        high += square >> 32;
        low += square & 0xffff_ffff;
    }
    let squares = (u128::from(high) << 32) + u128::from(low) + u128::from(zero * zero) * zeros as u128;
    let spread = count * squares - u128::from(sum) * u128::from(sum);
    let degrees = if sample { count - 1 } else { count };
    (spread / (count * degrees)).isqrt() as u64
}

/// How far `n` deviations reach, for an `n` of [`TopNSigma::steps`].
#[expect(clippy::cast_possible_truncation, reason = "43 bits and 32 bits, of which 32 are a fraction")]
fn reach(steps: u64, deviation: u64) -> u64 {
    ((u128::from(steps) * u128::from(deviation)) >> 32) as u64
}

impl Transform for TopNSigma {
    fn apply(&self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        if self.n == 0.0 && !self.sample {
            return Ok(Outcome::default());
        }
        let highest = logits.highest()?;
        let (scores, alive) = (logits.stored_scores(), logits.alive());
        let dead = if self.sample { scores.len() - alive.count() } else { 0 };
        let max = scores[highest.index()];
        let mut min = max;
        alive.for_each(|index| min = min.min(scores[index]));
        let (top, bottom) = if dead > 0 { (max.max(0.0), min.min(0.0)) } else { (max, min) };
        if top == bottom {
            return Ok(Outcome::default());
        }
        let deviations = Deviations::new(top, bottom);
        let zero = if dead > 0 { deviations.below(0.0) } else { 0 };
        let mut distances = Vec::with_capacity(scores.len());
        alive.for_each(|index| distances.push(deviations.below(scores[index])));
        let sigma = deviation(&distances, (zero, dead), self.sample);
        let farthest = deviations.below(max) + reach(self.steps(), sigma);
        let kept = distances.iter().filter(|&&distance| distance <= farthest).count();
        let limit = (f64::from(top) - farthest as f64 * deviations.unit()) / logits.temperature();
        let cut = logits.cut_at_count(kept)?;
        logits.keep_through(&cut);
        Ok(Outcome { cut: Some(cut), limit: Some(limit) })
    }

    fn verdict(&self, _: &Facts, standing: &Standing, outcome: &Outcome) -> Option<Verdict> {
        Some(Verdict::at_least("its score was", standing.score, outcome.limit?, ("≥", "<")))
    }

    fn kernel(&self, _: &StepContext) -> Result<Kernel> {
        if self.n == 0.0 && !self.sample {
            return Ok(Kernel::Nothing);
        }
        Ok(Kernel::Cut(Search::Deviations { steps: self.steps(), sample: self.sample }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::splitmix;

    #[test]
    fn a_deviation_is_that_of_plain_sums() {
        let mut state = 5;
        let mut distances: Vec<u64> = (0..1000).map(|_| splitmix(&mut state) >> 32).collect();
        distances.extend(std::iter::repeat_n(u64::from(u32::MAX), 1 << 17));
        for (zero, zeros) in [(0, 0), (u64::from(u32::MAX), 1 << 17), (12_345, 7)] {
            for sample in [false, true] {
                let all: Vec<u128> = distances
                    .iter()
                    .copied()
                    .chain(std::iter::repeat_n(zero, zeros))
                    .map(u128::from)
                    .collect();
                let count = all.len() as u128;
                let sum: u128 = all.iter().sum();
                let squares: u128 = all.iter().map(|distance| distance * distance).sum();
                let degrees = count - u128::from(sample);
                let wanted = ((count * squares - sum * sum) / (count * degrees)).isqrt();
                assert_eq!(u128::from(deviation(&distances, (zero, zeros), sample)), wanted);
            }
        }
    }

    #[test]
    fn the_farthest_two_of_a_row_are_less_than_a_thousand_deviations_apart() {
        // The least deviation: two ends, and all others in the middle.
        let mut distances = vec![1 << 31; (1 << 18) - 2];
        distances.extend([0, u64::from(u32::MAX)]);
        let least = deviation(&distances, (0, 0), false);
        assert!(reach(1024 << 32, least) > u64::from(u32::MAX), "{least}");
    }
}
