//! Products of packed weights and one row of activations.
//!
//! With a single position, unpacking a row of weights to memory costs more than multiplying
//! it. Here the weights of the commonest types go from their bytes into vectors and are used
//! at once, some rows side by side. Every number is that of [`super::kernel`]'s
//! `dot_quantised`, in the same order, so the bits are too; its tests and `tests/wasm.rs` hold
//! each vector unit to it.

use super::activations::QuantisedRow;
use super::matrix::MatrixView;
use super::quant::TensorType;

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) mod simd128;

/// Rows of weights that are multiplied side by side.
const ROWS: usize = 4;

/// Whether a type has a way of its own here.
pub(super) fn supports(kind: TensorType) -> bool {
    matches!(kind, TensorType::Q8_0 | TensorType::Q4_0 | TensorType::Q4_1)
}

/// A matrix of a [supported](supports) type times one row, by a vector unit's `products`.
#[expect(clippy::inline_always, reason = "must be compiled with the vector features of the caller")]
#[inline(always)]
pub(super) fn multiply(
    matrix: &MatrixView<'_>,
    input: QuantisedRow<'_>,
    output: &mut [f32],
    products: impl Fn(TensorType, [&[u8]; ROWS], QuantisedRow<'_>) -> [f32; ROWS],
) {
    for (tile, results) in output.chunks_mut(ROWS).enumerate() {
        // Rows that the last tile lacks are its last one again.
        let rows = std::array::from_fn(|i| matrix.row((tile * ROWS + i).min(matrix.rows - 1)));
        results.copy_from_slice(&products(matrix.kind, rows, input)[..results.len()]);
    }
}
