//! What ran and what failed: the summary at the end of `check` and `test`.
//!
//! Counts are the runners' own, read from their output as it passes by. A suite that ran
//! nothing has failed, and so has one that could not be built.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::shell;

/// How many tests a runner says it ran.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Entry {
    name: &'static str,
    counts: Option<Counts>,
    problem: Option<String>,
    /// With what was built and installed for it.
    took: Duration,
}

/// The suites and checks so far, in the order in which they ran.
#[derive(Debug)]
pub(crate) struct Report {
    entries: Vec<Entry>,
    latest: Instant,
}

impl Default for Report {
    fn default() -> Self {
        Self { entries: Vec::new(), latest: Instant::now() }
    }
}

impl Report {
    fn enter(&mut self, name: &'static str, counts: Option<Counts>, problem: Option<String>) {
        let took = self.latest.elapsed();
        self.latest += took;
        self.entries.push(Entry { name, counts, problem, took });
    }

    /// A check without tests of its own: it passes if the command succeeds.
    pub(crate) fn check(&mut self, name: &'static str, command: &mut Command) {
        let problem = shell::run(command).err().map(|error| format!("{error:#}"));
        self.enter(name, None, problem);
    }

    /// A suite whose runner is cargo's, wasm-bindgen's or Node's.
    pub(crate) fn suite(&mut self, name: &'static str, command: &mut Command) {
        let (counts, problem) = match run_counted(command) {
            Ok((counts, problem)) => (counts, problem),
            Err(error) => (Counts::default(), Some(format!("{error:#}"))),
        };
        let problem = problem
            .or_else(|| (counts.passed == 0).then(|| format!("`{}` ran no test", shell::show(command))));
        self.enter(name, Some(counts), problem);
    }

    /// Something that a suite needs; the suite runs only if it is there.
    pub(crate) fn need<T>(&mut self, name: &'static str, what: Result<T>) -> Option<T> {
        match what {
            Ok(value) => Some(value),
            Err(error) => {
                self.enter(name, None, Some(format!("{error:#}")));
                None
            }
        }
    }

    /// Prints the summary, whose last line is `N passed, N failed`.
    pub(crate) fn finish(self) -> ExitCode {
        println!("\nSummary");
        let mut total = Counts::default();
        let mut problems = 0;
        for Entry { name, counts, problem, took } in &self.entries {
            let mut counts = counts.unwrap_or_default();
            let mark = if problem.is_some() { "FAILED" } else { "ok    " };
            let shown = if counts == Counts::default() { String::new() } else { format!(": {counts}") };
            println!("  {mark} {:>5} s  {name}{shown}", took.as_secs());
            if let Some(problem) = problem {
                problems += 1;
                println!("                  {}", problem.replace('\n', "\n                  "));
                // A failure that no runner counted is still one failure.
                counts.failed = counts.failed.max(1);
            }
            total.passed += counts.passed;
            total.failed += counts.failed;
            total.skipped += counts.skipped;
        }
        println!("  {} of {} parts passed", self.entries.len() - problems, self.entries.len());
        println!("\n{total}");
        if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Runs a test command, passing its output on, and counts what it says it ran.
fn run_counted(command: &mut Command) -> Result<(Counts, Option<String>)> {
    let shown = shell::show(command);
    eprintln!("$ {shown}");
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start `{shown}`"))?;
    let mut counts = Counts::default();
    if let Some(output) = child.stdout.take() {
        let mut terminal = std::io::stdout().lock();
        for line in BufReader::new(output).split(b'\n') {
            let line = line?;
            terminal.write_all(&line)?;
            terminal.write_all(b"\n")?;
            count(&String::from_utf8_lossy(&line), &mut counts);
        }
    }
    let status = child.wait()?;
    let problem = (!status.success()).then(|| format!("`{shown}` failed ({status})"));
    Ok((counts, problem))
}

/// Adds what one line of a runner's output says.
fn count(line: &str, counts: &mut Counts) {
    if let Some(result) = line.trim().strip_prefix("test result: ") {
        // test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; …
        let after = result.split_once(". ").map_or("", |(_, rest)| rest);
        for part in after.split("; ") {
            match part.split_once(' ') {
                Some((number, "passed")) => counts.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => counts.failed += number.parse().unwrap_or(0),
                Some((number, "ignored")) => counts.skipped += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    } else if let Some(result) = line.strip_prefix("ℹ ") {
        // ℹ pass 3
        match result.split_once(' ') {
            Some(("pass", number)) => counts.passed += number.parse().unwrap_or(0),
            Some(("fail" | "cancelled", number)) => counts.failed += number.parse().unwrap_or(0),
            Some(("skipped" | "todo", number)) => counts.skipped += number.parse().unwrap_or(0),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(output: &str) -> Counts {
        let mut counts = Counts::default();
        output.lines().for_each(|line| count(line, &mut counts));
        counts
    }

    #[test]
    fn cargo_counts_add_up_over_binaries() {
        let output = "\
running 3 tests
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: FAILED. 1 passed; 2 failed; 4 ignored; 0 measured; 9 filtered out; finished in 0.00s";
        assert_eq!(counts(output), Counts { passed: 4, failed: 2, skipped: 4 });
    }

    #[test]
    fn node_counts_are_read_from_its_closing_lines() {
        let output = "✔ loads (3 ms)\nℹ tests 4\nℹ pass 2\nℹ fail 1\nℹ cancelled 1\nℹ skipped 0\nℹ todo 0";
        assert_eq!(counts(output), Counts { passed: 2, failed: 2, skipped: 0 });
    }

    #[test]
    fn a_suite_without_tests_fails() {
        let mut report = Report::default();
        report.suite("empty", &mut shell::command("cargo --version"));
        assert_eq!(report.finish(), ExitCode::FAILURE);
    }

    #[test]
    fn a_missing_program_is_one_failure() {
        let mut report = Report::default();
        report.check("missing", &mut shell::command("no-such-program-here"));
        assert_eq!(report.finish(), ExitCode::FAILURE);
    }
}
