//! The surface for JavaScript: the only user of `wasm_bindgen`.

use wasm_bindgen::prelude::wasm_bindgen;

/// The version of the crate, such as `0.1.0`.
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
