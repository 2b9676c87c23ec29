//! Adds a constant to the token that would complete a sequence.

use std::collections::BTreeMap;

use crate::{
    TokenId,
    config::Args,
    error::Result,
    logits::Logits,
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec},
    step::StepContext,
    transform::{Edit, Op, Outcome, Transform, apply_edits, kernel::Kernel, readable, suppress::ids},
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "sequence_bias",
    label: "Sequence bias",
    kind: Kind::Edit,
    summary: "Adds a constant to the last token of a sequence when the context ends with the rest.",
    formula: "z[last] + bias if the context ends with the rest",
    source: "transformers, SequenceBiasLogitsProcessor",
    params: &[ParamSpec {
        name: "bias",
        ty: ParamType::SequenceBias,
        default: Some("[]"),
        neutral: Some("[]"),
        slider: None,
        unit: "nats",
        help: "Sequences of token ids and what is added to the last of each; \"-inf\" bans it.",
    }],
    laws: &[Law::NeutralIsIdentity],
    build: Build::Transform(|args| Ok(Box::new(SequenceBias::from_args(args)?))),
};

/// Adds to the last id of each sequence whose other ids end the context.
///
/// - **Shape** `[V]` → `[V]`; only tokens that would complete a sequence change.
/// - **Units** nats. Biases of several sequences that end in the same token add up.
/// - **Edges** a sequence of one id is biased at every step. The whole history counts, prompt
///   included. A ban wins over any bias. An id outside the vocabulary is an error once the
///   sequence is about to end in it.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, StepContext, TokenId};
///
/// let history = [TokenId(0), TokenId(1)];
/// let context = StepContext::new(&history, 0, Default::default());
/// let mut logits = Logits::new(&[0.0, 1.0, 2.0])?;
/// Pipeline::parse("sequence_bias(bias=[[[0,1,2],3.0],[[2],1.0],[[1,0],9]])")?
///     .reshape(&mut logits, &context)?;
/// assert_eq!(logits.score(TokenId(2)), Some(6.0)); // both of its sequences
/// assert_eq!(logits.score(TokenId(0)), Some(9.0)); // after a 1
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SequenceBias {
    /// The ids before the last, the last, and the bias; `None` is a ban.
    biases: Vec<(Vec<TokenId>, TokenId, Option<f64>)>,
}

impl SequenceBias {
    fn from_args(args: &Args) -> Result<Self> {
        let pairs = args.json("bias")?.as_array().into_iter().flatten();
        let biases = pairs.filter_map(|pair| {
            let mut sequence = ids(&pair[0]);
            let last = sequence.pop()?;
            Some((sequence, last, pair[1].as_f64()))
        });
        Ok(Self { biases: biases.collect() })
    }

    /// Every id of every sequence.
    fn named(&self) -> impl Iterator<Item = TokenId> {
        self.biases.iter().flat_map(|(rest, last, _)| rest.iter().chain([last]).copied())
    }
}

impl Transform for SequenceBias {
    fn apply(&self, logits: &mut Logits, context: &StepContext) -> Result<Outcome> {
        for token in self.named() {
            logits.require(token).map_err(|error| error.param("bias"))?;
        }
        apply_edits(&self.edits(context)?, logits)
    }

    fn edits(&self, context: &StepContext) -> Result<Vec<Edit>> {
        let mut sums: BTreeMap<TokenId, Option<f64>> = BTreeMap::new();
        for (rest, last, bias) in &self.biases {
            if context.history.ends_with(rest) {
                let sum = sums.entry(*last).or_insert(Some(0.0));
                *sum = sum.zip(*bias).map(|(sum, bias)| sum + bias);
            }
        }
        let edits = sums.into_iter().map(|(token, sum)| match sum {
            #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
            Some(sum) => Edit {
                token,
                op: Op::Add(sum as f32),
                why: format!("would complete a sequence with bias {}", readable(sum)),
            },
            None => Edit { token, op: Op::Remove, why: "would complete a banned sequence".to_owned() },
        });
        Ok(edits.collect())
    }

    fn kernel(&self, context: &StepContext) -> Result<Kernel> {
        let edits = self.edits(context)?.into_iter().map(|edit| (edit.token, edit.op)).collect();
        Ok(Kernel::Edits { edits, named: self.named().collect() })
    }
}
