//! Removes the likeliest tokens when several are likely enough.

use crate::{
    TokenId,
    config::Args,
    error::Result,
    logits::{Logits, Standing},
    random::{self, Purpose},
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec, number},
    step::StepContext,
    transform::{Facts, MIN_KEEP, Outcome, Transform, Verdict, kernel::Kernel, suppress::ids},
    weights,
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "xtc",
    label: "Exclude top choices",
    kind: Kind::Truncate,
    summary: "With some probability, removes all tokens that reach a threshold but the least likely of them.",
    formula: "if u < probability: drop all i with p[i] >= threshold but the last of them",
    source: "p-e-w 2024, https://github.com/oobabooga/text-generation-webui/pull/6335",
    params: &[
        ParamSpec {
            name: "probability",
            ty: number(0.0, 1.0),
            default: Some("0"),
            neutral: Some("0"),
            slider: Some((0.0, 1.0, 0.05)),
            unit: "probability",
            help: "How often the stage acts at all.",
        },
        ParamSpec {
            name: "threshold",
            ty: number(0.0, 1.0),
            default: Some("0.1"),
            neutral: None,
            slider: Some((0.0, 0.5, 0.01)),
            unit: "probability",
            help: "Which tokens are top choices; above 0.5 there cannot be two.",
        },
        MIN_KEEP,
        ParamSpec {
            name: "protect",
            ty: ParamType::Ids,
            default: Some("[]"),
            neutral: None,
            slider: None,
            unit: "",
            help: "If one of these would be removed, nothing is.",
        },
    ],
    laws: &[Law::OnlyRemoves, Law::NeutralIsIdentity, Law::OrderPreserving],
    build: Build::Transform(|args| Ok(Box::new(Xtc::from_args(args)?))),
};

/// Removes the first `n - 1` tokens of the order, n being how many weigh at least
/// `⌈threshold · total⌉`.
///
/// Whether it acts is drawn from a stream of its own, keyed by the seed and the position, so
/// that turning it on does not change the sampler's draws.
///
/// - **Shape** `[V]` → `[V]`; surviving scores are unchanged. The likeliest token dies.
/// - **Units** `probability` and `threshold` in `0..=1`; it acts iff its draw is below
///   `probability`.
/// - **Boundary** a token exactly on the threshold is a top choice; "exactly" is meant to half
///   an f32 step, because scores are f32.
/// - **Edges** nothing happens when fewer than two tokens reach the threshold, when fewer than
///   `min_keep` would stay, or when a `protect`ed token would go.
/// - **Source** p-e-w 2024, <https://github.com/oobabooga/text-generation-webui/pull/6335>.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, TokenId};
///
/// let mut logits = Logits::from_probabilities(&[0.5, 0.3, 0.15, 0.05])?;
/// Pipeline::parse("xtc(probability=1, threshold=0.12)")?.reshape(&mut logits, &Default::default())?;
/// assert_eq!(logits.support(), [TokenId(2), TokenId(3)]);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Xtc {
    probability: f64,
    threshold: f64,
    min_keep: usize,
    protect: Vec<TokenId>,
}

impl Xtc {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self {
            probability: args.number("probability")?,
            threshold: args.number("threshold")?,
            min_keep: args.count("min_keep")?,
            protect: ids(args.json("protect")?),
        })
    }

    fn acts(&self, context: &StepContext) -> bool {
        self.probability >= 1.0 || context.draw(Purpose::Xtc) < random::from_unit(self.probability)
    }
}

impl Transform for Xtc {
    fn apply(&self, logits: &mut Logits, context: &StepContext) -> Result<Outcome> {
        for &token in &self.protect {
            logits.require(token).map_err(|error| error.param("protect"))?;
        }
        if !self.acts(context) {
            return Ok(Outcome::default());
        }
        let floor = weights::share_of(weights::proportion_to_reach(self.threshold), logits.mass()?);
        let choices = logits.count_where(|_, weight| weight >= floor)?;
        if choices < 2 || logits.alive().count() - (choices - 1) < self.min_keep {
            return Ok(Outcome::default());
        }
        let cut = logits.cut_at_count(choices - 1)?;
        for &token in &self.protect {
            if logits.alive().contains(token.index()) && logits.is_within(token, &cut) {
                return Ok(Outcome::default());
            }
        }
        logits.drop_through(&cut);
        Ok(Outcome { cut: None, limit: Some(cut.count as f64) })
    }

    fn is_random(&self) -> bool {
        self.probability > 0.0 && self.probability < 1.0
    }

    fn verdict(&self, _: &Facts, standing: &Standing, outcome: &Outcome) -> Option<Verdict> {
        let relations = ("> the number of top choices excluded,", "≤ the number of top choices excluded,");
        Some(Verdict::at_least("its rank was", standing.rank as f64 + 1.0, outcome.limit?, relations))
    }

    fn kernel(&self, context: &StepContext) -> Result<Kernel> {
        if !self.acts(context) {
            return Ok(Kernel::Nothing);
        }
        let share = weights::proportion_to_reach(self.threshold);
        Ok(Kernel::Exclude { share, min_keep: self.min_keep, protect: self.protect.clone() })
    }
}
