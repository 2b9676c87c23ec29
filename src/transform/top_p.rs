//! Keeps the likeliest tokens that together hold a given mass: the nucleus.

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
    id: "top_p",
    label: "Top-p",
    kind: Kind::Truncate,
    summary: "Keeps the fewest tokens whose probabilities together reach p.",
    formula: "keep i if the mass before i < p",
    source: "Holtzman et al. 2020, https://arxiv.org/abs/1904.09751",
    params: &[
        ParamSpec {
            name: "p",
            ty: number(0.0, 1.0),
            default: Some("1"),
            neutral: Some("1"),
            slider: Some((0.0, 1.0, 0.01)),
            unit: "probability",
            help: "The mass to reach; 0 keeps one token, 1 keeps all.",
        },
        ParamSpec {
            name: "boundary",
            ty: ParamType::Word { words: &["reach", "exceed"] },
            default: Some("reach"),
            neutral: None,
            slider: None,
            unit: "",
            help: "Whether the mass must reach p, or exceed it, which keeps one more at equality.",
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
        ParamSpec {
            name: "mass",
            ty: ParamType::Word { words: &["current", "original"] },
            default: Some("current"),
            neutral: None,
            slider: None,
            unit: "",
            help: "Whether p is a share of the tokens still alive, or of those before any truncation.",
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
    build: Build::Transform(|args| Ok(Box::new(TopP::from_args(args)?))),
};

/// Keeps the shortest prefix of the order whose mass reaches `⌈p · total⌉`, the crossing token
/// included.
///
/// - **Shape** `[V]` → `[V]`; surviving scores are unchanged.
/// - **Units** `p` in `0..=1`, held with 32 fractional bits.
/// - **Boundary** `reach`: a token stays iff the mass before it is below `p`; `exceed`: iff
///   that mass is at most `p`, as SGLang does. Equality is meant to half an f32 step, because
///   scores are f32: of five equal tokens, three reach 0.6.
/// - **Mass** `original` measures against the mass before truncation, as SGLang and candle do
///   after top-k.
/// - **Ties** lower ids come first, so which of several tied tokens stay is fixed.
/// - **Edges** `p = 0` keeps one token; `p = 1` keeps all, those of zero weight too.
/// - **Source** Holtzman et al. 2020, <https://arxiv.org/abs/1904.09751>.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, TokenId};
///
/// let mut logits = Logits::from_probabilities(&[0.5, 0.3, 0.2])?;
/// Pipeline::parse("top_p(p=0.6)")?.reshape(&mut logits, &Default::default())?;
/// assert_eq!(logits.support(), [TokenId(0), TokenId(1)]);
/// assert!((logits.probability(TokenId(0))? - 0.625).abs() < 1e-7);
///
/// let mut equal = Logits::new(&[0.0; 5])?;
/// Pipeline::parse("top_p(p=0.6)")?.reshape(&mut equal, &Default::default())?;
/// assert_eq!(equal.alive().count(), 3);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TopP {
    p: f64,
    exceed: bool,
    min_keep: usize,
    original: bool,
}

impl TopP {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self {
            p: args.number("p")?,
            exceed: args.word("boundary")? == "exceed",
            min_keep: args.count("min_keep")?,
            original: args.word("mass")? == "original",
        })
    }

    /// `p` as a proportion of the mass.
    fn share(&self) -> u64 {
        if self.exceed { weights::proportion_to_exceed(self.p) } else { weights::proportion_to_reach(self.p) }
    }
}

impl Transform for TopP {
    fn apply(&self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        if self.p == 1.0 {
            return Ok(Outcome::default());
        }
        let total = if self.original { logits.original_mass()? } else { logits.mass()? };
        let p = self.share();
        // "Exceeds p · total" is "reaches the next whole number above it".
        let wanted = if self.exceed { weights::share_above(p, total) } else { weights::share_of(p, total) };
        let cut = logits.cut_at_mass(wanted)?;
        let cut = if cut.count < self.min_keep { logits.cut_at_count(self.min_keep)? } else { cut };
        logits.keep_through(&cut);
        Ok(Outcome { cut: Some(cut), limit: None })
    }

    fn verdict(&self, before: &Facts, standing: &Standing, _: &Outcome) -> Option<Verdict> {
        if self.p == 1.0 {
            return None;
        }
        if standing.rank < self.min_keep {
            return Some(Verdict::at_most(
                "its rank was",
                standing.rank as f64 + 1.0,
                self.min_keep as f64,
                ("≤ min_keep", "> min_keep"),
            ));
        }
        let mass = standing.mass_before / if self.original { before.original_mass } else { 1.0 };
        let relations = if self.exceed { ("≤", ">") } else { ("<", "≥") };
        Some(Verdict::at_most("the mass before it was", mass, self.p, relations))
    }

    fn kernel(&self, _: &StepContext) -> Result<Kernel> {
        if self.p == 1.0 {
            return Ok(Kernel::Nothing);
        }
        Ok(Kernel::Cut(Search::Mass {
            share: self.share(),
            above: self.exceed,
            original: self.original,
            min_keep: self.min_keep,
        }))
    }
}
