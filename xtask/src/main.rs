//! The project's own commands: `cargo xtask serve`, `cargo xtask test`, and their parts.

fn main() {}
