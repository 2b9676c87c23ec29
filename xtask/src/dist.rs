//! `cargo xtask dist`: the page as a folder that any static host serves.

use anyhow::Result;

use crate::{shell, wasm};

pub(crate) fn run() -> Result<()> {
    wasm::build()?;
    shell::run(&mut shell::npm("run --silent build"))
}
