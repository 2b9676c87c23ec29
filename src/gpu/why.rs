//! Why the CPU computes what a GPU might have: every reason of the device path, in a reader's
//! words. Each completes the sentence "the CPU computes it, because ...".
//!
//! What a stage itself says is in [`crate::transform::kernel`]; what befell a device, in
//! [`Failure`](super::Failure).

pub(super) const OFF: &str = "the GPU is switched off";
pub(super) const CPU_CHOSEN: &str = "the CPU was chosen";
pub(super) const CPU_FASTER: &str = "the CPU was measured to be faster";

/// Of a row.
pub(super) const FORCED: &str = "this token was forced, so nothing is drawn";
pub(super) const STEP_REFUSED: &str = "a stage refuses this step, and the CPU says why";
pub(super) const SCORES_REFUSED: &str = "the GPU refuses these scores, and the CPU says why";
pub(super) const OTHER_MODEL: &str = "the GPU computes with another model";

/// Of a model's last matrix.
pub(super) const NO_MATRIX: &str = "this model's logits are not the product of a matrix";
pub(super) const NO_MODEL_YET: &str = "no model has been looked at yet";
pub(super) const FLOATS: &str =
    "the model's last matrix is multiplied in floating point, which GPUs round in their own ways";
pub(super) const OTHER_BITS: &str = "this GPU's logits are not exactly the CPU's";

/// Of a stage at a step.
pub(super) const STRANGER: &str = "it names a token that the model does not have";
pub(super) const AFTER_TEMPERATURE: &str =
    "it changes scores that a temperature has changed, which only the CPU rounds exactly";
pub(super) const NOT_FINITE: &str = "one of its numbers is infinite";
pub(super) const EXTREME_TEMPERATURE: &str = "the temperatures together are 0 or beyond all bounds";
pub(super) const MANY_ROUNDS: &str = "the pipeline changes the scores more often than the GPU can in one go";
pub(super) const MANY_CUTS: &str = "the pipeline removes tokens more often than the GPU can in one go";
pub(super) const CONSTRAINT: &str = "the constraint";

/// A stage that a pipeline cannot go on from on the GPU; the stage stands before.
pub(super) fn stands_before(stage: &str) -> String {
    format!("{stage} before it runs on the CPU")
}

/// The same for a stage that stands after: a part that the CPU must go on from saves nothing.
pub(super) fn stands_after(stage: &str) -> String {
    format!("{stage} after it runs on the CPU")
}

/// A last matrix of a format that the kernel does not read.
pub(super) fn format(kind: impl std::fmt::Display) -> String {
    format!("the model's last matrix is in the format {kind}, which Logitscope cannot use on a GPU yet")
}
