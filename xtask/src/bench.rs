//! `cargo xtask bench`: every claim of speed, measured on this machine.

use anyhow::Result;

use crate::{shell, wasm};

pub(crate) fn run() -> Result<()> {
    wasm::build()?;
    shell::run(&mut shell::npm("run --silent bench"))?;
    shell::run(&mut shell::command("cargo bench --bench *"))
}
