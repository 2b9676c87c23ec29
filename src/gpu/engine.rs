//! The door between a decode loop and a device: rows in, draws out, whoever computed them.
//!
//! [`Engine::decode`] answers as [`Pipeline::decode`] would, token for token. It asks the
//! device when there is one and the batch is worth it, and the CPU otherwise: for stages
//! without a kernel, for a row whose scores must be refused (the CPU words every refusal), and
//! for everything once a device has failed. A failure is reported and never repeated into the
//! result.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    Logits, Pipeline, StepContext, TokenId,
    error::{Error, ErrorCode, Result},
    gpu::{
        device::{Ask, Clock, Device, Disturbance, Failure, Rows},
        head::{DeviceHead, HeadTimes, most_bytes, obstacle},
        kernels::{HEAD, Shape},
        layout::{RowResult, SORTED},
        measure::{Measured, warm_up},
        program::{Placement, Program},
    },
    model::{LanguageModel, head::Head},
    random::Purpose,
    sampler::{Draw, Pick, Sampler},
    trace::Off,
};

/// Whether a device is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// If there is a real one; a software adapter is slower than the CPU it runs on.
    #[default]
    Try,
    /// Always, also a software one; not to have one is an error.
    Require,
    /// Never.
    Off,
}

impl Policy {
    /// Reads `require` or `off`; no value or an empty one is [`Try`](Self::Try).
    ///
    /// # Errors
    /// `bad_input` for any other word.
    ///
    /// # Examples
    /// ```
    /// use logitscope::gpu::Policy;
    ///
    /// assert_eq!(Policy::parse(Some("require"))?, Policy::Require);
    /// assert_eq!(Policy::parse(None)?, Policy::Try);
    /// assert!(Policy::parse(Some("yes")).is_err());
    /// # Ok::<(), logitscope::Error>(())
    /// ```
    pub fn parse(word: Option<&str>) -> Result<Self> {
        match word {
            None | Some("") => Ok(Self::Try),
            Some("require") => Ok(Self::Require),
            Some("off") => Ok(Self::Off),
            Some(other) => {
                let message =
                    format!("LOGITSCOPE_GPU is `{other}`, but must be `require`, `off`, or not set");
                Err(Error::new(ErrorCode::BadInput, message))
            }
        }
    }

    /// What the environment variable `LOGITSCOPE_GPU` says.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn from_environment() -> Result<Self> {
        Self::parse(std::env::var("LOGITSCOPE_GPU").ok().as_deref())
    }
}

/// Who computes, when both could.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// Whichever the start-up measurement found faster for the batch.
    #[default]
    Measured,
    /// The CPU.
    Cpu,
    /// The device.
    Device,
}

/// One row to decode.
#[derive(Debug)]
pub struct Job<'a> {
    /// The scores.
    pub row: &'a [f32],
    /// What is done with them.
    pub pipeline: &'a Pipeline,
    /// The surroundings.
    pub context: StepContext<'a>,
    /// The sampler in its present state.
    pub sampler: &'a mut dyn Sampler,
    /// How the token is chosen.
    pub pick: Pick,
}

/// What came of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The token and its interval.
    pub draw: Draw,
    /// Whether the device computed it.
    pub on_device: bool,
}

/// What the last matrix is called beside the stages.
const HEAD_STAGE: &str = "logits";

/// Devices that may be lost before the CPU does everything.
const LOSSES: u32 = 3;

/// A device ready for launches, and what was measured on it.
type Opened = (Device, Option<Measured>);
/// Where a task beside the engine leaves what it has opened.
type Coming = Arc<Mutex<Option<Result<Opened, Failure>>>>;

/// Decodes rows on a device or on the CPU.
pub struct Engine {
    policy: Policy,
    choice: Choice,
    ask: Ask,
    clock: Arc<dyn Clock>,
    device: Option<Device>,
    measures: bool,
    measured: Option<Measured>,
    head: Option<HeadPlace>,
    /// What the last matrix of a model, by its hash, took on a device since lost.
    head_known: Option<(u64, HeadTimes)>,
    why_cpu: Option<String>,
    losses: u32,
    /// When a lost device is asked for again.
    again_at: f64,
    /// Another device, while it is being opened.
    coming: Option<Coming>,
    events: Vec<String>,
    scratch: Logits,
}

