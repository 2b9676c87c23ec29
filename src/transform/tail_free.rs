//! Cuts where the sorted probabilities flatten out.

use crate::{
    config::Args,
    error::Result,
    logits::{Logits, Standing},
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec, number},
    step::StepContext,
    transform::{Facts, MIN_KEEP, Outcome, Transform, Verdict},
    weights,
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "tail_free",
    label: "Tail free",
    kind: Kind::Truncate,
    summary: "Cuts the tail where the curve of sorted probabilities has done most of its bending.",
    formula: "keep i while the normalised sum of |second differences| of sorted p before i <= z",
    source: "Bricken 2019, https://www.trentonbricken.com/Tail-Free-Sampling/",
    params: &[
        ParamSpec {
            name: "z",
            ty: number(0.0, 1.0),
            default: Some("1"),
            neutral: Some("1"),
            slider: Some((0.0, 1.0, 0.01)),
            unit: "share of the curvature",
            help: "The share of the curvature to keep; 1 keeps all.",
        },
        MIN_KEEP,
        ParamSpec {
            name: "crossing",
            ty: ParamType::Word { words: &["keep", "cut"] },
            default: Some("keep"),
            neutral: None,
            slider: None,
            unit: "",
            help: "Whether the token at which the sum crosses z stays (text-generation-webui) or not (koboldcpp).",
        },
    ],
    laws: &[
        Law::OnlyRemoves,
        Law::KeepsArgmax,
        Law::NeutralIsIdentity,
        Law::OrderPreserving,
        Law::KeepsPrefix,
        Law::ShiftInvariant,
    ],
    build: Build::Transform(|args| Ok(Box::new(TailFree::from_args(args)?))),
};

/// Sorts the weights, sums the absolute second differences, and cuts where the sum exceeds
/// `z` of its total. The i-th second difference belongs to the i-th token.
///
/// - **Shape** `[V]` → `[V]`; surviving scores are unchanged.
/// - **Units** `z` in `0..=1`; `1` changes nothing.
/// - **Variants** `crossing=keep`: the token whose second difference crosses `z` stays, and a
///   row without curvature loses only its last token, as in text-generation-webui. `cut`: it
///   goes, and a row without curvature counts as evenly curved, as in koboldcpp.
/// - **Edges** with `keep`, the last token has no second difference and always goes; with
///   `cut`, a row too short to be cut after `min_keep` tokens stays whole. At least `min_keep`
///   stay.
/// - **Source** Bricken 2019, "Tail Free Sampling",
///   <https://www.trentonbricken.com/Tail-Free-Sampling/>.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, TokenId};
///
/// // Second differences of 0.5, 0.3, 0.1, 0.1: 0.0, 0.2. The whole bend is at token 1.
/// let mut logits = Logits::from_probabilities(&[0.5, 0.3, 0.1, 0.1])?;
/// Pipeline::parse("tail_free(z=0.9)")?.reshape(&mut logits, &Default::default())?;
/// assert_eq!(logits.support(), [TokenId(0), TokenId(1)]);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TailFree {
    z: f64,
    min_keep: usize,
    keep_crossing: bool,
}

impl TailFree {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self {
            z: args.number("z")?,
            min_keep: args.count("min_keep")?,
            keep_crossing: args.word("crossing")? == "keep",
        })
    }

    /// How many of the sorted weights stay.
    fn kept(&self, sorted: &[u64]) -> usize {
        if !self.keep_crossing && sorted.len() < self.min_keep + 3 {
            return sorted.len();
        }
        let bends = || sorted.windows(3).map(|w| (w[0] + w[2]).abs_diff(2 * w[1]));
        let mut total: u64 = bends().sum();
        let even = total == 0 && !self.keep_crossing;
        if even {
            total = bends().count() as u64;
        }
        let allowed = weights::share_above(weights::proportion_to_exceed(self.z), total) - 1;
        let mut sum = 0;
        let fitting = bends().take_while(|&bend| {
            sum += if even { 1 } else { bend };
            sum <= allowed
        });
        (fitting.count() + usize::from(self.keep_crossing)).max(self.min_keep)
    }
}

impl Transform for TailFree {
    fn apply(&self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        if self.z == 1.0 {
            return Ok(Outcome::default());
        }
        let kept = self.kept(&logits.weights_in_order()?);
        let cut = logits.cut_at_count(kept)?;
        logits.keep_through(&cut);
        Ok(Outcome { cut: Some(cut), limit: None })
    }

    fn verdict(&self, _: &Facts, standing: &Standing, outcome: &Outcome) -> Option<Verdict> {
        let kept = outcome.cut?.count as f64;
        let relations = ("≤", "> the rank where the curve has bent by z,");
        Some(Verdict::at_most("its rank was", standing.rank as f64 + 1.0, kept, relations))
    }
}
