//! How tensors are packed, and the two ways to read a row of one.
//!
//! Every quantised type here is, seen from far enough, the same thing: blocks of 32 small
//! integers with one scale and one offset, `value = scale * quant + offset`. [`unpack`]
//! brings a row into that form, so that one dot product (see [`super::kernel`]) serves all
//! of them. [`dequantise`] gives the values themselves, to the bit as the reference does.
//!
//! Source: the block layouts of ggml as the Python package `gguf` documents them;
//! `tests/quant.rs` holds every type to values which that package computed.
//!
//! [`unpack`]: TensorType::unpack
//! [`dequantise`]: TensorType::dequantise
#![expect(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "unpacking moves bit fields of known width; `as` keeps the loops plain enough to vectorise"
)]
#![expect(clippy::inline_always, reason = "must be compiled with the vector features of the caller")]

use std::fmt;

/// Numbers in a block that shares one scale.
pub const BLOCK: usize = 32;
/// Numbers in a superblock of the K types.
const SUPERBLOCK: usize = 256;

/// How a tensor's numbers are packed. The names are those of the file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the format's own, and say all there is")]
#[expect(non_camel_case_types, reason = "the names are the format's own")]
pub enum TensorType {
    F32,
    F16,
    BF16,
    Q8_0,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q4_K,
    Q5_K,
    Q6_K,
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One row of a quantised matrix as blocks of 32: `value = scale * quant + offset`.
///
/// Every quant is at most 4,096 in size (127 but for `Q6_K`, whose inner scales are
/// folded into it). Rows end in zeros up to a multiple of four blocks, so that loops over
/// groups of blocks have no remainder.
#[derive(Debug, Clone, Default)]
pub struct UnpackedRow {
    /// `[columns]`, and padding.
    pub quants: Vec<i16>,
    /// `[columns / 32]`, and padding.
    pub scales: Vec<f32>,
    /// `[columns / 32]`, and padding.
    pub offsets: Vec<f32>,
}

/// Blocks that are worked on together.
pub(super) const GROUP: usize = 4;

/// How many blocks a row of this many columns has, padding included.
pub(super) fn padded_blocks(columns: usize) -> usize {
    columns.div_ceil(BLOCK).next_multiple_of(GROUP)
}

impl UnpackedRow {
    /// Room for a row of this many columns, all zero.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        let blocks = padded_blocks(columns);
        Self { quants: vec![0; blocks * BLOCK], scales: vec![0.0; blocks], offsets: vec![0.0; blocks] }
    }
}

