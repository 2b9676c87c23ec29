//! The command line.
//!
//! Each subcommand is a file here. Answers are JSON lines on standard output; an error is
//! one line on standard error that begins with its code. The exit status is 2 for bad
//! usage or input and 1 for a failed run.

mod apply;
mod generate;
mod logits;
mod models;
mod stages;
mod tokenize;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
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
    Generate(generate::Arguments),
    Logits(logits::Arguments),
    Tokenize(tokenize::Arguments),
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
        Self::Input(error)
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
    // Bad usage is reported by clap itself, with status 2.
    let result = match Arguments::parse().command {
        Command::Stages(arguments) => stages::run(&arguments),
        Command::Apply(arguments) => apply::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Logits(arguments) => logits::run(&arguments),
        Command::Tokenize(arguments) => tokenize::run(&arguments),
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

/// Writes one value as a line of JSON.
fn write_line(out: &mut impl Write, value: &impl Serialize) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}
