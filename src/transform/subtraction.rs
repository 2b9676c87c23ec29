//! What presence and frequency penalty have in common: an amount off the score of every token in
//! view, once or for each appearance.

use crate::{
    config::Args,
    error::Result,
    step::{Lookback, StepContext},
    transform::{Edit, Op, Transform, counts, edits_kernel, kernel::Kernel, times},
};

/// How many times the amount is subtracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    Once,
    EachAppearance,
}

/// Subtracts an amount from every token in view; 0 changes nothing.
#[derive(Debug, Clone)]
pub(super) struct Subtraction {
    amount: f64,
    lookback: Lookback,
    times: Times,
}

impl Subtraction {
    pub(super) fn from_args(args: &Args, amount: &str, times: Times) -> Result<Self> {
        Ok(Self { amount: args.number(amount)?, lookback: Lookback::from_args(args)?, times })
    }
}

impl Transform for Subtraction {
    fn edits(&self, context: &StepContext) -> Result<Vec<Edit>> {
        if self.amount == 0.0 {
            return Ok(Vec::new());
        }
        let seen = counts(self.lookback.of(context));
        let edits = seen.into_iter().map(|(token, count)| {
            let repeated = if self.times == Times::Once { 1 } else { count };
            #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
            let op = Op::Add(-(self.amount as f32 * repeated as f32));
            Edit { token, op, why: format!("seen {}", times(count)) }
        });
        Ok(edits.collect())
    }

    fn kernel(&self, context: &StepContext) -> Result<Kernel> {
        edits_kernel(self, context)
    }
}