impl TensorType {
    /// The type that the file format numbers so, if it is supported.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            12 => Self::Q4_K,
            13 => Self::Q5_K,
            14 => Self::Q6_K,
            30 => Self::BF16,
            _ => return None,
        })
    }

    /// Numbers in one block, and bytes of one block.
    const fn block(self) -> (usize, usize) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::BF16 => (1, 2),
            Self::Q8_0 => (BLOCK, 34),
            Self::Q4_0 => (BLOCK, 18),
            Self::Q4_1 => (BLOCK, 20),
            Self::Q5_0 => (BLOCK, 22),
            Self::Q5_1 => (BLOCK, 24),
            Self::Q4_K => (SUPERBLOCK, 144),
            Self::Q5_K => (SUPERBLOCK, 176),
            Self::Q6_K => (SUPERBLOCK, 210),
        }
    }

    /// Bytes of a row, or `None` where so many columns are not whole blocks.
    ///
    /// # Examples
    /// ```
    /// use logitscope::model::quant::TensorType;
    ///
    /// assert_eq!(TensorType::Q4_1.row_bytes(64), Some(40));
    /// assert_eq!(TensorType::Q4_1.row_bytes(65), None);
    /// ```
    #[must_use]
    pub fn row_bytes(self, columns: usize) -> Option<usize> {
        let (numbers, bytes) = self.block();
        columns
            .is_multiple_of(numbers)
            .then_some(columns / numbers)
            .and_then(|blocks| blocks.checked_mul(bytes))
    }

    /// Whether rows are blocks of integers, so that [`unpack`](Self::unpack) applies.
    #[must_use]
    pub fn is_quantised(self) -> bool {
        !matches!(self, Self::F32 | Self::F16 | Self::BF16)
    }

    /// Reads a row as integers with scales. Only for quantised types: others leave it as it is.
    #[inline(always)]
    pub fn unpack(self, row: &[u8], into: &mut UnpackedRow) {
        match self {
            Self::F32 | Self::F16 | Self::BF16 => {}
            Self::Q8_0 => unpack_q8_0(row, into),
            Self::Q4_0 => unpack_q4_0(row, into),
            Self::Q4_1 => unpack_q4_1(row, into),
            Self::Q5_0 => unpack_q5_0(row, into),
            Self::Q5_1 => unpack_q5_1(row, into),
            Self::Q4_K => unpack_q4_k(row, into),
            Self::Q5_K => unpack_q5_k(row, into),
            Self::Q6_K => unpack_q6_k(row, into),
        }
    }

    /// Reads a row as the numbers it stands for.
    ///
    /// `scratch` has room for the row's columns, as has `into`.
    ///
    /// # Examples
    /// ```
    /// use logitscope::model::quant::{TensorType, UnpackedRow};
    ///
    /// let half_floats = [0x00, 0x3c, 0x00, 0xc0]; // 1 and -2
    /// let mut values = [0.0; 2];
    /// TensorType::F16.dequantise(&half_floats, &mut UnpackedRow::default(), &mut values);
    /// assert_eq!(values, [1.0, -2.0]);
    /// ```
    #[inline(always)]
    pub fn dequantise(self, row: &[u8], scratch: &mut UnpackedRow, into: &mut [f32]) {
        match self {
            Self::F32 => {
                for (value, bytes) in into.iter_mut().zip(row.as_chunks::<4>().0) {
                    *value = f32::from_le_bytes(*bytes);
                }
            }
            Self::F16 => {
                for (value, bytes) in into.iter_mut().zip(row.as_chunks::<2>().0) {
                    *value = half(u16::from_le_bytes(*bytes));
                }
            }
            Self::BF16 => {
                for (value, bytes) in into.iter_mut().zip(row.as_chunks::<2>().0) {
                    *value = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
                }
            }
            Self::Q6_K => dequantise_q6_k(row, into),
            _ => {
                self.unpack(row, scratch);
                let blocks = scratch.quants.as_chunks::<BLOCK>().0.iter();
                let factors = scratch.scales.iter().zip(&scratch.offsets);
                for ((out, quants), (scale, offset)) in
                    into.as_chunks_mut::<BLOCK>().0.iter_mut().zip(blocks).zip(factors)
                {
                    *out = quants.map(|quant| scale * f32::from(quant) + offset);
                }
            }
        }
    }
}

/// The value of a half float: exact, subnormals, infinities and NaN included.
///
/// Without branches, so that loops over it vectorise, and without subnormal f32, which some
/// processors are slow at.
#[inline(always)]
#[must_use]
pub fn half(bits: u16) -> f32 {
    const EXPONENT: u32 = 31 << 23;
    const REBIAS: u32 = (127 - 15) << 23;
    const LEAST_NORMAL: f32 = f32::from_bits((127 - 14) << 23);
    let magnitude = u32::from(bits & 0x7fff) << 13;
    let sign = u32::from(bits & 0x8000) << 16;
    let normal = magnitude + REBIAS;
    // Infinities and NaN keep the highest exponent.
    let finite_or_not = if magnitude & EXPONENT == EXPONENT { normal + REBIAS } else { normal };
    // A subnormal has no leading one: put one in front, then take it away.
    let subnormal = f32::from_bits(normal + (1 << 23)) - LEAST_NORMAL;
    let value = if magnitude & EXPONENT == 0 { subnormal.to_bits() } else { finite_or_not };
    f32::from_bits(value | sign)
}

