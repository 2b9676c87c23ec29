//! Counter-based uniform draws: the same `(seed, sample, position, purpose)` always gives the
//! same 64 bits, whatever was drawn before, in whatever order, and however many tokens were
//! candidates.
//!
//! The generator is Philox4x32-10 (Salmon et al. 2011, "Parallel Random Numbers: As Easy as
//! 1, 2, 3", <https://doi.org/10.1145/2063384.2063405>). The seed is its 64-bit key, so all
//! bits of a seed count.

/// What a draw is for. Each purpose has a stream of its own, so that turning one mechanism
/// on never changes the draws of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Purpose {
    /// The sampler's draw of a token.
    Token = 0,
    /// Whether XTC acts at this step.
    Xtc = 1,
    /// The noise of Gumbel-max, one draw a token id.
    Gumbel = 2,
    /// The draft model's own draws in speculative decoding.
    Draft = 3,
    /// Whether a drafted token is accepted.
    Accept = 4,
    /// The draw from what is left of the target after a rejection.
    Residual = 5,
    /// Beam sampling.
    Beam = 6,
}

/// The draws of one step of one sample.
///
/// # Examples
/// ```
/// use logitscope::random::{Purpose, Randomness};
///
/// let step = Randomness { seed: 7, sample: 0, position: 3 };
/// assert_eq!(step.draw(Purpose::Token), step.draw(Purpose::Token));
/// assert_ne!(step.draw(Purpose::Token), step.draw(Purpose::Xtc));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Randomness {
    /// The reader's seed; every bit counts.
    pub seed: u64,
    /// Which of several samples of the same request this is.
    pub sample: u32,
    /// How many tokens have been generated before this one.
    pub position: u32,
}

impl Randomness {
    /// 64 uniform bits for a purpose.
    #[must_use]
    pub fn draw(self, purpose: Purpose) -> u64 {
        self.draw_at(purpose, 0)
    }

    /// 64 uniform bits for a purpose that needs one draw an index, such as a token id.
    #[must_use]
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the seed is taken in two halves")]
    pub fn draw_at(self, purpose: Purpose, index: u32) -> u64 {
        let key = [self.seed as u32, (self.seed >> 32) as u32];
        let block = philox([self.position, self.sample, purpose as u32, index], key);
        u64::from(block[0]) | u64::from(block[1]) << 32
    }
}

/// A draw as a number in `[0, 1)`, for display; the draw itself is the integer.
///
/// The 53 highest bits are kept, so that the result is never rounded up to 1.
#[must_use]
pub fn unit(u: u64) -> f64 {
    (u >> 11) as f64 / 9_007_199_254_740_992.0
}

/// The draw that a number in `[0, 1)` stands for: `⌊u · 2^64⌋`.
///
/// # Examples
/// ```
/// use logitscope::random::{from_unit, unit};
///
/// assert_eq!(from_unit(0.25), 1 << 62);
/// assert_eq!(unit(from_unit(0.912)), 0.912);
/// ```
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in [0, 2^64)")]
pub fn from_unit(u: f64) -> u64 {
    (u * 18_446_744_073_709_551_616.0) as u64
}

/// A fresh seed from the platform's own source of randomness.
///
/// # Errors
/// `io` when the platform has no such source.
pub fn fresh_seed() -> crate::Result<u64> {
    getrandom::u64().map_err(|error| {
        crate::Error::new(crate::ErrorCode::Io, format!("no seed could be drawn: {error}; give one"))
    })
}

/// One block of Philox4x32 with ten rounds.
#[inline]
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
    const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
    for _ in 0..10 {
        let first = u64::from(counter[0]) * u64::from(MULTIPLIERS[0]);
        let second = u64::from(counter[2]) * u64::from(MULTIPLIERS[1]);
        let halves = |product: u64| ((product >> 32) as u32, (product & 0xffff_ffff) as u32);
        let ((high_0, low_0), (high_1, low_1)) = (halves(first), halves(second));
        counter = [high_1 ^ counter[1] ^ key[0], low_1, high_0 ^ counter[3] ^ key[1], low_0];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// `SplitMix64` (Steele, Lea and Flood 2014): advances the state and returns 64 bits.
///
/// For made-up test inputs; decoding draws with [`Randomness`].
pub fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers published with Random123 (`kat_vectors`, philox4x32 10).
    #[test]
    fn philox_known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn every_part_of_the_counter_matters() {
        let base = Randomness { seed: 7, sample: 0, position: 0 };
        let draws = [
            base.draw(Purpose::Token),
            base.draw(Purpose::Xtc),
            base.draw_at(Purpose::Token, 1),
            Randomness { seed: 7 + (1 << 32), ..base }.draw(Purpose::Token),
            Randomness { sample: 1, ..base }.draw(Purpose::Token),
            Randomness { position: 1, ..base }.draw(Purpose::Token),
        ];
        for (i, a) in draws.iter().enumerate() {
            for b in &draws[i + 1..] {
                assert_ne!(a, b);
            }
        }
    }

    #[test]
    fn units_stay_below_one() {
        assert!(unit(u64::MAX) < 1.0);
        assert_eq!(from_unit(unit(u64::MAX)) >> 11, u64::MAX >> 11);
    }
}
