//! What only a browser can show: that the crate works there as it does natively.
#![cfg(target_arch = "wasm32")]

use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

#[wasm_bindgen_test]
fn the_version_crosses_the_boundary() {
    assert_eq!(logitscope::wasm::version(), env!("CARGO_PKG_VERSION"));
}
