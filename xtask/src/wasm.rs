//! The optimised wasm bundles: `www/pkg/`, which the page loads first, and those that are
//! fetched on first use. Tests load the same ones.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::SystemTime;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use crate::{install, shell};

/// One bundle: where it lies, what its files are called, and what it is compiled with.
struct Bundle {
    folder: &'static str,
    name: &'static str,
    features: &'static str,
    /// Where it is compiled: builds with other features must not overwrite each other.
    target: &'static str,
}

/// What the page loads.
const PAGE: Bundle = Bundle { folder: "www/pkg", name: "logitscope", features: "", target: "target" };
/// What the Sequences area fetches when it is first opened, with beams, speculation and the
/// parsers of constraints, so that the first visit stays small; and always with the device path,
/// which is a small part of it.
const SEQUENCES: Bundle = Bundle {
    folder: "www/pkg-sequences",
    name: "logitscope_sequences",
    features: " --features constraint,gpu",
    target: "target/constraint",
};
/// What the page fetches in place of the plain one where there is a GPU.
const GPU: Bundle = Bundle {
    folder: "www/pkg-gpu",
    name: "logitscope_gpu",
    features: " --features gpu",
    target: "target/gpu",
};

/// Builds every bundle of the page, if the library changed since the last time. All at once,
/// because the longest part of each, optimising it as a whole, keeps one processor busy.
pub(crate) fn build() -> Result<()> {
    install::wasm_target()?;
    install::web_packages()?;
    thread::scope(|scope| {
        let builds = [PAGE, SEQUENCES, GPU].map(|wanted| scope.spawn(move || bundle(&wanted)));
        builds.into_iter().try_for_each(|build| build.join().expect("no build panics"))
    })
}

fn bundle(bundle: &Bundle) -> Result<()> {
    let Bundle { folder, name, features, target } = bundle;
    shell::run(&mut shell::command(&format!(
        "cargo build --profile wasm --target wasm32-unknown-unknown --target-dir {target} --lib \
         --no-default-features{features}"
    )))?;
    let compiled = shell::path(&format!("{target}/wasm32-unknown-unknown/wasm/logitscope.wasm"));
    let bundled = shell::path(&format!("{folder}/{name}_bg.wasm"));
    if modified(&bundled)? >= modified(&compiled)? {
        return Ok(());
    }

    // A bundle that is only half made must not look finished.
    let folder = shell::path(folder);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot replace {}", folder.display()))?;
    }
    let raw = shell::path(&format!("{target}/bindgen"));
    Bindgen::new()
        .input_path(&compiled)
        .out_name(name)
        .web(true)?
        .typescript(true)
        .omit_default_module_path(true)
        .remove_producers_section(true)
        .generate(&raw)?;
    fs::create_dir_all(&folder)?;
    for file in [format!("{name}.js"), format!("{name}.d.ts")] {
        fs::copy(raw.join(&file), folder.join(&file)).with_context(|| format!("bindgen wrote no {file}"))?;
    }
    optimise(&raw.join(format!("{name}_bg.wasm")), &bundled)
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
