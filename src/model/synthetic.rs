//! Numbers made from a seed, so that tests can name a row of 131,072 logits in one line.
//!
//! Source: the `ih12` generator of the decoding oracle (see `tests/oracle/README.md`): the
//! sum of twelve uniform draws minus six, which is nearly normal and needs no logarithm.

use serde::{Deserialize, Serialize};

use super::fnv::fnv_1a;
use crate::{Error, ErrorCode, error::Result};

/// The `splitmix64` stream of draws from one seed.
///
/// Source: Steele, Lea, Flood 2014, "Fast Splittable Pseudorandom Number Generators",
/// <https://doi.org/10.1145/2714064.2660195>.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The stream of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The sum of twelve draws from [0, 1), minus six: mean 0, variance 1.
    pub fn next_ih12(&mut self) -> f64 {
        const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
        let sum = (0..12).fold(0.0, |sum, _| sum + (self.next_bits() >> 11) as f64 * UNIT);
        sum - 6.0
    }
}

/// A recipe for a row of logits.
///
/// # Examples
/// ```
/// use logitscope::model::synthetic::LogitsSpec;
///
/// let spec: LogitsSpec = serde_json::from_str(r#"{"gen": "ih12", "seed": 1, "n": 3, "scale": 2, "quant": 4}"#)
///     .map_err(|error| logitscope::Error::new(logitscope::ErrorCode::BadInput, error.to_string()))?;
/// let logits = spec.generate()?;
/// assert_eq!(logits.len(), 3);
/// assert!(logits.iter().all(|logit| (logit * 4.0).fract() == 0.0));
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogitsSpec {
    /// The generator; only `ih12` exists.
    #[serde(rename = "gen")]
    pub generator: String,
    /// Where the stream starts.
    pub seed: u64,
    /// How many logits.
    pub n: usize,
    /// The standard deviation, in nats.
    pub scale: f64,
    /// The mean, in nats.
    #[serde(default)]
    pub shift: f64,
    /// If given, logits are rounded down to multiples of its inverse, which makes ties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quant: Option<f64>,
    /// If given, FNV-1a of the logits' little-endian bytes, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_fnv: Option<String>,
}

/// Rows longer than this are refused: no vocabulary is near it.
const LONGEST: usize = 1 << 24;

impl LogitsSpec {
    /// The logits.
    ///
    /// # Errors
    /// `bad_input` for an unknown generator, more than 2^24 logits, or logits whose hash is
    /// not `check_fnv`.
    pub fn generate(&self) -> Result<Vec<f32>> {
        let refuse = |message: String| Err(Error::new(ErrorCode::BadInput, message).param("logits_spec"));
        if self.generator != "ih12" {
            return refuse(format!("logits_spec.gen is {:?}, but only \"ih12\" exists", self.generator));
        }
        if self.n > LONGEST {
            return refuse(format!("logits_spec.n is {}, but must be at most {LONGEST}", self.n));
        }
        let mut stream = SplitMix64::new(self.seed);
        let mut next = || {
            let logit = stream.next_ih12() * self.scale + self.shift;
            let logit = self.quant.map_or(logit, |quant| libm::floor(logit * quant) / quant);
            #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is the last step")]
            let logit = logit as f32;
            logit
        };
        let logits: Vec<f32> = (0..self.n).map(|_| next()).collect();
        if let Some(want) = &self.check_fnv {
            let have = hash_hex(&logits);
            if have != *want {
                return refuse(format!("logits_spec.check_fnv is {want}, but the logits' hash is {have}"));
            }
        }
        Ok(logits)
    }
}

/// FNV-1a of the little-endian bytes of some f32, in hexadecimal.
#[must_use]
pub fn hash_hex(values: &[f32]) -> String {
    format!("{:016x}", fnv_1a(values.iter().flat_map(|value| value.to_le_bytes())))
}
