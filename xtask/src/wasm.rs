//! The optimised wasm bundle, `www/pkg/`: the one that the page and the tests load.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use crate::{install, shell};

const COMPILED: &str = "target/wasm32-unknown-unknown/wasm/logitscope.wasm";
const BUNDLED: &str = "www/pkg/logitscope_bg.wasm";

/// Builds `www/pkg/` if the library changed since the last time.
pub(crate) fn build() -> Result<()> {
    install::wasm_target()?;
    install::web_packages()?;
    shell::run(&mut shell::command(
        "cargo build --profile wasm --target wasm32-unknown-unknown --lib --no-default-features",
    ))?;
    let compiled = shell::path(COMPILED);
    let bundled = shell::path(BUNDLED);
    if modified(&bundled)? >= modified(&compiled)? {
        return Ok(());
    }

    // A bundle that is only half made must not look finished.
    let folder = shell::path("www/pkg");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot replace {}", folder.display()))?;
    }
    let raw = shell::path("target/bindgen");
    Bindgen::new()
        .input_path(&compiled)
        .web(true)?
        .typescript(true)
        .omit_default_module_path(true)
        .remove_producers_section(true)
        .generate(&raw)?;
    fs::create_dir_all(&folder)?;
    for file in ["logitscope.js", "logitscope.d.ts"] {
        fs::copy(raw.join(file), folder.join(file)).with_context(|| format!("bindgen wrote no {file}"))?;
    }
    optimise(&raw.join("logitscope_bg.wasm"), &bundled)
}

/// The npm binaryen's `wasm-opt`: a distribution's may be old enough to break the module.
fn optimise(from: &Path, to: &Path) -> Result<()> {
    // -O3 rather than -Oz: compressed, the two differ by less than a hundredth.
    let mut command = shell::command("node www/node_modules/binaryen/bin/wasm-opt -O3");
    shell::run(command.arg(from).arg("-o").arg(to))
}

/// When a file was last written; the beginning of time if it does not exist.
fn modified(file: &Path) -> Result<SystemTime> {
    if !file.exists() {
        return Ok(SystemTime::UNIX_EPOCH);
    }
    fs::metadata(file)
        .and_then(|data| data.modified())
        .with_context(|| format!("cannot read {}", file.display()))
}
