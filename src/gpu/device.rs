//! One adapter: acquiring it, its pipelines and buffers, a launch, and what comes back.
//!
//! A launch is one submission and one map, whatever the pipelines of its rows. Buffers and
//! pipelines are made once and reused; a launch of a size seen before allocates nothing on
//! the device. Every way in which a device can fail ends in a [`Failure`], within
//! [`PATIENCE_MS`]: callbacks of a lost device may never come.

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use crate::{
    error::{Error, ErrorCode},
    gpu::{
        kernels::{self, Shape},
        layout::{Carry, Plan, RowParams, RowResult, Work, phase, stage},
        program::{EditWords, Program, ROUNDS},
    },
};

/// How long a launch may take before it counts as lost: what is left of two seconds must do for
/// the CPU.
pub const PATIENCE_MS: u32 = 1_500;
/// The same for a launch that compiles a kernel; a software adapter takes seconds for that.
const COMPILING_MS: u32 = 40 * PATIENCE_MS;
/// How long a platform may take to say whether it gives a device.
const ANSWER_MS: u32 = 5_000;

/// A task that runs beside its owner.
pub type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Time as a device's owner sees it: a browser and a native program tell it differently.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Milliseconds since some moment.
    fn now(&self) -> f64;
    /// Resolves after so many milliseconds.
    fn sleep(&self, milliseconds: u32) -> Task;
    /// Runs a task whenever its owner waits; where nobody waits, at once and to its end.
    fn spawn(&self, task: Task);
}

/// The clock of a native program.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone, Copy)]
pub struct SystemClock(std::time::Instant);

#[cfg(not(target_arch = "wasm32"))]
impl Default for SystemClock {
    fn default() -> Self {
        Self(std::time::Instant::now())
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Clock for SystemClock {
    fn now(&self) -> f64 {
        self.0.elapsed().as_secs_f64() * 1e3
    }

    fn sleep(&self, milliseconds: u32) -> Task {
        std::thread::sleep(std::time::Duration::from_millis(u64::from(milliseconds)));
        Box::pin(std::future::ready(()))
    }

    fn spawn(&self, task: Task) {
        block_on(task);
    }
}

/// Why a device gave nothing. What a platform or driver says of it is no sentence for a reader,
/// so it is not passed on, but for what is a fault of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// There is no adapter.
    NoAdapter,
    /// The platform does not say whether there is one, or whether it gives a device.
    Silent,
    /// There is one, but it is below the limits asked for.
    Limits,
    /// There is one, but it gave no device.
    Refused,
    /// There is one, but it computes on the processor, and is not wanted.
    Software(String),
    /// The device was lost.
    Lost,
    /// Nothing came back in time.
    Late,
    /// A buffer did not fit.
    OutOfMemory,
    /// The device refused a command: a fault of this program.
    Invalid(String),
}

impl Failure {
    /// What a reader may do who wants a GPU, as a sentence without its full stop.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        let browser = cfg!(target_arch = "wasm32");
        match self {
            Self::NoAdapter | Self::Limits if browser => "See whether the browser has WebGPU switched on",
            Self::NoAdapter => "Install the Vulkan driver of your GPU",
            Self::Limits | Self::Software(_) => "Update the driver of your GPU",
            Self::Silent | Self::Refused | Self::Lost | Self::Late => {
                "Close other programs that use the GPU and try again"
            }
            Self::OutOfMemory => "Close other programs that use the GPU, or take a smaller model",
            Self::Invalid(_) => "Please report this",
        }
    }

