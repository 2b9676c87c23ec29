//! A model's last matrix on a device, so that logits are born where the pipeline reads them.
//!
//! The weights go there once and stay integers. For each step the CPU rounds the hidden state
//! as its own kernel does, and uploads that: a few kilobytes in place of V scores. Every bit of
//! the result is the CPU's, whatever the device's floats do; see `head.wgsl`. A matrix that
//! cannot be had so stays on the CPU, and [`obstacle`] says why.

use std::ops::Range;

use crate::{
    gpu::{
        device::{Device, Failure, PATIENCE_MS},
        kernels::HEAD,
        why,
    },
    model::{
        head::{Head, HeadInput},
        quant::{BLOCK, TensorType, UnpackedRow},
    },
};

/// Bytes of weights that are unpacked together on their way to the device.
const PIECE: usize = 1 << 20;
/// How long a measurement takes at least, in milliseconds, or how many runs at most.
const ENOUGH_MS: f64 = 10.0;
const MOST_RUNS: u32 = 100;
/// Invocations that share a row.
const ACCUMULATORS: u32 = 4;

/// Why a device cannot multiply by a matrix; nothing if it can.
pub(crate) fn obstacle(head: &Head) -> Option<String> {
    if !head.is_integer() {
        return Some(why::FLOATS.to_owned());
    }
    let has_kernel = matches!(head.kind(), TensorType::Q8_0 | TensorType::Q4_0 | TensorType::Q5_0);
    (!has_kernel).then(|| why::format(head.kind()))
}

/// A matrix on a device, with room for as many hidden states as it has seen together.
#[derive(Debug)]
pub(crate) struct DeviceHead {
    rows: usize,
    columns: usize,
    pipeline: wgpu::ComputePipeline,
    parts: Vec<Part>,
    room: Option<Room>,
}

/// Room for the inputs and logits of some positions.
#[derive(Debug)]
struct Room {
    positions: usize,
    inputs: wgpu::Buffer,
    input_scales: wgpu::Buffer,
    logits: wgpu::Buffer,
    staging: wgpu::Buffer,
    /// How each part binds it.
    bound: Vec<wgpu::BindGroup>,
}

/// As many rows as one buffer may hold.
#[derive(Debug)]
struct Part {
    rows: Range<usize>,
    /// Workgroups that do it.
    groups: u32,
    /// Four words: rows of the part, blocks of a row, the first row, rows of all parts.
    sizes: wgpu::Buffer,
    weights: wgpu::Buffer,
    scales: wgpu::Buffer,
}

/// A storage buffer that the host fills.
fn storage(gpu: &wgpu::Device, label: &str, bytes: usize) -> wgpu::Buffer {
    buffer(gpu, label, bytes, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST)
}

fn buffer(gpu: &wgpu::Device, label: &str, bytes: usize, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    gpu.create_buffer(&wgpu::BufferDescriptor {
        label: Some(label),
        size: bytes as u64,
        usage,
        mapped_at_creation: false,
    })
}

/// How many bytes of weights a buffer of a device may hold.
pub(crate) fn most_bytes(device: &Device) -> usize {
    usize::try_from(device.raw().0.limits().max_storage_buffer_binding_size).unwrap_or(usize::MAX)
}

impl DeviceHead {
    /// Uploads a matrix without an [`obstacle`], in parts of at most so many bytes; the kernel
    /// is [`HEAD`] for the device's shape.
    ///
    /// # Errors
    /// `OutOfMemory` where it does not fit, after which the device is as before.
    pub(crate) async fn upload(
        device: &Device,
        head: &Head<'_>,
        part_bytes: usize,
        pipeline: wgpu::ComputePipeline,
    ) -> Result<Self, Failure> {
        let (gpu, queue) = device.raw();
        let memory = gpu.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let blocks = head.columns() / BLOCK;
        let rows_a_group = (device.shape().workgroup / ACCUMULATORS) as usize;
        let most_groups = gpu.limits().max_compute_workgroups_per_dimension as usize;
        let together = (part_bytes / head.columns()).clamp(1, most_groups * rows_a_group);
        let part = |first: usize| {
            let rows = first..head.rows().min(first + together);
            let sizes = storage(gpu, "sizes", 16);
            let weights = storage(gpu, "weights", rows.len() * blocks * BLOCK);
            let scales = storage(gpu, "weight scales", rows.len() * blocks * 4);
            let groups = u32::try_from(rows.len().div_ceil(rows_a_group)).unwrap_or(u32::MAX);
            Part { rows, groups, sizes, weights, scales }
        };
        let parts: Vec<Part> = (0..head.rows()).step_by(together).map(part).collect();
        let mut made = Self { rows: head.rows(), columns: head.columns(), pipeline, parts, room: None };
        device.fits(memory.pop()).await?;
        made.reserve(device, 1).await?;
        for part in &made.parts {
            part.fill(queue, head);
        }
        Ok(made)
    }