/// Where a model's last matrix is, once that was looked at.
#[derive(Debug)]
struct HeadPlace {
    /// The model's hash.
    model: u64,
    /// The matrix on the device, or why it is not there.
    place: Result<DeviceHead, String>,
    times: Option<HeadTimes>,
}

/// What came of a hidden state.
#[derive(Debug, Clone, PartialEq)]
pub struct Continued {
    /// The token and its interval.
    pub decoded: Decoded,
    /// The logits `[V]`: always if they were asked for, and whenever the CPU needed them.
    pub logits: Option<Vec<f32>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("policy", &self.policy)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Looks for a device as the policy says, and measures it.
    ///
    /// # Errors
    /// `gpu_required` when there must be one and there is none.
    pub async fn new(policy: Policy, clock: Arc<dyn Clock>) -> Result<Self> {
        Self::asking(Ask::default(), policy, clock).await
    }

    /// As [`new`](Self::new), without the measurement: whoever opens it chooses.
    pub(crate) async fn unmeasured(policy: Policy, clock: Arc<dyn Clock>) -> Result<Self> {
        Self::opened(Self { measures: false, ..Self::closed(Ask::default(), policy, clock) }).await
    }

    async fn asking(ask: Ask, policy: Policy, clock: Arc<dyn Clock>) -> Result<Self> {
        Self::opened(Self::closed(ask, policy, clock)).await
    }

    /// An engine that has not looked for a device.
    fn closed(ask: Ask, policy: Policy, clock: Arc<dyn Clock>) -> Self {
        Self {
            policy,
            ask,
            choice: Choice::Measured,
            clock,
            device: None,
            measures: true,
            measured: None,
            head: None,
            head_known: None,
            why_cpu: None,
            losses: 0,
            again_at: 0.0,
            coming: None,
            events: Vec::new(),
            scratch: Logits::unfilled(),
        }
    }

    async fn opened(mut engine: Self) -> Result<Self> {
        let policy = engine.policy;
        if policy == Policy::Off {
            engine.why_cpu = Some("the device is switched off".to_owned());
            return Ok(engine);
        }
        let opened = open(engine.ask.clone(), policy, Arc::clone(&engine.clock), engine.measures, None).await;
        engine.settle(opened);
        if policy == Policy::Require && engine.device.is_none() {
            let why = engine.why_cpu.unwrap_or_default();
            return Err(Error::new(ErrorCode::GpuRequired, format!("a GPU is required, but {why}")));
        }
        Ok(engine)
    }

    /// Goes on with what a platform has given.
    fn settle(&mut self, opened: Result<Opened, Failure>) {
        match opened {
            Ok((device, measured)) => {
                if let Some(measured) = &measured {
                    self.events.push(format!("{}: {measured}", device.adapter()));
                }
                if measured != self.measured {
                    self.head_known = None;
                }
                self.measured = measured;
                self.why_cpu = None;
                self.device = Some(device);
            }
            Err(failure) if matches!(failure, Failure::Lost(_) | Failure::Late | Failure::OutOfMemory) => {
                self.lose(&failure);
            }
            Err(failure) => {
                self.why_cpu = Some(failure.to_string());
                self.events.push(format!("the CPU decodes: {failure}"));
                self.losses = LOSSES;
            }
        }
    }

    /// Asks for another device some time after one was lost. Until it is ready for launches the
    /// CPU decodes: nobody waits for it.
    fn recover(&mut self) {
        let due = self.device.is_none() && (1..LOSSES).contains(&self.losses);
        if due && self.coming.is_none() && self.clock.now() >= self.again_at {
            let (ask, clock, known) = (self.ask.clone(), Arc::clone(&self.clock), self.measured.clone());
            let opening = open(ask, self.policy, clock, self.measures, known);
            let coming = Coming::default();
            self.coming = Some(Arc::clone(&coming));
            self.clock.spawn(Box::pin(async move {
                let opened = opening.await;
                *coming.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
            }));
        }
        let arrived = |coming: &Coming| coming.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(opened) = self.coming.as_ref().and_then(arrived) {
            self.coming = None;
            self.settle(opened);
        }
    }

    fn lose(&mut self, failure: &Failure) {
        self.device = None;
        if let Some(HeadPlace { model, times: Some(times), .. }) = self.head.take() {
            self.head_known = Some((model, times));
        }
        self.losses += 1;
        self.again_at = self.clock.now() + 500.0 * f64::from(1 << self.losses.min(8));
        self.why_cpu = Some(failure.to_string());
        let rest = if self.losses >= LOSSES { " for the rest of the session" } else { "" };
        self.events.push(format!("{failure}; the CPU goes on{rest}"));
    }

