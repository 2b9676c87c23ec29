//! The command line.
//!
//! Each subcommand is a file here. Answers are JSON lines on standard output; an error is
//! one line on standard error that begins with its code. The exit status is 2 for bad
//! usage or input and 1 for a failed run.

mod apply;
mod decoder;
mod generate;
#[cfg(feature = "gpu")]
mod gpu;
mod info;
mod logits;
mod mask;
mod models;
mod sequences;
mod stages;
mod stop;
mod tokenize;
mod verify;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Parser, Subcommand, error::ErrorKind};
use logitscope::{Error, ErrorCode};
use serde::Serialize;

/// From logits to the finished text, every step in the open.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Stages(stages::Arguments),
    Apply(apply::Arguments),
    Generate(Box<generate::Arguments>),
    #[cfg(feature = "gpu")]
    Gpu(gpu::Arguments),
    Info(info::Arguments),
    Logits(logits::Arguments),
    Tokenize(tokenize::Arguments),
    Mask(mask::Arguments),
    Stop(stop::Arguments),
    Verify(verify::Arguments),
}

/// Why a subcommand ended early.
#[derive(Debug)]
enum Failure {
    /// The caller gave something that cannot be used: exit status 2.
    Input(Error),
    /// The caller was right, but the run did not succeed: exit status 1.
    Run(Error),
    /// Nobody reads the output any more.
    OutputClosed,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.code {
            // Only a run brings these up: what the model gave, or a stage made of it, is no number.
            ErrorCode::NanLogit | ErrorCode::InfiniteLogit => Self::Run(error),
            _ => Self::Input(error),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::Run(Error::new(ErrorCode::Io, error.to_string()))
    }
}

fn main() -> ExitCode {
    let result = match command() {
        Ok(None) => Ok(()),
        Ok(Some(Command::Stages(arguments))) => stages::run(&arguments),
        Ok(Some(Command::Apply(arguments))) => apply::run(&arguments),
        Ok(Some(Command::Generate(arguments))) => generate::run(&arguments),
        #[cfg(feature = "gpu")]
        Ok(Some(Command::Gpu(arguments))) => gpu::run(&arguments),
        Ok(Some(Command::Info(arguments))) => info::run(&arguments),
        Ok(Some(Command::Logits(arguments))) => logits::run(&arguments),
        Ok(Some(Command::Tokenize(arguments))) => tokenize::run(&arguments),
        Ok(Some(Command::Mask(arguments))) => mask::run(&arguments),
        Ok(Some(Command::Stop(arguments))) => stop::run(&arguments),
        Ok(Some(Command::Verify(arguments))) => verify::run(&arguments),
        Err(failure) => Err(failure),
    };
    let (error, status) = match result {
        Ok(()) | Err(Failure::OutputClosed) => return ExitCode::SUCCESS,
        Err(Failure::Input(error)) => (error, 2),
        Err(Failure::Run(error)) => (error, 1),
    };
    let message = error.message.replace(['\r', '\n'], " ");
    // Where even standard error is closed, the status has to do.
    let _ = writeln!(io::stderr(), "{}: {message}", error.code.as_str());
    ExitCode::from(status)
}

/// What the caller asks for; nothing more where that was help or the version.
fn command() -> Result<Option<Command>, Failure> {
    match Arguments::try_parse() {
        Ok(arguments) => Ok(Some(arguments.command)),
        Err(answer) if !answer.use_stderr() => {
            answer.print()?;
            Ok(None)
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Error::new(ErrorCode::BadInput, "no command was given; see --help").into())
        }
        Err(error) => {
            // Without the paragraphs that follow, which repeat the usage, it is one line.
            let text = error.to_string();
            let what = text.split("\n\n").next().unwrap_or_default();
            let what: Vec<_> = what.trim_start_matches("error: ").split_whitespace().collect();
            Err(Error::new(ErrorCode::BadInput, format!("{}; see --help", what.join(" "))).into())
        }
    }
}

/// Writes one value as a line of JSON.
fn write_line(out: &mut impl Write, value: &impl Serialize) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}