/// Two bytes of a block as the low bits of an f32, for [`halves`] to make numbers of.
#[inline(always)]
fn half_bits_at(block: &[u8], at: usize) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes([block[at], block[at + 1]])))
}

/// Turns half floats that lie in the low bits into numbers, many at a time.
#[inline(always)]
fn halves(values: &mut [f32]) {
    for value in values {
        *value = half(value.to_bits() as u16);
    }
}

#[inline(always)]
fn half_at(block: &[u8], at: usize) -> f32 {
    half(u16::from_le_bytes([block[at], block[at + 1]]))
}

/// The blocks of a row beside the places its quants, scales and offsets go.
#[inline(always)]
fn blocks<'a, const BYTES: usize>(
    row: &'a [u8],
    into: &'a mut UnpackedRow,
) -> impl Iterator<Item = (&'a [u8; BYTES], &'a mut [i16; BLOCK], (&'a mut f32, &'a mut f32))> {
    let quants = into.quants.as_chunks_mut::<BLOCK>().0.iter_mut();
    let factors = into.scales.iter_mut().zip(&mut into.offsets);
    row.as_chunks::<BYTES>().0.iter().zip(quants).zip(factors).map(|((a, b), c)| (a, b, c))
}

/// Splits 16 bytes into 32 nibbles: the low halves first, then the high ones.
///
/// Quants are made in local arrays: a compiler that knows that nothing overlaps vectorises.
#[inline(always)]
fn nibbles(block: &[u8], at: usize) -> [i16; BLOCK] {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&block[at..at + 16]);
    let mut quants = [0; BLOCK];
    for i in 0..16 {
        quants[i] = i16::from(bytes[i] & 15);
    }
    for i in 0..16 {
        quants[i + 16] = i16::from(bytes[i] >> 4);
    }
    quants
}

/// Adds to each of 32 quants a fifth bit, bit `i` of the four bytes for quant `i`.
#[inline(always)]
fn fifth_bits(high: &[u8], quants: &mut [i16; BLOCK]) {
    let mut spread = [0_u8; BLOCK];
    for (eight, byte) in spread.as_chunks_mut::<8>().0.iter_mut().zip(high) {
        *eight = [*byte; 8];
    }
    for i in 0..BLOCK {
        let bit = i16::from(spread[i]) & (1 << (i % 8));
        quants[i] |= if bit == 0 { 0 } else { 16 };
    }
}

#[inline(always)]
fn unpack_q8_0(row: &[u8], into: &mut UnpackedRow) {
    for (block, quants, (scale, offset)) in blocks::<34>(row, into) {
        *scale = half_bits_at(block, 0);
        *offset = 0.0;
        let mut made = [0; BLOCK];
        for (quant, byte) in made.iter_mut().zip(&block[2..]) {
            *quant = i16::from(*byte as i8);
        }
        *quants = made;
    }
    halves(&mut into.scales);
}

#[inline(always)]
fn unpack_q4_0(row: &[u8], into: &mut UnpackedRow) {
    for (block, quants, (scale, offset)) in blocks::<18>(row, into) {
        *scale = half_bits_at(block, 0);
        *offset = 0.0;
        *quants = nibbles(block, 2).map(|quant| quant - 8);
    }
    halves(&mut into.scales);
}

#[inline(always)]
fn unpack_q4_1(row: &[u8], into: &mut UnpackedRow) {
    for (block, quants, (scale, offset)) in blocks::<20>(row, into) {
        *scale = half_bits_at(block, 0);
        *offset = half_bits_at(block, 2);
        *quants = nibbles(block, 4);
    }
    halves(&mut into.scales);
    halves(&mut into.offsets);
}

#[inline(always)]
fn unpack_q5_0(row: &[u8], into: &mut UnpackedRow) {
    for (block, quants, (scale, offset)) in blocks::<22>(row, into) {
        *scale = half_bits_at(block, 0);
        *offset = 0.0;
        let mut made = nibbles(block, 6);
        fifth_bits(&block[2..6], &mut made);
        *quants = made.map(|quant| quant - 16);
    }
    halves(&mut into.scales);
}

