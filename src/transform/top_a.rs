//! Removes tokens far below the likeliest, the farther the less certain it is.

use crate::{
    config::Args,
    error::Result,
    logits::{Logits, Standing},
    spec::{Build, Kind, Law, ParamSpec, StageSpec, non_negative},
    step::StepContext,
    transform::{Facts, MIN_KEEP, Outcome, Transform, Verdict, or_min_keep},
    weights::{HALF_STEP, WEIGHT_BITS},
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "top_a",
    label: "Top-a",
    kind: Kind::Truncate,
    summary: "Removes tokens below a share of the squared highest probability.",
    formula: "keep i if p[i] >= a * max(p)^2",
    source: "BlinkDL 2022, RWKV-LM, top-a sampling, https://github.com/BlinkDL/RWKV-LM",
    params: &[
        ParamSpec {
            name: "a",
            ty: non_negative(),
            default: Some("0"),
            neutral: Some("0"),
            slider: Some((0.0, 1.0, 0.01)),
            unit: "",
            help: "The floor as a multiple of the squared highest probability; 0 keeps all.",
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
    build: Build::Transform(|args| Ok(Box::new(TopA::from_args(args)?))),
};

/// Keeps tokens whose weight is at least `a · w² / total`, w the weight of the highest.
///
/// - **Shape** `[V]` → `[V]`; surviving scores are unchanged.
/// - **Units** `a` dimensionless, any number from 0; `0` changes nothing. Up to 1 the highest
///   token always reaches the floor.
/// - **Boundary** a token exactly on the floor stays; "exactly" is meant to half an f32 step,
///   because scores are f32.
/// - **Edges** when no token reaches the floor, the `min_keep` highest stay.
/// - **Source** the RWKV project, 2022; also in `KoboldAI` and text-generation-webui.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, TokenId};
///
/// let mut logits = Logits::from_probabilities(&[0.5, 0.3, 0.2])?;
/// Pipeline::parse("top_a(a=0.9)")?.reshape(&mut logits, &Default::default())?; // 0.225
/// assert_eq!(logits.support(), [TokenId(0), TokenId(1)]);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TopA {
    a: f64,
    min_keep: usize,
}

impl TopA {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self { a: args.number("a")?, min_keep: args.count("min_keep")? })
    }
}

impl Transform for TopA {
    fn apply(&self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        if self.a == 0.0 {
            return Ok(Outcome::default());
        }
        // One weight against one quotient: no sum, so correctly rounded f64 is exact enough
        // and the same everywhere.
        let highest = (1u64 << WEIGHT_BITS) as f64;
        let floor = self.a * (1.0 - HALF_STEP) * (highest / logits.mass()? as f64) * highest;
        let reaching = logits.count_where(|_, weight| weight as f64 >= floor)?;
        let cut = logits.cut_at_count(reaching.max(self.min_keep))?;
        logits.keep_through(&cut);
        Ok(Outcome { cut: Some(cut), limit: None })
    }

    fn verdict(&self, before: &Facts, standing: &Standing, outcome: &Outcome) -> Option<Verdict> {
        let cut = outcome.cut?;
        let floor = self.a * before.highest.probability * before.highest.probability;
        let rule = Verdict::at_least("its probability was", standing.probability, floor, ("≥", "<"));
        Some(or_min_keep(rule, standing, cut.count))
    }
}