    /// The refusal to go on without a GPU, where the CPU could have done the work.
    pub(crate) fn required(&self) -> Error {
        let advice = self.advice();
        let message = format!(
            "a GPU is required, but {self}. {advice}, or set LOGITSCOPE_GPU=off to compute on the CPU."
        );
        Error::new(ErrorCode::GpuRequired, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let browser = cfg!(target_arch = "wasm32");
        match self {
            Self::NoAdapter if browser => f.write_str("the browser found no GPU for WebGPU"),
            Self::NoAdapter => f.write_str("no GPU with a Vulkan driver was found"),
            Self::Silent => {
                write!(f, "the system did not say within {} seconds whether it has a GPU", ANSWER_MS / 1_000)
            }
            Self::Limits => f.write_str("the GPU offers less than every WebGPU device must"),
            Self::Refused => f.write_str("the system does not let Logitscope use the GPU that was found"),
            Self::Software(adapter) => write!(f, "{adapter} is software that runs on the CPU"),
            Self::Lost => f.write_str("the GPU was lost: it stopped, or its driver was restarted"),
            Self::Late => write!(f, "the GPU did not answer within {} seconds", f64::from(PATIENCE_MS) / 1e3),
            Self::OutOfMemory => f.write_str("the GPU is out of memory"),
            Self::Invalid(why) => write!(f, "the GPU refused a command, a fault of Logitscope: {why}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::new(ErrorCode::GpuRequired, format!("{failure}. {}.", failure.advice()))
    }
}

/// What is known about an adapter.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Adapter {
    /// Its name, and the driver's if that is known.
    pub name: String,
    /// `vulkan`, `webgpu` and the like.
    pub backend: String,
    /// Whether it computes on the processor.
    pub software: bool,
}

impl Adapter {
    fn of(info: &wgpu::AdapterInfo) -> Self {
        let parts = [&info.name, &info.driver, &info.driver_info];
        let mut name = String::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            if !name.is_empty() {
                name.push_str(", ");
            }
            name.push_str(part);
        }
        let known = ["llvmpipe", "lavapipe", "swiftshader", "software", "basic render"];
        let lower = name.to_lowercase();
        let software =
            info.device_type == wgpu::DeviceType::Cpu || known.iter().any(|word| lower.contains(word));
        if name.is_empty() {
            "unnamed".clone_into(&mut name);
        }
        Self { name, backend: info.backend.to_string(), software }
    }
}

impl fmt::Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}{})", self.name, self.backend, if self.software { ", software" } else { "" })
    }
}

/// What a launch cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Cost {
    /// Dispatches.
    pub dispatches: u32,
    /// Submissions.
    pub submissions: u32,
    /// Maps of a buffer.
    pub maps: u32,
    /// Bytes read back.
    pub read_back: u64,
    /// Bytes of the vocabulary's words that kernels read and wrote, without candidates.
    pub traffic: u64,
    /// Bytes uploaded.
    pub uploaded: u64,
}

/// A moment at which a rehearsal destroys the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Disturbance {
    /// Before the commands are submitted.
    BeforeSubmit,
    /// After that, before the result is mapped.
    BeforeMap,
    /// While it is mapped.
    WhileMapped,
    /// No destruction: the device says that a buffer did not fit.
    OutOfMemory,
}

impl Disturbance {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::BeforeSubmit, Self::BeforeMap, Self::WhileMapped, Self::OutOfMemory];
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeforeSubmit => "before its commands were submitted",
            Self::BeforeMap => "before its result was mapped",
            Self::WhileMapped => "while its result was mapped",
            Self::OutOfMemory => "for want of memory",
        })
    }
}

/// Rows of scores for one launch.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// In memory, one slice a row.
    Host(&'a [&'a [f32]]),
    /// Already on the device, row after row, in a storage buffer.
    Device(&'a wgpu::Buffer),
}

/// What is asked of the platform; WebGPU's default limits, unless a test says otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) backends: wgpu::Backends,
    pub(crate) limits: wgpu::Limits,
}

impl Default for Ask {
    fn default() -> Self {
        Self { backends: wgpu::Backends::all(), limits: wgpu::Limits::default() }
    }
}

