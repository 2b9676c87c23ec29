//! The whole way from a language model's logits to the finished text.
//!
//! Decoding is two operations on one vector, reshape then pick, repeated in a loop. A
//! [`Pipeline`] is one step of it, an ordered list of stages written as text:
//!
//! ```
//! use logitscope::{Logits, Pipeline, StepContext, TokenId};
//!
//! let pipeline = Pipeline::parse("temperature(t=0.7) | top_p(p=0.9) | categorical(seed=7)")?;
//! let mut logits = Logits::new(&[2.0, 1.0, 0.0])?;
//! pipeline.reshape(&mut logits, &StepContext::default())?;
//! assert_eq!(logits.support(), [TokenId(0), TokenId(1)]);
//! # Ok::<(), logitscope::Error>(())
//! ```
//!
//! The same logits, pipeline and seed give the same token on every device, because masses
//! are integers: see [`weights`].

pub mod apply;
pub mod call;
pub mod compare;
pub mod config;
pub mod constraint;
pub mod error;
pub mod family;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod json;
pub mod ledger;
pub mod logits;
pub mod model;
pub mod order;
pub mod penalties;
pub mod pipeline;
pub mod profile;
pub mod random;
pub mod registry;
pub mod run;
pub mod sampler;
pub mod session;
pub mod spec;
pub mod statistics;
pub mod step;
pub mod stop;
pub mod strategy;
#[doc(hidden)]
pub mod testing;
pub mod trace;
pub mod transform;
pub mod vocab;
#[cfg(target_arch = "wasm32")]
pub mod wasm;
pub mod weights;
pub mod worksheet;

pub use error::{Error, ErrorCode, Result};
pub use logits::Logits;
pub use pipeline::Pipeline;
pub use step::StepContext;
pub use trace::StepTrace;
pub use vocab::{TokenId, Vocab};

// The examples in README.md run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
