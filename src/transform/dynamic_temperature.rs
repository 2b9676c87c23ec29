//! A temperature that follows the entropy of the row.

use crate::{
    config::Args,
    error::Result,
    logits::Logits,
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec, non_negative},
    step::StepContext,
    transform::{Outcome, Transform},
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "dynamic_temperature",
    label: "Dynamic temperature",
    kind: Kind::Reshape,
    summary: "Divides every score by a temperature that is higher the less certain the row is.",
    formula: "z / t, t = low + (high - low) * (H / ln n)^exponent",
    source: "llama.cpp, dynamic temperature (entropy)",
    params: &[
        ParamSpec {
            name: "low",
            ty: non_negative(),
            default: Some("1"),
            neutral: Some("1"),
            slider: Some((0.0, 2.0, 0.05)),
            unit: "",
            help: "The temperature of a row without doubt.",
        },
        ParamSpec {
            name: "high",
            ty: non_negative(),
            default: Some("1"),
            neutral: Some("1"),
            slider: Some((0.0, 3.0, 0.05)),
            unit: "",
            help: "The temperature of a row in which all tokens are equally likely.",
        },
        ParamSpec {
            name: "exponent",
            ty: non_negative(),
            default: Some("1"),
            neutral: None,
            slider: Some((0.1, 4.0, 0.1)),
            unit: "",
            help: "Bends the way between the two.",
        },
        ParamSpec {
            name: "entropy_over",
            ty: ParamType::Word { words: &["alive", "all"] },
            default: Some("alive"),
            neutral: None,
            slider: None,
            unit: "",
            help: "Whether the highest possible entropy counts live tokens, or the whole vocabulary.",
        },
    ],
    laws: &[Law::NeutralIsIdentity, Law::OrderPreserving, Law::KeepsArgmax, Law::ShiftInvariant],
    build: Build::Transform(|args| Ok(Box::new(DynamicTemperature::from_args(args)?))),
};

/// Divides every score by `low + (high - low) · (H / ln n)^exponent`.
///
/// The entropy comes from integer sums, the rest from `libm`, so every device computes the
/// same temperature.
///
/// - **Shape** `[V]` → `[V]`; the order of tokens is unchanged.
/// - **Units** temperatures dimensionless; `low` may lie above `high`.
/// - **Variants** `entropy_over=alive` takes n from the live tokens, as text-generation-webui
///   does; `all` from the vocabulary, as llama.cpp does when masked tokens are still in its
///   array.
/// - **Edges** a single live token is left as it is. A temperature of 0, possible only with
///   `low = 0` or `high = 0`, leaves the highest token and those tied with it.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline};
///
/// let mut logits = Logits::from_probabilities(&[0.5, 0.2, 0.15, 0.1, 0.05])?;
/// Pipeline::parse("dynamic_temperature(low=0.5, high=1.5)")?
///     .reshape(&mut logits, &Default::default())?;
/// assert!((logits.temperature() - 1.3283).abs() < 5e-5);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DynamicTemperature {
    low: f64,
    high: f64,
    exponent: f64,
    over_all: bool,
}

impl DynamicTemperature {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self {
            low: args.number("low")?,
            high: args.number("high")?,
            exponent: args.number("exponent")?,
            over_all: args.word("entropy_over")? == "all",
        })
    }
}

impl Transform for DynamicTemperature {
    fn apply(&self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        let candidates = if self.over_all { logits.len() } else { logits.alive().count() };
        if candidates <= 1 {
            return Ok(Outcome::default());
        }
        let certainty = logits.entropy()? / libm::log(candidates as f64);
        // The entropy is a quotient of rounded numbers: a flat row may exceed 1 in the last bit.
        let doubt = libm::pow(certainty.clamp(0.0, 1.0), self.exponent);
        let temperature = self.low + (self.high - self.low) * doubt;
        if temperature > 0.0 {
            logits.scale_temperature(temperature)?;
        } else {
            let cut = logits.cut_at_count(1)?;
            logits.keep_through_ties(&cut);
        }
        Ok(Outcome { cut: None, limit: Some(temperature) })
    }
}
