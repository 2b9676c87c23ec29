//! Runs the wasm tests that `cargo test --target wasm32-unknown-unknown` builds.
//!
//! It is `wasm-bindgen-test-runner` as a crate of this workspace, so that the lock file
//! pins it and nobody installs it. It stands apart from xtask because its web driver
//! client takes a minute to compile and only `cargo xtask test` needs it.

fn main() -> anyhow::Result<()> {
    wasm_bindgen_cli::wasm_bindgen_test_runner::run_cli_with_args(std::env::args_os())
}