    /// The device, if there is one.
    #[must_use]
    pub fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    /// The device, to destroy it or to cut its work otherwise.
    pub fn device_mut(&mut self) -> Option<&mut Device> {
        self.device.as_mut()
    }

    /// What the start-up measurement found.
    #[must_use]
    pub fn measured(&self) -> Option<&Measured> {
        self.measured.as_ref()
    }

    /// Why the CPU decodes, if there is no device.
    #[must_use]
    pub fn why_cpu(&self) -> Option<&str> {
        self.why_cpu.as_deref()
    }

    /// What has happened since this was last asked.
    pub fn take_events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events)
    }

    /// Overrides what was measured.
    pub fn set_choice(&mut self, choice: Choice) {
        self.choice = choice;
        // Whether the last matrix belongs on the device depends on it, too.
        self.head = None;
    }

    /// Cuts the work otherwise than the measurement chose.
    pub fn set_shape(&mut self, shape: Shape) {
        if let Some(device) = &mut self.device {
            device.set_shape(shape);
        }
    }

    /// Destroys the device at a moment of the next launch, for a test.
    pub fn disturb(&mut self, disturbance: Disturbance) {
        if let Some(device) = &mut self.device {
            device.disturbance = Some(disturbance);
        }
    }

    /// Whether a batch goes to the device.
    #[must_use]
    pub fn chooses_device(&self, rows: usize, vocabulary: usize) -> bool {
        match self.choice {
            Choice::Cpu => false,
            Choice::Device => true,
            Choice::Measured if self.policy == Policy::Require => true,
            Choice::Measured => {
                self.measured.as_ref().is_some_and(|measured| measured.prefers_device(rows, vocabulary))
            }
        }
    }

    /// Where each stage of a pipeline would run at a step, and why.
    ///
    /// # Errors
    /// What a stage refuses.
    pub fn plan(
        &self,
        pipeline: &Pipeline,
        context: &StepContext,
        rows: usize,
        vocabulary: usize,
    ) -> Result<Vec<Placement>> {
        let mut placements =
            Program::of(pipeline, context, u32::try_from(vocabulary).unwrap_or(u32::MAX), 0)?.placements;
        let whole = placements.iter().all(|placement| placement.device);
        let reason = if self.device.is_none() {
            self.why_cpu.clone().unwrap_or_default()
        } else if !self.takes_head() && !self.chooses_device(rows, vocabulary) {
            let batch = if rows == 1 { "one row".to_owned() } else { format!("{rows} rows") };
            format!("{batch} of {vocabulary} tokens: the CPU was measured to be faster")
        } else if !whole {
            // A cut that only the CPU can go on from saves nothing: it would weigh the row again.
            "a later stage needs the row on the CPU".to_owned()
        } else {
            return Ok(placements);
        };
        for placement in placements.iter_mut().filter(|placement| placement.device) {
            placement.device = false;
            placement.why.clone_from(&reason);
        }
        Ok(placements)
    }

    /// Decodes some rows of one vocabulary, in one launch where possible.
    ///
    /// # Errors
    /// As [`Pipeline::decode`]: of the first row that is refused.
    pub async fn decode(&mut self, jobs: &mut [Job<'_>]) -> Result<Vec<Decoded>> {
        self.recover();
        let mut draws: Vec<Option<Draw>> = vec![None; jobs.len()];
        let vocabulary = jobs.first().map_or(0, |job| job.row.len());
        let most = self.device.as_ref().map_or(0, |device| device.most_rows(vocabulary));
        if most > 0 && self.chooses_device(jobs.len(), vocabulary) {
            let programs = programs(jobs, vocabulary);
            for batch in programs.chunks(most) {
                match self.launch(jobs, batch, vocabulary).await {
                    Ok(found) => {
                        for (index, draw) in found {
                            draws[index] = draw;
                        }
                    }
                    Err(failure) => {
                        self.lose(&failure);
                        break;
                    }
                }
            }
        }
        let mut decoded = Vec::with_capacity(jobs.len());
        for (job, draw) in jobs.iter_mut().zip(draws) {
            let on_device = draw.is_some();
            let draw = if let Some(draw) = draw {
                draw
            } else {
                let Job { row, pipeline, context, sampler, pick } = job;
                pipeline.decode(row, &mut self.scratch, context, *sampler, *pick, &mut Off)?
            };
            decoded.push(Decoded { draw, on_device });
        }
        Ok(decoded)
    }

    /// Brings a model's last matrix to the device if it can be there, and measures it; a matrix
    /// that is there stays until another model's is looked at.
    pub async fn look_at_head(&mut self, model: &dyn LanguageModel) {
        let hash = model.hash();
        if self.head.as_ref().is_some_and(|head| head.model == hash) {
            return;
        }
        self.head = None;
        let Some(device) = &mut self.device else { return };
        // A device that replaces a lost one is of the same adapter, or was measured anew.
        let mut times = self.head_known.filter(|(known, _)| *known == hash).map(|(_, times)| times);
        let measures = self.measures && times.is_none();
        let place = match model.head() {
            _ if self.choice == Choice::Cpu => Err("the CPU was chosen".to_owned()),
            None => Err("the model has no last matrix".to_owned()),
            Some(head) => match put_head(device, &head, measures.then_some(&mut times)).await {
                Err(failure @ (Failure::Lost(_) | Failure::Late)) => return self.lose(&failure),
                Err(failure) => Err(failure.to_string()),
                Ok(place) => place,
            },
        };
        let slower = times.is_some_and(|times| times.device_ms >= times.cpu_ms);
        let choice_is_free = self.choice == Choice::Measured && self.policy != Policy::Require;
        let place = if slower && choice_is_free {
            Err("the CPU was measured to be faster".to_owned())
        } else {
            place
        };
        self.events.extend(times.map(|times| format!("the last matrix: {times}")));
        self.head = Some(HeadPlace { model: hash, place, times });
    }

    /// What the start-up measurement of the present model's last matrix found.
    #[must_use]
    pub fn head_times(&self) -> Option<HeadTimes> {
        self.head.as_ref().and_then(|head| head.times)
    }

    /// Whether the last matrix that was looked at is multiplied on the device.
    fn takes_head(&self) -> bool {
        self.place_of_head().device
    }

    /// Where the last matrix that was looked at is multiplied, and why not on the device.
    #[must_use]
    pub fn place_of_head(&self) -> Placement {
        let why = match &self.head {
            Some(HeadPlace { place: Ok(_), .. }) => String::new(),
            Some(HeadPlace { place: Err(why), .. }) => why.clone(),
            None => self.why_cpu.clone().unwrap_or_else(|| "it was not looked at yet".to_owned()),
        };
        Placement { stage: HEAD_STAGE, device: why.is_empty(), why }
    }

    /// The logits `[V]` of a hidden state, by whoever is faster.
    pub async fn logits(&mut self, model: &dyn LanguageModel, hidden: &[f32]) -> Vec<f32> {
        self.recover();
        self.look_at_head(model).await;
        if let (Some(device), Some(HeadPlace { place: Ok(there), .. }), Some(head)) =
            (&self.device, &self.head, model.head())
        {
            match there.logits_of(device, &head, hidden).await {
                Ok(logits) => return logits,
                Err(failure) => self.lose(&failure),
            }
        }
        model.logits(hidden)
    }

    /// Decodes after a hidden state, which is what [`LanguageModel::head`] multiplies: the
    /// token that [`decode`](Self::decode) gives for its logits. `job.row` is not read.
    ///
    /// Where the device multiplies, its logits are used in place, and come back only if they
    /// are asked for by `keep` or the CPU has to decode them.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub async fn decode_hidden(
        &mut self,
        model: &dyn LanguageModel,
        hidden: &[f32],
        job: Job<'_>,
        keep: bool,
    ) -> Result<Continued> {
        self.recover();
        self.look_at_head(model).await;
        let (mut draw, mut logits) = (None, None);
        if self.takes_head() {
            match self.launch_hidden(model, hidden, &job, keep).await {
                Ok(found) => (draw, logits) = found,
                Err(failure) => self.lose(&failure),
            }
        }
        let decoded = if let Some(draw) = draw {
            Decoded { draw, on_device: true }
        } else {
            let row = logits.get_or_insert_with(|| model.logits(hidden));
            let Job { pipeline, context, sampler, pick, .. } = job;
            self.decode(&mut [Job { row, pipeline, context, sampler, pick }]).await?.remove(0)
        };
        if keep {
            logits.get_or_insert_with(|| model.logits(hidden));
        }
        Ok(Continued { decoded, logits })
    }

    /// What the device drew, and the logits where they are needed.
    async fn launch_hidden(
        &mut self,
        model: &dyn LanguageModel,
        hidden: &[f32],
        job: &Job<'_>,
        keep: bool,
    ) -> Result<(Option<Draw>, Option<Vec<f32>>), Failure> {
        let (Some(device), Some(HeadPlace { place: Ok(there), .. }), Some(head)) =
            (&mut self.device, &self.head, model.head())
        else {
            return Ok((None, None));
        };
        let program = program(job, there.rows());
        let keep = keep || program.is_none();
        there.multiply(device, &[head.input(hidden)], keep)?;
        let draw = match program {
            Some((u, program)) => {
                let vocabulary = u32::try_from(there.rows()).unwrap_or(u32::MAX);
                let rows = Rows::Device(there.logits());
                let results = device.launch(rows, vocabulary, &[program], SORTED).await?;
                results.first().and_then(|result| draw_of(result, u))
            }
            None => None,
        };
        let logits = if keep { Some(there.read(device, 1).await?) } else { None };
        Ok((draw, logits))
    }

    async fn launch(
        &mut self,
        jobs: &[Job<'_>],
        batch: &[(usize, u64, Program)],
        vocabulary: usize,
    ) -> Result<Vec<(usize, Option<Draw>)>, Failure> {
        let Some(device) = &mut self.device else { return Ok(Vec::new()) };
        let rows: Vec<&[f32]> = batch.iter().map(|(index, ..)| jobs[*index].row).collect();
        let programs: Vec<Program> = batch.iter().map(|(.., program)| program.clone()).collect();
        let vocabulary = u32::try_from(vocabulary).unwrap_or(u32::MAX);
        let results = device.launch(Rows::Host(&rows), vocabulary, &programs, SORTED).await?;
        Ok(batch.iter().zip(&results).map(|((index, u, _), result)| (*index, draw_of(result, *u))).collect())
    }
}

