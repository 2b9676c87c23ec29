//! The door between a decode loop and a device: rows in, draws out, whoever computed them.
//!
//! [`Engine::decode`] answers for each row of a batch as [`Pipeline::decode`] would, token for
//! token. It asks the device when there is one and the batch is worth it, and the CPU otherwise:
//! for stages without a kernel, for a row whose scores must be refused (the CPU words every
//! refusal), and for everything once a device has failed. A failure is reported and never
//! repeated into the result.
//!
//! A batch is one launch of the model's last matrix, for rows whose logits are still
//! [pending](Row::pending), and one of the pipelines, which read those logits where they lie. What
//! was computed where, and why, is noted in an [`Account`].

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    Logits, Pipeline, StepContext, TokenId,
    error::{Error, ErrorCode, Result},
    gpu::{
        account::{Account, Ledger, Placement, Reached, Tally},
        device::{Ask, Clock, Device, Disturbance, Failure, Rows},
        head::{DeviceHead, HeadTimes, most_bytes, obstacle},
        kernels::{HEAD, Shape},
        layout::{RowResult, SORTED},
        measure::{Measured, warm_up},
        program::Program,
        why,
    },
    model::{
        LanguageModel,
        head::{Head, HeadInput},
        row::{Row, distinct, same_model},
    },
    random::Purpose,
    sampler::{Draw, Pick, Sampler},
    weights,
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
    /// The scores; with those of the other jobs of a batch they are of one vocabulary.
    pub row: &'a Row,
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

