//! The start-up measurement: which shape suits the adapter, and from which batch on the device
//! is faster than the CPU.

use std::fmt;

use crate::{
    Logits, Pipeline, StepContext,
    gpu::{
        device::{Adapter, Device, Failure, PATIENCE_MS, Rows},
        kernels::Shape,
        layout::SORTED,
        program::Program,
    },
    testing,
};

/// What a launch and a step of the CPU cost on this machine.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Measured {
    /// What was measured.
    pub adapter: Adapter,
    /// The fastest shape.
    pub shape: Shape,
    /// Each shape that was tried, with its milliseconds.
    pub shapes: Vec<(Shape, f64)>,
    /// Milliseconds of a launch that does nearly nothing.
    pub launch_ms: f64,
    /// Milliseconds of the device for a million tokens.
    pub device_ms: f64,
    /// Milliseconds of the CPU for a million tokens.
    pub cpu_ms: f64,
}

/// Tokens of the rows that are measured.
const TOKENS: u32 = 32_768;
/// Rows of the large batch.
const ROWS: usize = 4;
/// No further shape is tried after so many milliseconds.
const BUDGET_MS: f64 = 1_000.0;
const PIPELINE: &str = "temperature(t=0.8) | top_k(k=100) | top_p(p=0.9) | min_p(m=0.05) | categorical()";

/// A launch that does nearly nothing, after which the kernels of the present shape are compiled.
///
/// # Errors
/// When the device fails.
pub(crate) async fn warm_up(device: &mut Device) -> Result<(), Failure> {
    const FEW: u32 = 256;
    let pipeline = Pipeline::parse(PIPELINE).map_err(invalid)?;
    let row = testing::DISTRIBUTIONS[0].1(FEW as usize, 1);
    device.launch(Rows::Host(&[&row]), FEW, &[program(&pipeline, FEW)?], SORTED).await?;
    Ok(())
}

fn program(pipeline: &Pipeline, tokens: u32) -> Result<Program, Failure> {
    Program::of(pipeline, &StepContext::default(), tokens, 1 << 62).map_err(invalid)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn invalid(error: crate::Error) -> Failure {
    Failure::Invalid(error.to_string())
}

impl Measured {
    /// Measures a device against the CPU.
    ///
    /// # Errors
    /// When the device fails.
    pub async fn of(device: &mut Device) -> Result<Self, Failure> {
        let pipeline = Pipeline::parse(PIPELINE).map_err(invalid)?;
        let context = StepContext::default();
        let row = testing::DISTRIBUTIONS[0].1(TOKENS as usize, 1);
        let clock = std::sync::Arc::clone(device.clock());
        device.patience = 15 * PATIENCE_MS;

        let mut logits = Logits::unfilled();
        let mut cpu = f64::INFINITY;
        for _ in 0..3 {
            let start = clock.now();
            pipeline
                .decode(
                    &row,
                    &mut logits,
                    &context,
                    &mut *pipeline.sampler(),
                    crate::sampler::Pick::Uniform(1 << 62),
                    &mut crate::trace::Off,
                )
                .map_err(invalid)?;
            cpu = cpu.min(clock.now() - start);
        }

        let whole = vec![program(&pipeline, TOKENS)?; ROWS];
        let rows = [&row[..]; ROWS];
        let begun = clock.now();
        let mut shapes = Vec::new();
        for shape in Shape::ALL {
            device.set_shape(shape);
            let mut best = f64::INFINITY;
            // The first launch compiles.
            for turn in 0..3 {
                let start = clock.now();
                device.launch(Rows::Host(&rows), TOKENS, &whole, SORTED).await?;
                if turn > 0 {
                    best = best.min(clock.now() - start);
                }
            }
            shapes.push((shape, best));
            if clock.now() - begun > BUDGET_MS {
                break;
            }
        }
        let fastest = shapes.iter().min_by(|a, b| a.1.total_cmp(&b.1)).copied();
        let (shape, large) = fastest.unwrap_or((Shape::default(), f64::INFINITY));
        device.set_shape(shape);
        let mut launch = f64::INFINITY;
        for _ in 0..3 {
            let start = clock.now();
            warm_up(device).await?;
            launch = launch.min(clock.now() - start);
        }
        device.patience = PATIENCE_MS;
        let million = 1e6 / (f64::from(TOKENS) * ROWS as f64);
        Ok(Self {
            adapter: device.adapter().clone(),
            shape,
            shapes,
            launch_ms: launch,
            device_ms: (large - launch).max(0.0) * million,
            cpu_ms: cpu * 1e6 / f64::from(TOKENS),
        })
    }

    /// Whether a batch is faster on the device.
    #[must_use]
    pub fn prefers_device(&self, rows: usize, vocabulary: usize) -> bool {
        let millions = rows as f64 * vocabulary as f64 / 1e6;
        self.launch_ms + self.device_ms * millions < self.cpu_ms * millions
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shape, launch_ms, device_ms, cpu_ms, .. } = self;
        write!(
            f,
            "to start it takes {launch_ms:.2} ms, a million tokens {device_ms:.2} ms more, and {cpu_ms:.2} ms on \
             the CPU (work cut as {shape})"
        )
    }
}
