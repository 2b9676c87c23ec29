//! Favours tokens whose probability is near a target, and moves the target by what was drawn.

use serde_json::{Map, Value, json};

use crate::{
    TokenId,
    config::Args,
    error::{Error, ErrorCode, Result},
    logits::Logits,
    sampler::{Sampler, categorical::SEED},
    spec::{Build, Kind, ParamSpec, StageSpec, number},
    step::StepContext,
    transform::Outcome,
};

/// Declares the sampler.
pub const SPEC: StageSpec = StageSpec {
    id: "adaptive_p",
    label: "Adaptive-p",
    kind: Kind::Sampler,
    summary: "Favours tokens whose probability is near a target that corrects its past misses.",
    formula: "d = |p - t'| / 0.3; z = 5 - 10 * d^2 / (1 + d); t' = clamp(2 * target - average, 0, 1)",
    source: "MrJackSpade 2025, llama.cpp, adaptive-p",
    params: &[
        ParamSpec {
            name: "target",
            ty: number(0.0, 1.0),
            default: Some("0.5"),
            neutral: None,
            slider: Some((0.0, 1.0, 0.01)),
            unit: "probability",
            help: "The probability that drawn tokens should have on average.",
        },
        ParamSpec {
            name: "decay",
            ty: number(0.0, 1.0),
            default: Some("0.9"),
            neutral: None,
            slider: Some((0.0, 0.99, 0.01)),
            unit: "",
            help: "How slowly the average of past probabilities forgets; 1 never learns.",
        },
        SEED,
    ],
    laws: &[],
    build: Build::Sampler(|args| Ok(Box::new(AdaptiveP::from_args(args)?))),
};

/// The distance from the target at which the curve has lost its first part.
const WIDTH: f64 = 0.3;
/// The score at the target, and how steeply it falls.
const PEAK: f64 = 5.0;
const SHARPNESS: f64 = 10.0;

/// Replaces every score by a curve of its probability's distance to the target, draws, and
/// averages the probabilities that drawn tokens had before.
///
/// - **State** `average`: an exponential moving average, at first the target.
/// - **Units** `target` a probability. The curve has no scale of its own: whatever the
///   temperature was, it only enters through the probabilities.
/// - **Source** llama.cpp's adaptive-p, which has the same constants and start. A negative
///   target means plain sampling there; here that is `categorical()`.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, TokenId};
///
/// let mut sampler = Pipeline::parse("adaptive_p(target=0.3, seed=7)")?.sampler();
/// let mut logits = Logits::from_probabilities(&[0.5, 0.3, 0.2])?;
/// sampler.prepare(&mut logits, &Default::default())?;
/// let scores: Vec<String> =
///     (0..3).filter_map(|id| logits.score(TokenId(id))).map(|z| format!("{z:.4}")).collect();
/// assert_eq!(scores, ["2.3333", "5.0000", "4.1667"]);
/// sampler.accept(TokenId(0), 0.1); // its probability was 0.5 before the curve
/// assert_eq!(format!("{:.4}", sampler.state()["average"].as_f64().unwrap()), "0.3200");
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct AdaptiveP {
    target: f64,
    decay: f64,
    average: f64,
    /// Probabilities before the curve, by id.
    original: Vec<f64>,
}

impl AdaptiveP {
    fn from_args(args: &Args) -> Result<Self> {
        let target = args.number("target")?;
        Ok(Self { target, decay: args.number("decay")?, average: target, original: Vec::new() })
    }
}

impl Sampler for AdaptiveP {
    fn prepare(&mut self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        let aim = (2.0 * self.target - self.average).clamp(0.0, 1.0);
        // Divisions once a row, not once a token.
        let share = 1.0 / logits.mass()? as f64;
        let steepness = 1.0 / WIDTH;
        self.original.clear();
        self.original.resize(logits.len(), 0.0);
        let original = &mut self.original;
        logits.rescore(|token, weight| {
            let probability = weight as f64 * share;
            original[token.index()] = probability;
            let miss = (probability - aim).abs() * steepness;
            #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
            Some((PEAK - SHARPNESS * miss * miss / (1.0 + miss)) as f32)
        })?;
        logits.mass()?;
        Ok(Outcome { cut: None, limit: Some(aim) })
    }

    fn accept(&mut self, token: TokenId, _: f64) {
        let probability = self.original.get(token.index()).copied().unwrap_or(0.0);
        self.average = self.decay * self.average + (1.0 - self.decay) * probability;
    }

    fn state(&self) -> Map<String, Value> {
        Map::from_iter([("average".to_owned(), json!(self.average))])
    }

    fn set_state(&mut self, state: &Map<String, Value>) -> Result<()> {
        for (name, value) in state {
            if name != "average" {
                let message = format!("this sampler has no state `{name}`; it has average");
                return Err(Error::new(ErrorCode::BadInput, message).param(name));
            }
            self.average =
                value.as_f64().filter(|average| (0.0..=1.0).contains(average)).ok_or_else(|| {
                    let message = format!("average is {value}, but must be from 0 to 1");
                    Error::new(ErrorCode::BadInput, message).param(name)
                })?;
        }
        Ok(())
    }

    fn fork(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}
