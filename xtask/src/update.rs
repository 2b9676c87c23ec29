//! `cargo xtask update`: reformat, and rewrite generated files.

use anyhow::Result;

use crate::{install, shell};

pub(crate) fn run() -> Result<()> {
    shell::run(&mut shell::command("cargo fmt --all"))?;
    let mut generate = shell::command("cargo test --quiet --test generated --test digests");
    shell::run(generate.env("LOGITSCOPE_UPDATE", "1"))?;
    install::web_packages()?;
    shell::run(&mut shell::npm("run --silent format"))
}