/// A device, ready for launches.
pub struct Device {
    gpu: wgpu::Device,
    queue: wgpu::Queue,
    adapter: Adapter,
    shape: Shape,
    /// Every kernel that was compiled, by its text.
    compiled: HashMap<String, wgpu::ComputePipeline>,
    pipelines: HashMap<Shape, Vec<wgpu::ComputePipeline>>,
    buffers: Option<Buffers>,
    trouble: Arc<Mutex<Option<Failure>>>,
    clock: Arc<dyn Clock>,
    /// What the last launch cost.
    pub(crate) cost: Cost,
    /// How often buffers, or what binds them, were made.
    pub(crate) allocations: u32,
    pub(crate) disturbance: Option<Disturbance>,
    /// How long a launch may take; a suite on a busy software device is more patient.
    pub(crate) patience: u32,
    params: Vec<RowParams>,
    edits: Vec<EditWords>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("adapter", &self.adapter)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

/// The buffers of a size, and how each round's kernels bind them.
struct Buffers {
    size: Size,
    params: wgpu::Buffer,
    logits: wgpu::Buffer,
    work: wgpu::Buffer,
    edits: wgpu::Buffer,
    results: wgpu::Buffer,
    staging: wgpu::Buffer,
    all: [wgpu::Buffer; 9],
    groups: HashMap<(Shape, usize), Vec<wgpu::BindGroup>>,
    /// The first round's, where the logits lay on the device last.
    in_place: Option<(Shape, wgpu::Buffer, Vec<wgpu::BindGroup>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    vocabulary: u32,
    rows: u64,
    rounds: u64,
    edits: u64,
}

impl Size {
    fn holds(self, other: Self) -> bool {
        self.vocabulary == other.vocabulary
            && self.rows >= other.rows
            && self.rounds >= other.rounds
            && self.edits >= other.edits
    }
}

/// Rounds' parts of a buffer begin at multiples of this.
const ALIGNMENT: u64 = 256;

impl Device {
    /// Takes the adapter that the platform prefers.
    ///
    /// # Errors
    /// `NoAdapter`, `Silent`, `Limits` or `Refused`.
    pub async fn acquire(clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        Self::acquire_as(&Ask::default(), clock).await
    }

    /// Asks for a device without features, and refuses an adapter below the limits.
    pub(crate) async fn acquire_as(ask: &Ask, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        let descriptor = wgpu::InstanceDescriptor {
            backends: ask.backends,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        };
        let instance = wgpu::Instance::new(descriptor);
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..Default::default()
        };
        let adapter = within(&*clock, ANSWER_MS, instance.request_adapter(&options))
            .await
            .ok_or(Failure::Silent)?
            .map_err(|_| Failure::NoAdapter)?;
        if !ask.limits.check_limits(&adapter.limits()) {
            return Err(Failure::Limits);
        }
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("logitscope"),
            required_limits: ask.limits.clone(),
            ..Default::default()
        };
        let (device, queue) = within(&*clock, ANSWER_MS, adapter.request_device(&descriptor))
            .await
            .ok_or(Failure::Silent)?
            .map_err(|_| Failure::Refused)?;
        let trouble = Arc::new(Mutex::new(None));
        let noted = Arc::clone(&trouble);
        device.set_device_lost_callback(move |_, _| note(&noted, Failure::Lost));
        let noted = Arc::clone(&trouble);
        device.on_uncaptured_error(Arc::new(move |error| {
            note(
                &noted,
                match error {
                    wgpu::Error::OutOfMemory { .. } => Failure::OutOfMemory,
                    other => Failure::Invalid(other.to_string()),
                },
            );
        }));
        Ok(Self {
            gpu: device,
            queue,
            adapter: Adapter::of(&adapter.get_info()),
            shape: Shape::default(),
            compiled: HashMap::new(),
            pipelines: HashMap::new(),
            buffers: None,
            trouble,
            clock,
            cost: Cost::default(),
            allocations: 0,
            disturbance: None,
            patience: PATIENCE_MS,
            params: Vec::new(),
            edits: Vec::new(),
        })
    }

