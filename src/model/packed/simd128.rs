//! With WebAssembly's 128-bit vectors.
#![expect(clippy::inline_always, reason = "loops over blocks must see through it")]

use core::arch::wasm32::{
    f32x4, f32x4_add, f32x4_convert_i32x4, f32x4_extract_lane as lane, f32x4_mul, f32x4_splat,
    i16x8_extend_low_i8x16, i16x8_splat, i16x8_sub, i32x4_eq, i32x4_shl, i32x4_shr, u16x8_extend_low_u8x16,
    u16x8_shr, u32x4, u32x4_splat, u64x2, v128, v128_and, v128_or,
};

use super::super::activations::QuantisedRow;
use super::super::group_sums::simd128::{block_parts, four_sums, vectors};
use super::super::quant::{BLOCK, GROUP, TensorType};
use super::ROWS;

/// The products of some rows.
#[inline(always)]
pub(in super::super) fn products(
    kind: TensorType,
    rows: [&[u8]; ROWS],
    input: QuantisedRow<'_>,
) -> [f32; ROWS] {
    match kind {
        TensorType::Q8_0 => dot_blocks::<34>(rows, input, false, |block| {
            [2, 10, 18, 26].map(|at| i16x8_extend_low_i8x16(eight(block, at)))
        }),
        TensorType::Q4_0 => dot_blocks::<18>(rows, input, false, |block| {
            nibbles(block, 2).map(|quants| i16x8_sub(quants, i16x8_splat(8)))
        }),
        _ => dot_blocks::<20>(rows, input, true, |block| nibbles(block, 4)),
    }
}

/// Eight bytes of a block, to be extended.
#[inline(always)]
fn eight(block: &[u8], at: usize) -> v128 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&block[at..at + 8]);
    u64x2(u64::from_le_bytes(bytes), 0)
}

/// The 32 nibbles of 16 bytes: the low ones first.
#[inline(always)]
fn nibbles(block: &[u8], at: usize) -> [v128; 4] {
    let [near, far] = [at, at + 8].map(|at| u16x8_extend_low_u8x16(eight(block, at)));
    let mask = i16x8_splat(15);
    [v128_and(near, mask), v128_and(far, mask), u16x8_shr(near, 4), u16x8_shr(far, 4)]
}

/// Blocks begin with a half float, their scale; another follows where they have an `offset`.
#[inline(always)]
fn dot_blocks<const BYTES: usize>(
    rows: [&[u8]; ROWS],
    input: QuantisedRow<'_>,
    offset: bool,
    quants: impl Fn(&[u8; BYTES]) -> [v128; 4],
) -> [f32; ROWS] {
    let zeros = f32x4(0.0, 0.0, 0.0, 0.0);
    let rows = rows.map(|row| row.as_chunks::<BYTES>().0);
    let blocks = rows[0].len();
    let rows = rows.map(|row| &row[..blocks]);
    let inputs = &input.quants.as_chunks::<BLOCK>().0[..blocks];
    let (scales, sums) = (&input.scales[..blocks], &input.sums[..blocks]);
    let mut lanes = [zeros; GROUP];
    for index in 0..blocks {
        let blocks = rows.map(|row| &row[index]);
        let input = vectors(&inputs[index]);
        let [a, b, c, d] = blocks.map(|block| block_parts(quants(block), input));
        let products = f32x4_convert_i32x4(four_sums(a, b, c, d));
        let [a, b, c, d] = blocks.map(|block| u32::from_le_bytes([block[0], block[1], block[2], block[3]]));
        let factors = u32x4(a, b, c, d);
        let scale = f32x4_mul(high_halves(i32x4_shl(factors, 16)), f32x4_splat(scales[index]));
        let offset = if offset { high_halves(factors) } else { zeros };
        let part = f32x4_add(f32x4_mul(scale, products), f32x4_mul(offset, f32x4_splat(sums[index])));
        let lane = &mut lanes[index % GROUP];
        *lane = f32x4_add(*lane, part);
    }
    let four = f32x4_add(f32x4_add(lanes[0], lanes[2]), f32x4_add(lanes[1], lanes[3]));
    [lane::<0>(four), lane::<1>(four), lane::<2>(four), lane::<3>(four)]
}

/// Half floats in the high bits of four lanes as numbers: [`super::super::quant::half`] four times.
#[inline(always)]
fn high_halves(bits: v128) -> v128 {
    let moved = v128_and(i32x4_shr(bits, 3), u32x4_splat(0x8fff_e000));
    // The exponent's bias is 112 less. A multiplication makes subnormal numbers normal, too.
    let finite = f32x4_mul(moved, u32x4_splat((127 + 112) << 23));
    let exponent = u32x4_splat(31 << 23);
    let highest = i32x4_eq(v128_and(moved, exponent), exponent);
    v128_or(finite, v128_and(highest, u32x4_splat(255 << 23)))
}
