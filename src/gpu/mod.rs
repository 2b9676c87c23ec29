//! The device path: reshaping and drawing over whole vocabularies as compute shaders.
//!
//! [`weights`](crate::weights) says what every device computes; the kernels here compute it,
//! and the twin suite holds them to the CPU's integers with `==`. Nothing else in the crate
//! knows of a device: a stage says in plain data what it would ask of one
//! ([`crate::transform::kernel`]), `program` turns that into words, `device` launches them.
//!
//! A model's last matrix can lie on the device too (`head`), so that its logits are born there.
//!
//! To give a stage a kernel, describe what it asks in `transform/kernel.rs`, write the search
//! into `plan.wgsl` and `resolve.wgsl`, and add the stage to the suite in `twin`.

mod account;
pub mod bench;
mod device;
mod engine;
mod head;
mod kernels;
mod layout;
mod measure;
mod program;
pub mod rehearsal;
pub mod twin;
mod why;

pub(crate) use account::Reached;
pub use account::{Account, Count, Placement, Share, Tally};
pub use device::{Adapter, Clock, Cost, Device, Disturbance, Failure, PATIENCE_MS, Rows, Task};
#[cfg(not(target_arch = "wasm32"))]
pub use device::{SystemClock, block_on};
pub use engine::{Choice, Decoded, Drawn, Engine, Job, Policy};
pub use head::HeadTimes;
pub use kernels::Shape;
pub use measure::Measured;
