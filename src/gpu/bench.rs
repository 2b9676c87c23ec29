//! Our path, a full bitonic sort in WGSL, and the CPU, on the same rows in one run.
//!
//! The sort is favoured: it neither scales nor weighs nor draws, and its result is not read
//! back beyond one word a row.

use std::sync::Arc;

use crate::{
    Logits, Pipeline, StepContext,
    gpu::{
        device::{self, Cost, Device, Failure, PATIENCE_MS, Rows},
        head::{DeviceHead, HeadTimes, most_bytes},
        kernels::{self, Shape},
        layout::SORTED,
        program::Program,
        twin::head::matrix,
    },
    model::{Precision, head::Head, quant::TensorType},
    sampler::Pick,
    testing,
    trace::Off,
};

/// Sizes that are measured.
pub const VOCABULARIES: [usize; 5] = [32_768, 50_257, 128_256, 151_936, 262_144];
/// Batches that are measured.
pub const BATCHES: [usize; 3] = [1, 8, 32];
/// The pipeline, without penalties: a language model's usual one.
pub const PIPELINE: &str = "temperature(t=0.8) | top_k(k=40) | top_p(p=0.9) | min_p(m=0.05) | categorical()";

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Line {
    /// V.
    pub vocabulary: usize,
    /// B.
    pub rows: usize,
    /// Milliseconds of a launch of ours, upload and readback included.
    pub ours_ms: f64,
    /// Milliseconds of the sort; nothing if it was left out for its size.
    pub sort_ms: Option<f64>,
    /// Milliseconds of the CPU.
    pub cpu_ms: f64,
    /// What our launch cost.
    pub cost: Cost,
    /// Dispatches of the sort.
    pub sort_dispatches: u32,
    /// Gigabytes a second of vocabulary words in our launch, latency included.
    pub bandwidth: f64,
}

/// The heading of [`Line`]'s texts.
pub const HEADING: &str = "  tokens  rows |  ours ms  dispatches |  sort ms  dispatches |   CPU ms | GB/s";

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sort = self.sort_ms.map_or_else(|| "left out".to_owned(), |ms| format!("{ms:.3}"));
        write!(
            f,
            "{:>8} {:>5} | {:>8.3} {:>11} | {sort:>8} {:>11} | {:>8.3} | {:.2}",
            self.vocabulary,
            self.rows,
            self.ours_ms,
            self.cost.dispatches,
            self.sort_dispatches,
            self.cpu_ms,
            self.bandwidth
        )
    }
}

/// Runs the table; `progress` gets each line as it is known.
///
/// # Errors
/// When the device fails.
pub async fn run(
    device: &mut Device,
    vocabularies: &[usize],
    batches: &[usize],
    progress: &mut dyn FnMut(&Line),
) -> Result<Vec<Line>, Failure> {
    let invalid = |error: crate::Error| Failure::Invalid(error.to_string());
    let pipeline = Pipeline::parse(PIPELINE).map_err(invalid)?;
    let context = StepContext::default();
    // In a browser a software adapter would sort for minutes.
    let brief = cfg!(target_arch = "wasm32") && device.adapter().software;
    let most = if brief { 600_000 } else { usize::MAX };
    device.patience = PATIENCE_MS * 60;
    let mut lines = Vec::new();
    for &vocabulary in vocabularies {
        let made: Vec<Vec<f32>> = (0..4).map(|seed| testing::DISTRIBUTIONS[0].1(vocabulary, seed)).collect();
        for &rows in batches {
            let slices: Vec<&[f32]> = (0..rows).map(|row| &made[row % made.len()][..]).collect();
            let width = u32::try_from(vocabulary).unwrap_or(u32::MAX);
            let programs: Result<Vec<Program>, _> =
                (0..rows).map(|row| Program::of(&pipeline, &context, width, (row as u64) << 58)).collect();
            let programs = programs.map_err(invalid)?;

            let clock = Arc::clone(device.clock());
            let mut logits = Logits::unfilled();
            let mut cpu_ms = f64::INFINITY;
            for _ in 0..3 {
                let start = clock.now();
                for (row, slice) in slices.iter().enumerate() {
                    let pick = Pick::Uniform((row as u64) << 58);
                    pipeline
                        .decode(slice, &mut logits, &context, &mut *pipeline.sampler(), pick, &mut Off)
                        .map_err(invalid)?;
                }
                cpu_ms = cpu_ms.min(clock.now() - start);
            }
            let mut ours_ms = f64::INFINITY;
            for turn in 0..6 {
                let start = clock.now();
                device.launch(Rows::Host(&slices), width, &programs, SORTED).await?;
                if turn > 0 {
                    ours_ms = ours_ms.min(clock.now() - start);
                }
                if turn > 0 && ours_ms > 500.0 {
                    break;
                }
            }
            let cost = device.cost();
            let mut sort = Sort::new(device, vocabulary, &slices);
            let sort_ms = if vocabulary * rows <= most { Some(sort.measure(device).await?) } else { None };
            let line = Line {
                vocabulary,
                rows,
                ours_ms,
                sort_ms,
                cpu_ms,
                cost,
                sort_dispatches: sort.dispatches(),
                bandwidth: cost.traffic as f64 / ours_ms / 1e6,
            };
            if line.cost.dispatches >= line.sort_dispatches {
                return Err(Failure::Invalid(format!("ours takes as many dispatches as a sort: {line}")));
            }
            progress(&line);
            lines.push(line);
        }
    }
    device.patience = PATIENCE_MS;
    Ok(lines)
}

