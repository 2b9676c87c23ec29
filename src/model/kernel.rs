//! The arithmetic that dominates: dot products and the matrix product made of them.
//!
//! Every sum here has one order, fixed by the source and not by the processor, so native
//! builds and wasm give the same bits. There is no fused multiply-add. Vector units are
//! used where the order allows it: integer sums are exact in any order, and floating-point
//! sums run in a fixed number of lanes with one fixed final reduction.
//!
//! A row of the result depends on its own input row alone, so computing several positions
//! at once (which reads each weight once) gives the bits of computing them one by one.
#![expect(clippy::inline_always, reason = "must be compiled with the vector features of the caller")]

use std::hint::black_box;

use super::activations::{Activations, QuantisedRow, QuantisedRows};
use super::group_sums::{self, GROUP_QUANTS, GroupSums};
use super::matrix::MatrixView;
#[cfg(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128")))]
use super::packed;
use super::quant::{GROUP, UnpackedRow};

/// Lanes of a floating-point dot product.
const LANES: usize = 16;
/// Rows of weights that are unpacked together.
const TILE: usize = 4;

/// `Σ a[i]·b[i]` in f32: lane `i % 16` of 16, then halves added until one is left.
///
/// # Examples
/// ```
/// use logitscope::model::kernel::dot;
///
/// assert_eq!(dot(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 32.0);
/// ```
#[inline(always)]
#[must_use]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane += a * b;
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// The dot product of a row of weights and a row of activations.
///
/// Block `b` contributes `(w.scale·a.scale)·Σ + w.offset·a.sum` to accumulator `b % 4`;
/// the result is `(0 + 2) + (1 + 3)`.
#[inline(always)]
fn dot_quantised(weights: &UnpackedRow, input: QuantisedRow<'_>, group_sums: impl GroupSums) -> f32 {
    let quants = weights.quants.as_chunks::<GROUP_QUANTS>().0.iter();
    let quants = quants.zip(input.quants.as_chunks::<GROUP_QUANTS>().0);
    let scales = weights.scales.as_chunks::<GROUP>().0.iter().zip(input.scales.as_chunks::<GROUP>().0);
    let offsets = weights.offsets.as_chunks::<GROUP>().0.iter().zip(input.sums.as_chunks::<GROUP>().0);
    let mut lanes = [0.0_f32; GROUP];
    for (((weight, input), (weight_scale, input_scale)), (offset, input_sum)) in
        quants.zip(scales).zip(offsets)
    {
        let sums = group_sums(weight, input);
        for lane in 0..GROUP {
            lanes[lane] +=
                (weight_scale[lane] * input_scale[lane]) * sums[lane] as f32 + offset[lane] * input_sum[lane];
        }
    }
    // Kept apart from the loop, whose four lanes would else be compiled as two pairs.
    let lanes = black_box(lanes);
    (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
}

/// `output[p, r] = Σ input[p, c] · weight[r, c]`.
///
/// With `exact` the weights are taken as floats; otherwise, where they are quantised,
/// the inputs are rounded to integers too.
pub(super) fn multiply(
    matrix: &MatrixView<'_>,
    input: &mut Activations<'_>,
    exact: bool,
    output: &mut [f32],
) {
    debug_assert_eq!(input.columns(), matrix.columns, "columns");
    let input = if matrix.kind.is_quantised() && !exact {
        Input::Quantised(input.quantised())
    } else {
        Input::Floats(input.values())
    };
    multiply_vectorised(matrix, input, output);
}

/// Multiplies with the widest vector unit at hand. Results do not depend on it.
fn multiply_vectorised(matrix: &MatrixView<'_>, input: Input<'_>, output: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,f16c")]
        fn with_avx2(matrix: &MatrixView<'_>, input: Input<'_>, output: &mut [f32]) {
            match input.alone(matrix, output) {
                Some(row) => {
                    packed::multiply(matrix, row, output, |kind, rows, row| {
                        packed::avx2::products(kind, rows, row)
                    });
                }
                None => multiply_rows(matrix, input, output, |a, b| group_sums::avx2::sums(a, b)),
            }
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c") {
            #[expect(unsafe_code, reason = "the function needs AVX2 and F16C, which were just detected")]
            // SAFETY: its only requirement is a processor with AVX2 and F16C.
            unsafe {
                with_avx2(matrix, input, output);
            }
            return;
        }
    }
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    if let Some(row) = input.alone(matrix, output) {
        return packed::multiply(matrix, row, output, packed::simd128::products);
    }
    multiply_rows(matrix, input, output, group_sums::baseline);
}

