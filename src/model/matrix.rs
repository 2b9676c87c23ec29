//! A matrix where it lies in the file, row by row.
//!
//! What it is multiplied with, and how, is [`super::kernel`]'s.

use super::quant::{TensorType, UnpackedRow};

/// A matrix `[rows, columns]` where it lies in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct MatrixView<'a> {
    pub(super) kind: TensorType,
    pub(super) bytes: &'a [u8],
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Bytes of one row.
    pub(super) stride: usize,
}

impl<'a> MatrixView<'a> {
    pub(super) fn row(&self, row: usize) -> &'a [u8] {
        &self.bytes[row * self.stride..][..self.stride]
    }

    /// One row as floats.
    pub(super) fn dequantise_row(&self, row: usize, into: &mut [f32]) {
        let mut scratch = UnpackedRow::new(if self.kind.is_quantised() { self.columns } else { 0 });
        self.kind.dequantise(self.row(row), &mut scratch, into);
    }
}
