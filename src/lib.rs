//! The whole way from a language model's logits to the finished text.
//!
//! Decoding is two operations on one vector, reshape then pick, repeated in a loop.

pub mod error;
pub mod model;
pub mod vocab;
#[cfg(target_arch = "wasm32")]
pub mod wasm;

pub use error::{Error, ErrorCode};
pub use vocab::{TokenId, Vocab};

// The examples in README.md run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
