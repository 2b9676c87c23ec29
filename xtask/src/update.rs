//! `cargo xtask update`: reformat, and rewrite generated files.

use anyhow::Result;

use crate::{install, shell};

pub(crate) fn run() -> Result<()> {
    shell::run(&mut shell::command("cargo fmt --all"))?;
    install::web_packages()?;
    shell::run(&mut shell::npm("run --silent format"))
}
