//! With the 256-bit vectors of x86-64, and its conversion of half floats.

use core::arch::x86_64::{
    __m128i, __m256i, _mm_add_ps, _mm_cvtepi32_ps, _mm_cvtss_f32, _mm_mul_ps, _mm_set_epi64x, _mm_set1_ps,
    _mm_setr_epi32, _mm_setzero_ps, _mm_shuffle_ps, _mm256_and_si256, _mm256_castps256_ps128,
    _mm256_cvtepi8_epi16, _mm256_cvtepu8_epi16, _mm256_cvtph_ps, _mm256_extractf128_ps, _mm256_set1_epi16,
    _mm256_srli_epi16, _mm256_sub_epi16,
};

use super::super::activations::QuantisedRow;
use super::super::group_sums::avx2::{block_parts, four_sums, vectors};
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
            [2, 18].map(|at| _mm256_cvtepi8_epi16(sixteen(block, at)))
        }),
        TensorType::Q4_0 => dot_blocks::<18>(rows, input, false, |block| {
            nibbles(sixteen(block, 2)).map(|quants| _mm256_sub_epi16(quants, _mm256_set1_epi16(8)))
        }),
        _ => dot_blocks::<20>(rows, input, true, |block| nibbles(sixteen(block, 4))),
    }
}

/// 16 bytes of a block.
#[target_feature(enable = "avx2")]
#[inline]
fn sixteen(block: &[u8], at: usize) -> __m128i {
    let half = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&block[at..at + 8]);
        i64::from_le_bytes(bytes)
    };
    _mm_set_epi64x(half(at + 8), half(at))
}

/// The 32 nibbles of 16 bytes: the low ones first.
#[target_feature(enable = "avx2")]
#[inline]
fn nibbles(bytes: __m128i) -> [__m256i; 2] {
    let bytes = _mm256_cvtepu8_epi16(bytes);
    [_mm256_and_si256(bytes, _mm256_set1_epi16(15)), _mm256_srli_epi16::<4>(bytes)]
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
    let rows = rows.map(|row| row.as_chunks::<BYTES>().0);
    let blocks = rows[0].len();
    let rows = rows.map(|row| &row[..blocks]);
    let inputs = &input.quants.as_chunks::<BLOCK>().0[..blocks];
    let (scales, sums) = (&input.scales[..blocks], &input.sums[..blocks]);
    let mut lanes = [_mm_setzero_ps(); GROUP];
    for index in 0..blocks {
        let blocks = rows.map(|row| &row[index]);
        let input = vectors(&inputs[index]);
        let [a, b, c, d] = blocks.map(|block| block_parts(quants(block), input));
        let products = _mm_cvtepi32_ps(four_sums(a, b, c, d));
        let [a, b, c, d] = blocks.map(|block| i32::from_le_bytes([block[0], block[1], block[2], block[3]]));
        let halves = _mm256_cvtph_ps(_mm_setr_epi32(a, b, c, d));
        let (near, far) = (_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves));
        let scale = _mm_mul_ps(_mm_shuffle_ps::<0x88>(near, far), _mm_set1_ps(scales[index]));
        let offset = if offset { _mm_shuffle_ps::<0xdd>(near, far) } else { _mm_setzero_ps() };
        let part = _mm_add_ps(_mm_mul_ps(scale, products), _mm_mul_ps(offset, _mm_set1_ps(sums[index])));
        let lane = &mut lanes[index % GROUP];
        *lane = _mm_add_ps(*lane, part);
    }
    let four = _mm_add_ps(_mm_add_ps(lanes[0], lanes[2]), _mm_add_ps(lanes[1], lanes[3]));
    [
        _mm_cvtss_f32(four),
        _mm_cvtss_f32(_mm_shuffle_ps::<1>(four, four)),
        _mm_cvtss_f32(_mm_shuffle_ps::<2>(four, four)),
        _mm_cvtss_f32(_mm_shuffle_ps::<3>(four, four)),
    ]
}
