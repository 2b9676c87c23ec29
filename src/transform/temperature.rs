//! Makes the distribution sharper or flatter.

use crate::{
    config::Args,
    error::Result,
    logits::Logits,
    spec::{Build, Kind, Law, ParamSpec, StageSpec, positive},
    step::StepContext,
    transform::{Outcome, Transform, kernel::Kernel},
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "temperature",
    label: "Temperature",
    kind: Kind::Reshape,
    summary: "Divides every score: below 1 the distribution sharpens, above 1 it flattens.",
    formula: "z / t",
    source: "Ackley, Hinton and Sejnowski 1985, https://doi.org/10.1207/s15516709cog0901_7",
    params: &[ParamSpec {
        name: "t",
        ty: positive(),
        default: Some("1"),
        neutral: Some("1"),
        slider: Some((0.05, 3.0, 0.01)),
        unit: "",
        help: "What scores are divided by. 0 is written greedy(): no division can express it.",
    }],
    laws: &[Law::NeutralIsIdentity, Law::OrderPreserving, Law::KeepsArgmax, Law::ShiftInvariant],
    build: Build::Transform(|args| Ok(Box::new(Temperature::from_args(args)?))),
};

/// Divides every score by `t`.
///
/// The scores are not rewritten: the row carries the product of its temperatures, and the
/// division happens inside the integer distance, after the maximum has been subtracted.
///
/// - **Shape** `[V]` → `[V]`; the order of tokens is unchanged.
/// - **Units** dimensionless, any finite number above 0; `1` changes nothing.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, TokenId};
///
/// let mut logits = Logits::new(&[2.0, 1.0, 0.0])?;
/// Pipeline::parse("temperature(t=0.5)")?.reshape(&mut logits, &Default::default())?;
/// let rounded: Vec<String> = logits.probabilities()?.iter().map(|p| format!("{p:.3}")).collect();
/// assert_eq!(rounded, ["0.867", "0.117", "0.016"]);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Temperature {
    t: f64,
}

impl Temperature {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self { t: args.number("t")? })
    }
}

impl Transform for Temperature {
    fn apply(&self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        logits.scale_temperature(self.t)?;
        Ok(Outcome::default())
    }

    fn kernel(&self, _: &StepContext) -> Result<Kernel> {
        Ok(Kernel::Temperature(self.t))
    }
}
