//! Keeps tokens that are not too far below the likeliest.

use crate::{
    config::Args,
    error::Result,
    logits::{Logits, Standing},
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec, number, whole},
    step::StepContext,
    transform::{
        Facts, Outcome, Transform, Verdict,
        kernel::{Kernel, Search},
    },
    weights,
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "min_p",
    label: "Min-p",
    kind: Kind::Truncate,
    summary: "Keeps tokens at least m times as likely as the likeliest.",
    formula: "keep i if p[i] >= m * max(p)",
    source: "Nguyen et al. 2024, https://arxiv.org/abs/2407.01082",
    params: &[
        ParamSpec {
            name: "m",
            ty: number(0.0, 1.0),
            default: Some("0"),
            neutral: Some("0"),
            slider: Some((0.0, 1.0, 0.005)),
            unit: "share of the highest probability",
            help: "The floor, as a share of the likeliest token's probability; 0 keeps all.",
        },
        ParamSpec {
            name: "boundary",
            ty: ParamType::Word { words: &["inclusive", "exclusive"] },
            default: Some("inclusive"),
            neutral: None,
            slider: None,
            unit: "",
            help: "Whether a token exactly on the floor stays.",
        },
        ParamSpec {
            name: "min_keep",
            ty: whole(1),
            default: Some("1"),
            neutral: None,
            slider: Some((1.0, 20.0, 1.0)),
            unit: "tokens",
            help: "At least so many tokens stay.",
        },
    ],
    laws: &[
        Law::OnlyRemoves,
        Law::KeepsArgmax,
        Law::NeutralIsIdentity,
        Law::OrderPreserving,
        Law::KeepsPrefix,
        Law::ShiftInvariant,
        Law::Idempotent,
    ],
    build: Build::Transform(|args| Ok(Box::new(MinP::from_args(args)?))),
};

/// Keeps tokens whose distance below the highest is at most `-log2(m)` octaves.
///
/// No probability is computed: `p[i] >= m · max(p)` says how far a score may lie below the
/// highest, whatever the others are.
///
/// - **Shape** `[V]` → `[V]`; surviving scores are unchanged.
/// - **Units** `m` in `0..=1`; `0` changes nothing.
/// - **Ties** every token tied with the highest survives.
/// - **Boundary** `exclusive` also drops a token exactly on the floor, as mistral.rs does.
/// - **Source** Nguyen et al. 2024, "Turning Up the Heat: Min-p Sampling",
///   <https://arxiv.org/abs/2407.01082>.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, TokenId};
///
/// let mut logits = Logits::from_probabilities(&[0.5, 0.3, 0.2])?;
/// Pipeline::parse("min_p(m=0.5)")?.reshape(&mut logits, &Default::default())?; // at least 0.25
/// assert_eq!(logits.support(), [TokenId(0), TokenId(1)]);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MinP {
    m: f64,
    exclusive: bool,
    min_keep: usize,
}

impl MinP {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self {
            m: args.number("m")?,
            exclusive: args.word("boundary")? == "exclusive",
            min_keep: args.count("min_keep")?,
        })
    }
}

impl Transform for MinP {
    fn apply(&self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        if self.m == 0.0 {
            return Ok(Outcome::default());
        }
        let farthest = weights::ratio_distance(self.m, self.exclusive);
        let cut = logits.cut_at_distance(farthest)?;
        let cut = if cut.count < self.min_keep { logits.cut_at_count(self.min_keep)? } else { cut };
        logits.keep_through(&cut);
        Ok(Outcome { cut: Some(cut), limit: None })
    }

    fn verdict(&self, before: &Facts, standing: &Standing, _: &Outcome) -> Option<Verdict> {
        let floor = self.m * before.highest.probability;
        let relations = if self.exclusive { (">", "≤") } else { ("≥", "<") };
        (self.m > 0.0)
            .then(|| Verdict::at_least("its probability was", standing.probability, floor, relations))
    }

    fn kernel(&self, _: &StepContext) -> Result<Kernel> {
        if self.m == 0.0 {
            return Ok(Kernel::Nothing);
        }
        let farthest = weights::ratio_distance(self.m, self.exclusive);
        Ok(Kernel::Cut(Search::Distance { farthest, min_keep: self.min_keep }))
    }
}
