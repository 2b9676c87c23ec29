//! What a matrix is multiplied with: rows of activations, and their rounding to integers.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "values are bounded by construction, as the comments beside them say"
)]

use super::quant::{BLOCK, padded_blocks};

/// The largest activation quant. Fifteen bits cost what eight do once both factors are
/// `i16`, and leave the result close to the f32 one. No block overflows: the largest weight
/// quant is 4,096, and 32 * 4,096 * 16,383 < 2^31.
pub(super) const ACTIVATION_MAX: f32 = 16_383.0;
/// Input rows `[positions, columns]`, as floats and, when first needed, as integers.
#[derive(Debug)]
pub(super) struct Activations<'a> {
    values: &'a [f32],
    columns: usize,
    quantised: Option<QuantisedRows>,
}

/// Rows as blocks of 32 integers with one scale each.
#[derive(Debug)]
pub(super) struct QuantisedRows {
    /// Blocks of a row, padding included.
    blocks: usize,
    /// `[positions, blocks * 32]`, at most [`ACTIVATION_MAX`] in size.
    quants: Vec<i16>,
    /// `[positions, blocks]`.
    scales: Vec<f32>,
    /// `[positions, blocks]`: the scale times the sum of the block's quants.
    sums: Vec<f32>,
}

/// One row of [`QuantisedRows`].
#[derive(Clone, Copy)]
pub(super) struct QuantisedRow<'a> {
    pub(super) quants: &'a [i16],
    pub(super) scales: &'a [f32],
    pub(super) sums: &'a [f32],
}

impl<'a> Activations<'a> {
    pub(super) fn new(values: &'a [f32], columns: usize) -> Self {
        Self { values, columns, quantised: None }
    }

    pub(super) fn values(&self) -> &'a [f32] {
        self.values
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn quantised(&mut self) -> &QuantisedRows {
        self.quantised.get_or_insert_with(|| quantise(self.values, self.columns))
    }
}

/// Rounds each block of 32 to integers, the largest in size becoming ±[`ACTIVATION_MAX`].
///
/// A block that holds an infinity or NaN gets a scale of NaN, so that the fault reaches the
/// logits and is reported there.
fn quantise(values: &[f32], columns: usize) -> QuantisedRows {
    /// Adding this and reading the low bits rounds to the nearest integer, ties to even.
    const ROUND: f32 = 12_582_912.0;
    let blocks = padded_blocks(columns);
    let count = values.len() / columns * blocks;
    let mut rows = QuantisedRows {
        blocks,
        quants: vec![0; count * BLOCK],
        scales: vec![0.0; count],
        sums: vec![0.0; count],
    };
    for (position, row) in values.chunks_exact(columns).enumerate() {
        let first = position * blocks;
        let quants = rows.quants[first * BLOCK..].as_chunks_mut::<BLOCK>().0.iter_mut();
        let factors = rows.scales[first..].iter_mut().zip(&mut rows.sums[first..]);
        for ((block, quants), (scale, sum)) in row.as_chunks::<BLOCK>().0.iter().zip(quants).zip(factors) {
            let mut largest = 0.0_f32;
            let mut fault = 0.0_f32;
            for value in block {
                largest = if value.abs() > largest { value.abs() } else { largest };
                // 0 for a finite value, NaN otherwise.
                fault += value * 0.0;
            }
            *scale = largest / ACTIVATION_MAX + fault;
            // A block too small for its inverse counts as zero.
            let inverse = ACTIVATION_MAX / largest;
            let inverse = if inverse.is_finite() { inverse } else { 0.0 };
            let mut total = 0_i32;
            for (quant, value) in quants.iter_mut().zip(block) {
                let rounded = (value * inverse + ROUND).to_bits() as i32 - ROUND.to_bits() as i32;
                *quant = rounded as i16;
                total += i32::from(*quant);
            }
            *sum = *scale * total as f32;
        }
    }
    rows
}

impl QuantisedRows {
    pub(super) fn row(&self, position: usize) -> QuantisedRow<'_> {
        let first = position * self.blocks;
        QuantisedRow {
            quants: &self.quants[first * BLOCK..][..self.blocks * BLOCK],
            scales: &self.scales[first..][..self.blocks],
            sums: &self.sums[first..][..self.blocks],
        }
    }
}
