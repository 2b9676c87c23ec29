//! Installs what a fresh machine lacks, or says exactly what to do.
//!
//! Assumed: rustup, Node and git. Installed: the wasm target, the npm packages of `www/`,
//! and for tests a Chromium with its driver.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::shell;

const WASM_TARGET: &str = "wasm32-unknown-unknown";
/// The oldest Node that Vite runs on.
const NODE: (u32, u32) = (20, 19);

/// The wasm target of the pinned compiler.
pub(crate) fn wasm_target() -> Result<()> {
    let library = shell::output("rustc --print target-libdir --target wasm32-unknown-unknown");
    if library.is_some_and(|folder| PathBuf::from(folder).is_dir()) {
        return Ok(());
    }
    shell::run(&mut shell::command(&format!("rustup target add {WASM_TARGET}"))).with_context(|| {
        format!(
            "the compiler has no {WASM_TARGET}: install rustup, then run `rustup target add {WASM_TARGET}`"
        )
    })
}

/// Node itself, and the packages that `www/package-lock.json` names.
pub(crate) fn web_packages() -> Result<()> {
    let (major, minor) = NODE;
    let Some(version) = shell::output("node --version") else {
        bail!("Node is missing: install version {major}.{minor} or newer with npm, then run this again");
    };
    let numbers: Vec<u32> =
        version.trim_start_matches('v').split('.').map_while(|part| part.parse().ok()).collect();
    if numbers.as_slice() < [major, minor].as_slice() {
        bail!("Node is {version}, but must be {major}.{minor} or newer: install one, then run this again");
    }
    // npm writes this file last, so it is older than the lock file exactly when it is stale.
    let modified = |file: &str| fs::metadata(shell::path(file)).and_then(|data| data.modified()).ok();
    let installed = modified("www/node_modules/.package-lock.json");
    if installed.is_some() && installed >= modified("www/package-lock.json") {
        return Ok(());
    }
    shell::run(&mut shell::npm("ci")).context("the packages of www/ are missing")
}

/// A browser that tests can drive, and its driver.
#[derive(Debug)]
pub(crate) struct Browser {
    pub(crate) program: PathBuf,
    pub(crate) driver: PathBuf,
}

const NEEDED: &str = "the tests need Chromium or Chrome, and its chromedriver of the same version";
const ELSEWHERE: &str = "CHROME and CHROMEDRIVER may name them if they are not on the search path";

/// Finds Chromium or Chrome with its driver; on Debian and Ubuntu, installs it first.
pub(crate) fn browser() -> Result<Browser> {
    if let Some(browser) = find_browser() {
        return Ok(browser);
    }
    let Some(apt) = shell::find(&["apt-get"]) else {
        let install = match std::env::consts::OS {
            "macos" => "brew install --cask chromium chromedriver",
            "windows" => "winget install Google.Chrome Google.ChromeDriver",
            _ if shell::find(&["dnf"]).is_some() => "sudo dnf install chromium chromedriver",
            _ if shell::find(&["pacman"]).is_some() => "sudo pacman -S chromium",
            _ => "install both with the system's package manager",
        };
        bail!("{NEEDED}: {install}\n{ELSEWHERE}");
    };
    let root = shell::output("id -u").is_some_and(|id| id == "0");
    let apt = if root { apt.display().to_string() } else { format!("sudo {}", apt.display()) };
    // Debian's names, then Ubuntu's.
    for packages in ["chromium chromium-driver", "chromium-browser chromium-chromedriver"] {
        let mut update = shell::command(&format!("{apt} update"));
        let mut install = shell::command(&format!("{apt} install --yes {packages} fonts-dejavu-core"));
        install.env("DEBIAN_FRONTEND", "noninteractive");
        let installed = shell::run(&mut update).and_then(|()| shell::run(&mut install));
        if let (Ok(()), Some(browser)) = (installed, find_browser()) {
            return Ok(browser);
        }
    }
    bail!("{NEEDED}: run `sudo apt-get install chromium chromium-driver`\n{ELSEWHERE}")
}

/// A Vulkan driver; on Debian and Ubuntu, installs Mesa's, which computes on the processor.
pub(crate) fn vulkan() -> Result<()> {
    let folders = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"];
    let present = || {
        std::env::var_os("VK_DRIVER_FILES").is_some()
            || folders.iter().any(|folder| fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some()))
    };
    if present() || !cfg!(target_os = "linux") {
        return Ok(());
    }
    let Some(apt) = shell::find(&["apt-get"]) else {
        bail!("the device path needs a Vulkan driver: install Mesa's with the system's package manager");
    };
    let root = shell::output("id -u").is_some_and(|id| id == "0");
    let apt = if root { apt.display().to_string() } else { format!("sudo {}", apt.display()) };
    let mut update = shell::command(&format!("{apt} update"));
    let mut install = shell::command(&format!("{apt} install --yes mesa-vulkan-drivers"));
    install.env("DEBIAN_FRONTEND", "noninteractive");
    shell::run(&mut update).and_then(|()| shell::run(&mut install))?;
    if present() { Ok(()) } else { bail!("no Vulkan driver: run `sudo apt-get install mesa-vulkan-drivers`") }
}

fn find_browser() -> Option<Browser> {
    let named = |variable| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_file());
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
    Some(Browser {
        program: named("CHROME").or_else(|| shell::find(&names))?,
        driver: named("CHROMEDRIVER").or_else(|| shell::find(&["chromedriver"]))?,
    })
}
