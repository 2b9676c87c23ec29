//! A model's file on its way into memory.

use wasm_bindgen::prelude::wasm_bindgen;

use super::{Model, Thrown, thrown};
use crate::model::incoming;

/// A file that arrives piece by piece.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Incoming {
    inner: incoming::Incoming,
}

#[wasm_bindgen]
impl Incoming {
    /// Reserves memory for a file of `size` bytes, if that is known.
    #[wasm_bindgen(constructor)]
    pub fn new(size: Option<f64>) -> Thrown<Self> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size in bytes")]
        let size = size.map(|size| size as u64);
        Ok(Self { inner: incoming::Incoming::reserve(size).map_err(thrown)? })
    }

    /// Takes the next bytes.
    pub fn push(&mut self, piece: &[u8]) -> Thrown<()> {
        self.inner.push(piece).map_err(thrown)
    }

    /// Opens the complete file.
    pub fn open(self) -> Thrown<Model> {
        let (inner, sha256) = self.inner.open().map_err(thrown)?;
        Ok(Model { inner, sha256: Some(sha256) })
    }
}
