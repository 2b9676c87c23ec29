//! The integer specification that every device implements.
//!
//! A score becomes a *distance* below the row's highest score, in octaves (halvings of the
//! probability) with 32 fractional bits, and the distance becomes a *weight*, an integer
//! mass. Nothing that decides which token is kept or drawn is ever a floating-point sum, so
//! the result does not depend on the order of additions, on the processor, or on the
//! accuracy of anyone's `exp`.
//!
//! - [`key`] orders scores as unsigned integers.
//! - [`Scale`] is `log2(e) / temperature` as an integer pair, computed once.
//! - [`distance`] is `trunc((highest - score) · scale · 2^32)`, from the exact difference.
//! - [`weight`] is `2^45 · 2^-distance`, by an integer polynomial.
//! - [`moment`] is `weight · distance`, for entropy and what is built on it.
//!
//! The functions here are pure and small because the WGSL kernels repeat them word for word.

/// The weight of the row's highest score, as a power of two.
pub const WEIGHT_BITS: u32 = 45;

/// Weights are zero from this distance on, in octaves.
pub const OCTAVES: u32 = WEIGHT_BITS + 1;

/// Fractional bits of a distance.
pub const DISTANCE_BITS: u32 = 32;

/// Distances saturate here: 64 octaves.
pub const FARTHEST: u64 = 64 << DISTANCE_BITS;

/// The largest vocabulary for which a sum of weights fits 64 bits.
pub const MAX_VOCABULARY: usize = 1 << 18;

/// Coefficients of `q` in `2^-f = 1 - f·q(f)` for `f` in `[0, 1)`, with 32 fractional bits and
/// alternating signs. Fitted at the Chebyshev nodes, degree 6.
pub const POLYNOMIAL: [u32; 7] =
    [0xb172_17f7, 0x3d7f_7bcb, 0x0e35_8127, 0x0276_41a9, 0x0057_28b0, 0x0009_c200, 0x0000_bda6];

/// Maps a score to an unsigned integer of the same order; `-0` and `+0` share a key.
///
/// NaN and `+∞` never reach this point, and `-∞` is a dead token, not a score.
///
/// # Examples
/// ```
/// use logitscope::weights::key;
///
/// assert!(key(-1.0) < key(0.0) && key(0.0) < key(f32::from_bits(1)));
/// assert_eq!(key(-0.0), key(0.0));
/// ```
#[must_use]
pub fn key(score: f32) -> u32 {
    let bits = if score == 0.0 { 0 } else { score.to_bits() };
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// The score of a [`key`]; of both zeros, `+0`.
///
/// # Examples
/// ```
/// use logitscope::weights::{key, score};
///
/// assert_eq!([-2.5, 0.0, 1e-40].map(|known| score(key(known))), [-2.5, 0.0, 1e-40]);
/// ```
#[must_use]
pub fn score(key: u32) -> f32 {
    f32::from_bits(if key >> 31 == 1 { key & !(1 << 31) } else { !key })
}

/// A finite score as `significand · 2^exponent`, both exact.
fn decode(score: f32) -> (i64, i32) {
    let bits = score.to_bits();
    let biased = (bits >> 23) & 0xff;
    let fraction = i64::from(bits & 0x7f_ffff);
    let (significand, exponent) =
        if biased == 0 { (fraction, -149) } else { (fraction | 0x80_0000, biased.cast_signed() - 150) };
    (if bits >> 31 == 1 { -significand } else { significand }, exponent)
}

/// Zero has no exponent of its own, so it takes the other operand's: the gap stays small.
#[inline]
fn same_exponent_for_zero(a: (i64, i32), b: (i64, i32)) -> ((i64, i32), (i64, i32)) {
    match (a.0, b.0) {
        (0, _) => ((0, b.1), b),
        (_, 0) => (a, (0, a.1)),
        _ => (a, b),
    }
}

/// The probability of a token, for people: from its score and the highest, and the mass of the
/// row at this temperature. No token is drawn by it.
///
/// # Examples
/// ```
/// use logitscope::{Logits, TokenId, weights::probability};
///
/// let mut logits = Logits::new(&[1.5, 0.25])?;
/// logits.scale_temperature(0.7)?;
/// let mass = logits.mass()?;
/// assert_eq!(probability(1.5, 0.25, 0.7, mass), logits.probability(TokenId(1))?);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[must_use]
pub fn probability(highest: f32, score: f32, temperature: f64, mass: u64) -> f64 {
    let octaves = (f64::from(highest) - f64::from(score)) * std::f64::consts::LOG2_E / temperature;
    libm::exp2(-octaves) / (mass as f64 / (1u64 << WEIGHT_BITS) as f64)
}

/// `log2(e) / temperature` as `mantissa · 2^exponent`, with the mantissa in `[2^31, 2^32)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// In `[2^31, 2^32)`.
    pub mantissa: u32,
    /// The power of two it is multiplied by.
    pub exponent: i32,
}

