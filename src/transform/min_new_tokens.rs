//! Removes the end of the sequence until enough tokens have been generated.

use crate::{
    TokenId,
    config::Args,
    error::Result,
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec, whole},
    step::StepContext,
    transform::{Edit, Op, Transform, edits_kernel, kernel::Kernel, suppress::ids},
};

/// The `eos` parameter of stages that speak of the end of a sequence.
pub(crate) const EOS: ParamSpec = ParamSpec {
    name: "eos",
    ty: ParamType::Ids,
    default: Some("[]"),
    neutral: Some("[]"),
    slider: None,
    unit: "",
    help: "The ids of the tokens that end a sequence.",
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "min_new_tokens",
    label: "Minimum new tokens",
    kind: Kind::Edit,
    summary: "Removes the end-of-sequence tokens until n tokens have been generated.",
    formula: "z[eos] = -inf while generated < n",
    source: "transformers, MinNewTokensLengthLogitsProcessor",
    params: &[
        ParamSpec {
            name: "n",
            ty: whole(0),
            default: Some("0"),
            neutral: Some("0"),
            slider: Some((0.0, 100.0, 1.0)),
            unit: "tokens",
            help: "How many tokens must be generated before the sequence may end.",
        },
        EOS,
    ],
    laws: &[Law::OnlyRemoves, Law::NeutralIsIdentity, Law::OrderPreserving, Law::Idempotent],
    build: Build::Transform(|args| Ok(Box::new(MinNewTokens::from_args(args)?))),
};

/// Removes the listed tokens while fewer than `n` tokens have been generated.
///
/// - **Shape** `[V]` → `[V]`; the others keep their scores.
/// - **Edges** the prompt does not count: a framework's `min_length`, which counts it, is
///   `n = min_length - prompt`. An id outside the vocabulary is an error.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, StepContext, TokenId};
///
/// let pipeline = Pipeline::parse("min_new_tokens(n=2, eos=[1])")?;
/// let history = [TokenId(0); 4];
/// let survivors = |prompt_len| -> logitscope::Result<usize> {
///     let mut logits = Logits::new(&[0.0, 1.0])?;
///     pipeline.reshape(&mut logits, &StepContext::new(&history, prompt_len, Default::default()))?;
///     Ok(logits.support().len())
/// };
/// assert_eq!(survivors(3)?, 1); // one token so far
/// assert_eq!(survivors(2)?, 2); // two
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MinNewTokens {
    n: usize,
    eos: Vec<TokenId>,
}

impl MinNewTokens {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self { n: args.count("n")?, eos: ids(args.json("eos")?) })
    }
}

impl Transform for MinNewTokens {
    fn edits(&self, context: &StepContext) -> Result<Vec<Edit>> {
        let generated = context.generated();
        if generated >= self.n {
            return Ok(Vec::new());
        }
        let why = format!("{generated} of at least {} tokens have been generated", self.n);
        Ok(self.eos.iter().map(|&token| Edit { token, op: Op::Remove, why: why.clone() }).collect())
    }

    fn kernel(&self, context: &StepContext) -> Result<Kernel> {
        edits_kernel(self, context)
    }
}