    /// What is known about the adapter.
    #[must_use]
    pub fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    /// What the last launch cost.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// How the work is cut.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Cuts the work otherwise from now on; the results stay the same.
    pub fn set_shape(&mut self, shape: Shape) {
        self.shape = shape;
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub(crate) fn raw(&self) -> (&wgpu::Device, &wgpu::Queue) {
        (&self.gpu, &self.queue)
    }

    /// How many rows of a vocabulary one launch can hold.
    #[must_use]
    pub fn most_rows(&self, vocabulary: usize) -> usize {
        let limits = self.gpu.limits();
        // The largest part of a binding, and the largest of a buffer, that a row takes.
        let bound = (8 * vocabulary).max(size_of::<Plan>()) as u64;
        let held = (ROUNDS * size_of::<Work>()) as u64;
        let most = (limits.max_storage_buffer_binding_size / bound).min(limits.max_buffer_size / held);
        usize::try_from(most.min(u64::from(limits.max_compute_workgroups_per_dimension))).unwrap_or(1).max(1)
    }

    pub(crate) fn check(&self) -> Result<(), Failure> {
        match &*self.trouble.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }

    /// A kernel of the present shape; compiled once.
    pub(crate) fn kernel(&mut self, kernel: &kernels::Kernel) -> wgpu::ComputePipeline {
        let entry = self.compiled.entry(kernel.text(self.shape));
        entry.or_insert_with_key(|text| pipeline(&self.gpu, kernel.name, text)).clone()
    }

    /// Compiles the kernels of the present shape; whether that was not done yet.
    fn compile(&mut self) -> bool {
        if self.pipelines.contains_key(&self.shape) {
            return false;
        }
        let all = kernels::ROUND.iter().map(|kernel| self.kernel(kernel)).collect();
        self.pipelines.insert(self.shape, all);
        true
    }

    /// Puts a faulty text in the place of one kernel of the present shape, for a suite that must
    /// notice it; the sound one comes back, for [`put_kernel`](Self::put_kernel).
    pub(crate) fn plant(&mut self, index: usize, text: &str) -> Option<wgpu::ComputePipeline> {
        self.compile();
        let faulty = pipeline(&self.gpu, kernels::ROUND[index].name, text);
        self.put_kernel(index, faulty)
    }

    /// Puts a compiled kernel in its place, and returns the one that was there.
    pub(crate) fn put_kernel(
        &mut self,
        index: usize,
        kernel: wgpu::ComputePipeline,
    ) -> Option<wgpu::ComputePipeline> {
        if let Some(buffers) = &mut self.buffers {
            buffers.groups.clear();
            buffers.in_place = None;
        }
        let all = self.pipelines.get_mut(&self.shape)?;
        Some(std::mem::replace(&mut all[index], kernel))
    }

    /// Makes the buffers larger if they are too small.
    async fn reserve(&mut self, size: Size) -> Result<(), Failure> {
        if self.buffers.as_ref().is_some_and(|buffers| buffers.size.holds(size)) {
            return Ok(());
        }
        let old =
            self.buffers.take().map(|buffers| buffers.size).filter(|old| old.vocabulary == size.vocabulary);
        let size = old.map_or(size, |old| Size {
            vocabulary: size.vocabulary,
            rows: size.rows.max(old.rows),
            rounds: size.rounds.max(old.rounds),
            edits: size.edits.max(old.edits).next_power_of_two(),
        });
        let memory = self.gpu.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let buffers = Buffers::new(&self.gpu, size);
        self.fits(memory.pop()).await?;
        self.allocations += 1;
        self.buffers = Some(buffers);
        Ok(())
    }

    /// Runs the programs of some rows in one submission, and reads back what came of them.
    ///
    /// # Errors
    /// See [`Failure`]; the device is of no use after that.
    pub(crate) async fn launch(
        &mut self,
        rows: Rows<'_>,
        vocabulary: u32,
        programs: &[Program],
        sorted: u32,
    ) -> Result<Vec<RowResult>, Failure> {
        self.check()?;
        self.cost = Cost::default();
        let rounds = programs.iter().map(|program| program.rounds.len()).max().unwrap_or(0);
        let size = Size {
            vocabulary,
            rows: programs.len() as u64,
            rounds: rounds as u64,
            edits: programs.iter().map(|program| program.edits.len()).sum::<usize>().max(1) as u64,
        };
        self.reserve(size).await?;
        self.upload(rows, programs, rounds, sorted)?;
        let patience = if self.compile() { self.patience.max(COMPILING_MS) } else { self.patience };
        let commands = self.encode(rows, programs, rounds)?;
        self.submit(commands)?;
        self.cost.submissions += 1;
        let Some(buffers) = &self.buffers else { return Err(Failure::Invalid("no buffers".to_owned())) };
        let bytes = size.rows * size_of::<RowResult>() as u64;
        let staging = buffers.staging.clone();
        self.map_within(patience, &staging, bytes).await?;
        self.cost.maps += 1;
        self.cost.read_back = bytes;
        let results = staging
            .get_mapped_range(..bytes)
            .map(|view| bytemuck::pod_collect_to_vec(&view))
            .map_err(|_| Failure::Lost)?;
        staging.unmap();
        self.check()?;
        Ok(results)
    }

    fn upload(
        &mut self,
        rows: Rows<'_>,
        programs: &[Program],
        rounds: usize,
        sorted: u32,
    ) -> Result<(), Failure> {
        let Some(buffers) = &self.buffers else { return Ok(()) };
        self.edits.clear();
        for round in 0..rounds {
            self.params.clear();
            let mut first_edit = 0u32;
            for program in programs {
                let mut params = program.rounds.get(round).copied().unwrap_or_default();
                params.edits_start += first_edit;
                params.edits_end += first_edit;
                for excluding in params.list.iter_mut().filter(|params| params.op == stage::EXCLUDE) {
                    excluding.second = excluding.second.map(|word| word + first_edit);
                }
                params.sorted = sorted;
                self.params.push(params);
                first_edit += u32::try_from(program.edits.len()).unwrap_or(0);
            }
            let bytes = bytemuck::cast_slice(&self.params);
            self.queue.write_buffer(
                &buffers.params,
                round as u64 * stride::<RowParams>(buffers.size.rows),
                bytes,
            );
            self.cost.uploaded += bytes.len() as u64;
        }
        for program in programs {
            self.edits.extend_from_slice(&program.edits);
        }
        if !self.edits.is_empty() {
            let bytes = bytemuck::cast_slice(&self.edits);
            self.queue.write_buffer(&buffers.edits, 0, bytes);
            self.cost.uploaded += bytes.len() as u64;
        }
        if let Rows::Host(rows) = rows {
            for (index, row) in rows.iter().enumerate() {
                if row.len() != buffers.size.vocabulary as usize {
                    return Err(Failure::Invalid("rows of a launch differ in length".to_owned()));
                }
                let bytes: &[u8] = bytemuck::cast_slice(row);
                self.queue.write_buffer(&buffers.logits, (index * bytes.len()) as u64, bytes);
                self.cost.uploaded += bytes.len() as u64;
            }
        }
        Ok(())
    }

    fn encode(
        &mut self,
        rows: Rows<'_>,
        programs: &[Program],
        rounds: usize,
    ) -> Result<wgpu::CommandBuffer, Failure> {
        let shape = self.shape;
        let (Some(buffers), Some(pipelines)) = (&mut self.buffers, self.pipelines.get(&shape)) else {
            return Err(Failure::Invalid("no buffers".to_owned()));
        };
        for round in 0..rounds {
            if !buffers.groups.contains_key(&(shape, round)) {
                let groups = buffers.bind(&self.gpu, pipelines, round, None);
                buffers.groups.insert((shape, round), groups);
                self.allocations += 1;
            }
        }
        let in_place = match rows {
            Rows::Host(_) => None,
            Rows::Device(logits) => Some(logits),
        };
        if let Some(logits) = in_place
            && !buffers.in_place.as_ref().is_some_and(|(known, at, _)| *known == shape && at == logits)
        {
            let groups = buffers.bind(&self.gpu, pipelines, 0, Some(logits));
            buffers.in_place = Some((shape, logits.clone(), groups));
            self.allocations += 1;
        }
        let first_round = in_place.and(buffers.in_place.as_ref()).map(|(.., groups)| groups);
        let count = u32::try_from(programs.len()).unwrap_or(u32::MAX);
        let vocabulary = buffers.size.vocabulary;
        let groups_of_tokens = vocabulary.div_ceil(shape.tile());
        let mut encoder = self.gpu.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.clear_buffer(&buffers.work, 0, None);
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            for round in 0..rounds {
                let wanted = |phase: u32| {
                    programs
                        .iter()
                        .filter(|program| {
                            program.rounds.get(round).is_some_and(|row| row.phases & phase != 0)
                        })
                        .count()
                };
                for (index, pipeline) in pipelines.iter().enumerate() {
                    let phase = 1u32 << index;
                    let busy = wanted(phase);
                    if busy == 0 {
                        continue;
                    }
                    let group = match &first_round {
                        Some(groups) if round == 0 => &groups[index],
                        _ => &buffers.groups[&(shape, round)][index],
                    };
                    pass.set_pipeline(pipeline);
                    pass.set_bind_group(0, group, &[]);
                    let over_tokens = kernels::ROUND[index].walks;
                    pass.dispatch_workgroups(if over_tokens { groups_of_tokens } else { 1 }, count, 1);
                    self.cost.dispatches += 1;
                    // prepare reads and writes a word a token; weigh and gather read one.
                    let words = u64::from(over_tokens) + u64::from(phase == phase::PREPARE);
                    self.cost.traffic += 4 * words * u64::from(vocabulary) * busy as u64;
                }
            }
        }
        let bytes = u64::from(count) * size_of::<RowResult>() as u64;
        encoder.copy_buffer_to_buffer(&buffers.results, 0, &buffers.staging, 0, Some(bytes));
        Ok(encoder.finish())
    }

