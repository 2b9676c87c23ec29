//! Subtracts from the score of every token in proportion to how often it has appeared.

use crate::{
    spec::{Build, Kind, Law, ParamSpec, StageSpec, signed},
    transform::{
        WINDOW, scope,
        subtraction::{Subtraction, Times},
    },
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
        scope(&["generated", "context", "prompt"], "generated"),
        WINDOW,
    ],
    laws: &[Law::NeutralIsIdentity, Law::ShiftInvariant],
    build: Build::Transform(|args| Ok(Box::new(Subtraction::from_args(args, "f", Times::EachAppearance)?))),
};
