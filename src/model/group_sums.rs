//! The innermost loop: the exact sums of products of four blocks of 32 integers.
//!
//! It is written once for each vector unit, because compilers do not find the best
//! instructions by themselves. The sums are whole numbers that fit, so every version gives
//! the same result whatever its order; no floating-point operation may live here.
#![expect(clippy::inline_always, reason = "must be compiled with the vector features of the caller")]

use super::quant::{BLOCK, GROUP};

/// Quants of a group of blocks.
pub(super) const GROUP_QUANTS: usize = BLOCK * GROUP;

/// A version of the loop: `[Σ a·b]` for each of four blocks.
pub(super) trait GroupSums:
    Fn(&[i16; GROUP_QUANTS], &[i16; GROUP_QUANTS]) -> [i32; GROUP] + Copy
{
}

impl<F: Fn(&[i16; GROUP_QUANTS], &[i16; GROUP_QUANTS]) -> [i32; GROUP] + Copy> GroupSums for F {}

/// In plain Rust: the definition.
#[cfg(any(test, not(all(target_arch = "wasm32", target_feature = "simd128"))))]
#[inline(always)]
pub(super) fn plain(a: &[i16; GROUP_QUANTS], b: &[i16; GROUP_QUANTS]) -> [i32; GROUP] {
    let mut sums = [0; GROUP];
    let blocks = a.as_chunks::<BLOCK>().0.iter().zip(b.as_chunks::<BLOCK>().0);
    for (sum, (a, b)) in sums.iter_mut().zip(blocks) {
        for i in 0..BLOCK {
            *sum += i32::from(a[i]) * i32::from(b[i]);
        }
    }
    sums
}

/// The version that needs nothing beyond what the crate is compiled for.
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
pub(super) use plain as baseline;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) use simd128::sums as baseline;

/// With the 256-bit vectors of x86-64.
#[cfg(target_arch = "x86_64")]
pub(super) mod avx2 {
    use core::arch::x86_64::{
        __m128i, __m256i, _mm_add_epi32, _mm_extract_epi32, _mm256_add_epi32, _mm256_castsi256_si128,
        _mm256_extracti128_si256, _mm256_hadd_epi32, _mm256_madd_epi16, _mm256_setr_epi16,
    };

    use super::{BLOCK, GROUP, GROUP_QUANTS};

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(in super::super) fn sums(a: &[i16; GROUP_QUANTS], b: &[i16; GROUP_QUANTS]) -> [i32; GROUP] {
        let (a, b) = (a.as_chunks::<BLOCK>().0, b.as_chunks::<BLOCK>().0);
        let sums = four_sums(
            block_parts(vectors(&a[0]), vectors(&b[0])),
            block_parts(vectors(&a[1]), vectors(&b[1])),
            block_parts(vectors(&a[2]), vectors(&b[2])),
            block_parts(vectors(&a[3]), vectors(&b[3])),
        );
        [
            _mm_extract_epi32::<0>(sums),
            _mm_extract_epi32::<1>(sums),
            _mm_extract_epi32::<2>(sums),
            _mm_extract_epi32::<3>(sums),
        ]
    }

    /// A block's quants; becomes two loads.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(in super::super) fn vectors(block: &[i16; BLOCK]) -> [__m256i; 2] {
        let halves = block.as_chunks::<16>().0;
        let load = |a: &[i16; 16]| {
            _mm256_setr_epi16(
                a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13],
                a[14], a[15],
            )
        };
        [load(&halves[0]), load(&halves[1])]
    }

    /// One block's sum, in eight parts.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(in super::super) fn block_parts(a: [__m256i; 2], b: [__m256i; 2]) -> __m256i {
        _mm256_add_epi32(_mm256_madd_epi16(a[0], b[0]), _mm256_madd_epi16(a[1], b[1]))
    }

    /// Four blocks' sums, out of their parts.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(in super::super) fn four_sums(a: __m256i, b: __m256i, c: __m256i, d: __m256i) -> __m128i {
        let halves = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
        _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves))
    }
}