    /// Hands commands over, unless a rehearsal has the device fail here.
    ///
    /// # Errors
    /// `OutOfMemory`, in a rehearsal.
    pub(crate) fn submit(&self, commands: wgpu::CommandBuffer) -> Result<(), Failure> {
        match self.disturbance {
            Some(Disturbance::OutOfMemory) => return Err(Failure::OutOfMemory),
            Some(Disturbance::BeforeSubmit) => self.gpu.destroy(),
            _ => {}
        }
        self.queue.submit([commands]);
        if self.disturbance == Some(Disturbance::BeforeMap) {
            self.gpu.destroy();
        }
        Ok(())
    }

    /// Whether the buffers fit that were made under a scope for memory, which is what ends here.
    pub(crate) async fn fits(&self, scope: impl Future<Output = Option<wgpu::Error>>) -> Result<(), Failure> {
        match within(&*self.clock, self.patience, scope).await {
            Some(None) => self.check(),
            Some(Some(_)) => Err(Failure::OutOfMemory),
            None => Err(Failure::Late),
        }
    }

    /// Maps a buffer for reading, or gives up in time.
    pub(crate) async fn map(&self, buffer: &wgpu::Buffer, bytes: u64) -> Result<(), Failure> {
        self.map_within(self.patience, buffer, bytes).await
    }