/// Acquires a device and compiles its kernels; measures it unless that is known of its adapter.
async fn open(
    ask: Ask,
    policy: Policy,
    clock: Arc<dyn Clock>,
    measures: bool,
    known: Option<Measured>,
) -> Result<Opened, Failure> {
    let mut device = Device::acquire_as(&ask, clock).await?;
    if device.adapter().software && policy == Policy::Try {
        return Err(Failure::Software(device.adapter().to_string()));
    }
    let known = known.filter(|known| known.adapter == *device.adapter());
    if measures && known.is_none() {
        let measured = Measured::of(&mut device).await?;
        return Ok((device, Some(measured)));
    }
    if let Some(measured) = &known {
        device.set_shape(measured.shape);
    }
    device.kernel(&HEAD);
    warm_up(&mut device).await?;
    Ok((device, known))
}

/// The jobs that the device can do whole, with their draws.
fn programs(jobs: &[Job<'_>], vocabulary: usize) -> Vec<(usize, u64, Program)> {
    let of_one_width = jobs.iter().enumerate().filter(|(_, job)| job.row.len() == vocabulary);
    of_one_width
        .filter_map(|(index, job)| program(job, vocabulary).map(|(u, program)| (index, u, program)))
        .collect()
}

/// Uploads a last matrix and measures it if times are wanted, or says why it stays on the CPU.
async fn put_head(
    device: &mut Device,
    head: &Head<'_>,
    times: Option<&mut Option<HeadTimes>>,
) -> Result<Result<DeviceHead, String>, Failure> {
    if let Some(why) = obstacle(head) {
        return Ok(Err(why));
    }
    let kernel = device.kernel(&HEAD);
    let there = DeviceHead::upload(device, head, 1, most_bytes(device), kernel).await?;
    if let Some(times) = times {
        *times = HeadTimes::of(device, head, &there).await?;
        if times.is_none() {
            return Ok(Err("this GPU's logits are not bit for bit the CPU's".to_owned()));
        }
    }
    Ok(Ok(there))
}

/// A job's draw and program, if the device can do it whole.
fn program(job: &Job<'_>, vocabulary: usize) -> Option<(u64, Program)> {
    let u = match job.pick {
        Pick::Uniform(u) => u,
        Pick::Seeded => job.context.draw(Purpose::Token),
        Pick::Forced(_) => return None,
    };
    // What a stage refuses, the CPU words.
    let width = u32::try_from(vocabulary).unwrap_or(u32::MAX);
    let program = Program::of(job.pipeline, &job.context, width, u).ok()?;
    program.complete.then_some((u, program))
}

/// What the device drew; `None` if the row must be refused.
fn draw_of(result: &RowResult, u: u64) -> Option<Draw> {
    let wide = |halves: [u32; 2]| u64::from(halves[0]) | u64::from(halves[1]) << 32;
    (result.flags == 0).then(|| Draw {
        token: TokenId(result.token),
        u,
        low: wide(result.low),
        high: wide(result.high),
        total: wide(result.total),
    })
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::{
        gpu::{
            SystemClock, block_on,
            head::same,
            rehearsal::{self, PIPELINE},
        },
        model::{self, Precision},
        random::Randomness,
        testing,
    };

    fn clock() -> Arc<dyn Clock> {
        Arc::new(SystemClock::default())
    }

    /// An engine with a device, or the reason why this machine has none.
    ///
    /// With `LOGITSCOPE_GPU=require` there must be one; otherwise a test without is no test.
    fn engine() -> Option<Engine> {
        match block_on(Engine::new(Policy::Require, clock())) {
            Ok(engine) => Some(engine),
            Err(error) => {
                assert_ne!(Policy::from_environment(), Ok(Policy::Require), "{error}");
                None
            }
        }
    }

    /// Tokens of the rehearsal's made-up model.
    fn generate(
        engine: &mut Engine,
        vocabulary: usize,
        steps: u32,
        disturbed: Option<(u32, Disturbance)>,
    ) -> Vec<TokenId> {
        let clock = clock();
        block_on(rehearsal::generate(engine, vocabulary, steps, disturbed, &*clock)).expect("tokens").0
    }

    fn undisturbed(vocabulary: usize, steps: u32) -> Vec<TokenId> {
        let mut engine = block_on(Engine::new(Policy::Off, clock())).expect("no device is fine");
        generate(&mut engine, vocabulary, steps, None)
    }

    #[test]
    fn a_lost_device_changes_no_token() {
        let Some(mut warm) = engine() else { return };
        let wanted = undisturbed(8_192, 6);
        assert_eq!(generate(&mut warm, 8_192, 6, None), wanted);
        for outcome in block_on(rehearsal::run(&clock())).expect("there was a device") {
            assert!(outcome.passed(), "{outcome:?}");
        }
    }

    #[test]
    fn after_three_losses_the_cpu_does_everything() {
        let Some(mut engine) = engine() else { return };
        engine.losses = LOSSES - 1;
        let wanted = undisturbed(2_048, 4);
        assert_eq!(generate(&mut engine, 2_048, 4, Some((0, Disturbance::BeforeMap))), wanted);
        assert!(engine.device().is_none());
        assert!(engine.take_events().iter().any(|event| event.contains("for the rest of the session")));
    }

    #[test]
    fn a_lost_device_is_replaced_after_a_while() {
        let Some(mut engine) = engine() else { return };
        let wanted = undisturbed(2_048, 4);
        assert_eq!(generate(&mut engine, 2_048, 4, Some((0, Disturbance::BeforeSubmit))), wanted);
        assert!(engine.device().is_none());
        engine.again_at = 0.0;
        assert_eq!(generate(&mut engine, 2_048, 4, None), wanted);
        assert!(engine.device().is_some(), "{:?}", engine.why_cpu());
        assert_eq!(engine.why_cpu(), None);
    }

    #[test]
    fn without_an_adapter_the_cpu_decodes_and_says_why() {
        let none = Ask { backends: wgpu::Backends::empty(), ..Ask::default() };
        let mut engine = block_on(Engine::asking(none.clone(), Policy::Try, clock())).expect("the CPU");
        assert_eq!(generate(&mut engine, 2_048, 4, None), undisturbed(2_048, 4));
        assert!(engine.why_cpu().is_some_and(|why| why.contains("no adapter")), "{:?}", engine.why_cpu());
        let refused =
            block_on(Engine::asking(none, Policy::Require, clock())).expect_err("there must be one");
        assert_eq!(refused.code, ErrorCode::GpuRequired);
    }

    #[test]
    fn an_adapter_below_the_limits_is_refused() {
        if engine().is_none() {
            return;
        }
        let limits =
            wgpu::Limits { max_compute_invocations_per_workgroup: 1 << 20, ..wgpu::Limits::default() };
        let ask = Ask { limits, ..Ask::default() };
        let mut engine = block_on(Engine::asking(ask, Policy::Try, clock())).expect("the CPU");
        assert_eq!(generate(&mut engine, 2_048, 4, None), undisturbed(2_048, 4));
        assert!(engine.why_cpu().is_some_and(|why| why.contains("limits")), "{:?}", engine.why_cpu());
    }

    #[test]
    fn the_usual_step_costs_what_is_promised() {
        let Some(mut engine) = engine() else { return };
        let vocabulary = 151_936;
        let pipeline = Pipeline::parse(PIPELINE).expect("a pipeline");
        let row = testing::DISTRIBUTIONS[0].1(vocabulary, 1);
        let history = [TokenId(1), TokenId(5)];
        let context = StepContext::new(&history, 2, Randomness::default());
        let decode = |engine: &mut Engine| {
            let mut sampler = pipeline.sampler();
            let job =
                Job { row: &row, pipeline: &pipeline, context, sampler: &mut *sampler, pick: Pick::Seeded };
            block_on(engine.decode(&mut [job])).expect("a token")[0].clone()
        };
        assert!(decode(&mut engine).on_device);
        let allocations = engine.device().expect("a device").allocations;
        assert!(decode(&mut engine).on_device);
        let device = engine.device().expect("a device");
        let cost = device.cost();
        assert_eq!(device.allocations, allocations, "a step allocated buffers");
        assert!(cost.dispatches <= 5, "{cost:?}");
        assert_eq!((cost.submissions, cost.maps), (1, 1), "{cost:?}");
        assert!(cost.read_back <= 2_560, "{cost:?}");
        assert!(cost.traffic <= 20 * vocabulary as u64, "{cost:?}");
        let placements = engine.plan(&pipeline, &context, 1, vocabulary).expect("a plan");
        assert!(placements.iter().all(|placement| placement.device), "{placements:?}");
    }

    #[test]
    fn a_refusal_is_the_cpus() {
        let Some(mut engine) = engine() else { return };
        let pipeline = Pipeline::parse("top_k(k=4) | categorical(seed=1)").expect("a pipeline");
        for (score, code) in [(f32::NAN, ErrorCode::NanLogit), (f32::INFINITY, ErrorCode::InfiniteLogit)] {
            let row = [0.5, score, 1.0, f32::NAN];
            let mut sampler = pipeline.sampler();
            let job = Job {
                row: &row,
                pipeline: &pipeline,
                context: StepContext::default(),
                sampler: &mut *sampler,
                pick: Pick::Seeded,
            };
            let error = block_on(engine.decode(&mut [job])).expect_err("a score that is no number");
            assert_eq!(error.code, code);
            assert!(error.message.contains("token 1"), "{}", error.message);
        }
    }

    #[test]
    fn scores_on_the_device_are_used_in_place() {
        let Some(mut engine) = engine() else { return };
        let pipeline = Pipeline::parse(PIPELINE).expect("a pipeline");
        let context = StepContext::default();
        let rows: Vec<Vec<f32>> = (0..3).map(|seed| testing::DISTRIBUTIONS[0].1(4_096, seed)).collect();
        let programs: Vec<Program> = (0..3u64)
            .map(|row| Program::of(&pipeline, &context, 4_096, row << 62).expect("a program"))
            .collect();
        let device = engine.device_mut().expect("a device");
        let slices: Vec<&[f32]> = rows.iter().map(|row| &row[..]).collect();
        let uploaded =
            block_on(device.launch(Rows::Host(&slices), 4_096, &programs, SORTED)).expect("results");
        let there = {
            let (gpu, queue) = device.raw();
            let buffer = gpu.create_buffer(&wgpu::BufferDescriptor {
                label: Some("a model's logits"),
                size: 3 * 4_096 * 4,
                usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&rows.concat()));
            buffer
        };
        let in_place =
            block_on(device.launch(Rows::Device(&there), 4_096, &programs, SORTED)).expect("results");
        assert_eq!(in_place, uploaded);
        assert!(device.cost().uploaded < 4_096, "{:?}", device.cost());
    }

    /// A hidden state and its logits.
    type State = (Vec<f32>, Vec<f32>);

    /// The model that ships, and some states of it.
    fn hidden_states(precision: Precision) -> (Arc<dyn LanguageModel>, Vec<State>) {
        let file: &[u8] = include_bytes!("../../models/default.gguf");
        let model = model::open(file, precision).expect("the model that ships");
        let prompt = model.tokenize("The dog ran to the house and sat down.", true, true).expect("tokens");
        let hidden = model.start().advance_hidden(&prompt, prompt.len()).expect("hidden states");
        let logits = model.start().advance(&prompt, prompt.len()).expect("logits");
        (model, hidden.into_iter().zip(logits).collect())
    }

    /// A step after a hidden state, and what the CPU draws from its logits.
    fn continued(
        engine: &mut Engine,
        model: &dyn LanguageModel,
        (hidden, logits): &State,
        pick: Pick,
        keep: bool,
    ) -> Continued {
        let pipeline = Pipeline::parse(PIPELINE).expect("a pipeline");
        let history = [TokenId(1), TokenId(5)];
        let context = StepContext::new(&history, 2, Randomness::default());
        let mut sampler = pipeline.sampler();
        let job = Job { row: &[], pipeline: &pipeline, context, sampler: &mut *sampler, pick };
        let found = block_on(engine.decode_hidden(model, hidden, job, keep)).expect("a token");
        let mut sampler = pipeline.sampler();
        let mut scratch = Logits::unfilled();
        let wanted = pipeline.decode(logits, &mut scratch, &context, &mut *sampler, pick, &mut Off);
        assert_eq!(found.decoded.draw, wanted.expect("a token"));
        if let Some(found) = &found.logits {
            assert!(same(found, logits), "the logits differ");
        }
        found
    }

    #[test]
    fn logits_are_born_on_the_device_and_stay_there_unless_wanted() {
        let Some(mut engine) = engine() else { return };
        engine.set_choice(Choice::Device);
        let (model, states) = hidden_states(Precision::Native);
        assert!(states.len() > 5, "{} hidden states", states.len());
        for state in &states {
            let there = continued(&mut engine, &*model, state, Pick::Seeded, false);
            assert!(there.decoded.on_device && there.logits.is_none());
            let cost = engine.device().expect("a device").cost();
            // Parameters and edits; a row of logits would be twice as much.
            assert!(cost.uploaded < 4_096 && cost.read_back <= 2_560, "{cost:?}");
            let kept = continued(&mut engine, &*model, state, Pick::Seeded, true);
            assert!(kept.decoded.on_device && kept.logits.is_some());
            // What the device cannot decode, it multiplies all the same.
            let forced = continued(&mut engine, &*model, state, Pick::Forced(TokenId(7)), false);
            assert!(!forced.decoded.on_device && forced.logits.is_some());
            assert!(same(&block_on(engine.logits(&*model, &state.0)), &state.1));
        }
        assert!(engine.place_of_head().device);
        assert!(engine.head_times().is_some());
    }

    #[test]
    fn hidden_states_outlive_the_device() {
        let (model, states) = hidden_states(Precision::Native);
        for (disturbance, state) in Disturbance::ALL.into_iter().zip(&states) {
            let Some(mut engine) = engine() else { return };
            engine.set_choice(Choice::Device);
            assert!(continued(&mut engine, &*model, state, Pick::Seeded, true).decoded.on_device);
            engine.disturb(disturbance);
            assert!(!continued(&mut engine, &*model, state, Pick::Seeded, true).decoded.on_device);
            assert!(!engine.place_of_head().device);
            assert!(same(&block_on(engine.logits(&*model, &state.0)), &state.1));
        }
    }

    #[test]
    fn a_last_matrix_without_a_kernel_stays_on_the_cpu_and_says_why() {
        let Some(mut engine) = engine() else { return };
        let (model, states) = hidden_states(Precision::F32);
        continued(&mut engine, &*model, &states[0], Pick::Seeded, false);
        let place = engine.place_of_head();
        assert!(!place.device && place.why.contains("f32"), "{place:?}");
        engine.set_choice(Choice::Cpu);
        let (model, states) = hidden_states(Precision::Native);
        continued(&mut engine, &*model, &states[0], Pick::Seeded, false);
        assert_eq!(engine.place_of_head().why, "the CPU was chosen");
    }
}
