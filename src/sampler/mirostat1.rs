//! Keeps the surprise near a target by choosing k from a fitted Zipf law.

use serde_json::{Map, Value};

use crate::{
    TokenId,
    config::Args,
    error::Result,
    logits::{Logits, Standing},
    sampler::{
        Sampler,
        categorical::SEED,
        mirostat::{Bound, ETA, TAU},
    },
    spec::{Build, Kind, ParamSpec, StageSpec, whole},
    step::StepContext,
    transform::{Facts, Outcome, Verdict},
    weights,
};

/// Declares the sampler.
pub const SPEC: StageSpec = StageSpec {
    id: "mirostat1",
    label: "Mirostat",
    kind: Kind::Sampler,
    summary: "Chooses k so that the surprise of the tokens drawn stays near a target.",
    formula: "s from the m likeliest; k = ((s - 1) * 2^mu / (1 - V^(1 - s)))^(1/s); mu -= eta * (surprise - tau)",
    source: "Basu et al. 2020, https://arxiv.org/abs/2007.14966",
    params: &[
        TAU,
        ETA,
        ParamSpec {
            name: "m",
            ty: whole(2),
            default: Some("100"),
            neutral: None,
            slider: Some((2.0, 500.0, 1.0)),
            unit: "tokens",
            help: "How many of the likeliest tokens the Zipf law is fitted to.",
        },
        SEED,
    ],
    laws: &[],
    build: Build::Sampler(|args| Ok(Box::new(Mirostat1::from_args(args)?))),
};

/// Fits a Zipf exponent to the `m` likeliest tokens, keeps the k tokens that would give a
/// surprise of `mu`, draws, and moves `mu` by the error.
///
/// - **State** `mu` in bits, at first `2·tau`.
/// - **Edges** `k` is clamped to `1..=V`: llama.cpp casts it to an int without a bound, and
///   keeps one token when it overflows. A fit that has no value, of a single token or a flat
///   row, keeps all.
/// - **Source** Basu et al. 2020, "Mirostat", <https://arxiv.org/abs/2007.14966>.
///
/// # Examples
/// ```
/// use logitscope::Pipeline;
///
/// let pipeline = Pipeline::parse("mirostat1(tau=3, eta=0.1, seed=7)")?;
/// let mut sampler = pipeline.sampler();
/// assert_eq!(sampler.state()["mu"], 6.0);
/// sampler.accept(logitscope::TokenId(0), 0.25); // two bits: less surprising than wanted
/// assert_eq!(sampler.state()["mu"], 6.1);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Mirostat1 {
    bound: Bound,
    m: usize,
}

impl Mirostat1 {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self { bound: Bound::from_args(args)?, m: args.count("m")? })
    }

    /// How many tokens to keep of `candidates`, whose nearest ones are this far below the
    /// highest; `vocabulary` is V.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before the cast")]
    fn k(&self, distances: &[u64], vocabulary: usize, candidates: usize) -> usize {
        let (mut products, mut squares) = (0.0, 0.0);
        for (place, pair) in distances.windows(2).enumerate() {
            let t = libm::log((place as f64 + 2.0) / (place as f64 + 1.0));
            products += t * weights::nats_of_distance(pair[1] - pair[0]);
            squares += t * t;
        }
        let exponent = products / squares;
        let excess = exponent - 1.0;
        let vocabulary = vocabulary as f64;
        // excess / (1 - V^-excess) tends to 1 / ln V.
        let factor = if excess.abs() < 1e-9 {
            1.0 / libm::log(vocabulary)
        } else {
            excess / (1.0 - libm::pow(vocabulary, -excess))
        };
        let k = libm::pow(factor * libm::exp2(self.bound.mu), 1.0 / exponent);
        if k.is_nan() { candidates } else { k.clamp(1.0, candidates as f64) as usize }
    }
}

impl Sampler for Mirostat1 {
    fn prepare(&mut self, logits: &mut Logits, _: &StepContext) -> Result<Outcome> {
        let pool = logits.cut_at_count(self.m)?;
        let mut distances = Vec::with_capacity(pool.count);
        for token in logits.first(&pool)? {
            distances.push(logits.distance(token)?);
        }
        let k = self.k(&distances, logits.len(), logits.alive().count());
        let cut = logits.cut_at_count(k)?;
        logits.keep_through(&cut);
        Ok(Outcome { cut: Some(cut), limit: Some(k as f64) })
    }

    fn accept(&mut self, _: TokenId, probability: f64) {
        self.bound.learn(probability);
    }

    fn state(&self) -> Map<String, Value> {
        self.bound.state()
    }

    fn set_state(&mut self, state: &Map<String, Value>) -> Result<()> {
        self.bound.set_state(state)
    }

    fn verdict(&self, _: &Facts, standing: &Standing, outcome: &Outcome) -> Option<Verdict> {
        Some(Verdict::at_most("its rank was", standing.rank as f64 + 1.0, outcome.limit?, ("≤", ">")))
    }

    fn fork(&self) -> Box<dyn Sampler> {
        Box::new(*self)
    }
}