#[inline(always)]
fn unpack_q5_1(row: &[u8], into: &mut UnpackedRow) {
    for (block, quants, (scale, offset)) in blocks::<24>(row, into) {
        *scale = half_bits_at(block, 0);
        *offset = half_bits_at(block, 2);
        let mut made = nibbles(block, 8);
        fifth_bits(&block[4..8], &mut made);
        *quants = made;
    }
    halves(&mut into.scales);
    halves(&mut into.offsets);
}

/// The 6-bit scale and minimum of sub-block `index` (0..8), out of the 12 bytes they share.
#[inline(always)]
fn scale_and_minimum(packed: &[u8], index: usize) -> (f32, f32) {
    let (scale, minimum) = if index < 4 {
        (packed[index] & 63, packed[index + 4] & 63)
    } else {
        (
            (packed[index + 4] & 15) | ((packed[index - 4] >> 6) << 4),
            (packed[index + 4] >> 4) | ((packed[index] >> 6) << 4),
        )
    };
    (f32::from(scale), f32::from(minimum))
}

/// The eight 32-blocks of each superblock, beside its bytes.
#[inline(always)]
fn superblocks<'a, const BYTES: usize>(
    row: &'a [u8],
    into: &'a mut UnpackedRow,
) -> impl Iterator<Item = (&'a [u8; BYTES], &'a mut [i16; SUPERBLOCK], &'a mut [f32; 8], &'a mut [f32; 8])> {
    let quants = into.quants.as_chunks_mut::<SUPERBLOCK>().0.iter_mut();
    let scales = into.scales.as_chunks_mut::<8>().0.iter_mut();
    let offsets = into.offsets.as_chunks_mut::<8>().0.iter_mut();
    let bytes = row.as_chunks::<BYTES>().0.iter();
    bytes.zip(quants).zip(scales).zip(offsets).map(|(((a, b), c), d)| (a, b, c, d))
}

/// Scales and offsets of a superblock of `Q4_K` or `Q5_K`, whose first 16 bytes are alike.
#[inline(always)]
fn k_factors(block: &[u8], scales: &mut [f32; 8], offsets: &mut [f32; 8]) {
    let (scale_unit, minimum_unit) = (half_at(block, 0), half_at(block, 2));
    for index in 0..8 {
        let (scale, minimum) = scale_and_minimum(&block[4..16], index);
        scales[index] = scale_unit * scale;
        offsets[index] = -(minimum_unit * minimum);
    }
}

#[inline(always)]
fn unpack_q4_k(row: &[u8], into: &mut UnpackedRow) {
    for (block, quants, scales, offsets) in superblocks::<144>(row, into) {
        k_factors(block, scales, offsets);
        for (pair, bytes) in quants.as_chunks_mut::<64>().0.iter_mut().zip(block[16..].as_chunks::<32>().0) {
            let bytes = *bytes;
            let mut made = [0; 64];
            for i in 0..32 {
                made[i] = i16::from(bytes[i] & 15);
            }
            for i in 0..32 {
                made[i + 32] = i16::from(bytes[i] >> 4);
            }
            *pair = made;
        }
    }
}

#[inline(always)]
fn unpack_q5_k(row: &[u8], into: &mut UnpackedRow) {
    for (block, quants, scales, offsets) in superblocks::<176>(row, into) {
        k_factors(block, scales, offsets);
        let mut high = [0; 32];
        high.copy_from_slice(&block[16..48]);
        let low = block[48..].as_chunks::<32>().0.iter();
        for (index, (pair, bytes)) in quants.as_chunks_mut::<64>().0.iter_mut().zip(low).enumerate() {
            let bytes = *bytes;
            let mut made = [0; 64];
            for i in 0..32 {
                made[i] = i16::from((bytes[i] & 15) | (((high[i] >> (2 * index)) & 1) << 4));
            }
            for i in 0..32 {
                made[i + 32] = i16::from((bytes[i] >> 4) | (((high[i] >> (2 * index)) & 2) << 3));
            }
            *pair = made;
        }
    }
}

