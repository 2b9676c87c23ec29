//! `cargo xtask bench`: every claim of speed, measured on this machine.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::{dist, install, shell, wasm};

/// A Python that has the package `xllamacpp`, which carries llama.cpp.
const LLAMA_PYTHON: &str = "LOGITSCOPE_LLAMA_PYTHON";
/// The file of SmolLM2-135M-Instruct, if it is not where the tests leave it.
const SMOLLM2: &str = "LOGITSCOPE_SMOLLM2";

pub(crate) fn run(only: &[String]) -> Result<()> {
    match only {
        [] => {
            wasm::build()?;
            shell::run(&mut shell::npm("run --silent bench"))?;
            shell::run(&mut shell::command("cargo bench --bench step --bench constraint"))?;
            model()
        }
        [name] if name == "model" => model(),
        [name] if name == "gpu" => gpu(),
        _ => bail!("there is no bench `{}`; there are `model` and `gpu`", only.join(" ")),
    }
}

/// Tokens a second of the models: in a browser beside wllama, natively beside llama.cpp.
fn model() -> Result<()> {
    let file = env::var_os(SMOLLM2)
        .map_or_else(|| shell::path("cache/SmolLM2-135M-Instruct.Q4_1.gguf"), PathBuf::from);
    dist::run()?;
    let browser = install::browser()?;
    let mut command = shell::npm("run --silent bench:model");
    shell::run(command.env("CHROME", browser.program).env("SMOLLM2", &file))?;
    shell::run(&mut shell::command("cargo bench --bench model"))?;
    let Some(python) = env::var_os(LLAMA_PYTHON) else {
        println!(
            "llama.cpp is not measured: set {LLAMA_PYTHON} to a Python with the package xllamacpp, \
             such as one made with `python3 -m venv` and `pip install xllamacpp`"
        );
        return Ok(());
    };
    shell::run(Command::new(python).arg(shell::path("benches/llama_cpp.py")).arg(file))
}

/// Our path, a full bitonic sort in WGSL, and the CPU, on this machine's adapter.
fn gpu() -> Result<()> {
    install::vulkan()?;
    shell::run(&mut shell::command("cargo run --release --features gpu --bin logitscope -- gpu bench"))
}