    /// Tokens of the vocabulary.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The logits of the last [`multiply`](Self::multiply), `[positions, rows]`.
    pub(crate) fn logits(&self) -> Option<&wgpu::Buffer> {
        self.room.as_ref().map(|room| &room.logits)
    }

    /// Makes the room larger if it is too small.
    async fn reserve(&mut self, device: &Device, positions: usize) -> Result<(), Failure> {
        if self.room.as_ref().is_some_and(|room| room.positions >= positions) {
            return Ok(());
        }
        self.room = None;
        let gpu = device.raw().0;
        let memory = gpu.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let blocks = self.columns / BLOCK;
        let bytes = positions * self.rows * 4;
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
        let readable = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let inputs = storage(gpu, "inputs", positions * blocks * BLOCK * 2);
        let input_scales = storage(gpu, "input scales", positions * blocks * 4);
        let logits = buffer(gpu, "logits", bytes, usage);
        let staging = buffer(gpu, "logits read back", bytes, readable);
        let layout = self.pipeline.get_bind_group_layout(0);
        let bind = |part: &Part| {
            let buffers = [&part.sizes, &part.weights, &part.scales, &inputs, &input_scales, &logits];
            let resources = buffers.map(wgpu::Buffer::as_entire_binding);
            let entry = |(&binding, resource)| wgpu::BindGroupEntry { binding, resource };
            gpu.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some(HEAD.name),
                layout: &layout,
                entries: &HEAD.bindings.iter().zip(resources).map(entry).collect::<Vec<_>>(),
            })
        };
        let bound = self.parts.iter().map(bind).collect();
        let room = Room { positions, inputs, input_scales, logits, staging, bound };
        device.fits(memory.pop()).await?;
        self.room = Some(room);
        Ok(())
    }

    /// Starts the product with some hidden states, all in one submission; those from `kept` on
    /// are to be [read](Self::read).
    ///
    /// # Errors
    /// What has befallen the device.
    pub(crate) async fn multiply(
        &mut self,
        device: &Device,
        inputs: &[HeadInput],
        kept: usize,
    ) -> Result<(), Failure> {
        device.check()?;
        self.reserve(device, inputs.len()).await?;
        let Some(room) = &self.room else { return Ok(()) };
        let (gpu, queue) = device.raw();
        for (position, input) in inputs.iter().enumerate() {
            let (quants, scales): (&[u8], &[u8]) =
                (bytemuck::cast_slice(&input.quants), bytemuck::cast_slice(&input.scales));
            queue.write_buffer(&room.inputs, (position * quants.len()) as u64, quants);
            queue.write_buffer(&room.input_scales, (position * scales.len()) as u64, scales);
        }
        let mut encoder = gpu.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&self.pipeline);
            for (part, bound) in self.parts.iter().zip(&room.bound) {
                pass.set_bind_group(0, bound, &[]);
                pass.dispatch_workgroups(part.groups, u32::try_from(inputs.len()).unwrap_or(u32::MAX), 1);
            }
        }
        let (from, bytes) = (self.bytes(kept), self.bytes(inputs.len() - kept));
        if bytes > 0 {
            encoder.copy_buffer_to_buffer(&room.logits, from, &room.staging, 0, Some(bytes));
        }
        device.submit(encoder.finish())
    }

    /// The bytes of some positions' logits.
    fn bytes(&self, positions: usize) -> u64 {
        (positions * self.rows * 4) as u64
    }

    /// The logits that the last [`multiply`](Self::multiply) kept, `[positions, rows]`.
    ///
    /// # Errors
    /// What has befallen the device.
    pub(crate) async fn read(&self, device: &Device, positions: usize) -> Result<Vec<f32>, Failure> {
        let Some(room) = &self.room else { return Ok(Vec::new()) };
        let bytes = self.bytes(positions);
        device.map(&room.staging, bytes).await?;
        let logits = room
            .staging
            .get_mapped_range(..bytes)
            .map(|view| bytemuck::pod_collect_to_vec(&view))
            .map_err(|_| Failure::Lost)?;
        room.staging.unmap();
        device.check()?;
        Ok(logits)
    }

    /// The logits of one hidden state, read back.
    ///
    /// # Errors
    /// What has befallen the device.
    async fn logits_of(
        &mut self,
        device: &Device,
        head: &Head<'_>,
        hidden: &[f32],
    ) -> Result<Vec<f32>, Failure> {
        self.multiply(device, &[head.input(hidden)], 0).await?;
        self.read(device, 1).await
    }
}

