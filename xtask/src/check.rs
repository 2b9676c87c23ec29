//! `cargo xtask check`: format, lints, native tests, documentation, web checks.

use std::process::ExitCode;

use crate::report::Report;
use crate::{install, shell, wasm};

pub(crate) fn run() -> ExitCode {
    let mut report = Report::default();
    lints(&mut report);
    native(&mut report);
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
    if report.need("wasm target", install::wasm_target()).is_some() {
        report.check("clippy for wasm", &mut clippy(&format!("{WASM} --lib --test wasm")));
    }
    report.check("clippy for xtask", &mut clippy("--profile tool --package xtask --all-targets"));
}

/// The library, the command line, the tests of `tests/`, and xtask's own.
pub(crate) fn native(report: &mut Report) {
    report.suite("native tests", &mut shell::command("cargo test --lib --bins --tests"));
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
    if report.need("wasm bundle", wasm::build()).is_some() {
        report.check("types of the page", &mut shell::npm("run --silent types"));
        report.check("format and lints of the page", &mut shell::npm("run --silent lint"));
    }
}
