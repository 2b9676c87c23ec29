//! `logitscope info`: what a model's file says about it.

use std::io;

use logitscope::model::Precision;

use super::{Failure, models, write_line};

/// Say what a model's file says, its chat template included, as one line of JSON.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// `default` or a GGUF file
    #[arg(long)]
    model: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = models::open(&arguments.model, Precision::Native)?;
    write_line(&mut io::stdout().lock(), model.info())
}
