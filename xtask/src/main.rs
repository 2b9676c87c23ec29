//! The project's own commands: `cargo xtask serve`, `cargo xtask test`, and their parts.
//!
//! Each command is a module. They share [`shell`] (running programs), [`install`] (what a
//! fresh machine lacks), [`wasm`] (the optimised bundle) and [`report`] (what ran, what
//! failed). To add a command, write a module with a `run` and list it in `main`.
#![allow(clippy::print_stdout, reason = "a command line tool talks on standard output")]

mod bench;
mod check;
mod dist;
mod gpu;
mod install;
mod report;
mod serve;
mod shell;
mod test;
mod update;
mod wasm;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  serve           build, then open the page from a local server
  test [SUITE…]   everything the README promises, or only the suites named:
                  native, doc, wasm, node, browser, gpu
  check           format, lints, native tests, documentation, web checks
  update          reformat, and rewrite generated files
  gpu             the device path against the CPU, natively and in a browser
  bench [NAME]    the claims of speed, measured here; or those of `model` or `gpu` only
  dist            write dist/, a folder that any static host serves";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("", &[][..]),
    };
    let outcome = match command {
        "serve" => serve::run(rest).map(done),
        "test" => test::run(rest),
        "check" => Ok(check::run()),
        "bench" => bench::run(rest).map(done),
        "update" => update::run().map(done),
        "dist" => dist::run().map(done),
        "gpu" => gpu::run(rest),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask {command}: {error:#}");
        ExitCode::FAILURE
    })
}

/// The status of a command that either succeeds or says why not.
fn done((): ()) -> ExitCode {
    ExitCode::SUCCESS
}
