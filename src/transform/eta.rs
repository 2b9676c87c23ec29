//! Removes tokens below a probability that falls as the entropy rises.

use crate::{
    config::Args,
    error::Result,
    logits::{Logits, Standing},
    spec::{Build, Kind, Law, ParamSpec, StageSpec, number},
    step::StepContext,
    transform::{
        Facts, MIN_KEEP, Outcome, Transform, Verdict, keep_at_least,
        kernel::{Kernel, Search},
        or_min_keep,
    },
    weights,
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "eta",
    label: "Eta cutoff",
    kind: Kind::Truncate,
    summary: "Removes every token whose probability is below a floor that falls as the entropy rises.",
    formula: "keep i if p[i] >= min(e, sqrt(e) * exp(-H))",
    source: "Hewitt, Manning and Liang 2022, https://arxiv.org/abs/2210.15191",
    params: &[
        ParamSpec {
            name: "e",
            ty: number(0.0, 1.0),
            default: Some("0"),
            neutral: Some("0"),
            slider: Some((0.0, 0.02, 0.0001)),
            unit: "probability",
            help: "The floor of a row without doubt; 0 keeps all.",
        },
        MIN_KEEP,
    ],
    laws: &[
        Law::OnlyRemoves,
        Law::KeepsArgmax,
        Law::NeutralIsIdentity,
        Law::OrderPreserving,
        Law::KeepsPrefix,
        Law::ShiftInvariant,
    ],
    build: Build::Transform(|args| Ok(Box::new(Eta::from_args(args)?))),
};

/// Keeps tokens whose distance below the highest is at most `max(L - log2 Z, L/2 + ȳ)`, with
/// `L = -log2 e`, Z the mass and ȳ the mean distance.
///
/// In octaves a probability is `-distance - log2 Z` and the entropy is `log2 Z + ȳ`, so that
/// the second floor, `sqrt(e) · exp(-H)`, loses its Z. Mass and mean are integers.
///
/// - **Shape** `[V]` → `[V]`; surviving scores are unchanged.
/// - **Units** `e` is a probability in `0..=1`; `0` changes nothing.
/// - **Edges** when every token lies below the floor, the `min_keep` highest stay, and all
///   that are tied with the last of them.
/// - **Source** Hewitt, Manning and Liang 2022, "Truncation Sampling as Language Model
///   Desmoothing", <https://arxiv.org/abs/2210.15191>.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, TokenId};
///
/// // H = 1.2799 nats: the floor is min(0.25, 0.5 · 0.2781) = 0.139.
/// let mut logits = Logits::from_probabilities(&[0.4, 0.3, 0.2, 0.1])?;
/// Pipeline::parse("eta(e=0.25)")?.reshape(&mut logits, &Default::default())?;
/// assert_eq!(logits.support(), [TokenId(0), TokenId(1), TokenId(2)]);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Eta {
    e: f64,
    min_keep: usize,
}

impl Eta {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self { e: args.number("e")?, min_keep: args.count("min_keep")? })
    }

    /// The smaller of the two floors is the one that counts, so a token stays if it reaches
    /// either: the share of the mass that `e` is, or the distance beyond the mean that stands
    /// for the factor `sqrt(e)`. Both are whole numbers before the row is known.
    fn limits(&self) -> (u64, u64) {
        let beyond = weights::distance_of_octaves(-libm::log2(self.e) / 2.0).unwrap_or(0);
        (weights::proportion_to_reach(self.e), beyond)
    }
}

impl Transform for Eta {
    fn apply(&self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        if self.e == 0.0 {
            return Ok(Outcome::default());
        }
        let (share, beyond) = self.limits();
        let floor = weights::share_of(share, logits.mass()?);
        let farthest = beyond.saturating_add(logits.mean_distance()?);
        let reaching = logits.count_where(|distance, weight| weight >= floor || distance <= farthest)?;
        let cut = keep_at_least(logits, reaching, self.min_keep)?;
        Ok(Outcome { cut: Some(cut), limit: None })
    }

    fn verdict(&self, before: &Facts, standing: &Standing, outcome: &Outcome) -> Option<Verdict> {
        let cut = outcome.cut?;
        let floor = self.e.min(libm::sqrt(self.e) * libm::exp(-before.entropy));
        let rule = Verdict::at_least("its probability was", standing.probability, floor, ("≥", "<"));
        Some(or_min_keep(rule, standing, cut.count))
    }

    fn kernel(&self, _: &StepContext) -> Result<Kernel> {
        if self.e == 0.0 {
            return Ok(Kernel::Nothing);
        }
        let (share, beyond) = self.limits();
        Ok(Kernel::Cut(Search::Mean { share, beyond, min_keep: self.min_keep }))
    }
}