/// With WebAssembly's 128-bit vectors.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) mod simd128 {
    use core::arch::wasm32::{
        i16x8, i32x4_add, i32x4_dot_i16x8 as products, i32x4_extract_lane as lane, i32x4_shuffle as shuffle,
        v128,
    };

    use super::{BLOCK, GROUP, GROUP_QUANTS};

    #[inline(always)]
    pub(in super::super) fn sums(a: &[i16; GROUP_QUANTS], b: &[i16; GROUP_QUANTS]) -> [i32; GROUP] {
        let (a, b) = (a.as_chunks::<BLOCK>().0, b.as_chunks::<BLOCK>().0);
        let part = |index: usize| block_parts(vectors(&a[index]), vectors(&b[index]));
        let sums = four_sums(part(0), part(1), part(2), part(3));
        [lane::<0>(sums), lane::<1>(sums), lane::<2>(sums), lane::<3>(sums)]
    }

    /// A block's quants; becomes four loads.
    #[inline(always)]
    pub(in super::super) fn vectors(block: &[i16; BLOCK]) -> [v128; 4] {
        let load = |index: usize| {
            let at = &block.as_chunks::<8>().0[index];
            i16x8(at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7])
        };
        [load(0), load(1), load(2), load(3)]
    }

    /// One block's sum, in four parts.
    #[inline(always)]
    pub(in super::super) fn block_parts(a: [v128; 4], b: [v128; 4]) -> v128 {
        let near = i32x4_add(products(a[0], b[0]), products(a[1], b[1]));
        let far = i32x4_add(products(a[2], b[2]), products(a[3], b[3]));
        i32x4_add(near, far)
    }

    /// Four blocks' sums, out of their parts.
    #[inline(always)]
    pub(in super::super) fn four_sums(a: v128, b: v128, c: v128, d: v128) -> v128 {
        /// Two blocks' sums, in two parts each: `[x, y, x, y]`.
        #[inline(always)]
        fn pair(x: v128, y: v128) -> v128 {
            i32x4_add(shuffle::<0, 4, 1, 5>(x, y), shuffle::<2, 6, 3, 7>(x, y))
        }
        let (near, far) = (pair(a, b), pair(c, d));
        i32x4_add(shuffle::<0, 1, 4, 5>(near, far), shuffle::<2, 3, 6, 7>(near, far))
    }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::SplitMix64;
    use super::*;

    /// The largest quants there are: 4,096 for weights, 16,383 for activations.
    #[expect(clippy::cast_possible_truncation, reason = "bounded by the remainder")]
    fn quants(stream: &mut SplitMix64, largest: u64) -> [i16; GROUP_QUANTS] {
        std::array::from_fn(|_| (stream.next_bits() % (2 * largest + 1)) as i16 - largest as i16)
    }

    fn same_as_plain(version: impl GroupSums) {
        let mut stream = SplitMix64::new(5);
        for _ in 0..1000 {
            let (a, b) = (quants(&mut stream, 4096), quants(&mut stream, 16_383));
            let sums = plain(&a, &b);
            for (block, sum) in sums.into_iter().enumerate() {
                let products =
                    (0..BLOCK).map(|i| i64::from(a[block * BLOCK + i]) * i64::from(b[block * BLOCK + i]));
                assert_eq!(i64::from(sum), products.sum::<i64>());
            }
            assert_eq!(version(&a, &b), sums);
        }
        let (a, b) = ([-4096; GROUP_QUANTS], [16_383; GROUP_QUANTS]);
        assert_eq!(version(&a, &b), [-2_147_352_576; GROUP]);
    }

    #[test]
    fn every_version_gives_the_plain_sums() {
        same_as_plain(baseline);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            #[expect(unsafe_code, reason = "the function needs AVX2, which was just detected")]
            // SAFETY: its only requirement is a processor with AVX2.
            same_as_plain(|a, b| unsafe { avx2::sums(a, b) });
        }
    }
}
