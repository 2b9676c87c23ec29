//! `logitscope gpu`: what this machine's adapter computes, and how fast.

use std::{
    io::{self, Write},
    sync::Arc,
};

use clap::{Args, Subcommand};
use logitscope::{
    Error, ErrorCode,
    gpu::{self, Clock, Device, SystemClock, bench, block_on, rehearsal, twin},
};

use super::{Failure, write_line};

/// Hold this machine's GPU to the CPU's integers, or measure it.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare every integer that comes back, and reject kernels with a fault.
    Check {
        /// Small vocabularies only.
        #[arg(long)]
        quick: bool,
        /// The report as one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Our path, a full bitonic sort, and the CPU.
    Bench {
        /// One line of JSON a measurement.
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let failed = |failure: gpu::Failure| Failure::Run(failure.into());
    let wrong = |message: String| Failure::Run(Error::new(ErrorCode::GpuRequired, message));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let mut device = block_on(Device::acquire(Arc::clone(&clock))).map_err(failed)?;
    let mut out = io::stdout().lock();
    match arguments.command {
        Command::Check { quick, json } => {
            let extent = if quick { twin::Extent::Quick } else { twin::Extent::Full };
            let start = std::time::Instant::now();
            let mut progress = |line: String| {
                // Where nobody listens, the result still counts.
                let _ = writeln!(io::stderr(), "{:>5} s  {line}", start.elapsed().as_secs());
            };
            let report = block_on(twin::run(&mut device, extent, &mut progress)).map_err(failed)?;
            let lost = block_on(rehearsal::run(&clock)).map_err(Failure::Run)?;
            if json {
                write_line(&mut out, &report)?;
                write_line(&mut out, &lost)?;
            } else {
                for price in &report.costs {
                    writeln!(out, "{price}")?;
                }
                for outcome in &lost {
                    writeln!(out, "{outcome}")?;
                }
                for difference in &report.differences {
                    writeln!(out, "different: {difference}")?;
                }
                for mutant in &report.survived {
                    writeln!(out, "survived: {mutant}")?;
                }
                writeln!(out, "{} launches, hash {}", report.launches, report.hash)?;
                writeln!(out, "{}", report.line())?;
            }
            if let Some(broken) = lost.iter().find(|outcome| !outcome.passed()) {
                return Err(wrong(format!("a lost device was not borne: {broken}")));
            }
            if !report.passed() {
                return Err(wrong(format!(
                    "{} differences, {} mutants survived, {} rows sorted, {} by radix, hash {} of {:?}",
                    report.different,
                    report.survived.len(),
                    report.sorted,
                    report.by_radix,
                    report.hash,
                    report.published
                )));
            }
        }
        Command::Bench { json } => {
            if !json {
                writeln!(out, "{}\n{}", device.adapter(), bench::HEADING)?;
            }
            let mut broken = None;
            let mut written = |written: Result<(), Failure>| {
                if let Err(failure) = written {
                    broken.get_or_insert(failure);
                }
            };
            let mut line = |line: &bench::Line| written(show(&mut out, json, line));
            block_on(bench::run(&mut device, &bench::VOCABULARIES, &bench::BATCHES, &mut line))
                .map_err(failed)?;
            let mut line = |line: &bench::HeadLine| written(show(&mut out, json, line));
            block_on(bench::heads(&mut device, &bench::HEADS, &mut line)).map_err(failed)?;
            if let Some(failure) = broken {
                return Err(failure);
            }
        }
    }
    Ok(())
}

/// One measurement, as JSON or in words.
fn show<T: serde::Serialize + std::fmt::Display>(
    out: &mut impl Write,
    json: bool,
    line: &T,
) -> Result<(), Failure> {
    if json { write_line(out, line) } else { Ok(writeln!(out, "{line}")?) }
}
