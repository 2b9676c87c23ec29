//! Subtracts from the score of every token in proportion to how often it has appeared.

use crate::{
    config::Args,
    error::Result,
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec, signed, whole},
    step::{Lookback, StepContext},
    transform::{Edit, Op, Transform, counts, edits_kernel, kernel::Kernel, times},
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "frequency_penalty",
    label: "Frequency penalty",
    kind: Kind::Edit,
    summary: "Subtracts from the score of every token in proportion to how often it has appeared.",
    formula: "z - f * count",
    source: "OpenAI API reference, parameter frequency_penalty",
    params: &[
        ParamSpec {
            name: "f",
            ty: signed(),
            default: Some("0"),
            neutral: Some("0"),
            slider: Some((-2.0, 2.0, 0.05)),
            unit: "nats",
            help: "What is subtracted for each appearance; negative values encourage tokens already used.",
        },
        ParamSpec {
            name: "scope",
            ty: ParamType::Word { words: &["generated", "context", "prompt"] },
            default: Some("generated"),
            neutral: None,
            slider: None,
            unit: "",
            help: "Which part of the history counts: output only, prompt and output, or prompt only.",
        },
        ParamSpec {
            name: "window",
            ty: whole(0),
            default: Some("0"),
            neutral: None,
            slider: Some((0.0, 256.0, 1.0)),
            unit: "tokens",
            help: "Only the last so many tokens of the scope; 0 for all.",
        },
    ],
    laws: &[Law::NeutralIsIdentity, Law::ShiftInvariant],
    build: Build::Transform(|args| Ok(Box::new(FrequencyPenalty::from_args(args)?))),
};

/// Subtracts `f · count` from every token in view.
///
/// - **Shape** `[V]` → `[V]`; only tokens in view change.
/// - **Units** `f` in nats, any finite number; `0` changes nothing.
/// - **Scope** OpenAI and vLLM count generated tokens only, llama.cpp a window that includes
///   the prompt: hence `scope` and `window`.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, StepContext, TokenId};
///
/// let history = [TokenId(1), TokenId(0), TokenId(0)];
/// let context = StepContext::new(&history, 1, Default::default()); // the prompt is token 1
/// let mut logits = Logits::new(&[4.0, 4.0])?;
/// Pipeline::parse("frequency_penalty(f=0.5)")?.reshape(&mut logits, &context)?;
/// assert_eq!(logits.score(TokenId(0)), Some(3.0));
/// assert_eq!(logits.score(TokenId(1)), Some(4.0));
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FrequencyPenalty {
    amount: f64,
    lookback: Lookback,
}

impl FrequencyPenalty {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self { amount: args.number("f")?, lookback: Lookback::from_args(args)? })
    }
}

impl Transform for FrequencyPenalty {
    fn edits(&self, context: &StepContext) -> Result<Vec<Edit>> {
        if self.amount == 0.0 {
            return Ok(Vec::new());
        }
        let seen = counts(self.lookback.of(context));
        let edits = seen.into_iter().map(|(token, count)| {
            #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
            let op = Op::Add(-(self.amount as f32 * count as f32));
            Edit { token, op, why: format!("seen {}", times(count)) }
        });
        Ok(edits.collect())
    }

    fn kernel(&self, context: &StepContext) -> Result<Kernel> {
        edits_kernel(self, context)
    }
}