/// The last matrices that are measured, tokens and columns: of the model that ships, `TinyLlama`,
/// and SmolLM2 with 135 million and 1.7 billion parameters.
pub const HEADS: [(usize, usize); 4] = [(2_048, 128), (32_000, 2_048), (49_152, 576), (49_152, 2_048)];

/// A last matrix on the device beside the CPU.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct HeadLine {
    /// V.
    pub vocabulary: usize,
    /// Numbers of a hidden state.
    pub columns: usize,
    /// One row of logits, read back.
    pub times: HeadTimes,
}

impl std::fmt::Display for HeadLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { vocabulary, columns, times } = self;
        let ratio = times.cpu_ms / times.device_ms;
        write!(f, "logits, Q8_0 {vocabulary}x{columns}: {times}: {ratio:.2} times as fast")
    }
}

/// Measures made-up last matrices; their logits must be the CPU's, bit for bit.
///
/// # Errors
/// When the device fails.
pub async fn heads(
    device: &mut Device,
    sizes: &[(usize, usize)],
    progress: &mut dyn FnMut(&HeadLine),
) -> Result<(), Failure> {
    for &(vocabulary, columns) in sizes {
        let bytes = matrix(TensorType::Q8_0, vocabulary, columns, false, 1);
        let head = Head::new(TensorType::Q8_0, &bytes, vocabulary, columns, Precision::Native)
            .ok_or_else(|| Failure::Invalid("no matrix".to_owned()))?;
        let kernel = device.kernel(&kernels::HEAD);
        let mut there = DeviceHead::upload(device, &head, most_bytes(device), kernel).await?;
        let times = HeadTimes::of(device, &head, &mut there).await?;
        let times = times.ok_or_else(|| Failure::Invalid("the logits are not the CPU's".to_owned()))?;
        progress(&HeadLine { vocabulary, columns, times });
    }
    Ok(())
}

/// The sort, with its buffers.
struct Sort {
    rows: u32,
    padded: u32,
    workgroup: u32,
    fill: (wgpu::ComputePipeline, wgpu::BindGroup),
    /// Each merge with its dispatch.
    steps: Vec<(bool, wgpu::BindGroup)>,
    far: wgpu::ComputePipeline,
    near: wgpu::ComputePipeline,
    pairs: wgpu::Buffer,
    staging: wgpu::Buffer,
    logits: wgpu::Buffer,
    expected: u32,
}

