//! Keeps the highest tokens while their share of the entropy stays below a bound.

use crate::{
    config::Args,
    error::Result,
    logits::{Logits, Standing},
    spec::{Build, Kind, Law, ParamSpec, StageSpec, number, whole},
    step::StepContext,
    transform::{Facts, Outcome, Transform, Verdict},
    weights,
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "top_h",
    label: "Top-h",
    kind: Kind::Truncate,
    summary: "Keeps the likeliest tokens while they hold at most a share of the entropy.",
    formula: "keep i while the sum of -p ln p through i <= h * H, within the likeliest tokens",
    source: "Baghaei Potraghloo et al. 2025, https://arxiv.org/abs/2509.02510",
    params: &[
        ParamSpec {
            name: "h",
            ty: number(0.0, 1.0),
            default: Some("1"),
            neutral: None,
            slider: Some((0.0, 1.0, 0.01)),
            unit: "share of the entropy",
            help: "The share that the kept tokens may hold; 0 keeps one token, 1 the whole pool.",
        },
        ParamSpec {
            name: "pool",
            ty: whole(1),
            default: Some("100"),
            neutral: None,
            slider: Some((1.0, 500.0, 1.0)),
            unit: "tokens",
            help: "Only so many tokens are looked at; all others are removed.",
        },
    ],
    laws: &[Law::OnlyRemoves, Law::KeepsArgmax, Law::OrderPreserving, Law::KeepsPrefix, Law::ShiftInvariant],
    build: Build::Transform(|args| Ok(Box::new(TopH::from_args(args)?))),
};

/// Keeps the longest prefix of the `pool` highest tokens whose `Σ -p ln p` is at most
/// `h · H`; p and H are those of the pool alone.
///
/// A token's part of the entropy is its integer weight times its surprise, the distance plus
/// `log2 Z` in 32 fractional bits, so both sides are integer sums.
///
/// - **Shape** `[V]` → `[V]`; surviving scores are unchanged.
/// - **Units** `h` in `0..=1`; no value changes nothing, because the pool cuts too.
/// - **Edges** the highest token always stays.
/// - **Source** Baghaei Potraghloo et al. 2025, "Top-H Decoding",
///   <https://arxiv.org/abs/2509.02510>.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, TokenId};
///
/// // Parts of the entropy: 0.367, 0.361, 0.322, 0.230; H = 1.280.
/// let mut logits = Logits::from_probabilities(&[0.4, 0.3, 0.2, 0.1])?;
/// Pipeline::parse("top_h(h=0.7)")?.reshape(&mut logits, &Default::default())?;
/// assert_eq!(logits.support(), [TokenId(0), TokenId(1)]); // 0.728 <= 0.896 < 1.050
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TopH {
    h: f64,
    pool: usize,
}

impl TopH {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self { h: args.number("h")?, pool: args.count("pool")? })
    }
}

impl Transform for TopH {
    fn apply(&self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        let pool = logits.cut_at_count(self.pool)?;
        let surprise_of_highest = weights::distance_of_octaves(weights::log2_mass(pool.mass)).unwrap_or(0);
        let mut parts = Vec::with_capacity(pool.count);
        for token in logits.first(&pool)? {
            let surprise = logits.distance(token)? + surprise_of_highest;
            parts.push(u128::from(logits.weight(token)?) * u128::from(surprise));
        }
        // A part has at most 46 + 39 bits, their sum at most 18 more: the product with a
        // proportion needs the whole part above the point kept apart.
        let entropy: u128 = parts.iter().sum();
        let h = u128::from(weights::proportion(self.h));
        let allowed = (entropy >> 32) * h + (((entropy & 0xffff_ffff) * h) >> 32);
        let mut held = 0;
        let kept = parts.iter().take_while(|&&part| {
            held += part;
            held <= allowed
        });
        let kept = kept.count().max(1);
        let cut = logits.cut_at_count(kept)?;
        logits.keep_through(&cut);
        Ok(Outcome { cut: Some(cut), limit: None })
    }

    fn verdict(&self, _: &Facts, standing: &Standing, outcome: &Outcome) -> Option<Verdict> {
        let kept = outcome.cut?.count as f64;
        let relations = ("≤", "> the last rank within h of the entropy,");
        Some(Verdict::at_most("its rank was", standing.rank as f64 + 1.0, kept, relations))
    }
}
