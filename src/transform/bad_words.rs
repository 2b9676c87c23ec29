//! Removes the token that would complete a forbidden sequence.

use std::collections::BTreeMap;

use crate::{
    TokenId,
    config::Args,
    error::Result,
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec},
    step::StepContext,
    transform::{Edit, Op, Transform, edits_kernel, kernel::Kernel, suppress::ids},
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "bad_words",
    label: "Bad words",
    kind: Kind::Edit,
    summary: "Removes the last token of a forbidden sequence when the context ends with the rest.",
    formula: "z[last] = -inf if the context ends with the rest",
    source: "transformers, NoBadWordsLogitsProcessor",
    params: &[ParamSpec {
        name: "sequences",
        ty: ParamType::Sequences,
        default: Some("[]"),
        neutral: Some("[]"),
        slider: None,
        unit: "",
        help: "Forbidden sequences of token ids.",
    }],
    laws: &[Law::OnlyRemoves, Law::NeutralIsIdentity, Law::OrderPreserving, Law::Idempotent],
    build: Build::Transform(|args| Ok(Box::new(BadWords::from_args(args)?))),
};

/// Removes the last id of each sequence whose other ids end the context.
///
/// - **Shape** `[V]` → `[V]`; the others keep their scores.
/// - **Edges** a sequence of one id is forbidden at every step. The whole history counts,
///   prompt included. Sequences are of ids: a word usually needs several, one for each way
///   it is tokenised, with and without a leading space.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, StepContext, TokenId};
///
/// let history = [TokenId(0)];
/// let context = StepContext::new(&history, 0, Default::default());
/// let mut logits = Logits::new(&[0.0, 1.0, 2.0])?;
/// Pipeline::parse("bad_words(sequences=[[0,2],[1,0]])")?.reshape(&mut logits, &context)?;
/// assert_eq!(logits.support(), [TokenId(0), TokenId(1)]);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BadWords {
    /// The ids before the last, and the last.
    sequences: Vec<(Vec<TokenId>, TokenId)>,
}

impl BadWords {
    fn from_args(args: &Args) -> Result<Self> {
        let sequences = args.json("sequences")?.as_array().into_iter().flatten();
        let sequences = sequences.filter_map(|sequence| {
            let mut sequence = ids(sequence);
            let last = sequence.pop()?;
            Some((sequence, last))
        });
        Ok(Self { sequences: sequences.collect() })
    }
}

impl Transform for BadWords {
    fn edits(&self, context: &StepContext) -> Result<Vec<Edit>> {
        let due = self.sequences.iter().filter(|(rest, _)| context.history.ends_with(rest));
        let longest: BTreeMap<TokenId, usize> = due.map(|(rest, last)| (*last, rest.len() + 1)).collect();
        let edits = longest.into_iter().map(|(token, length)| Edit {
            token,
            op: Op::Remove,
            why: match length {
                1 => "it is forbidden".to_owned(),
                _ => format!("it would complete a forbidden sequence of {length}"),
            },
        });
        Ok(edits.collect())
    }

    fn kernel(&self, context: &StepContext) -> Result<Kernel> {
        edits_kernel(self, context)
    }
}
