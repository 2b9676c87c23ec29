//! Removes tokens below a fixed probability.

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
    id: "epsilon",
    label: "Epsilon cutoff",
    kind: Kind::Truncate,
    summary: "Removes every token whose probability is below a fixed floor.",
    formula: "keep i if p[i] >= e",
    source: "Hewitt, Manning and Liang 2022, https://arxiv.org/abs/2210.15191",
    params: &[
        ParamSpec {
            name: "e",
            ty: number(0.0, 1.0),
            default: Some("0"),
            neutral: Some("0"),
            slider: Some((0.0, 0.02, 0.0001)),
            unit: "probability",
            help: "The floor; 0 keeps all.",
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
    build: Build::Transform(|args| Ok(Box::new(Epsilon::from_args(args)?))),
};

/// Keeps tokens whose weight is at least `⌈e · total⌉`.
///
/// - **Shape** `[V]` → `[V]`; surviving scores are unchanged.
/// - **Units** `e` is a probability in `0..=1`; `0` changes nothing.
/// - **Boundary** a token exactly on the floor stays; "exactly" is meant to half an f32 step,
///   because scores are f32.
/// - **Edges** when every token lies below the floor, the `min_keep` highest stay, and all
///   that are tied with the last of them.
/// - **Source** Hewitt, Manning and Liang 2022, "Truncation Sampling as Language Model
///   Desmoothing", <https://arxiv.org/abs/2210.15191>.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, TokenId};
///
/// let mut logits = Logits::from_probabilities(&[0.5, 0.3, 0.2])?;
/// Pipeline::parse("epsilon(e=0.25)")?.reshape(&mut logits, &Default::default())?;
/// assert_eq!(logits.support(), [TokenId(0), TokenId(1)]);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Epsilon {
    e: f64,
    min_keep: usize,
}

impl Epsilon {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self { e: args.number("e")?, min_keep: args.count("min_keep")? })
    }
}

impl Transform for Epsilon {
    fn apply(&self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        if self.e == 0.0 {
            return Ok(Outcome::default());
        }
        let floor = weights::share_of(weights::proportion_to_reach(self.e), logits.mass()?);
        let reaching = logits.count_where(|_, weight| weight >= floor)?;
        let cut = keep_at_least(logits, reaching, self.min_keep)?;
        Ok(Outcome { cut: Some(cut), limit: None })
    }

    fn verdict(&self, _: &Facts, standing: &Standing, outcome: &Outcome) -> Option<Verdict> {
        let cut = outcome.cut?;
        let rule = Verdict::at_least("its probability was", standing.probability, self.e, ("≥", "<"));
        Some(or_min_keep(rule, standing, cut.count))
    }

    fn kernel(&self, _: &StepContext) -> Result<Kernel> {
        if self.e == 0.0 {
            return Ok(Kernel::Nothing);
        }
        let share = weights::proportion_to_reach(self.e);
        Ok(Kernel::Cut(Search::Weight { share, min_keep: self.min_keep }))
    }
}