impl Scale {
    /// The scale of a temperature, which must be finite and above zero.
    ///
    /// # Examples
    /// ```
    /// use logitscope::weights::Scale;
    ///
    /// // One nat is one octave at this temperature.
    /// let scale = Scale::from_temperature(std::f64::consts::LOG2_E);
    /// assert_eq!(scale, Scale { mantissa: 1 << 31, exponent: -31 });
    /// ```
    #[must_use]
    pub fn from_temperature(temperature: f64) -> Self {
        debug_assert!(temperature > 0.0 && temperature.is_finite());
        // Splitting the temperature first keeps the quotient in range for subnormal ones.
        let (fraction, power) = libm::frexp(temperature);
        let (quotient, extra) = libm::frexp(std::f64::consts::LOG2_E / fraction);
        // quotient in [0.5, 1): 32 bits of it, rounded to nearest.
        let rounded = libm::rint(quotient * 4_294_967_296.0);
        let exponent = extra - power - 32;
        if rounded >= 4_294_967_296.0 {
            Self { mantissa: 1 << 31, exponent: exponent + 1 }
        } else {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in [2^31, 2^32)")]
            Self { mantissa: rounded as u32, exponent }
        }
    }

    /// The power of two in which two scores, the higher first and not equal, are at least 2^31 and
    /// less than 2^32 apart. The distance of a deviation is measured in it; that of probabilities
    /// is not.
    ///
    /// # Examples
    /// ```
    /// use logitscope::weights::{Scale, distance};
    ///
    /// assert_eq!(distance(3.0, 1.0, Scale::spreading(3.0, -2.0)), 2 << 29); // 5 is below 2^3
    /// ```
    #[must_use]
    pub fn spreading(top: f32, bottom: f32) -> Self {
        let below = |exponent: i32| Self { mantissa: 1 << 31, exponent: -31 - exponent };
        // They are less than 2^widest apart, and no less than 2^-26 of that.
        let widest = decode(top).1.max(decode(bottom).1) + 25;
        let coarse = distance(top, bottom, below(widest));
        below(widest + 32 - coarse.leading_zeros().cast_signed())
    }

    /// The scale as a real number, in octaves a nat; for display.
    #[must_use]
    pub fn octaves_per_nat(self) -> f64 {
        libm::scalbn(f64::from(self.mantissa), self.exponent)
    }
}

