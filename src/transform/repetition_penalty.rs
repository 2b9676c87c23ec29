//! Divides the scores of tokens that have already appeared.

use crate::{
    config::Args,
    error::Result,
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec, positive},
    step::{Lookback, StepContext},
    transform::{Edit, Op, Transform, WINDOW, counts, edits_kernel, kernel::Kernel, scope, times},
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "repetition_penalty",
    label: "Repetition penalty",
    kind: Kind::Edit,
    summary: "Makes tokens that have already appeared less likely by a factor on their score.",
    formula: "z > 0 ? z / r : z * r, once for each token in view",
    source: "Keskar et al. 2019, CTRL, https://arxiv.org/abs/1909.05858",
    params: &[
        ParamSpec {
            name: "r",
            ty: positive(),
            default: Some("1"),
            neutral: Some("1"),
            slider: Some((0.5, 2.0, 0.01)),
            unit: "",
            help: "What a positive score is divided by; below 1 it encourages repetition.",
        },
        scope(&["context", "generated", "prompt"], "context"),
        WINDOW,
        ParamSpec {
            name: "power",
            ty: ParamType::Word { words: &["once", "count"] },
            default: Some("once"),
            neutral: None,
            slider: None,
            unit: "",
            help: "Whether a token is penalised once, or as often as it appeared.",
        },
        ParamSpec {
            name: "negative",
            ty: ParamType::Word { words: &["multiply", "divide"] },
            default: Some("multiply"),
            neutral: None,
            slider: None,
            unit: "",
            help: "What happens to a negative score; dividing it makes the token more likely.",
        },
    ],
    laws: &[Law::NeutralIsIdentity],
    build: Build::Transform(|args| Ok(Box::new(RepetitionPenalty::from_args(args)?))),
};

/// Divides a positive score by `r` and multiplies a negative one, for every distinct token in
/// view; with `power=count`, by `r^count`.
///
/// - **Shape** `[V]` → `[V]`; only tokens in view change.
/// - **Units** `r` dimensionless, above 0; `1` changes nothing.
/// - **Edges** a score of 0 stays 0. The result depends on where zero lies, so unlike most
///   stages this one is not invariant under adding a constant to every score.
/// - **Source** Keskar et al. 2019, "CTRL", <https://arxiv.org/abs/1909.05858>, section 4.1;
///   the treatment of negative scores is the later convention of all frameworks.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, StepContext, TokenId};
///
/// let history = [TokenId(0), TokenId(1)];
/// let context = StepContext::new(&history, 0, Default::default());
/// let mut logits = Logits::new(&[4.0, -1.0, 2.0])?;
/// Pipeline::parse("repetition_penalty(r=2)")?.reshape(&mut logits, &context)?;
/// assert_eq!(logits.score(TokenId(0)), Some(2.0));
/// assert_eq!(logits.score(TokenId(1)), Some(-2.0));
/// assert_eq!(logits.score(TokenId(2)), Some(2.0));
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RepetitionPenalty {
    r: f64,
    lookback: Lookback,
    by_count: bool,
    multiply_negative: bool,
}

impl RepetitionPenalty {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self {
            r: args.number("r")?,
            lookback: Lookback::from_args(args)?,
            by_count: args.word("power")? == "count",
            multiply_negative: args.word("negative")? == "multiply",
        })
    }
}

impl Transform for RepetitionPenalty {
    fn edits(&self, context: &StepContext) -> Result<Vec<Edit>> {
        if self.r == 1.0 {
            return Ok(Vec::new());
        }
        let seen = counts(self.lookback.of(context));
        let edits = seen.into_iter().map(|(token, count)| {
            let power = if self.by_count { f64::from(count) } else { 1.0 };
            #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
            let divisor = libm::pow(self.r, power) as f32;
            let op = Op::Penalise { divisor, multiply_negative: self.multiply_negative };
            Edit { token, op, why: format!("seen {}", times(count)) }
        });
        Ok(edits.collect())
    }

    fn kernel(&self, context: &StepContext) -> Result<Kernel> {
        edits_kernel(self, context)
    }
}
