//! `cargo xtask check`: format, lints, native tests, documentation, web checks.

use std::process::ExitCode;

use crate::report::Report;
use crate::{install, shell, wasm};

pub(crate) fn run() -> ExitCode {
    let mut report = Report::default();
    lints(&mut report);
    native(&mut report, Gpu::Optional);
    documentation(&mut report);
    web(&mut report);
    report.finish()
}

const WASM: &str = "--target wasm32-unknown-unknown --no-default-features";

/// Format, and clippy for each feature set.
pub(crate) fn lints(report: &mut Report) {
    report.check("format", &mut shell::command("cargo fmt --all --check"));
    let clippy = |selection: &str| shell::command(&format!("cargo clippy {selection} -- -D warnings"));
    report.check("clippy", &mut clippy("--all-targets"));
    report.check("clippy with the device path", &mut clippy("--all-targets --features gpu"));
    if report.need("wasm target", install::wasm_target()).is_some() {
        report.check("clippy for wasm", &mut clippy(&format!("{WASM} --lib --test wasm")));
        let fetched = format!("{WASM} --features constraint,gpu --lib");
        report.check("clippy for the modules that are fetched on first use", &mut clippy(&fetched));
    }
    report.check("clippy for xtask", &mut clippy("--profile tool --package xtask --all-targets"));
}

/// Whether tests of the device path may do without a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gpu {
    /// A machine without a Vulkan driver runs the rest.
    Optional,
    /// It is installed, and must be there.
    Required,
}

/// The library, the command line, the tests of `tests/`, and xtask's own.
pub(crate) fn native(report: &mut Report, gpu: Gpu) {
    // With the device path, so that the library is compiled for all tests once.
    let mut tests = shell::command("cargo test --features gpu --lib --bins --tests");
    if gpu == Gpu::Required && report.need("a Vulkan driver", install::vulkan()).is_some() {
        tests.env("LOGITSCOPE_GPU", "require");
    }
    report.suite("native tests", &mut tests);
    report.suite("xtask's tests", &mut shell::command("cargo test --profile tool --package xtask"));
}

/// The reference documentation, natively and for wasm.
pub(crate) fn documentation(report: &mut Report) {
    for (name, selection) in [("documentation", ""), ("documentation for wasm", WASM)] {
        let mut command = shell::command(&format!("cargo doc --no-deps --lib {selection}"));
        report.check(name, command.env("RUSTDOCFLAGS", "-D warnings"));
    }
}

/// Types, format and lints of the page.
pub(crate) fn web(report: &mut Report) {
    // The types of the boundary are those that wasm-bindgen writes.
    let bundles = wasm::build();
    if report.need("wasm bundles", bundles).is_some() {
        report.check("types of the page", &mut shell::npm("run --silent types"));
        report.check("format and lints of the page", &mut shell::npm("run --silent lint"));
    }
}
