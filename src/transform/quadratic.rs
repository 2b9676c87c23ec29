//! Bends the scores by a curve through the highest.

use crate::{
    config::Args,
    error::Result,
    logits::Logits,
    spec::{Build, Kind, Law, ParamSpec, StageSpec, non_negative, signed},
    step::StepContext,
    transform::{Outcome, Transform},
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "quadratic",
    label: "Quadratic smoothing",
    kind: Kind::Reshape,
    summary: "Replaces each score by a curve of its distance to the highest: near ones rise, far ones fall.",
    formula: "d = z - max; max - k*factor*d^2 + s*factor*d^3, k = (3 - curve)/2, s = (curve - 1)/2",
    source: "text-generation-webui, quadratic sampling (kalomaze)",
    params: &[
        ParamSpec {
            name: "factor",
            ty: non_negative(),
            default: Some("0"),
            neutral: Some("0"),
            slider: Some((0.0, 2.0, 0.01)),
            unit: "1/nat",
            help: "How strongly scores fall with the squared distance; 0 leaves them as they are.",
        },
        ParamSpec {
            name: "curve",
            ty: signed(),
            default: Some("1"),
            neutral: None,
            slider: Some((1.0, 3.0, 0.05)),
            unit: "",
            help: "1 is a parabola; up to 3 a cubic takes over, which falls faster far out.",
        },
    ],
    laws: &[Law::NeutralIsIdentity, Law::KeepsArgmax, Law::OrderPreserving],
    build: Build::Transform(|args| Ok(Box::new(Quadratic::from_args(args)?))),
};

/// Replaces z by `max - k·factor·d² + s·factor·d³`, with `d = z - max`.
///
/// - **Shape** `[V]` → `[V]`. Computed in f64 in this order and rounded to f32 once.
/// - **Units** `factor` from 0; `0` means off, as in text-generation-webui, though the formula
///   would make all scores equal. `curve` any number; outside 1..=3 the curve turns upwards
///   somewhere, and the order of tokens may change.
/// - **Edges** a token whose score falls below the smallest f32 is removed; one that rises
///   above the largest is an error.
/// - **Variants** koboldcpp 1.76 has no cubic part, which is `curve=1`.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, TokenId};
///
/// let mut logits = Logits::new(&[5.0, 4.0, 1.0])?;
/// Pipeline::parse("quadratic(factor=0.3)")?.reshape(&mut logits, &Default::default())?;
/// let scores: Vec<String> =
///     (0..3).filter_map(|id| logits.score(TokenId(id))).map(|z| format!("{z:.3}")).collect();
/// assert_eq!(scores, ["5.000", "4.700", "0.200"]);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Quadratic {
    factor: f64,
    curve: f64,
}

impl Quadratic {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self { factor: args.number("factor")?, curve: args.number("curve")? })
    }
}

impl Transform for Quadratic {
    fn apply(&self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        if self.factor == 0.0 {
            return Ok(Outcome::default());
        }
        logits.materialise()?;
        let highest = logits.highest()?;
        let max = logits.score(highest).unwrap_or_default();
        let square = self.factor * (3.0 - self.curve) / 2.0;
        let cube = self.factor * (self.curve - 1.0) / 2.0;
        logits.rewrite(|_, score| {
            let d = f64::from(score) - max;
            // A part with factor 0 must not meet an infinite power.
            let part = |factor: f64, power: f64| if factor == 0.0 { 0.0 } else { factor * power };
            #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
            let bent = (max - part(square, d * d) + part(cube, d * d * d)) as f32;
            (bent != f32::NEG_INFINITY).then_some(bent)
        })?;
        Ok(Outcome::default())
    }
}
