//! Keeps a fixed number of tokens.

use crate::{
    config::Args,
    error::Result,
    logits::{Logits, Standing},
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec, whole},
    step::StepContext,
    transform::{
        Facts, Outcome, Transform, Verdict,
        kernel::{Kernel, Search},
    },
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "top_k",
    label: "Top-k",
    kind: Kind::Truncate,
    summary: "Keeps the k likeliest tokens, however likely they are.",
    formula: "keep i if rank(i) <= k",
    source: "Fan, Lewis and Dauphin 2018, https://arxiv.org/abs/1805.04833",
    params: &[
        ParamSpec {
            name: "k",
            ty: whole(0),
            default: Some("0"),
            neutral: Some("0"),
            slider: Some((0.0, 200.0, 1.0)),
            unit: "tokens",
            help: "How many tokens stay; 0 for all.",
        },
        ParamSpec {
            name: "ties",
            ty: ParamType::Word { words: &["cut", "keep"] },
            default: Some("cut"),
            neutral: None,
            slider: None,
            unit: "",
            help: "Whether exactly k stay, lower ids first, or also every token tied with the k-th.",
        },
    ],
    laws: &[
        Law::OnlyRemoves,
        Law::KeepsArgmax,
        Law::NeutralIsIdentity,
        Law::OrderPreserving,
        Law::KeepsPrefix,
        Law::ShiftInvariant,
        Law::Idempotent,
    ],
    build: Build::Transform(|args| Ok(Box::new(TopK::from_args(args)?))),
};

/// Keeps the `k` highest tokens.
///
/// - **Shape** `[V]` → `[V]`; surviving scores are unchanged.
/// - **Ties** `cut` keeps exactly `k`, lower ids first; `keep` also keeps every token tied
///   with the k-th, as transformers and vLLM do.
/// - **Edges** `k = 0` and `k >= V` change nothing.
/// - **Source** Fan, Lewis and Dauphin 2018, <https://arxiv.org/abs/1805.04833>.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, TokenId};
///
/// let keep = |text: &str| -> logitscope::Result<Vec<TokenId>> {
///     let mut logits = Logits::from_probabilities(&[0.4, 0.3, 0.3])?;
///     Pipeline::parse(text)?.reshape(&mut logits, &Default::default())?;
///     Ok(logits.support())
/// };
/// assert_eq!(keep("top_k(k=2)")?, [TokenId(0), TokenId(1)]);
/// assert_eq!(keep("top_k(k=2, ties=keep)")?.len(), 3);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TopK {
    k: usize,
    keep_ties: bool,
}

impl TopK {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self { k: args.count("k")?, keep_ties: args.word("ties")? == "keep" })
    }
}

impl Transform for TopK {
    fn apply(&self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        if self.k == 0 {
            return Ok(Outcome::default());
        }
        let cut = logits.cut_at_count(self.k)?;
        if self.keep_ties {
            logits.keep_through_ties(&cut);
        } else {
            logits.keep_through(&cut);
        }
        Ok(Outcome { cut: Some(cut), limit: None })
    }

    fn verdict(&self, _: &Facts, standing: &Standing, _: &Outcome) -> Option<Verdict> {
        (self.k > 0)
            .then(|| Verdict::at_most("its rank was", standing.rank as f64 + 1.0, self.k as f64, ("≤", ">")))
    }

    fn kernel(&self, _: &StepContext) -> Result<Kernel> {
        Ok(match self.k {
            0 => Kernel::Nothing,
            count => Kernel::Cut(Search::Count { count, ties: self.keep_ties }),
        })
    }
}
