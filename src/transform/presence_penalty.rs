//! Subtracts a constant from the score of every token that has already appeared.

use crate::{
    config::Args,
    error::Result,
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec, signed, whole},
    step::{Lookback, StepContext},
    transform::{Edit, Op, Transform, counts, edits_kernel, kernel::Kernel, times},
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "presence_penalty",
    label: "Presence penalty",
    kind: Kind::Edit,
    summary: "Subtracts a constant from the score of every token that has already appeared.",
    formula: "z - s * [count > 0]",
    source: "OpenAI API reference, parameter presence_penalty",
    params: &[
        ParamSpec {
            name: "s",
            ty: signed(),
            default: Some("0"),
            neutral: Some("0"),
            slider: Some((-2.0, 2.0, 0.05)),
            unit: "nats",
            help: "What is subtracted; negative values encourage tokens already used.",
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
    build: Build::Transform(|args| Ok(Box::new(PresencePenalty::from_args(args)?))),
};

/// Subtracts `s` once from every token in view.
///
/// - **Shape** `[V]` → `[V]`; only tokens in view change.
/// - **Units** `s` in nats, any finite number; `0` changes nothing.
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
/// Pipeline::parse("presence_penalty(s=0.5)")?.reshape(&mut logits, &context)?;
/// assert_eq!(logits.score(TokenId(0)), Some(3.5));
/// assert_eq!(logits.score(TokenId(1)), Some(4.0));
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PresencePenalty {
    amount: f64,
    lookback: Lookback,
}

impl PresencePenalty {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self { amount: args.number("s")?, lookback: Lookback::from_args(args)? })
    }
}

impl Transform for PresencePenalty {
    fn edits(&self, context: &StepContext) -> Result<Vec<Edit>> {
        if self.amount == 0.0 {
            return Ok(Vec::new());
        }
        let seen = counts(self.lookback.of(context));
        let edits = seen.into_iter().map(|(token, count)| {
            #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
            let op = Op::Add(-(self.amount as f32));
            Edit { token, op, why: format!("seen {}", times(count)) }
        });
        Ok(edits.collect())
    }

    fn kernel(&self, context: &StepContext) -> Result<Kernel> {
        edits_kernel(self, context)
    }
}