/// How far `score` lies below `highest`, in octaves with 32 fractional bits.
///
/// `trunc((highest - score) · scale · 2^32)`, from the exact difference of the two floats,
/// saturating at [`FARTHEST`]. It is monotone: a lower score is never nearer.
///
/// # Examples
/// ```
/// use logitscope::weights::{distance, Scale, FARTHEST};
///
/// let octave = Scale::from_temperature(std::f64::consts::LOG2_E);
/// assert_eq!(distance(3.0, 1.5, octave), 3 << 31); // one and a half octaves
/// assert_eq!(distance(3.0, -100.0, octave), FARTHEST);
/// ```
#[must_use]
pub fn distance(highest: f32, score: f32, scale: Scale) -> u64 {
    /// Past this gap the smaller operand only decides which way the truncation goes.
    const GAP: u32 = 60;

    debug_assert!(highest >= score);
    let (highest, lower) = same_exponent_for_zero(decode(highest), decode(score));
    let base = highest.1.min(lower.1);
    let highest_gap = (highest.1 - base).cast_unsigned();
    let lower_gap = (lower.1 - base).cast_unsigned();
    let gap = highest_gap.max(lower_gap);
    let shift = base + scale.exponent + DISTANCE_BITS.cast_signed();
    if gap <= 38 {
        // Two 24-bit significands 38 bits apart: the difference fits 63 bits.
        let difference = ((highest.0 << highest_gap) - (lower.0 << lower_gap)).cast_unsigned();
        if difference >> 32 == 0 {
            return shifted(u128::from(difference * u64::from(scale.mantissa)), shift);
        }
        return shifted(u128::from(difference) * u128::from(scale.mantissa), shift);
    }
    // Beyond the gap a non-zero operand is replaced by the smallest one of its sign: it can
    // only tell "just below a whole number" from "exactly one".
    let excess = gap.saturating_sub(GAP);
    let align = |(significand, _): (i64, i32), own_gap: u32| {
        if own_gap == 0 && excess > 0 {
            i128::from(significand.signum())
        } else {
            i128::from(significand) << own_gap.saturating_sub(excess)
        }
    };
    let difference = (align(highest, highest_gap) - align(lower, lower_gap)).cast_unsigned();
    shifted(difference * u128::from(scale.mantissa), shift.saturating_add(excess.cast_signed()))
}

/// `product · 2^shift`, truncated, saturating at [`FARTHEST`].
fn shifted(product: u128, shift: i32) -> u64 {
    let value = if shift >= 0 {
        if product == 0 {
            0
        } else if product.leading_zeros() <= shift.cast_unsigned() {
            return FARTHEST;
        } else {
            product << shift
        }
    } else if shift > -128 {
        product >> -shift
    } else {
        0
    };
    u64::try_from(value).unwrap_or(FARTHEST).min(FARTHEST)
}

/// Distances from the highest score of a row, for loops over a vocabulary.
pub(crate) struct Ruler {
    highest: f32,
    scale: Scale,
    grid: Option<Grid>,
}

impl Ruler {
    pub(crate) fn new(highest: f32, scale: Scale) -> Self {
        Self { highest, scale, grid: Grid::new(highest, scale) }
    }

    /// As [`distance`], of every score of a block. A score above the highest, which can only be
    /// a dead token's, has none: its place says nothing.
    #[inline]
    pub(crate) fn distances(&self, scores: &[f32], distances: &mut [u64]) {
        if let Some(grid) = &self.grid
            && grid.places(scores, distances)
        {
            for distance in distances {
                *distance = grid.distance(*distance);
            }
        } else {
            for (out, &score) in distances.iter_mut().zip(scores) {
                *out = distance(self.highest, score.min(self.highest), self.scale);
            }
        }
    }

    /// As [`distance`].
    #[inline]
    pub(crate) fn distance(&self, score: f32) -> u64 {
        let mut distance = [0];
        self.distances(&[score], &mut distance);
        distance[0]
    }
}

/// Scores as whole numbers of one small unit, which nearly all scores of a language model are:
/// no exponents, and no branches.
struct Grid {
    /// How many units a nat has: a power of two.
    per_nat: f64,
    /// The highest score, as [`Grid::place`].
    highest: u64,
    mantissa: u32,
    /// A difference in units times the mantissa is a distance shifted left by 32 and this.
    shift: u32,
}

impl Grid {
    /// Added to a whole number below `2^51` in magnitude, it leaves that in the low bits.
    const INTEGER: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
    /// Lower scores count as this many units below zero.
    const LOWEST: f64 = -2_251_799_813_685_248.0; // -2^51
    /// The highest score is at most `2^50` units from zero, so what lies at the lowest place is
    /// at least `2^50` below it: with a shift no larger than this, that is [`FARTHEST`].
    const MOST_SHIFT: i32 = 11;