    /// Maps a buffer for reading, or gives up after so many milliseconds.
    async fn map_within(&self, patience: u32, buffer: &wgpu::Buffer, bytes: u64) -> Result<(), Failure> {
        let signal = Signal::default();
        let sender = signal.clone();
        buffer.map_async(wgpu::MapMode::Read, ..bytes, move |outcome| sender.set(outcome.is_ok()));
        let mapped = self.wait(signal, patience).await?;
        self.check()?;
        if self.disturbance == Some(Disturbance::WhileMapped) {
            self.gpu.destroy();
        }
        if mapped { Ok(()) } else { Err(Failure::Lost) }
    }

    #[cfg(not(target_arch = "wasm32"))]
    #[expect(clippy::unused_async, reason = "in a browser the same call waits")]
    async fn wait(&self, signal: Signal, patience: u32) -> Result<bool, Failure> {
        let start = self.clock.now();
        loop {
            let slice = std::time::Duration::from_millis(20);
            let polled = self.gpu.poll(wgpu::PollType::Wait { submission_index: None, timeout: Some(slice) });
            if let Some(outcome) = signal.take() {
                return Ok(outcome);
            }
            self.check()?;
            if self.clock.now() - start > f64::from(patience) {
                return Err(Failure::Late);
            }
            if polled.is_ok() {
                // The queue is empty, yet the callback has not come: it may still be on its way.
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    }

    #[cfg(target_arch = "wasm32")]
    async fn wait(&self, signal: Signal, patience: u32) -> Result<bool, Failure> {
        within(&*self.clock, patience, signal).await.ok_or(Failure::Late)
    }
}

/// What a future gives, if it gives it within so many milliseconds. A native one never waits.
#[cfg(not(target_arch = "wasm32"))]
async fn within<T>(_: &dyn Clock, _: u32, future: impl Future<Output = T>) -> Option<T> {
    Some(future.await)
}

#[cfg(target_arch = "wasm32")]
async fn within<T>(clock: &dyn Clock, milliseconds: u32, future: impl Future<Output = T>) -> Option<T> {
    let mut late = clock.sleep(milliseconds);
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => late.as_mut().poll(context).map(|()| None),
    })
    .await
}

fn note(trouble: &Mutex<Option<Failure>>, failure: Failure) {
    trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
}