/// What a matrix is multiplied with.
#[derive(Clone, Copy)]
enum Input<'a> {
    Quantised(&'a QuantisedRows),
    Floats(&'a [f32]),
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128")))]
impl<'a> Input<'a> {
    /// The only row, if its product needs no unpacking of the weights to memory.
    fn alone(self, matrix: &MatrixView<'_>, output: &[f32]) -> Option<QuantisedRow<'a>> {
        match self {
            Self::Quantised(rows) if output.len() == matrix.rows && packed::supports(matrix.kind) => {
                Some(rows.row(0))
            }
            _ => None,
        }
    }
}

#[inline(always)]
fn multiply_rows(matrix: &MatrixView<'_>, input: Input<'_>, output: &mut [f32], sums: impl GroupSums) {
    match input {
        Input::Quantised(rows) => multiply_quantised(matrix, rows, output, sums),
        Input::Floats(values) => multiply_floats(matrix, values, output),
    }
}

#[inline(always)]
fn multiply_quantised(
    matrix: &MatrixView<'_>,
    input: &QuantisedRows,
    output: &mut [f32],
    sums: impl GroupSums,
) {
    let mut tile: [UnpackedRow; TILE] = std::array::from_fn(|_| UnpackedRow::new(matrix.columns));
    for first in (0..matrix.rows).step_by(TILE) {
        let count = TILE.min(matrix.rows - first);
        for (i, unpacked) in tile[..count].iter_mut().enumerate() {
            matrix.kind.unpack(matrix.row(first + i), unpacked);
        }
        for (position, outputs) in output.chunks_exact_mut(matrix.rows).enumerate() {
            let row = input.row(position);
            for (result, weights) in outputs[first..first + count].iter_mut().zip(&tile) {
                *result = dot_quantised(weights, row, sums);
            }
        }
    }
}

#[inline(always)]
fn multiply_floats(matrix: &MatrixView<'_>, input: &[f32], output: &mut [f32]) {
    let mut scratch = UnpackedRow::new(if matrix.kind.is_quantised() { matrix.columns } else { 0 });
    let mut weights = vec![0.0; matrix.columns];
    for row in 0..matrix.rows {
        matrix.kind.dequantise(matrix.row(row), &mut scratch, &mut weights);
        let positions = output.chunks_exact_mut(matrix.rows).zip(input.chunks_exact(matrix.columns));
        for (outputs, values) in positions {
            outputs[row] = dot(&weights, values);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::activations::ACTIVATION_MAX;
    use super::super::quant::{BLOCK, TensorType};
    use super::super::synthetic::SplitMix64;
    use super::*;

    #[expect(clippy::cast_possible_truncation, reason = "any f32 near it will do")]
    fn numbers(seed: u64, count: usize) -> Vec<f32> {
        let mut stream = SplitMix64::new(seed);
        (0..count).map(|_| stream.next_ih12() as f32).collect()
    }

    /// Rows of every quantised type, out of `tests/quant/rows.json`: type, bytes, numbers.
    fn fixture() -> Vec<(TensorType, Vec<u8>, Vec<f32>)> {
        let file: Value = serde_json::from_str(include_str!("../../tests/quant/rows.json")).unwrap();
        let bytes = |hex: &Value| -> Vec<u8> {
            let hex = hex.as_str().unwrap();
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
        };
        (0..32)
            .filter_map(TensorType::from_code)
            .map(|kind| {
                let rows = file["types"][kind.to_string()].as_array().unwrap();
                let packed = rows.iter().flat_map(|row| bytes(&row["bytes"])).collect();
                let values: Vec<u8> = rows.iter().flat_map(|row| bytes(&row["values"])).collect();
                let values = values.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
                (kind, packed, values)
            })
            .collect()
    }

    fn multiply(kind: TensorType, packed: &[u8], columns: usize, input: &[f32], exact: bool) -> Vec<f32> {
        let stride = kind.row_bytes(columns).unwrap();
        let rows = packed.len() / stride;
        let view = MatrixView { kind, bytes: packed, rows, columns, stride };
        let mut output = vec![f32::NAN; input.len() / columns * rows];
        super::multiply(&view, &mut Activations::new(input, columns), exact, &mut output);
        output
    }

    /// The integer dot product as its description reads, one number after the other.
    fn dot_quantised_slowly(kind: TensorType, packed: &[u8], input: &[f32]) -> f32 {
        let mut weights = UnpackedRow::new(input.len());
        kind.unpack(packed, &mut weights);
        let mut lanes = [0.0_f32; 4];
        for (block, values) in input.chunks(BLOCK).enumerate() {
            let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
            let scale = largest / ACTIVATION_MAX;
            let inverse = if largest == 0.0 { 0.0 } else { ACTIVATION_MAX / largest };
            #[expect(clippy::cast_possible_truncation, reason = "a small whole number")]
            let quants = values.iter().map(|value| libm::rintf(value * inverse) as i64);
            let total: i64 = quants.clone().sum();
            let sum: i64 = quants.zip(&weights.quants[block * BLOCK..]).map(|(a, w)| a * i64::from(*w)).sum();
            lanes[block % 4] += (weights.scales[block] * scale) * sum as f32
                + weights.offsets[block] * (scale * total as f32);
        }
        (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
    }

    #[test]
    fn fast_integer_products_are_the_slow_ones() {
        let mut ran = 0;
        for (kind, packed, values) in fixture().into_iter().filter(|(kind, ..)| kind.is_quantised()) {
            // 256 columns are whole groups of blocks, 288 and 32 are not.
            for columns in [512, 256, 288, 32] {
                let Some(stride) = kind.row_bytes(columns) else { continue };
                let input = numbers(7, columns);
                let rows = values.len() / columns;
                let have = multiply(kind, &packed[..rows * stride], columns, &input, false);
                for (row, have) in packed.chunks_exact(stride).zip(have) {
                    assert_eq!(have, dot_quantised_slowly(kind, row, &input), "{kind} {columns}");
                    ran += 1;
                }
            }
        }
        assert!(ran > 100, "only {ran} products were compared");
    }

    /// Rows of blocks that begin with half floats of every kind: subnormal ones, both zeros, and, where
    /// they may be `faulty`, infinities and NaN.
    #[expect(clippy::cast_possible_truncation, reason = "the lowest byte of random bits")]
    fn odd_rows(kind: TensorType, blocks: usize, faulty: bool, stream: &mut SplitMix64) -> Vec<u8> {
        const HALVES: [u16; 16] = [
            0x3c00, 0xbc00, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x7bff, 0xfbff, 0x0000, 0x8000,
            0x7c00, 0xfc00, 0x7e00, 0xfd01,
        ];
        let halves = if faulty { &HALVES[..] } else { &HALVES[..12] };
        let size = kind.row_bytes(BLOCK).unwrap();
        let mut bytes: Vec<u8> = (0..blocks * size).map(|_| stream.next_bits() as u8).collect();
        for block in bytes.chunks_exact_mut(size) {
            for factor in block[..if kind == TensorType::Q4_1 { 4 } else { 2 }].chunks_exact_mut(2) {
                let half = halves[usize::from(stream.next_bits() as u8) % halves.len()];
                factor.copy_from_slice(&half.to_le_bytes());
            }
        }
        bytes
    }

    /// Every number of rows beside whole tiles, and of blocks beside whole groups.
    #[test]
    fn products_of_odd_scales_are_the_slow_ones() {
        let mut stream = SplitMix64::new(12);
        let (mut finite, mut faults) = (0, 0);
        for kind in [TensorType::Q8_0, TensorType::Q4_0, TensorType::Q4_1] {
            for (rows, blocks) in (1..=9).flat_map(|rows| (1..=9).map(move |blocks| (rows, blocks))) {
                let columns = blocks * BLOCK;
                let input = numbers(stream.next_bits(), columns);
                for faulty in [false, true] {
                    let packed = odd_rows(kind, rows * blocks, faulty, &mut stream);
                    let have = multiply(kind, &packed, columns, &input, false);
                    let want = packed.chunks_exact(packed.len() / rows);
                    for (have, row) in have.into_iter().zip(want) {
                        let want = dot_quantised_slowly(kind, row, &input);
                        let same = have.to_bits() == want.to_bits() || (have.is_nan() && want.is_nan());
                        assert!(same, "{kind} {rows}x{blocks}: {have} instead of {want}");
                        *(if want.is_finite() { &mut finite } else { &mut faults }) += 1;
                    }
                }
            }
        }
        assert!(finite > 1000 && faults > 500, "{finite} finite, {faults} not");
    }

    #[test]
    fn products_agree_with_the_numbers_that_gguf_unpacked() {
        for (kind, packed, values) in fixture() {
            let input = numbers(8, 512);
            for (exact, tolerance) in [(true, 1e-6), (false, 2e-4)] {
                let have = multiply(kind, &packed, 512, &input, exact);
                for (have, weights) in have.iter().zip(values.chunks_exact(512)) {
                    let products = weights.iter().zip(&input).map(|(w, x)| f64::from(*w) * f64::from(*x));
                    let want: f64 = products.clone().sum();
                    let size: f64 = products.map(f64::abs).sum();
                    let error = (f64::from(*have) - want).abs() / size;
                    assert!(error < tolerance, "{kind} exact={exact}: {error}");
                }
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_its_neighbours() {
        for (kind, packed, _) in fixture() {
            let input = numbers(9, 5 * 512);
            for exact in [true, false] {
                let together = multiply(kind, &packed, 512, &input, exact);
                let alone: Vec<f32> = input
                    .chunks_exact(512)
                    .flat_map(|row| multiply(kind, &packed, 512, row, exact))
                    .collect();
                assert_eq!(together, alone, "{kind} exact={exact}");
            }
        }
    }

    #[test]
    fn rows_that_do_not_fill_a_tile() {
        let values = numbers(10, 5 * 64);
        let packed: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let input = numbers(11, 64);
        let have = multiply(TensorType::F32, &packed, 64, &input, false);
        let want: Vec<f32> = values.chunks_exact(64).map(|row| dot(row, &input)).collect();
        assert_eq!(have, want);
    }

    /// The order of the float dot product, spelled out for 35 numbers.
    #[test]
    fn float_products_have_one_order() {
        let (a, b) = (numbers(1, 35), numbers(2, 35));
        let mut lanes = [0.0_f32; 16];
        for i in 0..35 {
            lanes[i % 16] += a[i] * b[i];
        }
        let pair = |i: usize| {
            let four = |i: usize| (lanes[i] + lanes[i + 8]) + (lanes[i + 4] + lanes[i + 12]);
            four(i) + four(i + 2)
        };
        assert_eq!(dot(&a, &b), pair(0) + pair(1));
    }

    #[test]
    fn faults_reach_the_result() {
        for fault in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut input = numbers(3, 64);
            input[40] = fault;
            let packed = [1_u8; 68];
            assert!(multiply(TensorType::Q8_0, &packed, 64, &input, false)[0].is_nan(), "{fault}");
        }
        let tiny = [f32::from_bits(1); 64];
        assert_eq!(multiply(TensorType::Q8_0, &[1_u8; 68], 64, &tiny, false), [0.0]);
    }
}
