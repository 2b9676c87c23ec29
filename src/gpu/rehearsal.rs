//! A device that fails, rehearsed: the same generation undisturbed, and disturbed at every moment.
//!
//! The rows are made up from the position, so a token that differs shows at once in what
//! follows it.

use std::{fmt, sync::Arc};

use crate::{
    Pipeline, StepContext, TokenId,
    error::Result,
    gpu::{
        device::{Clock, Disturbance, PATIENCE_MS},
        engine::{Choice, Engine, Job, Policy},
    },
    model::row::Row,
    random::Randomness,
    sampler::Pick,
    testing,
};

/// The usual stages, penalties included, so that every token depends on those before it.
pub(crate) const PIPELINE: &str = "repetition_penalty(r=1.2) | presence_penalty(s=0.3) | temperature(t=0.8) | \
                                   top_k(k=40) | top_p(p=0.9) | min_p(m=0.02) | categorical(seed=11)";
const VOCABULARY: usize = 8_192;
const STEPS: u32 = 4;
/// The step that is disturbed.
const AT: u32 = 1;

/// What came of one disturbance.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Rehearsed {
    /// When the device failed.
    pub moment: Disturbance,
    /// Whether every token was that of the undisturbed generation.
    pub same: bool,
    /// Whether the failure was told.
    pub told: bool,
    /// How long the disturbed step took, in milliseconds.
    pub milliseconds: f64,
}

impl Rehearsed {
    /// Whether the generation went on, with the same tokens, within two seconds.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.same && self.told && self.milliseconds < 2_000.0
    }
}

impl fmt::Display for Rehearsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let same = if self.same { "the same tokens" } else { "OTHER TOKENS" };
        let told = if self.told { "told" } else { "NOT TOLD" };
        write!(f, "device lost {}: {same}, {told}, in {:.0} ms", self.moment, self.milliseconds)
    }
}

/// Decodes some tokens, a device failing at one of them; and the time that this step took.
pub(crate) async fn generate(
    engine: &mut Engine,
    vocabulary: usize,
    steps: u32,
    disturbed: Option<(u32, Disturbance)>,
    clock: &dyn Clock,
) -> Result<(Vec<TokenId>, f64)> {
    let pipeline = Pipeline::parse(PIPELINE)?;
    let mut history = vec![TokenId(1), TokenId(5)];
    let mut sampler = pipeline.sampler();
    let mut time = 0.0;
    for position in 0..steps {
        let disturbance = disturbed.filter(|(at, _)| *at == position);
        if let Some((_, disturbance)) = disturbance {
            engine.disturb(disturbance);
        }
        let row = Row::known(testing::DISTRIBUTIONS[0].1(vocabulary, u64::from(position) + 3));
        let context = StepContext::new(&history, 2, Randomness { seed: 11, sample: 0, position });
        let job = Job { row: &row, pipeline: &pipeline, context, sampler: &mut *sampler, pick: Pick::Seeded };
        let start = clock.now();
        let decoded = engine.decode(&mut [job], false).await;
        if disturbance.is_some() {
            time = clock.now() - start;
        }
        for decoded in decoded {
            history.push(decoded?.draw.token);
        }
    }
    Ok((history, time))
}

/// Loses a device at every moment, each time a fresh one.
///
/// # Errors
/// `gpu_required` where there is no device to lose.
pub async fn run(clock: &Arc<dyn Clock>) -> Result<Vec<Rehearsed>> {
    let mut cpu = Engine::new(Policy::Off, Arc::clone(clock)).await?;
    let (wanted, _) = generate(&mut cpu, VOCABULARY, STEPS, None, &**clock).await?;
    let mut all = Vec::new();
    for moment in Disturbance::ALL {
        let mut engine = Engine::unmeasured(Policy::Require, Arc::clone(clock)).await?;
        engine.set_choice(Choice::Device);
        if let Some(device) = engine.device_mut() {
            // A loss must be noticed, not waited for.
            device.patience = 60 * PATIENCE_MS;
        }
        engine.take_events();
        let disturbed = Some((AT, moment));
        let (tokens, milliseconds) = generate(&mut engine, VOCABULARY, STEPS, disturbed, &**clock).await?;
        let told = engine.take_events().iter().any(|event| event.contains("the CPU goes on"));
        all.push(Rehearsed { moment, same: tokens == wanted, told, milliseconds });
    }
    Ok(all)
}