/// The 256 quants of a `Q6_K` superblock, between -32 and 31, without their inner scales.
#[inline(always)]
fn q6_k_quants(block: &[u8; 210], quants: &mut [i16; SUPERBLOCK]) {
    let low = block[..128].as_chunks::<64>().0.iter();
    let high = block[128..192].as_chunks::<32>().0.iter();
    for ((half, low), high) in quants.as_chunks_mut::<128>().0.iter_mut().zip(low).zip(high) {
        let (low, high) = (*low, *high);
        let mut made = [0; 128];
        for i in 0..32 {
            made[i] = i16::from((low[i] & 15) | ((high[i] & 3) << 4)) - 32;
        }
        for i in 0..32 {
            made[i + 32] = i16::from((low[i + 32] & 15) | (((high[i] >> 2) & 3) << 4)) - 32;
        }
        for i in 0..32 {
            made[i + 64] = i16::from((low[i] >> 4) | (((high[i] >> 4) & 3) << 4)) - 32;
        }
        for i in 0..32 {
            made[i + 96] = i16::from((low[i + 32] >> 4) | ((high[i] >> 6) << 4)) - 32;
        }
        *half = made;
    }
}

#[inline(always)]
fn unpack_q6_k(row: &[u8], into: &mut UnpackedRow) {
    for (block, quants, scales, offsets) in superblocks::<210>(row, into) {
        q6_k_quants(block, quants);
        // At most 32 * 128, so the product still fits: one scale then serves the superblock.
        for (sixteen, scale) in quants.as_chunks_mut::<16>().0.iter_mut().zip(&block[192..208]) {
            let scale = i16::from(*scale as i8);
            *sixteen = sixteen.map(|quant| quant * scale);
        }
        *scales = [half_at(block, 208); 8];
        *offsets = [0.0; 8];
    }
}

#[inline(always)]
fn dequantise_q6_k(row: &[u8], into: &mut [f32]) {
    let mut quants = [0; SUPERBLOCK];
    let values = into.as_chunks_mut::<SUPERBLOCK>().0;
    for (block, values) in row.as_chunks::<210>().0.iter().zip(values) {
        q6_k_quants(block, &mut quants);
        let unit = half_at(block, 208);
        let sixteens = values.as_chunks_mut::<16>().0.iter_mut().zip(quants.as_chunks::<16>().0);
        for ((values, quants), scale) in sixteens.zip(&block[192..208]) {
            let scale = unit * f32::from(*scale as i8);
            *values = quants.map(|quant| scale * f32::from(quant));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half floats the slow way, from the definition.
    fn half_slowly(bits: u16) -> f32 {
        let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
        let exponent = i32::from((bits >> 10) & 31);
        let fraction = f64::from(bits & 0x3ff) / 1024.0;
        let magnitude = match exponent {
            0 => fraction * 2.0_f64.powi(-14),
            31 if fraction == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            _ => (1.0 + fraction) * 2.0_f64.powi(exponent - 15),
        };
        #[expect(clippy::cast_possible_truncation, reason = "half floats are exact in f32")]
        let value = (sign * magnitude) as f32;
        value
    }

    #[test]
    fn every_half_float() {
        for bits in 0..=u16::MAX {
            let (fast, slow) = (half(bits), half_slowly(bits));
            assert!(fast.to_bits() == slow.to_bits() || (fast.is_nan() && slow.is_nan()), "{bits:#06x}");
        }
    }

    #[test]
    fn rows_must_be_whole_blocks() {
        assert_eq!(TensorType::Q6_K.row_bytes(512), Some(420));
        assert_eq!(TensorType::Q6_K.row_bytes(288), None);
        assert_eq!(TensorType::F32.row_bytes(usize::MAX), None);
    }
}
