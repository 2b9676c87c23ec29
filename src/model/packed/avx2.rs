//! With the 256-bit vectors of x86-64, and its conversion of half floats.

use core::arch::x86_64::{
    __m128, __m256i, _mm_add_ps, _mm_add_ss, _mm_cvtepi32_ps, _mm_cvtss_f32, _mm_movehl_ps, _mm_mul_ps,
    _mm_set_epi64x, _mm_setr_epi32, _mm_setr_ps, _mm_setzero_ps, _mm_shuffle_ps, _mm_srli_epi16,
    _mm256_and_si256, _mm256_castps256_ps128, _mm256_cvtph_ps, _mm256_extractf128_ps, _mm256_set_epi64x,
    _mm256_set_m128i, _mm256_set1_epi16, _mm256_slli_epi16, _mm256_srai_epi16, _mm256_srli_epi16,
    _mm256_sub_epi16,
};

use super::super::activations::QuantisedRow;
use super::super::group_sums::{
    GROUP_QUANTS,
    avx2::{block_parts, four_sums, vectors},
};
use super::super::quant::{BLOCK, GROUP, TensorType};
use super::ROWS;

/// The products of some rows.
#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(in super::super) fn products(
    kind: TensorType,
    rows: [&[u8]; ROWS],
    input: QuantisedRow<'_>,
) -> [f32; ROWS] {
    match kind {
        TensorType::Q8_0 => dot_blocks::<34>(rows, input, false, |block| {
            let pairs =
                _mm256_set_epi64x(eight(block, 26), eight(block, 18), eight(block, 10), eight(block, 2));
            [_mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(pairs)), _mm256_srai_epi16::<8>(pairs)]
        }),
        TensorType::Q4_0 => dot_blocks::<18>(rows, input, false, |block| {
            nibbles(block, 2).map(|quants| _mm256_sub_epi16(quants, _mm256_set1_epi16(8)))
        }),
        _ => dot_blocks::<20>(rows, input, true, |block| nibbles(block, 4)),
    }
}

/// Eight bytes of a block.
#[inline]
fn eight(block: &[u8], at: usize) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&block[at..at + 8]);
    i64::from_le_bytes(bytes)
}

/// The 32 nibbles of 16 bytes, even ones first.
#[target_feature(enable = "avx2")]
#[inline]
fn nibbles(block: &[u8], at: usize) -> [__m256i; 2] {
    let bytes = _mm_set_epi64x(eight(block, at + 8), eight(block, at));
    let nibbles =
        _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16::<4>(bytes), bytes), _mm256_set1_epi16(0x0f0f));
    [_mm256_and_si256(nibbles, _mm256_set1_epi16(0xff)), _mm256_srli_epi16::<8>(nibbles)]
}

/// Blocks begin with a half float, their scale; another follows where they have an `offset`.
#[target_feature(enable = "avx2,f16c")]
#[inline]
fn dot_blocks<const BYTES: usize>(
    rows: [&[u8]; ROWS],
    input: QuantisedRow<'_>,
    offset: bool,
    quants: impl Fn(&[u8; BYTES]) -> [__m256i; 2],
) -> [f32; ROWS] {
    let rows = rows.map(|row| row.as_chunks::<BYTES>().0.as_chunks::<GROUP>());
    // Padding is blocks of zero bytes, which stand for zeros.
    let last = rows.map(|(_, rest)| std::array::from_fn(|i| rest.get(i).unwrap_or(&[0; BYTES])));
    let inputs = input.quants.as_chunks::<GROUP_QUANTS>().0.iter();
    let scales = input.scales.as_chunks::<GROUP>().0.iter().zip(input.sums.as_chunks::<GROUP>().0);
    let mut lanes = [_mm_setzero_ps(); ROWS];
    for (index, (input, (scale, sum))) in inputs.zip(scales).enumerate() {
        let [a, b, c, d] = [0, 1, 2, 3].map(|block| vectors(&input.as_chunks::<BLOCK>().0[block]));
        let (scale, sum) = (floats(scale), floats(sum));
        for ((lanes, (groups, _)), last) in lanes.iter_mut().zip(&rows).zip(&last) {
            let blocks = groups.get(index).map_or(*last, <[_; GROUP]>::each_ref);
            let sums = four_sums(
                block_parts(quants(blocks[0]), a),
                block_parts(quants(blocks[1]), b),
                block_parts(quants(blocks[2]), c),
                block_parts(quants(blocks[3]), d),
            );
            let [weight_scale, weight_offset] = factors(blocks);
            let scaled = _mm_mul_ps(_mm_mul_ps(weight_scale, scale), _mm_cvtepi32_ps(sums));
            let weight_offset = if offset { weight_offset } else { _mm_setzero_ps() };
            *lanes = _mm_add_ps(*lanes, _mm_add_ps(scaled, _mm_mul_ps(weight_offset, sum)));
        }
    }
    lanes.map(|four| {
        // Lanes 0 + 2 and 1 + 3, then both.
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
    })
}

/// The first two half floats of four blocks: their scales, and their offsets if they have any.
#[target_feature(enable = "avx2,f16c")]
#[inline]
fn factors<const BYTES: usize>(blocks: [&[u8; BYTES]; GROUP]) -> [__m128; 2] {
    let [a, b, c, d] = blocks.map(|block| i32::from_le_bytes([block[0], block[1], block[2], block[3]]));
    let pairs = _mm256_cvtph_ps(_mm_setr_epi32(a, b, c, d));
    let (near, far) = (_mm256_castps256_ps128(pairs), _mm256_extractf128_ps::<1>(pairs));
    [_mm_shuffle_ps::<0x88>(near, far), _mm_shuffle_ps::<0xdd>(near, far)]
}

/// Becomes one load.
#[target_feature(enable = "avx2")]
#[inline]
fn floats(four: &[f32; GROUP]) -> __m128 {
    _mm_setr_ps(four[0], four[1], four[2], four[3])
}
