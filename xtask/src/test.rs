//! `cargo xtask test`: everything the README promises.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::report::Report;
use crate::{check, dist, gpu, install, shell, wasm};

const SUITES: [&str; 6] = ["native", "doc", "wasm", "node", "browser", "gpu"];

pub(crate) fn run(only: &[String]) -> Result<ExitCode> {
    if let Some(unknown) = only.iter().find(|name| !SUITES.contains(&name.as_str())) {
        bail!("there is no suite `{unknown}`; there are {}", SUITES.join(", "));
    }
    let wanted = |suite: &str| only.is_empty() || only.iter().any(|name| name == suite);
    let mut report = Report::default();
    if only.is_empty() {
        check::lints(&mut report);
        check::documentation(&mut report);
        check::web(&mut report);
    }
    if wanted("native") {
        check::native(&mut report, check::Gpu::Required);
    }
    if wanted("doc") {
        report.suite("documentation tests", &mut shell::command("cargo test --doc --features gpu"));
    }
    if wanted("wasm") {
        wasm_in_browser(&mut report);
    }
    if wanted("node") && report.need("wasm bundle for Node", wasm::build()).is_some() {
        report.suite("wasm under Node", &mut shell::npm("run --silent test:node"));
    }
    if wanted("browser") {
        page_in_browser(&mut report);
    }
    if wanted("gpu") {
        gpu::suite(&mut report);
    }
    Ok(report.finish())
}

/// The tests that `wasm-pack test --headless --chrome` runs.
fn wasm_in_browser(report: &mut Report) {
    let Some(browser) = report.need("a browser for wasm tests", install::browser()) else { return };
    let Some(()) = report.need("wasm target", install::wasm_target()) else { return };
    let Some(runner) = report.need("wasm test runner", build_runner()) else { return };
    let mut command =
        shell::command("cargo test --target wasm32-unknown-unknown --no-default-features --test wasm");
    command
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", runner)
        .env("CHROMEDRIVER", browser.driver)
        .env("WASM_BINDGEN_TEST_TIMEOUT", "300");
    report.suite("wasm in the browser", &mut command);
}

fn build_runner() -> Result<PathBuf> {
    shell::run(&mut shell::command("cargo build --profile tool --package wasm-test-runner"))?;
    Ok(shell::path(&format!("target/tool/wasm-test-runner{}", std::env::consts::EXE_SUFFIX)))
}

/// The page as it is delivered, driven as a reader would.
fn page_in_browser(report: &mut Report) {
    let Some(browser) = report.need("a browser for the page", install::browser()) else { return };
    let Some(()) = report.need("dist", dist::run()) else { return };
    let mut command = shell::npm("run --silent test:browser");
    report.suite("page in the browser", command.env("CHROME", browser.program));
}