impl Part {
    fn fill(&self, queue: &wgpu::Queue, head: &Head) {
        let blocks = head.columns() / BLOCK;
        let sizes = [self.rows.len(), blocks, self.rows.start, head.rows()];
        let sizes = sizes.map(|size| u32::try_from(size).unwrap_or(u32::MAX));
        queue.write_buffer(&self.sizes, 0, bytemuck::cast_slice(&sizes));
        let together = (PIECE / head.columns()).max(1);
        let mut row = UnpackedRow::new(head.columns());
        let (mut bytes, mut factors) = (Vec::new(), Vec::new());
        for first in self.rows.clone().step_by(together) {
            bytes.clear();
            factors.clear();
            for index in first..self.rows.end.min(first + together) {
                head.unpack(index, &mut row);
                #[expect(clippy::cast_possible_truncation, reason = "these types have at most 8 bits")]
                bytes.extend(row.quants[..blocks * BLOCK].iter().map(|quant| *quant as i8));
                factors.extend_from_slice(&row.scales[..blocks]);
            }
            let before = (first - self.rows.start) * blocks;
            queue.write_buffer(&self.weights, (before * BLOCK) as u64, bytemuck::cast_slice(&bytes));
            queue.write_buffer(&self.scales, (before * 4) as u64, bytemuck::cast_slice(&factors));
        }
    }
}

// A browser frees a buffer only when it is collected, unless told.
impl Drop for Room {
    fn drop(&mut self) {
        for buffer in [&self.inputs, &self.input_scales, &self.logits, &self.staging] {
            buffer.destroy();
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        for buffer in [&self.sizes, &self.weights, &self.scales] {
            buffer.destroy();
        }
    }
}

/// What one row of logits costs.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct HeadTimes {
    /// Milliseconds of the device, the logits read back.
    pub device_ms: f64,
    /// Milliseconds of the CPU.
    pub cpu_ms: f64,
}

impl HeadTimes {
    /// Measures both on the same hidden state; nothing if the device's bits are not the CPU's.
    ///
    /// # Errors
    /// When the device fails.
    pub(crate) async fn of(
        device: &mut Device,
        head: &Head<'_>,
        there: &mut DeviceHead,
    ) -> Result<Option<Self>, Failure> {
        // The first launch compiles.
        let patience = std::mem::replace(&mut device.patience, 15 * PATIENCE_MS);
        let times = Self::measured(device, head, there).await;
        device.patience = patience;
        times
    }

    async fn measured(
        device: &Device,
        head: &Head<'_>,
        there: &mut DeviceHead,
    ) -> Result<Option<Self>, Failure> {
        let clock = std::sync::Arc::clone(device.clock());
        let hidden: Vec<f32> = (0..head.columns()).map(|i| (i * 37 % 101) as f32 / 25.0 - 2.0).collect();
        let wanted = head.multiply(&hidden);
        if !same(&there.logits_of(device, head, &hidden).await?, &wanted) {
            return Ok(None);
        }
        // Browsers' clocks are coarse, so a short product is repeated.
        let (mut runs, start) = (0, clock.now());
        while runs < 2 || (runs < MOST_RUNS && clock.now() - start < ENOUGH_MS) {
            std::hint::black_box(head.multiply(&hidden));
            runs += 1;
        }
        let cpu_ms = (clock.now() - start) / f64::from(runs);
        let (mut runs, start) = (0, clock.now());
        while runs < 2 || (runs < MOST_RUNS && clock.now() - start < ENOUGH_MS) {
            there.logits_of(device, head, &hidden).await?;
            runs += 1;
        }
        Ok(Some(Self { device_ms: (clock.now() - start) / f64::from(runs), cpu_ms }))
    }
}

impl std::fmt::Display for HeadTimes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a row of logits takes {:.2} ms, and {:.2} ms on the CPU", self.device_ms, self.cpu_ms)
    }
}

/// Whether all bits are the same. What NaN looks like inside is nobody's concern: it is refused.
pub(crate) fn same(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
}