impl Sort {
    fn new(device: &Device, vocabulary: usize, rows: &[&[f32]]) -> Self {
        let (gpu, queue) = device.raw();
        let workgroup = 256u32;
        let block = 2 * workgroup;
        let vocabulary = u32::try_from(vocabulary).unwrap_or(u32::MAX);
        let padded = vocabulary.next_power_of_two().max(block);
        let count = rows.len() as u64;
        let make = |size: u64, usage: wgpu::BufferUsages| {
            gpu.create_buffer(&wgpu::BufferDescriptor {
                label: Some("sort"),
                size,
                usage,
                mapped_at_creation: false,
            })
        };
        let stored =
            wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let logits = make(count * u64::from(vocabulary) * 4, stored);
        let pairs = make(count * u64::from(padded) * 8, stored);
        let staging = make(256, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let mut steps = vec![(0, 0)];
        let mut length = 2 * block;
        while length <= padded {
            let mut gap = length / 2;
            while gap >= block {
                steps.push((length, gap));
                gap /= 2;
            }
            steps.push((length, 0));
            length *= 2;
        }
        let uniforms =
            make(256 * steps.len() as u64, wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST);
        for (index, (length, gap)) in steps.iter().enumerate() {
            let words = [vocabulary, padded, *length, *gap];
            queue.write_buffer(&uniforms, 256 * index as u64, bytemuck::cast_slice(&words));
        }
        for (index, row) in rows.iter().enumerate() {
            queue.write_buffer(&logits, index as u64 * u64::from(vocabulary) * 4, bytemuck::cast_slice(row));
        }
        let text = kernels::sort_text(Shape { workgroup, ..Shape::default() });
        let pipeline = |name: &str| device::pipeline(gpu, name, &text);
        let (fill, far, near) = (pipeline("fill_and_sort"), pipeline("merge_far"), pipeline("merge_near"));
        let group = |pipeline: &wgpu::ComputePipeline, index: usize, with_logits: bool| {
            let uniform = wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer: &uniforms,
                offset: 256 * index as u64,
                size: std::num::NonZeroU64::new(16),
            });
            let mut entries = vec![wgpu::BindGroupEntry { binding: 0, resource: uniform }];
            if with_logits {
                entries.push(wgpu::BindGroupEntry { binding: 1, resource: logits.as_entire_binding() });
            }
            entries.push(wgpu::BindGroupEntry { binding: 2, resource: pairs.as_entire_binding() });
            gpu.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some("sort"),
                layout: &pipeline.get_bind_group_layout(0),
                entries: &entries,
            })
        };
        let first = group(&fill, 0, true);
        let merges = steps.iter().enumerate().skip(1).map(|(index, (_, gap))| {
            let is_far = *gap > 0;
            (is_far, group(if is_far { &far } else { &near }, index, false))
        });
        let steps = merges.collect();
        let highest = rows[0].iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
        let expected = highest.and_then(|(index, _)| u32::try_from(index).ok()).unwrap_or(0);
        Self {
            rows: u32::try_from(rows.len()).unwrap_or(u32::MAX),
            padded,
            workgroup,
            fill: (fill, first),
            steps,
            far,
            near,
            pairs,
            staging,
            logits,
            expected,
        }
    }

    fn dispatches(&self) -> u32 {
        u32::try_from(self.steps.len() + 1).unwrap_or(u32::MAX)
    }

    /// The best of a few runs, in milliseconds.
    async fn measure(&mut self, device: &Device) -> Result<f64, Failure> {
        let (gpu, queue) = device.raw();
        let clock = Arc::clone(device.clock());
        let groups = self.padded / (2 * self.workgroup);
        let mut best = f64::INFINITY;
        for turn in 0..4 {
            let start = clock.now();
            let mut encoder = gpu.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            {
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                pass.set_pipeline(&self.fill.0);
                pass.set_bind_group(0, &self.fill.1, &[]);
                pass.dispatch_workgroups(groups, self.rows, 1);
                for (is_far, group) in &self.steps {
                    pass.set_pipeline(if *is_far { &self.far } else { &self.near });
                    pass.set_bind_group(0, group, &[]);
                    pass.dispatch_workgroups(groups, self.rows, 1);
                }
            }
            encoder.copy_buffer_to_buffer(&self.pairs, 0, &self.staging, 0, Some(8));
            queue.submit([encoder.finish()]);
            device.map(&self.staging, 8).await?;
            let words: Vec<u32> = self
                .staging
                .get_mapped_range(..8)
                .map(|view| bytemuck::pod_collect_to_vec(&view))
                .map_err(|_| Failure::Lost)?;
            self.staging.unmap();
            if words.get(1) != Some(&self.expected) {
                return Err(Failure::Invalid(format!("the sort put {words:?} first, not {}", self.expected)));
            }
            if turn > 0 {
                best = best.min(clock.now() - start);
                if best > 500.0 {
                    break;
                }
            }
        }
        Ok(best)
    }
}

impl Drop for Sort {
    fn drop(&mut self) {
        for buffer in [&self.pairs, &self.staging, &self.logits] {
            buffer.destroy();
        }
    }
}
