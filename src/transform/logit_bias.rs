//! Adds a constant to chosen tokens.

use crate::{
    TokenId,
    config::Args,
    error::Result,
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec},
    step::StepContext,
    transform::{Edit, Op, Transform, edits_kernel, kernel::Kernel, readable},
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "logit_bias",
    label: "Logit bias",
    kind: Kind::Edit,
    summary: "Adds a constant to the scores of chosen tokens; \"-inf\" bans one.",
    formula: "z[i] + bias[i]",
    source: "OpenAI API reference, parameter logit_bias",
    params: &[ParamSpec {
        name: "bias",
        ty: ParamType::Bias,
        default: Some("{}"),
        neutral: Some("{}"),
        slider: None,
        unit: "nats",
        help: "Token ids and what is added to each.",
    }],
    laws: &[Law::NeutralIsIdentity],
    build: Build::Transform(|args| Ok(Box::new(LogitBias::from_args(args)?))),
};

/// Adds `bias[i]` to the score of token *i*; a ban removes the token.
///
/// - **Shape** `[V]` → `[V]`; only the listed tokens change.
/// - **Units** nats.
/// - **Edges** a dead token stays dead; an id outside the vocabulary is an error.
///
/// # Examples
/// ```
/// use logitscope::{Pipeline, Logits, TokenId};
///
/// let pipeline = Pipeline::parse("logit_bias(bias={\"0\": 2.5, \"2\": \"-inf\"})")?;
/// let mut logits = Logits::new(&[0.0, 1.0, 2.0])?;
/// pipeline.reshape(&mut logits, &Default::default())?;
/// assert_eq!(logits.score(TokenId(0)), Some(2.5));
/// assert_eq!(logits.support(), [TokenId(0), TokenId(1)]);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LogitBias {
    edits: Vec<Edit>,
}

impl LogitBias {
    fn from_args(args: &Args) -> Result<Self> {
        let bias = args.json("bias")?.as_object().into_iter().flatten();
        let mut edits: Vec<Edit> = bias
            .filter_map(|(id, bias)| {
                let token = TokenId(id.parse().ok()?);
                #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
                Some(match bias.as_f64() {
                    Some(amount) => {
                        Edit { token, op: Op::Add(amount as f32), why: format!("bias {}", readable(amount)) }
                    }
                    None => Edit { token, op: Op::Remove, why: "banned by its bias".to_owned() },
                })
            })
            .collect();
        edits.sort_by_key(|edit| edit.token);
        Ok(Self { edits })
    }
}

impl Transform for LogitBias {
    fn edits(&self, _: &StepContext) -> Result<Vec<Edit>> {
        Ok(self.edits.clone())
    }

    fn kernel(&self, context: &StepContext) -> Result<Kernel> {
        edits_kernel(self, context)
    }
}
