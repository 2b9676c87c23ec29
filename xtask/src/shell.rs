//! Running other programs from the repository's root, with every command shown.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the variable when it runs us, so a moved checkout is found again.
    let manifest = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map_or(manifest.clone(), Path::to_path_buf)
}

/// A path below the root, written with forward slashes.
pub(crate) fn path(below_root: &str) -> PathBuf {
    root().join(below_root)
}

/// A program to run from the root. `line` is split at spaces.
pub(crate) fn command(line: &str) -> Command {
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).current_dir(root());
    command
}

/// A script of `www/package.json`.
pub(crate) fn npm(arguments: &str) -> Command {
    let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let mut command = command(&format!("{program} {arguments}"));
    command.current_dir(path("www"));
    command
}

/// The command as a person would type it.
pub(crate) fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Runs a command to its end; a failure is an error that names it.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", show(command));
    let status = command.status().with_context(|| format!("cannot start `{}`", show(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", show(command));
    }
    Ok(())
}

/// What a command prints, trimmed; `None` if it cannot be run or fails.
pub(crate) fn output(line: &str) -> Option<String> {
    let output = command(line).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The first of these programs that stands on the search path.
pub(crate) fn find(programs: &[&str]) -> Option<PathBuf> {
    let search_path = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&search_path).collect();
    programs.iter().find_map(|program| {
        let file = format!("{program}{}", env::consts::EXE_SUFFIX);
        folders.iter().map(|folder| folder.join(&file)).find(|candidate| candidate.is_file())
    })
}
