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

/// Where rows were computed.
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
    use std::{fmt::Write as _, sync::Arc};

    use logitscope::{
        Error,
        gpu::{Count, Engine, Placement, Policy, SystemClock, Tally, block_on},
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
        adapter: Option<String>,
        /// Of the sequences at hand, once they were looked at.
        places: Vec<Placement>,
    }

    impl Device {
        pub(super) fn open() -> Result<Option<Self>, Error> {
            let policy = Policy::from_environment()?;
            if policy == Policy::Off {
                return Ok(None);
            }
            let engine = block_on(Engine::new(policy, Arc::new(SystemClock::default())))?;
            let adapter = engine.device().map(|device| device.adapter().to_string());
            Ok(Some(Self { engine, adapter, places: Vec::new() }))
        }

        pub(super) fn batch(&self, bytes: usize) -> u32 {
            let most = if self.adapter.is_some() { MOST_SESSIONS } else { 1 };
            u32::try_from(MEMORY / bytes.max(1)).unwrap_or(most).clamp(1, most)
        }

        pub(super) fn step(&mut self, sessions: &mut [Session]) -> Vec<Result<Option<Step>, Error>> {
            if self.adapter.is_none() {
                // There is nothing to wait for, and the account comes with the step.
                return sessions.iter_mut().map(Session::step).collect();
            }
            let batch = sessions.len();
            if let (true, Some(first)) = (self.places.is_empty(), sessions.first_mut()) {
                // What a stage refuses is said by the step.
                self.places = block_on(first.places(&mut self.engine, batch)).unwrap_or_default();
            }
            let mut sessions: Vec<&mut Session> = sessions.iter_mut().collect();
            block_on(Session::step_together(&mut sessions, &mut self.engine))
        }

        pub(super) fn search(&mut self, search: &mut BeamSearch) -> Result<(), Error> {
            self.places = block_on(search.places(&mut self.engine));
            while block_on(search.step_on(&mut self.engine))? {}
            Ok(())
        }

        pub(super) fn speculate(&mut self, speculation: &mut Speculation) -> Result<(), Error> {
            self.places = block_on(speculation.places(&mut self.engine))?;
            while block_on(speculation.step_on(&mut self.engine))? {}
            Ok(())
        }

        pub(super) fn account(&mut self) -> Account {
            let places = std::mem::take(&mut self.places);
            let Tally { logits, draws } = self.engine.take_tally();
            let why = self.engine.why_cpu();
            let mut words = match (&self.adapter, why) {
                (Some(adapter), None) => format!("device: {adapter}\n"),
                (Some(adapter), Some(why)) => format!("device: {adapter}, until {why}\n"),
                (None, why) => format!("device: none, because {}\n", why.unwrap_or("there is none")),
            };
            if self.adapter.is_some() {
                for (what, Count { device, launches, cpu }) in [("logits", logits), ("draws", draws)] {
                    // Writing to a String cannot fail.
                    let _ = writeln!(
                        words,
                        "  {what}: {device} rows on it in {launches} launches, {cpu} on the CPU"
                    );
                }
                for Placement { stage, why, .. } in places.iter().filter(|place| !place.device) {
                    let _ = writeln!(words, "  {stage} on the CPU: {why}");
                }
            }
            let json = json!({
                "adapter": self.adapter,
                "why": why,
                "places": places,
                "logits": logits,
                "draws": draws,
            });
            Account { json, words }
        }
    }
}
