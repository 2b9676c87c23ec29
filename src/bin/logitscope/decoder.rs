//! Who computes for `generate`: the CPU or, built with the feature `gpu`, a device as well.
//!
//! The tokens, scores and accounts are the same. The variable `LOGITSCOPE_GPU` says whether a
//! device is used: `require`, `off`, or, left out, where there is one that is not software and it
//! was measured to be faster.

use logitscope::{
    Error,
    session::{Session, Step},
    strategy::{beam::BeamSearch, speculative::Speculation},
};
use serde_json::Value;

/// Takes sequences further.
#[derive(Debug)]
pub(super) struct Decoder {
    #[cfg(feature = "gpu")]
    device: Option<device::Device>,
}

/// Where rows were computed, and why.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) json: Value,
    pub(super) words: String,
}

#[cfg_attr(
    not(feature = "gpu"),
    expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "only a device has a state and fails")
)]
impl Decoder {
    /// Looks for a device where that is wanted.
    pub(super) fn open() -> Result<Self, Error> {
        Ok(Self {
            #[cfg(feature = "gpu")]
            device: device::Device::open()?,
        })
    }

    /// How many sessions it is worth to take further together, if each remembers so many bytes.
    pub(super) fn batch(&self, bytes: usize) -> u32 {
        #[cfg(feature = "gpu")]
        if let Some(device) = &self.device {
            return device.batch(bytes);
        }
        #[cfg(not(feature = "gpu"))]
        let _ = bytes;
        1
    }

    /// Takes each session one token further, all in one batch.
    pub(super) fn step(&mut self, sessions: &mut [Session]) -> Vec<Result<Option<Step>, Error>> {
        #[cfg(feature = "gpu")]
        if let Some(device) = &mut self.device {
            return device.step(sessions);
        }
        sessions.iter_mut().map(Session::step).collect()
    }

    /// Searches to the end.
    pub(super) fn search(&mut self, search: &mut BeamSearch) -> Result<(), Error> {
        #[cfg(feature = "gpu")]
        if let Some(device) = &mut self.device {
            return device.search(search);
        }
        search.run()
    }

    /// Drafts and judges to the end.
    pub(super) fn speculate(&mut self, speculation: &mut Speculation) -> Result<(), Error> {
        #[cfg(feature = "gpu")]
        if let Some(device) = &mut self.device {
            return device.speculate(speculation);
        }
        speculation.run()
    }

    /// Where rows were computed since this was last asked; nothing where no device was wanted.
    pub(super) fn account(&mut self) -> Option<Account> {
        #[cfg(feature = "gpu")]
        if let Some(device) = &mut self.device {
            return Some(device.account());
        }
        None
    }
}

#[cfg(feature = "gpu")]
mod device {
    use std::sync::Arc;

    use logitscope::{
        Error,
        gpu::{Engine, Policy, SystemClock, block_on},
        session::{Session, Step},
        strategy::{beam::BeamSearch, speculative::Speculation},
    };
    use serde_json::json;

    use super::Account;

    /// What the sessions of a batch may remember together, in bytes.
    const MEMORY: usize = 1 << 30;
    const MOST_SESSIONS: u32 = 32;

    /// A device, or the CPU in place of one that is wanted and not there.
    #[derive(Debug)]
    pub(super) struct Device {
        engine: Engine,
        /// Whether there was a device to begin with.
        there: bool,
    }

    impl Device {
        pub(super) fn open() -> Result<Option<Self>, Error> {
            let policy = Policy::from_environment()?;
            if policy == Policy::Off {
                return Ok(None);
            }
            let engine = block_on(Engine::new(policy, Arc::new(SystemClock::default())))?;
            let there = engine.device().is_some();
            Ok(Some(Self { engine, there }))
        }

        pub(super) fn batch(&self, bytes: usize) -> u32 {
            let most = if self.there { MOST_SESSIONS } else { 1 };
            u32::try_from(MEMORY / bytes.max(1)).unwrap_or(most).clamp(1, most)
        }

        pub(super) fn step(&mut self, sessions: &mut [Session]) -> Vec<Result<Option<Step>, Error>> {
            if !self.there {
                // There is nothing to wait for, and the account comes with the step.
                return sessions.iter_mut().map(Session::step).collect();
            }
            let mut sessions: Vec<&mut Session> = sessions.iter_mut().collect();
            block_on(Session::step_together(&mut sessions, &mut self.engine))
        }

        pub(super) fn search(&mut self, search: &mut BeamSearch) -> Result<(), Error> {
            while block_on(search.step_on(&mut self.engine))? {}
            Ok(())
        }

        pub(super) fn speculate(&mut self, speculation: &mut Speculation) -> Result<(), Error> {
            while block_on(speculation.step_on(&mut self.engine))? {}
            Ok(())
        }

        pub(super) fn account(&mut self) -> Account {
            let account = self.engine.take_account();
            Account { json: json!(account), words: account.to_string() }
        }
    }
}