/// A token that a device drew.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drawn {
    /// The token and its interval.
    pub draw: Draw,
    /// Its probability among the tokens that were left.
    pub probability: f64,
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
    /// The GPU that was there last.
    adapter: Option<String>,
    ledger: Ledger,
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
            adapter: None,
            ledger: Ledger::default(),
            scratch: Logits::unfilled(),
        }
    }

    async fn opened(mut engine: Self) -> Result<Self> {
        let policy = engine.policy;
        if policy == Policy::Off {
            engine.why_cpu = Some(why::OFF.to_owned());
            return Ok(engine);
        }
        let opened = open(engine.ask.clone(), policy, Arc::clone(&engine.clock), engine.measures, None).await;
        match opened {
            // In a browser there is no variable to set: the page goes on without.
            Err(failure) if policy == Policy::Require && cfg!(target_arch = "wasm32") => {
                return Err(failure.into());
            }
            Err(failure) if policy == Policy::Require => return Err(failure.required()),
            opened => engine.settle(opened),
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
                self.adapter = Some(device.adapter().to_string());
                self.device = Some(device);
            }
            Err(failure) if matches!(failure, Failure::Lost | Failure::Late | Failure::OutOfMemory) => {
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

    /// What was computed where, and why, since this was last asked.
    pub fn take_account(&mut self) -> Account {
        std::mem::take(&mut self.ledger).account(self.adapter.clone(), self.why_cpu.clone())
    }

    /// The numbers of [`take_account`](Self::take_account).
    pub fn take_tally(&mut self) -> Tally {
        self.take_account().tally
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

    /// Where the logits of a row, then each stage of its pipeline, would run, and why.
    pub async fn plan(&mut self, job: &Job<'_>) -> Vec<Placement> {
        let (born, _) = self.born_there(&[job.row]).await;
        let stages = match self.decide(job, !born.is_empty(), 1) {
            Ok(planned) => planned.program.placements,
            Err(places) => places,
        };
        [self.place_of_head()].into_iter().chain(stages).collect()
    }

    /// Notes how far the CPU took some rows through a pipeline, whatever the device could do:
    /// nobody asked it to.
    pub(crate) fn note_on_the_cpu(&mut self, pipeline: &Pipeline, why: &str, rows: &Reached) {
        for &reached in &rows.0 {
            self.note_stages(Placement::all_on_the_cpu(pipeline, why), reached);
        }
    }

    /// Notes that a row came to the first so many stages of a pipeline, which ran at these places.
    pub(crate) fn note_stages(&mut self, places: Vec<Placement>, reached: usize) {
        self.ledger.note_stages(places, reached);
    }

    /// Notes rows of logits that the CPU computed without being asked for them here.
    pub(crate) fn note_logits_on_the_cpu(&mut self, why: &str, rows: usize) {
        let place = Placement { stage: HEAD_STAGE, device: false, why: why.to_owned() };
        self.ledger.note_logits(place, rows);
    }

    /// Decodes some rows, each as it would be alone. With `keep` the logits of all of them are
    /// known afterwards; without, a device may keep them to itself.
    ///
    /// # Errors
    /// For each row, as [`Pipeline::decode`].
    pub async fn decode(&mut self, jobs: &mut [Job<'_>], keep: bool) -> Vec<Result<Decoded>> {
        let drawn = self.draw(jobs, keep).await;
        let decoded = jobs.iter_mut().zip(drawn).map(|(job, drawn)| {
            let places = match drawn {
                Ok(Drawn { draw, .. }) => return Ok(Decoded { draw, on_device: true }),
                Err(places) => places,
            };
            let Job { row, pipeline, context, sampler, pick } = job;
            let mut reached = Reached::default();
            let draw =
                pipeline.decode(row.logits(), &mut self.scratch, context, *sampler, *pick, &mut reached);
            for reached in reached.0 {
                self.ledger.note_stages(places.clone(), reached);
            }
            Ok(Decoded { draw: draw?, on_device: false })
        });
        decoded.collect()
    }

    /// What the device draws for some rows; where the CPU has to draw, where each stage is to run
    /// and why, for whoever does it to [note](Self::note_stages). The logits of those rows are
    /// known afterwards; with `keep`, of all.
    pub async fn draw(&mut self, jobs: &[Job<'_>], keep: bool) -> Vec<Result<Drawn, Vec<Placement>>> {
        self.recover();
        let rows: Vec<&Row> = jobs.iter().map(|job| job.row).collect();
        let (born, others) = self.born_there(&rows).await;
        let mut decided: Vec<_> = jobs.iter().map(|job| self.decide(job, false, others.len())).collect();
        for &index in &born {
            decided[index] = self.decide(&jobs[index], true, 1);
        }
        let mut drawn = vec![None; jobs.len()];
        if let Err(failure) = self.try_to_draw(&rows, (&born, &others), &decided, keep, &mut drawn).await {
            self.lose(&failure);
        }
        let wanted = rows.into_iter().zip(&drawn).filter(|(_, drawn)| keep || drawn.is_none());
        self.fill(&wanted.map(|(row, _)| row).collect::<Vec<_>>());
        let outcomes = jobs.iter().zip(decided).zip(drawn).map(|((job, decided), drawn)| {
            let planned = decided?;
            let Some(drawn) = drawn else {
                let why = self.why_cpu().unwrap_or(why::SCORES_REFUSED);
                return Err(Placement::all_on_the_cpu(job.pipeline, why));
            };
            let places = planned.program.placements;
            let all = places.len();
            self.ledger.note_stages(places, all);
            Ok(drawn)
        });
        outcomes.collect()
    }

    /// What the device is to do for a job of so many in a batch, whose logits are born there or
    /// not; or where each stage runs, if the device cannot do it whole.
    fn decide(&self, job: &Job, born_there: bool, batch: usize) -> Result<Planned, Vec<Placement>> {
        let on_the_cpu = |why| Err(Placement::all_on_the_cpu(job.pipeline, why));
        let u = match job.pick {
            Pick::Uniform(u) => u,
            Pick::Seeded => job.context.draw(Purpose::Token),
            Pick::Forced(_) => return on_the_cpu(why::FORCED),
        };
        if self.device.is_none() {
            return on_the_cpu(self.why_cpu().unwrap_or(why::OFF));
        }
        let width = job.row.width();
        if !born_there && !self.chooses_device(batch, width) {
            return on_the_cpu(if self.choice == Choice::Cpu { why::CPU_CHOSEN } else { why::CPU_FASTER });
        }
        let width = u32::try_from(width).unwrap_or(u32::MAX);
        let Ok(program) = Program::of(job.pipeline, &job.context, width, u) else {
            return on_the_cpu(why::STEP_REFUSED);
        };
        if program.complete { Ok(Planned { u, program }) } else { Err(program.placements) }
    }

    /// Computes the logits of some rows, on a device where that is faster.
    pub async fn fetch(&mut self, rows: &[&Row]) {
        self.recover();
        let rows = distinct(rows);
        if let Err(failure) = self.try_to_fetch(&rows).await {
            self.lose(&failure);
        }
        self.fill(&rows);
    }

    async fn try_to_draw(
        &mut self,
        rows: &[&Row],
        (born, others): (&[usize], &[usize]),
        decided: &[Result<Planned, Vec<Placement>>],
        keep: bool,
        drawn: &mut [Option<Drawn>],
    ) -> Result<(), Failure> {
        let planned = |indices: &[usize]| -> Vec<(usize, &Planned)> {
            indices.iter().filter_map(|&index| Some((index, decided[index].as_ref().ok()?))).collect()
        };
        for batch in born.chunks(self.most_rows(rows)) {
            let planned = planned(batch);
            // First those that the device decodes, so that what must come back lies together.
            let left = batch.iter().filter(|&&index| decided[index].is_err());
            let order = planned.iter().map(|(index, _)| index).chain(left);
            let batch: Vec<&Row> = order.map(|&index| rows[index]).collect();
            self.compute(&batch, &planned, if keep { 0 } else { planned.len() }, drawn).await?;
        }
        let planned = planned(others);
        self.fill(&planned.iter().map(|(index, _)| rows[*index]).collect::<Vec<_>>());
        for batch in planned.chunks(self.most_rows(rows)) {
            let rows: Vec<&[f32]> = batch.iter().map(|(index, _)| rows[*index].logits()).collect();
            let Some(device) = &mut self.device else { break };
            launch(device, Rows::Host(&rows), batch, &mut self.ledger, drawn).await?;
        }
        Ok(())
    }

    async fn try_to_fetch(&mut self, rows: &[&Row]) -> Result<(), Failure> {
        let (born, _) = self.born_there(rows).await;
        for batch in born.chunks(self.most_rows(rows)) {
            let batch: Vec<&Row> = batch.iter().map(|&index| rows[index]).collect();
            self.compute(&batch, &[], 0, &mut []).await?;
        }
        Ok(())
    }

    /// Which rows have logits that the device is to make, and which have not.
    async fn born_there(&mut self, rows: &[&Row]) -> (Vec<usize>, Vec<usize>) {
        let first = rows.iter().find_map(|row| Some((row, row.pending()?.0)));
        if let Some((_, model)) = first {
            self.look_at_head(&**model).await;
        }
        let first = first.filter(|_| self.takes_head());
        (0..rows.len()).partition(|&index| first.is_some_and(|(first, _)| same_model(first, rows[index])))
    }

    /// How many such rows one launch holds.
    fn most_rows(&self, rows: &[&Row]) -> usize {
        let vocabulary = rows.first().map_or(0, |row| row.width());
        self.device.as_ref().map_or(1, |device| device.most_rows(vocabulary))
    }

    /// Makes the logits of some pending rows of one model, decodes the first of them where they
    /// lie, and brings back those from `kept` on.
    async fn compute(
        &mut self,
        rows: &[&Row],
        planned: &[(usize, &Planned)],
        kept: usize,
        drawn: &mut [Option<Drawn>],
    ) -> Result<(), Failure> {
        let (Some(device), Some(HeadPlace { place: Ok(there), .. })) = (&mut self.device, &mut self.head)
        else {
            return Ok(());
        };
        let Some(head) = rows.first().and_then(|row| row.source()).and_then(|(model, _)| model.head()) else {
            return Ok(());
        };
        // A row that stands here twice may have been brought back with the batch before.
        let hidden = rows.iter().filter_map(|row| row.source());
        let inputs: Vec<HeadInput> = hidden.map(|(_, hidden)| head.input(hidden)).collect();
        there.multiply(device, &inputs, kept).await?;
        if let (Some(logits), false) = (there.logits(), planned.is_empty()) {
            launch(device, Rows::Device(logits), planned, &mut self.ledger, drawn).await?;
        }
        if kept < rows.len() {
            let logits = there.read(device, rows.len() - kept).await?;
            for (row, logits) in rows[kept..].iter().zip(logits.chunks_exact(there.rows())) {
                row.learn(logits.to_vec());
            }
        }
        let place = Placement { stage: HEAD_STAGE, device: true, why: String::new() };
        self.ledger.note_logits(place, rows.len());
        self.ledger.multiplied += 1;
        Ok(())
    }

    /// Computes what is pending of some rows on the CPU.
    fn fill(&mut self, rows: &[&Row]) {
        let mut place = self.place_of_head();
        if place.device {
            (place.device, place.why) = (false, why::OTHER_MODEL.to_owned());
        }
        self.ledger.note_logits(place, distinct(rows).len());
        Row::fill(rows);
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
            _ if self.choice == Choice::Cpu => Err(why::CPU_CHOSEN.to_owned()),
            None => Err(why::NO_MATRIX.to_owned()),
            Some(head) => match put_head(device, &head, measures.then_some(&mut times)).await {
                Err(failure @ (Failure::Lost | Failure::Late)) => return self.lose(&failure),
                Err(failure) => Err(failure.to_string()),
                Ok(place) => place,
            },
        };
        let slower = times.is_some_and(|times| times.device_ms >= times.cpu_ms);
        let choice_is_free = self.choice == Choice::Measured && self.policy != Policy::Require;
        let place = if slower && choice_is_free { Err(why::CPU_FASTER.to_owned()) } else { place };
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
            None => self.why_cpu.clone().unwrap_or_else(|| why::NO_MODEL_YET.to_owned()),
        };
        Placement { stage: HEAD_STAGE, device: why.is_empty(), why }
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

/// What the device is to do for a job.
struct Planned {
    u: u64,
    program: Program,
}

/// Decodes rows of one width in one launch; each with its place among what is drawn.
async fn launch(
    device: &mut Device,
    rows: Rows<'_>,
    planned: &[(usize, &Planned)],
    ledger: &mut Ledger,
    drawn: &mut [Option<Drawn>],
) -> Result<(), Failure> {
    let programs: Vec<Program> = planned.iter().map(|(_, planned)| planned.program.clone()).collect();
    let vocabulary = programs.first().map_or(0, |program| program.rounds[0].vocabulary);
    let results = device.launch(rows, vocabulary, &programs, SORTED).await?;
    ledger.drew += 1;
    for ((index, planned), result) in planned.iter().zip(&results) {
        drawn[*index] = drawn_by(planned, result);
    }
    Ok(())
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
    let mut there = DeviceHead::upload(device, head, most_bytes(device), kernel).await?;
    if let Some(times) = times {
        *times = HeadTimes::of(device, head, &mut there).await?;
        if times.is_none() {
            return Ok(Err(why::OTHER_BITS.to_owned()));
        }
    }
    Ok(Ok(there))
}

/// What the device drew; `None` if the row must be refused.
fn drawn_by(planned: &Planned, result: &RowResult) -> Option<Drawn> {
    let wide = |halves: [u32; 2]| u64::from(halves[0]) | u64::from(halves[1]) << 32;
    (result.flags == 0).then(|| {
        let total = wide(result.total);
        let [highest, score] = [result.anchor, result.key].map(weights::score);
        Drawn {
            draw: Draw {
                token: TokenId(result.token),
                u: planned.u,
                low: wide(result.low),
                high: wide(result.high),
                total,
            },
            probability: weights::probability(highest, score, planned.program.temperature, total),
        }
    })
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::{
        gpu::{
            Count, SystemClock, block_on,
            head::same,
            rehearsal::{self, PIPELINE},
        },
        model::{self, Precision},
        random::Randomness,
        testing,
        trace::Off,
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
        assert_eq!(engine.why_cpu(), Some("no GPU with a Vulkan driver was found"));
        let refused =
            block_on(Engine::asking(none, Policy::Require, clock())).expect_err("there must be one");
        assert_eq!(refused.code, ErrorCode::GpuRequired);
        assert_eq!(
            refused.message,
            "a GPU is required, but no GPU with a Vulkan driver was found. Install the Vulkan driver of your \
             GPU, or set LOGITSCOPE_GPU=off to compute on the CPU."
        );
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
        assert!(engine.why_cpu().is_some_and(|why| why.contains("offers less")), "{:?}", engine.why_cpu());
    }

    #[test]
    fn the_usual_step_costs_what_is_promised() {
        let Some(mut engine) = engine() else { return };
        let vocabulary = 151_936;
        let pipeline = Pipeline::parse(PIPELINE).expect("a pipeline");
        let row = Row::known(testing::DISTRIBUTIONS[0].1(vocabulary, 1));
        let history = [TokenId(1), TokenId(5)];
        let context = StepContext::new(&history, 2, Randomness::default());
        let decode = |engine: &mut Engine| {
            let mut sampler = pipeline.sampler();
            let job =
                Job { row: &row, pipeline: &pipeline, context, sampler: &mut *sampler, pick: Pick::Seeded };
            block_on(engine.decode(&mut [job], false)).remove(0).expect("a token")
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
        let places = engine.take_account().places;
        let stages: Vec<&str> = places.iter().map(|share| share.place.stage).collect();
        let wanted = pipeline.stages().iter().map(|stage| &stage.args).chain([pipeline.sampler_args()]);
        assert_eq!(stages, wanted.map(|args| args.spec.id).collect::<Vec<_>>());
        assert!(places.iter().all(|share| share.place.device && share.rows == 2), "{places:?}");
    }

    #[test]
    fn a_refusal_is_the_cpus() {
        let Some(mut engine) = engine() else { return };
        let pipeline = Pipeline::parse("top_k(k=4) | categorical(seed=1)").expect("a pipeline");
        for (score, code) in [(f32::NAN, ErrorCode::NanLogit), (f32::INFINITY, ErrorCode::InfiniteLogit)] {
            let row = Row::known(vec![0.5, score, 1.0, f32::NAN]);
            let mut sampler = pipeline.sampler();
            let job = Job {
                row: &row,
                pipeline: &pipeline,
                context: StepContext::default(),
                sampler: &mut *sampler,
                pick: Pick::Seeded,
            };
            let decoded = block_on(engine.decode(&mut [job], false)).remove(0);
            let error = decoded.expect_err("a score that is no number");
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

    type Many = Vec<Vec<f32>>;

    /// The model that ships, hidden states of it, and their logits.
    fn hidden_states(precision: Precision) -> (Arc<dyn LanguageModel>, Many, Many) {
        let file: &[u8] = include_bytes!("../../models/default.gguf");
        let model = model::open(file, precision).expect("the model that ships");
        let prompt = model.tokenize("The dog ran to the house and sat down.", true, true).expect("tokens");
        let hidden = model.start().advance_hidden(&prompt, prompt.len()).expect("hidden states");
        let logits = model.start().advance(&prompt, prompt.len()).expect("logits");
        assert!(hidden.len() > 5, "{} hidden states", hidden.len());
        (model, hidden, logits)
    }

    /// A batch of these rows, each with its pick, held to what the CPU draws from each alone.
    fn batch(
        engine: &mut Engine,
        rows: &[Row],
        wanted: &[Vec<f32>],
        picks: &[Pick],
        keep: bool,
    ) -> Vec<bool> {
        let pipeline = Pipeline::parse(PIPELINE).expect("a pipeline");
        let history = [TokenId(1), TokenId(5)];
        let context = |index: usize| {
            let position = u32::try_from(index).expect("a few");
            StepContext::new(&history, 2, Randomness { position, ..Randomness::default() })
        };
        let mut samplers: Vec<_> = rows.iter().map(|_| pipeline.sampler()).collect();
        let mut jobs: Vec<Job> = rows
            .iter()
            .zip(&mut samplers)
            .zip(picks.iter().cycle())
            .enumerate()
            .map(|(index, ((row, sampler), &pick))| Job {
                row,
                pipeline: &pipeline,
                context: context(index),
                sampler: &mut **sampler,
                pick,
            })
            .collect();
        let decoded = block_on(engine.decode(&mut jobs, keep));
        assert_eq!(decoded.len(), rows.len());
        let mut scratch = Logits::unfilled();
        let there = decoded.into_iter().enumerate().map(|(index, decoded)| {
            let pick = picks[index % picks.len()];
            let mut sampler = pipeline.sampler();
            let alone =
                pipeline.decode(&wanted[index], &mut scratch, &context(index), &mut *sampler, pick, &mut Off);
            let decoded = decoded.expect("a token");
            assert_eq!(decoded.draw, alone.expect("a token"), "row {index}");
            assert!(!keep || rows[index].pending().is_none(), "row {index} was not kept");
            if rows[index].pending().is_none() {
                assert!(same(rows[index].logits(), &wanted[index]), "the logits of row {index} differ");
            }
            decoded.on_device
        });
        let there = there.collect();
        // The account, stage by stage, is that of every row.
        let Account { places, tally, .. } = &engine.ledger.account(None, None);
        for (stage, count) in [(HEAD_STAGE, tally.logits), ("categorical", tally.draws)] {
            let rows = |device: bool| {
                let own = places.iter().filter(|share| share.place.stage == stage);
                own.filter(|share| share.place.device == device).map(|share| share.rows).sum::<usize>()
            };
            assert_eq!((rows(true), rows(false)), (count.device, count.cpu), "{stage}: {places:?}");
        }
        assert!(places.iter().all(|share| share.place.device == share.place.why.is_empty()), "{places:?}");
        there
    }

    fn pending(model: &Arc<dyn LanguageModel>, hidden: &[Vec<f32>]) -> Vec<Row> {
        hidden.iter().map(|hidden| Row::of(model, hidden.clone())).collect()
    }

    #[test]
    fn logits_are_born_on_the_device_and_stay_there_unless_wanted() {
        let Some(mut engine) = engine() else { return };
        engine.set_choice(Choice::Device);
        let (model, hidden, logits) = hidden_states(Precision::Native);
        // One row and many are the same thing.
        for rows in [1, hidden.len()] {
            let once = |count: usize| Count { device: count, launches: 1, cpu: 0 };
            let all = pending(&model, &hidden[..rows]);
            assert_eq!(batch(&mut engine, &all, &logits, &[Pick::Seeded], false), vec![true; rows]);
            assert!(all.iter().all(|row| row.pending().is_some()));
            assert_eq!(engine.take_tally(), Tally { logits: once(rows), draws: once(rows) });
            let cost = engine.device().expect("a device").cost();
            assert_eq!((cost.submissions, cost.maps), (1, 1), "{cost:?}");
            // Parameters and edits; a row of logits would be twice as much.
            assert!(cost.uploaded < 4_096 * rows as u64, "{cost:?}");
            assert!(cost.read_back <= 2_560 * rows as u64, "{cost:?}");

            let allocations = engine.device().expect("a device").allocations;
            assert_eq!(batch(&mut engine, &all, &logits, &[Pick::Seeded], true), vec![true; rows]);
            assert_eq!(engine.device().expect("a device").allocations, allocations, "a step allocated");
            assert_eq!(engine.take_tally(), Tally { logits: once(rows), draws: once(rows) });
            let all = pending(&model, &hidden[..rows]);
            block_on(engine.fetch(&all.iter().collect::<Vec<_>>()));
            assert_eq!(engine.take_tally(), Tally { logits: once(rows), draws: Count::default() });
            for (row, wanted) in all.iter().zip(&logits) {
                assert!(row.pending().is_none() && same(row.logits(), wanted));
            }
        }
        assert!(engine.place_of_head().device);
        assert!(engine.head_times().is_some());
    }

    #[test]
    fn what_the_device_cannot_decode_it_multiplies_all_the_same() {
        let Some(mut engine) = engine() else { return };
        engine.set_choice(Choice::Device);
        let (model, hidden, logits) = hidden_states(Precision::Native);
        let rows = pending(&model, &hidden[..5]);
        let picks = [Pick::Forced(TokenId(7)), Pick::Seeded];
        let there = batch(&mut engine, &rows, &logits, &picks, false);
        assert_eq!(there, [false, true, false, true, false]);
        let came_back: Vec<bool> = rows.iter().map(|row| row.pending().is_none()).collect();
        assert_eq!(came_back, [true, false, true, false, true]);
        let tally = engine.take_tally();
        assert_eq!(tally.logits, Count { device: 5, launches: 1, cpu: 0 });
        assert_eq!(tally.draws, Count { device: 2, launches: 1, cpu: 3 });
    }

    #[test]
    fn what_a_device_drew_has_the_probability_that_the_cpu_shows() {
        let Some(mut engine) = engine() else { return };
        engine.set_choice(Choice::Device);
        let (model, hidden, logits) = hidden_states(Precision::Native);
        let rows = pending(&model, &hidden);
        for text in [
            PIPELINE,
            "typical(p=0.6) | temperature(t=1.3) | top_p(p=0.9) | categorical(seed=1)",
            "temperature(t=0.7) | temperature(t=0.9) | xtc(probability=1, threshold=0.05) | categorical(seed=3)",
            "logit_bias(bias={\"5\": -2.5}) | greedy()",
            "categorical(seed=9)",
        ] {
            let pipeline = Pipeline::parse(text).expect("a pipeline");
            let context = StepContext::default();
            let mut samplers: Vec<_> = rows.iter().map(|_| pipeline.sampler()).collect();
            let jobs: Vec<Job> = rows
                .iter()
                .zip(&mut samplers)
                .zip(0u64..)
                .map(|((row, sampler), index)| Job {
                    row,
                    pipeline: &pipeline,
                    context,
                    sampler: &mut **sampler,
                    pick: Pick::Uniform(index << 60),
                })
                .collect();
            let drawn = block_on(engine.draw(&jobs, false));
            drop(jobs);
            for ((drawn, logits), sampler) in drawn.iter().zip(&logits).zip(&mut samplers) {
                let Ok(drawn) = drawn else { panic!("{text} is on the device") };
                let mut row = Logits::new(logits).expect("a row");
                pipeline.reshape(&mut row, &context).expect("what is left");
                sampler.prepare(&mut row, &context).expect("what is left");
                let wanted = row.probability(drawn.draw.token).expect("a probability");
                assert_eq!(drawn.probability, wanted, "{text}");
            }
        }
    }

    #[test]
    fn a_step_is_planned_as_it_is_then_drawn() {
        let Some(mut engine) = engine() else { return };
        engine.set_choice(Choice::Device);
        let (model, hidden, _) = hidden_states(Precision::Native);
        let pipeline = Pipeline::parse("top_k(k=4) | categorical(seed=1)").expect("a pipeline");
        let row = Row::of(&model, hidden[0].clone());
        block_on(engine.fetch(&[&row]));
        let unknown = Row::of(&model, hidden[0].clone());
        // The last matrix is on the device, but to send logits there is slower than the CPU.
        (engine.choice, engine.policy) = (Choice::Measured, Policy::Try);
        engine.measured.as_mut().expect("a measurement").launch_ms = f64::INFINITY;
        for (row, pick, why) in [
            (&row, Pick::Seeded, why::CPU_FASTER),
            (&unknown, Pick::Seeded, ""),
            (&unknown, Pick::Forced(TokenId(7)), why::FORCED),
        ] {
            let mut sampler = pipeline.sampler();
            let context = StepContext::default();
            let mut job = [Job { row, pipeline: &pipeline, context, sampler: &mut *sampler, pick }];
            engine.take_account();
            let mut planned = block_on(engine.plan(&job[0]));
            let logits = planned.remove(0);
            assert!(logits.device, "{logits:?}");
            assert!(planned.iter().all(|place| place.why == why), "{planned:?}");
            let decoded = block_on(engine.decode(&mut job, false)).remove(0).expect("a token");
            assert_eq!(decoded.on_device, why.is_empty());
            let noted = engine.take_account().places.into_iter().map(|share| share.place);
            assert_eq!(noted.filter(|place| place.stage != HEAD_STAGE).collect::<Vec<_>>(), planned);
        }
    }

    #[test]
    fn a_batch_larger_than_a_launch_is_cut() {
        if engine().is_none() {
            return;
        }
        // The largest buffer that the start-up measurement needs.
        let limits = wgpu::Limits { max_storage_buffer_binding_size: 1 << 20, ..wgpu::Limits::default() };
        let ask = Ask { limits, ..Ask::default() };
        let mut engine = block_on(Engine::asking(ask, Policy::Require, clock())).expect("a device");
        let (model, hidden, logits) = hidden_states(Precision::Native);
        let row = Row::of(&model, hidden[0].clone());
        let most = engine.most_rows(&[&row]);
        assert!(most < 100, "{most} rows would take long");
        // Copies of one row: what the first launch brings back must not confuse the second.
        let (rows, wanted) = (vec![row; most + 3], vec![logits[0].clone(); most + 3]);
        let there = batch(&mut engine, &rows, &wanted, &[Pick::Seeded], true);
        assert!(!there.contains(&false), "{:?}", engine.take_events());
        let tally = engine.take_tally();
        assert_eq!((tally.logits.launches, tally.draws.launches), (2, 2), "{tally:?}");
    }

    #[test]
    fn hidden_states_outlive_the_device() {
        let (model, hidden, logits) = hidden_states(Precision::Native);
        for disturbance in Disturbance::ALL {
            let Some(mut engine) = engine() else { return };
            engine.set_choice(Choice::Device);
            let rows = pending(&model, &hidden);
            assert!(!batch(&mut engine, &rows, &logits, &[Pick::Seeded], false).contains(&false));
            engine.take_tally();
            engine.disturb(disturbance);
            batch(&mut engine, &rows, &logits, &[Pick::Seeded], true);
            assert!(!engine.place_of_head().device);
            // Draws may have come back before the device was lost; logits come after them.
            let Tally { logits, draws } = engine.take_tally();
            assert_eq!((logits.device, logits.cpu), (0, rows.len()), "{disturbance}");
            assert_eq!(draws.device + draws.cpu, rows.len(), "{disturbance}");
            assert_eq!(draws.device > 0, draws.launches > 0, "{disturbance}");
        }
    }

    #[test]
    fn a_last_matrix_without_a_kernel_stays_on_the_cpu_and_says_why() {
        let Some(mut engine) = engine() else { return };
        let (model, hidden, logits) = hidden_states(Precision::F32);
        batch(&mut engine, &pending(&model, &hidden), &logits, &[Pick::Seeded], false);
        let place = engine.place_of_head();
        assert!(!place.device && place.why == why::FLOATS, "{place:?}");
        engine.set_choice(Choice::Cpu);
        let (model, hidden, logits) = hidden_states(Precision::Native);
        batch(&mut engine, &pending(&model, &hidden), &logits, &[Pick::Seeded], false);
        assert_eq!(engine.place_of_head().why, why::CPU_CHOSEN);
    }
}
