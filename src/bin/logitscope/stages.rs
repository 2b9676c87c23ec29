//! `logitscope stages`: the catalogue of stages.

use std::io::{self, Write};

use clap::Args;
use logitscope::{config, registry};

use super::{Failure, write_line};

/// List every stage and sampler there is.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The whole declarations, as one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    if arguments.json {
        return write_line(&mut out, &registry::ALL);
    }
    for spec in registry::ALL {
        writeln!(out, "{}\n    {}", config::Args::defaults(spec), spec.summary)?;
    }
    Ok(())
}
