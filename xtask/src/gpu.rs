//! `cargo xtask gpu`: the twin suite on what this machine has, natively and in a browser.
//!
//! Neither may be missing. Where there is no GPU, Mesa's software Vulkan and the browser's own
//! software adapter stand in: they are slow, but as strict. Each is held to the same published
//! hash over every integer, so they are held to each other.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::report::Report;
use crate::{dist, install, shell};

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let (on_vulkan, in_a_browser) = match arguments {
        [] => (true, true),
        [word] if word == "native" => (true, false),
        [word] if word == "browser" => (false, true),
        _ => bail!("usage: cargo xtask gpu [native | browser]"),
    };
    let mut lines = Vec::new();
    if on_vulkan {
        lines.push(last_line(&mut native()?)?);
    }
    if in_a_browser {
        lines.push(last_line(&mut browser()?)?);
    }
    for line in lines {
        println!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The same as a part of `cargo xtask test`.
pub(crate) fn suite(report: &mut Report) {
    if let Some(mut command) = report.need("a Vulkan driver for the twin suite", native()) {
        report.check("twin suite natively", &mut command);
    }
    if let Some(mut command) = report.need("a browser for the twin suite", browser()) {
        report.suite("twin suite in the browser", &mut command);
    }
}

/// The suite through Vulkan.
fn native() -> Result<Command> {
    install::vulkan()?;
    let mut command = shell::command("cargo run --quiet --features gpu --bin logitscope -- gpu check");
    command.env("LOGITSCOPE_GPU", "require");
    Ok(command)
}

/// The suite on the page that readers run, in a browser.
fn browser() -> Result<Command> {
    let browser = install::browser()?;
    dist::run()?;
    let mut command = shell::npm("run --silent test:gpu");
    command.env("CHROME", browser.program);
    Ok(command)
}

/// Runs the suite, which must succeed, and returns its line `N comparisons on ADAPTER, M mutants
/// rejected`.
fn last_line(command: &mut Command) -> Result<String> {
    let shown = shell::show(command);
    eprintln!("$ {shown}");
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start `{shown}`"))?;
    let mut found = None;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line?;
            eprintln!("{line}");
            if line.contains(" comparisons on ") && line.ends_with(" mutants rejected") {
                found = Some(line.trim_start_matches("ℹ ").to_owned());
            }
        }
    }
    let status = child.wait()?;
    match found {
        Some(line) if status.success() && !line.starts_with("0 ") => Ok(line),
        _ => bail!("`{shown}` did not compare anything, or something differed ({status})"),
    }
}
