//! `cargo xtask serve`: build, then open the page from a local server.

use anyhow::Result;

use crate::{shell, wasm};

/// `arguments` go to Vite, for instance `--port 8000`.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    wasm::build()?;
    let mut command = shell::npm("run --silent dev --");
    if can_show_a_window() {
        command.arg("--open");
    }
    shell::run(command.args(arguments))
}

/// Whether a browser window can open here; otherwise the printed address has to do.
fn can_show_a_window() -> bool {
    let set = |name| std::env::var_os(name).is_some();
    !set("CI") && (!cfg!(target_os = "linux") || set("DISPLAY") || set("WAYLAND_DISPLAY"))
}
