//! With WebAssembly's 128-bit vectors.
#![expect(clippy::inline_always, reason = "loops over blocks must see through it")]

use core::arch::wasm32::{
    f32x4, f32x4_add, f32x4_convert_i32x4, f32x4_extract_lane as lane, f32x4_mul, f32x4_sub, i16x8_shl,
    i16x8_shr, i16x8_splat, i16x8_sub, i32x4_add, i32x4_eq, u16x8_shr, u32x4, u32x4_shl, u32x4_shr,
    u32x4_splat, u64x2, v128, v128_and, v128_bitselect, v128_or,
};

use super::super::activations::QuantisedRow;
use super::super::group_sums::{
    GROUP_QUANTS,
    simd128::{block_parts, four_sums, vectors},
};
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
            let ([a, b], [c, d]) = (bytes(vector(block, 2)), bytes(vector(block, 18)));
            [a, c, b, d]
        }),
        TensorType::Q4_0 => dot_blocks::<18>(rows, input, false, |block| {
            nibbles(vector(block, 2)).map(|quants| i16x8_sub(quants, i16x8_splat(8)))
        }),
        _ => dot_blocks::<20>(rows, input, true, |block| nibbles(vector(block, 4))),
    }
}

/// 16 bytes of a block.
#[inline(always)]
fn vector(block: &[u8], at: usize) -> v128 {
    let half = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&block[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    u64x2(half(at), half(at + 8))
}

/// 16 signed bytes: the even ones, then the odd ones.
#[inline(always)]
fn bytes(pairs: v128) -> [v128; 2] {
    [i16x8_shr(i16x8_shl(pairs, 8), 8), i16x8_shr(pairs, 8)]
}

/// The 32 nibbles of 16 bytes: low and high ones of even bytes, then of odd ones.
#[inline(always)]
fn nibbles(pairs: v128) -> [v128; 4] {
    let mask = i16x8_splat(15);
    [
        v128_and(pairs, mask),
        v128_and(u16x8_shr(pairs, 4), mask),
        v128_and(u16x8_shr(pairs, 8), mask),
        u16x8_shr(pairs, 12),
    ]
}

/// Blocks begin with a half float, their scale; another follows where they have an `offset`.
#[inline(always)]
fn dot_blocks<const BYTES: usize>(
    rows: [&[u8]; ROWS],
    input: QuantisedRow<'_>,
    offset: bool,
    quants: impl Fn(&[u8; BYTES]) -> [v128; 4],
) -> [f32; ROWS] {
    let inputs = input.quants.as_chunks::<GROUP_QUANTS>().0;
    let scales = input.scales.as_chunks::<GROUP>().0;
    let sums = input.sums.as_chunks::<GROUP>().0;
    let zeros = f32x4(0.0, 0.0, 0.0, 0.0);
    let floats = |four: &[f32; GROUP]| f32x4(four[0], four[1], four[2], four[3]);
    let group = |blocks: [&[u8; BYTES]; GROUP], index: usize| {
        let input = inputs[index].as_chunks::<BLOCK>().0;
        let part = |index: usize| block_parts(quants(blocks[index]), vectors(&input[index]));
        let products = f32x4_convert_i32x4(four_sums(part(0), part(1), part(2), part(3)));
        let [a, b, c, d] = blocks.map(|block| u32::from_le_bytes([block[0], block[1], block[2], block[3]]));
        let factors = u32x4(a, b, c, d);
        let weight_scales = halves(v128_and(factors, u32x4_splat(0xffff)));
        let scaled = f32x4_mul(f32x4_mul(weight_scales, floats(&scales[index])), products);
        let offsets = if offset { halves(u32x4_shr(factors, 16)) } else { zeros };
        f32x4_add(scaled, f32x4_mul(offsets, floats(&sums[index])))
    };
    let rows = rows.map(|row| row.as_chunks::<BYTES>().0.as_chunks::<GROUP>());
    // Padding is blocks of zero bytes, which stand for zeros.
    let last = rows.map(|(_, rest)| std::array::from_fn(|i| rest.get(i).unwrap_or(&[0; BYTES])));
    let mut lanes = [zeros; ROWS];
    for index in 0..inputs.len() {
        for ((lanes, (groups, _)), last) in lanes.iter_mut().zip(&rows).zip(&last) {
            // One call for both, so that it is compiled in place, its constants outside the loop.
            let blocks = groups.get(index).map_or(*last, <[_; GROUP]>::each_ref);
            *lanes = f32x4_add(*lanes, group(blocks, index));
        }
    }
    lanes.map(|four| (lane::<0>(four) + lane::<2>(four)) + (lane::<1>(four) + lane::<3>(four)))
}

/// Half floats in the low bits of four lanes as numbers: [`super::super::quant::half`] four times.
#[inline(always)]
fn halves(bits: v128) -> v128 {
    let exponent = u32x4_splat(31 << 23);
    let rebias = u32x4_splat((127 - 15) << 23);
    let least_normal = u32x4_splat((127 - 14) << 23);
    let magnitude = u32x4_shl(v128_and(bits, u32x4_splat(0x7fff)), 13);
    let sign = u32x4_shl(v128_and(bits, u32x4_splat(0x8000)), 16);
    let normal = i32x4_add(magnitude, rebias);
    let part = v128_and(magnitude, exponent);
    let finite_or_not = v128_bitselect(i32x4_add(normal, rebias), normal, i32x4_eq(part, exponent));
    let subnormal = f32x4_sub(i32x4_add(normal, u32x4_splat(1 << 23)), least_normal);
    v128_or(v128_bitselect(subnormal, finite_or_not, i32x4_eq(part, u32x4_splat(0))), sign)
}
