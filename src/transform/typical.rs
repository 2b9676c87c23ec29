//! Keeps tokens whose surprise is close to what the row leads one to expect.

use crate::{
    config::Args,
    error::Result,
    logits::{Logits, Standing},
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec, number},
    step::StepContext,
    transform::{
        Facts, MIN_KEEP, Outcome, Transform, Verdict,
        kernel::{Kernel, Search, TIES_BUT_NOT_OF_ALL},
    },
    weights,
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "typical",
    label: "Typical",
    kind: Kind::Truncate,
    summary: "Keeps the tokens whose surprise is nearest to the entropy, until they hold a mass.",
    formula: "ascending |-ln p[i] - H|, until the mass reaches p",
    source: "Meister et al. 2022, https://arxiv.org/abs/2202.00666",
    params: &[
        ParamSpec {
            name: "p",
            ty: number(0.0, 1.0),
            default: Some("1"),
            neutral: Some("1"),
            slider: Some((0.0, 1.0, 0.01)),
            unit: "probability",
            help: "The mass to reach; 0 keeps the most typical token, 1 keeps all.",
        },
        ParamSpec {
            name: "boundary",
            ty: ParamType::Word { words: &["reach", "exceed"] },
            default: Some("reach"),
            neutral: None,
            slider: None,
            unit: "",
            help: "Whether the mass must reach p, as in transformers, or exceed it, as in llama.cpp.",
        },
        MIN_KEEP,
        ParamSpec {
            name: "ties",
            ty: ParamType::Word { words: &["boundary", "cut", "keep"] },
            default: Some("boundary"),
            neutral: None,
            slider: None,
            unit: "",
            help: "Whether tokens as typical as the last one stay; `boundary`: with reach they do.",
        },
    ],
    laws: &[Law::OnlyRemoves, Law::NeutralIsIdentity, Law::OrderPreserving, Law::ShiftInvariant],
    build: Build::Transform(|args| Ok(Box::new(Typical::from_args(args)?))),
};

/// Keeps, by ascending `|y - ȳ|`, the shortest run of tokens whose mass reaches
/// `⌈p · total⌉`; y is a token's integer distance, ȳ the mean of all.
///
/// A surprise differs from the entropy by exactly `y - ȳ`, since both contain `log2 Z`, so no
/// logarithm is computed.
///
/// - **Shape** `[V]` → `[V]`; surviving scores are unchanged. The likeliest token can die.
/// - **Units** `p` in `0..=1`; `1` changes nothing.
/// - **Boundary** `reach`: stop when the mass is at least `p`, as transformers does; `exceed`:
///   when it is above `p`, as llama.cpp does. Equality is meant to half an f32 step, because
///   scores are f32.
/// - **Ties** tokens exactly as typical as the last one that stays: transformers keeps them,
///   llama.cpp does not, and neither keeps those tied with a token that only `min_keep` keeps.
///   `ties=boundary` follows the framework whose boundary it is; among
///   tied tokens lower ids come first.
/// - **Source** Meister et al. 2022, "Locally Typical Sampling",
///   <https://arxiv.org/abs/2202.00666>.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, TokenId};
///
/// // H = 1.3331: the order is tokens 1, 2, 0, 3, 4.
/// let keep = |p: f64| -> logitscope::Result<Vec<u32>> {
///     let mut logits = Logits::from_probabilities(&[0.5, 0.2, 0.15, 0.1, 0.05])?;
///     Pipeline::parse(&format!("typical(p={p})"))?.reshape(&mut logits, &Default::default())?;
///     Ok(logits.support().iter().map(|token| token.0).collect())
/// };
/// assert_eq!(keep(0.1)?, [1]);
/// assert_eq!(keep(0.3)?, [1, 2]);
/// assert_eq!(keep(0.8)?, [0, 1, 2]);
///
/// // Tokens 5 and 6 are tied; `min_keep` asks for one of them.
/// let mut logits = Logits::new(&[10.0, 9.9, 0.0, -10.0, 3.0, 2.5, 2.5, 1.0])?;
/// Pipeline::parse("typical(p=0.5, min_keep=4)")?.reshape(&mut logits, &Default::default())?;
/// assert_eq!(logits.support().iter().map(|token| token.0).collect::<Vec<_>>(), [0, 1, 4, 5]);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Typical {
    p: f64,
    exceed: bool,
    min_keep: usize,
    keep_ties: bool,
}

impl Typical {
    fn from_args(args: &Args) -> Result<Self> {
        let exceed = args.word("boundary")? == "exceed";
        let keep_ties = match args.word("ties")? {
            "keep" => true,
            "cut" => false,
            _ => !exceed,
        };
        Ok(Self { p: args.number("p")?, exceed, min_keep: args.count("min_keep")?, keep_ties })
    }
}

impl Transform for Typical {
    fn apply(&self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        if self.p == 1.0 {
            return Ok(Outcome::default());
        }
        let (total, mean) = (logits.mass()?, logits.mean_distance()?);
        let wanted = if self.exceed {
            weights::share_above(weights::proportion_to_exceed(self.p), total)
        } else {
            weights::share_of(weights::proportion_to_reach(self.p), total)
        };
        let oddness = |distance: u64| distance.abs_diff(mean);
        let by_mass = logits.cut_in_order_of(oddness, |_, mass| mass >= wanted)?;
        let by_count = if by_mass.count < self.min_keep {
            logits.cut_in_order_of(oddness, |count, _| count >= self.min_keep)?
        } else {
            by_mass
        };
        let weighed = logits.weighed()?;
        let odd: Vec<u64> = weighed.distance.iter().map(|&distance| oddness(distance)).collect();
        let last = (odd[by_count.last.index()], by_count.last);
        // The tokens that `min_keep` adds bring none of those tied with them.
        let tied = odd[by_mass.last.index()];
        logits.retain(|token| {
            let own = (odd[token.index()], token);
            own <= last || self.keep_ties && own.0 == tied
        });
        Ok(Outcome { cut: None, limit: Some(weights::nats_of_distance(last.0)) })
    }

    fn verdict(&self, before: &Facts, standing: &Standing, outcome: &Outcome) -> Option<Verdict> {
        let oddness = (-libm::log(standing.probability) - before.entropy).abs();
        Some(Verdict::at_most("its surprise was off the entropy by", oddness, outcome.limit?, ("≤", ">")))
    }

    fn kernel(&self, _: &StepContext) -> Result<Kernel> {
        if self.p == 1.0 {
            return Ok(Kernel::Nothing);
        }
        let share = if self.exceed {
            weights::proportion_to_exceed(self.p)
        } else {
            weights::proportion_to_reach(self.p)
        };
        if self.keep_ties && self.min_keep > 1 {
            return Ok(Kernel::Missing(TIES_BUT_NOT_OF_ALL));
        }
        let (above, ties) = (self.exceed, self.keep_ties);
        Ok(Kernel::Cut(Search::Typical { share, above, ties, min_keep: self.min_keep }))
    }
}
