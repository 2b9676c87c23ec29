//! Takes the likeliest token.

use crate::{
    error::Result,
    logits::{Logits, Standing},
    sampler::Sampler,
    spec::{Build, Kind, Law, StageSpec},
    step::StepContext,
    transform::{
        Facts, Outcome, Verdict,
        kernel::{Kernel, Search},
    },
};

/// Declares the sampler.
pub const SPEC: StageSpec = StageSpec {
    id: "greedy",
    label: "Greedy",
    kind: Kind::Sampler,
    summary: "Takes the likeliest token, the lower id among equals.",
    formula: "argmax z",
    source: "",
    params: &[],
    laws: &[Law::OnlyRemoves, Law::KeepsArgmax, Law::KeepsPrefix, Law::ShiftInvariant, Law::Idempotent],
    build: Build::Sampler(|_| Ok(Box::new(Greedy))),
};

/// Leaves one token with probability 1.
///
/// # Examples
/// ```
/// use logitscope::{Pipeline, TokenId};
///
/// let pipeline = Pipeline::parse("greedy()")?;
/// assert_eq!(pipeline.choose(&[1.0, 3.0, 3.0], &Default::default())?, TokenId(1));
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Greedy;

impl Sampler for Greedy {
    fn prepare(&mut self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        let cut = logits.cut_at_count(1)?;
        logits.keep_through(&cut);
        Ok(Outcome { cut: Some(cut), limit: None })
    }

    fn verdict(&self, _: &Facts, standing: &Standing, _: &Outcome) -> Option<Verdict> {
        Some(Verdict::at_most("its rank was", standing.rank as f64 + 1.0, 1.0, ("≤", ">")))
    }

    fn kernel(&self) -> Vec<Kernel> {
        vec![Kernel::Cut(Search::Count { count: 1, ties: false }), Kernel::Draw]
    }

    fn is_random(&self) -> bool {
        false
    }

    fn fork(&self) -> Box<dyn Sampler> {
        Box::new(*self)
    }
}