    /// The finest grid with room for the highest score.
    fn new(highest: f32, scale: Scale) -> Option<Self> {
        let (significand, exponent) = decode(highest);
        let magnitude = if significand == 0 { i32::MIN } else { exponent + 24 };
        let coarsest = 64 + scale.exponent;
        let shift = 50i32.saturating_sub(magnitude).saturating_sub(coarsest).min(Self::MOST_SHIFT);
        let power = coarsest + shift;
        if shift < 0 || power.abs() > 800 {
            return None;
        }
        let per_nat = libm::scalbn(1.0, power);
        let (highest, whole) = Self::place(f64::from(highest) * per_nat);
        whole.then_some(Self { per_nat, highest, mantissa: scale.mantissa, shift: shift.cast_unsigned() })
    }

    /// A number of units as the bits of a float whose last ones count them; and whether they
    /// are whole.
    #[inline]
    fn place(units: f64) -> (u64, bool) {
        let units = if units < Self::LOWEST { Self::LOWEST } else { units };
        let sum = units + Self::INTEGER;
        (sum.to_bits(), sum - Self::INTEGER == units)
    }

    /// How many units each score lies below the highest; false if one is not a whole number.
    #[inline]
    fn places(&self, scores: &[f32], below: &mut [u64]) -> bool {
        let mut all_whole = true;
        for (below, &score) in below.iter_mut().zip(scores) {
            let (place, whole) = Self::place(f64::from(score) * self.per_nat);
            *below = self.highest.wrapping_sub(place);
            all_whole &= whole;
        }
        all_whole
    }

    #[inline]
    fn distance(&self, below: u64) -> u64 {
        let mantissa = u64::from(self.mantissa);
        let low = ((below & 0xffff_ffff) * mantissa) >> 32;
        let distance = (below >> 32).wrapping_mul(mantissa).wrapping_add(low) >> self.shift;
        // Compared as signed, which WebAssembly's vectors can.
        if distance.cast_signed() < FARTHEST.cast_signed() { distance } else { FARTHEST }
    }
}

/// The high 32 bits of a 64-bit product.
fn high(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

/// `2^-(fraction / 2^32)` with 31 fractional bits.
///
/// Within 2.3e-9 of the true value, and never increasing.
#[must_use]
pub fn exp2_negative(fraction: u32) -> u32 {
    let mut sum = POLYNOMIAL[6];
    for coefficient in POLYNOMIAL[..6].iter().rev() {
        sum = coefficient - high(fraction, sum);
    }
    (1 << 31) - (high(fraction, sum) >> 1)
}

/// The integer mass of a token at a distance: `2^45 · 2^-distance`, truncated.
///
/// # Examples
/// ```
/// use logitscope::weights::{weight, DISTANCE_BITS};
///
/// assert_eq!(weight(0), 1 << 45);
/// assert_eq!(weight(3 << DISTANCE_BITS), 1 << 42); // an eighth
/// assert_eq!(weight(46 << DISTANCE_BITS), 0);
/// ```
#[must_use]
pub fn weight(distance: u64) -> u64 {
    weight_and_moment(distance).0
}

/// `weight · distance` in octaves, with the weight's 45 fractional bits.
///
/// Entropy is `log2(total / 2^45) + (sum of moments) / total` bits.
#[must_use]
pub fn moment(distance: u64) -> u64 {
    weight_and_moment(distance).1
}

/// [`weight`] and [`moment`] of one distance, for loops over a row that need both.
#[must_use]
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is the fraction")]
pub(crate) fn weight_and_moment(distance: u64) -> (u64, u64) {
    let octaves = (distance >> DISTANCE_BITS) as u32;
    if octaves >= OCTAVES {
        return (0, 0);
    }
    let power = u64::from(exp2_negative(distance as u32));
    // 31 bits of weight times 32 bits of distance: dropping six bits keeps the moment in 64.
    ((power << 14) >> octaves, (power * (distance >> 6)) >> (octaves + 12))
}

/// A proportion in `[0, 1]` with 32 fractional bits, rounded to nearest.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a proportion")]
pub fn proportion(value: f64) -> u64 {
    debug_assert!((0.0..=1.0).contains(&value));
    libm::rint(value * 4_294_967_296.0) as u64
}

/// `⌈proportion · mass⌉` for a [`proportion`].
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "the proportion is at most one")]
pub fn share_of(proportion: u64, mass: u64) -> u64 {
    ((u128::from(proportion) * u128::from(mass)).div_ceil(1 << 32)) as u64
}