/// A compute pipeline whose layout is read off its shader.
pub(crate) fn pipeline(device: &wgpu::Device, name: &str, text: &str) -> wgpu::ComputePipeline {
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some(name),
        source: wgpu::ShaderSource::Wgsl(text.into()),
    });
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(name),
        layout: None,
        module: &module,
        entry_point: Some(name),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    })
}

/// The bytes of a round's part of a buffer.
fn stride<T>(rows: u64) -> u64 {
    (rows * size_of::<T>() as u64).next_multiple_of(ALIGNMENT)
}

impl Buffers {
    fn new(device: &wgpu::Device, size: Size) -> Self {
        let make = |label: &str, bytes: u64, usage: wgpu::BufferUsages| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(label),
                size: bytes.next_multiple_of(16),
                usage,
                mapped_at_creation: false,
            })
        };
        let stored = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
        let tokens = size.rows * u64::from(size.vocabulary);
        let params = make("params", size.rounds * stride::<RowParams>(size.rows), stored);
        let logits = make("logits", tokens * 4, stored);
        let keys = make("keys", tokens * 4, stored);
        let work = make("work", size.rounds * stride::<Work>(size.rows), stored);
        let plans = make("plans", size.rows * size_of::<Plan>() as u64, stored);
        let candidates = make("candidates", tokens * 8, stored);
        let carry = make("carry", size.rows * size_of::<Carry>() as u64, stored);
        let bytes = size.rows * size_of::<RowResult>() as u64;
        let results = make("results", bytes, stored | wgpu::BufferUsages::COPY_SRC);
        let edits = make("edits", size.edits * size_of::<EditWords>() as u64, stored);
        let staging = make("staging", bytes, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let all = [
            params.clone(),
            logits.clone(),
            keys,
            work.clone(),
            plans,
            candidates,
            carry,
            results.clone(),
            edits.clone(),
        ];
        let (groups, in_place) = (HashMap::new(), None);
        Self { size, params, logits, work, edits, results, staging, all, groups, in_place }
    }

    /// How the kernels of a round see the buffers; `logits` replaces our own.
    fn bind(
        &self,
        device: &wgpu::Device,
        pipelines: &[wgpu::ComputePipeline],
        round: usize,
        logits: Option<&wgpu::Buffer>,
    ) -> Vec<wgpu::BindGroup> {
        let part = |index: u32| {
            let buffer = match (index, logits) {
                (1, Some(logits)) => logits,
                _ => &self.all[index as usize],
            };
            // Parameters and sums are per round; everything else is shared.
            let stride = match index {
                0 => stride::<RowParams>(self.size.rows),
                3 => stride::<Work>(self.size.rows),
                _ => return buffer.as_entire_binding(),
            };
            wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer,
                offset: round as u64 * stride,
                size: std::num::NonZeroU64::new(stride),
            })
        };
        kernels::ROUND
            .iter()
            .zip(pipelines)
            .map(|(kernel, pipeline)| {
                let entries: Vec<_> = kernel
                    .bindings
                    .iter()
                    .map(|&binding| wgpu::BindGroupEntry { binding, resource: part(binding) })
                    .collect();
                device.create_bind_group(&wgpu::BindGroupDescriptor {
                    label: Some(kernel.name),
                    layout: &pipeline.get_bind_group_layout(0),
                    entries: &entries,
                })
            })
            .collect()
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // A browser frees a buffer only when it is collected, unless told.
        for buffer in self.all.iter().chain([&self.staging]) {
            buffer.destroy();
        }
    }
}

/// A value that a callback sets once.
#[derive(Debug, Clone, Default)]
struct Signal(Arc<Mutex<(Option<bool>, Option<Waker>)>>);

impl Signal {
    fn set(&self, outcome: bool) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.0 = Some(outcome);
        if let Some(waker) = inner.1.take() {
            waker.wake();
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn take(&self) -> Option<bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.take()
    }
}

impl Future for Signal {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = inner.0.take() {
            return Poll::Ready(outcome);
        }
        inner.1 = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Runs a future to its end on this thread. Natively nothing here truly waits for another
/// thread, so polling again is enough.
#[cfg(not(target_arch = "wasm32"))]
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        std::thread::yield_now();
    }
}
