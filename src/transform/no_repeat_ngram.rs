//! Removes every token that would repeat an n-gram.

use std::collections::BTreeMap;

use crate::{
    TokenId,
    config::Args,
    error::Result,
    spec::{Build, Kind, Law, ParamSpec, StageSpec, whole},
    step::{Lookback, StepContext},
    transform::{Edit, Op, Transform, edits_kernel, kernel::Kernel, scope, times},
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "no_repeat_ngram",
    label: "No repeated n-gram",
    kind: Kind::Edit,
    summary: "Removes every token that would complete a sequence of n tokens seen before.",
    formula: "z[v] = -inf if (last n - 1 tokens, v) occurred before",
    source: "Paulus, Xiong and Socher 2017, https://arxiv.org/abs/1705.04304, section 2.5",
    params: &[
        ParamSpec {
            name: "n",
            ty: whole(0),
            default: Some("0"),
            neutral: Some("0"),
            slider: Some((0.0, 10.0, 1.0)),
            unit: "tokens",
            help: "The length of a sequence that must not occur twice; 0 allows all.",
        },
        scope(&["context", "generated"], "context"),
    ],
    laws: &[Law::OnlyRemoves, Law::NeutralIsIdentity, Law::OrderPreserving, Law::Idempotent],
    build: Build::Transform(|args| Ok(Box::new(NoRepeatNgram::from_args(args)?))),
};

/// Removes each token that followed an earlier occurrence of the last `n - 1` tokens.
///
/// - **Shape** `[V]` → `[V]`; the others keep their scores.
/// - **Edges** `n = 1` forbids every token in view, `n = 0` nothing. Fewer than `n` tokens in
///   view have no n-gram to repeat.
/// - **Source** Paulus, Xiong and Socher 2017, <https://arxiv.org/abs/1705.04304>.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, StepContext, TokenId};
///
/// let history = [1, 2, 3, 1, 2].map(TokenId);
/// let context = StepContext::new(&history, 0, Default::default());
/// let mut logits = Logits::new(&[0.0; 5])?;
/// Pipeline::parse("no_repeat_ngram(n=3)")?.reshape(&mut logits, &context)?;
/// assert!(!logits.alive().contains(3)); // "1 2 3" once is enough
/// assert_eq!(logits.support().len(), 4);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct NoRepeatNgram {
    n: usize,
    lookback: Lookback,
}

impl NoRepeatNgram {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self { n: args.count("n")?, lookback: Lookback::from_args(args)? })
    }
}

impl Transform for NoRepeatNgram {
    fn edits(&self, context: &StepContext) -> Result<Vec<Edit>> {
        let seen = self.lookback.of(context);
        if self.n == 0 || seen.len() < self.n {
            return Ok(Vec::new());
        }
        let rest = &seen[seen.len() - (self.n - 1)..];
        let mut followed: BTreeMap<TokenId, u32> = BTreeMap::new();
        for ngram in seen.windows(self.n) {
            if let Some((&last, before)) = ngram.split_last()
                && before == rest
            {
                *followed.entry(last).or_insert(0) += 1;
            }
        }
        let edits = followed.into_iter().map(|(token, count)| Edit {
            token,
            op: Op::Remove,
            why: format!("these {} tokens occurred {} before", self.n, times(count)),
        });
        Ok(edits.collect())
    }

    fn kernel(&self, context: &StepContext) -> Result<Kernel> {
        edits_kernel(self, context)
    }
}