/// Half an f32 step, relative. Scores are f32, so no probability is known better than this: the
/// f32 nearest to ln 0.1 stands for a probability a little below 0.1, and a reader who sets a
/// threshold of 0.1 means that token.
pub const HALF_STEP: f64 = 1.0 / 16_777_216.0;

/// The [`proportion`] that a probability must reach, where one that equals `value` as far as an
/// f32 can tell has reached it.
#[must_use]
pub fn proportion_to_reach(value: f64) -> u64 {
    proportion(value * (1.0 - HALF_STEP))
}

/// The [`proportion`] that a probability must exceed, where one that equals `value` as far as an
/// f32 can tell has not exceeded it.
#[must_use]
pub fn proportion_to_exceed(value: f64) -> u64 {
    proportion((value * (1.0 + HALF_STEP)).min(1.0))
}

/// `log2` of a mass in units of the highest token's weight, so that a token's surprise is its
/// distance plus this, in octaves (bits).
///
/// # Examples
/// ```
/// use logitscope::weights::log2_mass;
///
/// assert_eq!(log2_mass(1 << 45), 0.0);
/// assert_eq!(log2_mass(1 << 47), 2.0);
/// ```
#[must_use]
pub fn log2_mass(mass: u64) -> f64 {
    libm::log2(mass as f64 / (1u64 << WEIGHT_BITS) as f64)
}

/// Octaves as a distance: truncated, `None` below zero, saturating past every token's.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded by the tests before it")]
pub fn distance_of_octaves(octaves: f64) -> Option<u64> {
    let scaled = libm::floor(octaves * 4_294_967_296.0);
    if scaled < 0.0 || scaled.is_nan() {
        None
    } else if scaled > FARTHEST as f64 {
        Some(u64::MAX)
    } else {
        Some(scaled as u64)
    }
}

/// A distance in nats, for display.
#[must_use]
pub fn nats_of_distance(distance: u64) -> f64 {
    distance as f64 / 4_294_967_296.0 * std::f64::consts::LN_2
}

/// `⌊u · mass⌋` for a draw `u / 2^64`.
#[must_use]
pub fn drawn_mass(u: u64, mass: u64) -> u64 {
    ((u128::from(u) * u128::from(mass)) >> 64) as u64
}

/// The least whole mass above `proportion · mass`.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "the proportion is at most one")]
pub fn share_above(proportion: u64, mass: u64) -> u64 {
    ((u128::from(proportion) * u128::from(mass)) >> 32) as u64 + 1
}

