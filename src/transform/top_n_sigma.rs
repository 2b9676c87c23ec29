//! Keeps tokens within a few standard deviations of the highest score.

use crate::{
    config::Args,
    error::Result,
    logits::{Logits, Standing},
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec, non_negative},
    step::StepContext,
    transform::{Facts, Outcome, Transform, Verdict, kernel::Kernel},
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
            help: "How far below the highest score a token may lie.",
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
/// The distances are taken in units of a power of two that makes the whole row fit, so that
/// the result does not depend on the temperature and a far-off score counts in full; sums of
/// distances and of their squares are integers, and so is the root.
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
}

/// Distances below a reference score in units of a power of two.
struct Deviations {
    ruler: Ruler,
    scale: Scale,
}

impl Deviations {
    /// A unit such that scores from `bottom` to `top` are less than 2^38 apart.
    fn new(top: f32, bottom: f32) -> Self {
        let (_, exponent) = libm::frexp(f64::from(top) - f64::from(bottom));
        // The distance is gap · mantissa · 2^(exponent + 32), and the gap is below 2^exponent.
        let scale = Scale { mantissa: 1 << 31, exponent: 38 - 31 - 32 - exponent };
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

/// The standard deviation of distances and `zeros` more of one value; an integer.
fn deviation(distances: &[u64], (zero, zeros): (u64, usize), sample: bool) -> u128 {
    let count = (distances.len() + zeros) as u128;
    let repeated = u128::from(zero) * zeros as u128;
    let sum = u128::from(distances.iter().sum::<u64>()) + repeated;
    let squares = sum_of_squares(distances);
    let spread = count * (squares + repeated * u128::from(zero)) - sum * sum;
    let degrees = if sample { count - 1 } else { count };
    (spread / (count * degrees)).isqrt()
}

/// The sum of the squares of at most 2^18 numbers of 38 bits, in 94.
///
/// `(2^19·a + b)^2 = 2^38·a^2 + 2^20·a·b + b^2`, and sums of the three products fit 64 bits: a
/// 128-bit product for each would take most of the stage's time in wasm.
fn sum_of_squares(numbers: &[u64]) -> u128 {
    let (mut high, mut mixed, mut low) = (0, 0, 0);
    for number in numbers {
        let (a, b) = (number >> 19, number & 0x7_ffff);
        high += a * a;
        mixed += a * b;
        low += b * b;
    }
    (u128::from(high) << 38) + (u128::from(mixed) << 20) + u128::from(low)
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
        let min = alive.iter().map(|index| scores[index]).fold(max, f32::min);
        let (top, bottom) = if dead > 0 { (max.max(0.0), min.min(0.0)) } else { (max, min) };
        if top == bottom {
            return Ok(Outcome::default());
        }
        let deviations = Deviations::new(top, bottom);
        let zero = if dead > 0 { deviations.below(0.0) } else { 0 };
        let distances: Vec<u64> = alive.iter().map(|index| deviations.below(scores[index])).collect();
        let sigma = deviation(&distances, (zero, dead), self.sample);
        let reach = deviations.below(max) as f64 + self.n * sigma as f64;
        let kept = distances.iter().filter(|&&distance| distance as f64 <= reach).count();
        let limit = (f64::from(top) - reach * deviations.unit()) / logits.temperature();
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
        Ok(Kernel::Missing("its deviation is a root of 128-bit sums, which is taken on the CPU"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::splitmix;

    #[test]
    fn squares_add_up() {
        let mut state = 5;
        let mut numbers: Vec<u64> = (0..1000).map(|_| splitmix(&mut state) >> 26).collect();
        numbers.extend(std::iter::repeat_n((1 << 38) - 1, 1 << 17));
        let plain: u128 = numbers.iter().map(|&number| u128::from(number) * u128::from(number)).sum();
        assert_eq!(sum_of_squares(&numbers), plain);
    }
}
