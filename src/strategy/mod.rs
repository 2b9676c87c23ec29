//! Who calls the pipeline, and when: from one step to a finished sequence.

pub mod sample;