/// The farthest distance at which a token has at least `ratio` of the highest probability:
/// `⌊-log2(ratio) · 2^32⌋`; with `exclusive`, more than `ratio`.
///
/// A ratio too small to matter gives a distance past every token's. The highest token itself
/// is never excluded.
///
/// # Examples
/// ```
/// use logitscope::weights::ratio_distance;
///
/// assert_eq!(ratio_distance(0.25, false), 2 << 32);
/// assert_eq!(ratio_distance(0.25, true), (2 << 32) - 1);
/// ```
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded by the test above it")]
pub fn ratio_distance(ratio: f64, exclusive: bool) -> u64 {
    let octaves = -libm::log2(ratio) * 4_294_967_296.0;
    if octaves >= FARTHEST as f64 {
        return u64::MAX;
    }
    let farthest = libm::floor(octaves) as u64;
    if exclusive && farthest as f64 == octaves { farthest.saturating_sub(1) } else { farthest }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distance by arbitrary precision: scores as integers times 2^-149.
    fn slow_distance(highest: f32, score: f32, scale: Scale) -> u64 {
        // 2^-149 units need up to 277 bits: schoolbook on 32-bit limbs.
        let limbs = |x: f32| {
            let (significand, exponent) = decode(x);
            let shift = (exponent + 149).cast_unsigned() as usize;
            let mut out = [0i128; 12];
            for bit in 0..24 {
                if significand.unsigned_abs() >> bit & 1 == 1 {
                    let place = shift + bit;
                    out[place / 32] += i128::from(significand.signum()) << (place % 32);
                }
            }
            out
        };
        let (a, b) = (limbs(highest), limbs(score));
        let mut product = [0i128; 14];
        for i in 0..12 {
            product[i] += (a[i] - b[i]) * i128::from(scale.mantissa);
        }
        let mut carry = 0i128;
        for limb in &mut product {
            let value = *limb + carry;
            *limb = value & 0xffff_ffff;
            carry = value >> 32;
        }
        assert_eq!(carry, 0, "the difference is not negative");
        // Bit k of the product stands for 2^(k - 149 + exponent); we want units of 2^-32.
        let offset = -149 + scale.exponent + 32;
        let mut value = 0u64;
        for place in 0..448i32 {
            if product[place.cast_unsigned() as usize / 32] >> (place % 32) & 1 == 1 {
                let target = place + offset;
                if target >= 38 {
                    return FARTHEST;
                }
                if target >= 0 {
                    value |= 1 << target;
                }
            }
        }
        value.min(FARTHEST)
    }

    fn scores() -> Vec<f32> {
        let mut all = vec![
            0.0,
            -0.0,
            f32::MAX,
            f32::MIN,
            f32::MIN_POSITIVE,
            f32::from_bits(1),
            -f32::from_bits(1),
            1e9,
            9e8,
            -1e9,
            1.0,
            0.999_999_94,
            1.000_000_1,
        ];
        let mut state = 1u64;
        for _ in 0..400 {
            state = crate::random::splitmix(&mut state.clone()).wrapping_add(state);
            let random = crate::random::splitmix(&mut state);
            let bits = (random >> 32) as u32;
            let wild = f32::from_bits(bits);
            if wild.is_finite() {
                all.push(wild);
            }
            all.push(((random & 0xffff) as f32 - 32768.0) / 1500.0);
        }
        all
    }

    #[test]
    fn distance_equals_its_slow_twin() {
        let scores = scores();
        let (mut ran, mut by_grid) = (0, 0);
        for temperature in [1.0, 0.7, 1e-45, 1e-7, 0.01, 100.0, 1e4, std::f64::consts::LOG2_E, 5e-324, 1e300]
        {
            let scale = Scale::from_temperature(temperature);
            for &a in &scores {
                for &b in scores.iter().step_by(7) {
                    let (highest, score) = if a >= b { (a, b) } else { (b, a) };
                    let want = slow_distance(highest, score, scale);
                    assert_eq!(distance(highest, score, scale), want, "{highest:e} {score:e} {temperature}");
                    let ruler = Ruler::new(highest, scale);
                    assert_eq!(ruler.distance(score), want, "{highest:e} {score:e} {temperature}");
                    let on_grid = |grid: &Grid| grid.places(&[score], &mut [0]);
                    by_grid += usize::from(ruler.grid.as_ref().is_some_and(on_grid));
                    ran += 1;
                }
            }
        }
        assert!(ran > 500_000, "only {ran} pairs ran");
        assert!((ran / 4..ran / 4 * 3).contains(&by_grid), "{by_grid} of {ran} by the grid");
    }

    #[test]
    fn a_block_is_measured_as_its_scores_are() {
        let scale = Scale::from_temperature(0.7);
        let coarse: Vec<f32> = (0..64).map(|step| 5.0 - step as f32 / 8.0).collect();
        let mut fine = coarse.clone();
        fine[40] = 1e-30; // between two places of the grid, so that it takes all others with it
        fine[41] = 9.0; // that of a dead token
        let mut far = coarse.clone();
        far[1] = f32::MIN; // below the lowest place
        for (scores, on_grid) in
            [(&coarse, true), (&fine, false), (&far, true), (&coarse[..3].to_vec(), true)]
        {
            let ruler = Ruler::new(5.0, scale);
            let mut distances = vec![0; scores.len()];
            assert_eq!(ruler.grid.as_ref().is_some_and(|grid| grid.places(scores, &mut distances)), on_grid);
            ruler.distances(scores, &mut distances);
            for (&score, measured) in scores.iter().zip(distances).filter(|(score, _)| **score <= 5.0) {
                assert_eq!(measured, distance(5.0, score, scale), "{score}");
            }
        }
    }

    #[test]
    fn the_ends_of_a_row_are_spread_over_32_bits() {
        let scores = scores();
        let mut ran = 0;
        for &a in &scores {
            for &b in scores.iter().filter(|&&b| b != a) {
                let (top, bottom) = if a > b { (a, b) } else { (b, a) };
                let far = distance(top, bottom, Scale::spreading(top, bottom));
                assert_eq!(far >> 31, 1, "{top:e} {bottom:e}");
                ran += 1;
            }
        }
        assert!(ran > 100_000, "only {ran} pairs ran");
    }

    #[test]
    fn keys_order_as_scores_do() {
        let mut scores = scores();
        scores.sort_by(f32::total_cmp);
        for pair in scores.windows(2) {
            assert_eq!(pair[0] < pair[1], key(pair[0]) < key(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn exp2_is_close_and_never_increases() {
        let mut previous = exp2_negative(0);
        assert_eq!(previous, 1 << 31);
        let mut worst = 0f64;
        for step in 0..4_000_000u32 {
            let fraction = step.wrapping_mul(1073) + step / 2;
            let value = exp2_negative(fraction);
            assert!(value <= previous, "increases at {fraction}");
            previous = value;
            let truth = libm::exp2(-f64::from(fraction) / 4_294_967_296.0) * 2_147_483_648.0;
            worst = worst.max((f64::from(value) - truth).abs() / truth);
        }
        assert!(worst < 2.3e-9, "worst relative error {worst:e}");
    }

    #[test]
    fn total_variation_from_an_f64_softmax_is_below_a_millionth() {
        let vocabulary = MAX_VOCABULARY;
        let mut ran = 0;
        for (name, make) in crate::testing::DISTRIBUTIONS {
            for temperature in [0.05, 0.7, 1.0, 1.9, 100.0] {
                let scores = make(vocabulary, 11);
                let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let scale = Scale::from_temperature(temperature);
                let ruler = Ruler::new(highest, scale);
                let weights: Vec<u64> = scores.iter().map(|&x| weight(ruler.distance(x))).collect();
                let total: u64 = weights.iter().sum();
                let exact: Vec<f64> = scores
                    .iter()
                    .map(|&x| libm::exp((f64::from(x) - f64::from(highest)) / temperature))
                    .collect();
                let sum: f64 = exact.iter().sum();
                let variation: f64 = weights
                    .iter()
                    .zip(&exact)
                    .map(|(&w, e)| (w as f64 / total as f64 - e / sum).abs())
                    .sum::<f64>()
                    / 2.0;
                assert!(variation < 1e-6, "{name} at {temperature}: {variation:e}");
                ran += 1;
            }
        }
        assert!(ran >= 40, "only {ran} distributions ran");
    }

    #[test]
    fn scales_hold_32_bits_of_the_quotient() {
        for temperature in [1e-300, 1e-45, 0.1, 0.7, 1.0, std::f64::consts::LOG2_E, 2.0, 1e4, 1e300] {
            let scale = Scale::from_temperature(temperature);
            assert!(scale.mantissa >= 1 << 31);
            let relative = scale.octaves_per_nat() * temperature / std::f64::consts::LOG2_E - 1.0;
            assert!(relative.abs() < 2.4e-10, "{temperature}: {relative:e}");
        }
    }
}
