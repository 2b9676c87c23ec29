//! The last matrix of a model: a hidden state in, the logits of every token out.
//!
//! It is the largest matrix of a small model, and the only one whose result a device can use
//! where it lies. So it can be had by itself, as the CPU's kernel reads it: rows of integers
//! with scales, and a hidden state rounded to integers. [`Head::multiply`] is that kernel, and
//! says what every other one must give to the bit.

use super::{
    Precision,
    activations::Activations,
    kernel,
    matrix::MatrixView,
    quant::{BLOCK, TensorType, UnpackedRow},
};

/// The last matrix, `[vocabulary, columns]`, where it lies in its file.
///
/// # Examples
/// ```
/// use logitscope::model::{Precision, head::Head, quant::TensorType};
///
/// // One row of one block: the half float 1, then 32 quants of 2.
/// let mut row = vec![0x00, 0x3c];
/// row.extend([2; 32]);
/// let head = Head::new(TensorType::Q8_0, &row, 1, 32, Precision::Native).unwrap();
/// assert_eq!(head.multiply(&[1.0; 32]), [64.0]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    view: MatrixView<'a>,
    precision: Precision,
}

/// A hidden state as blocks of 32 integers with one scale each: `value = scale * quant`.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadInput {
    /// `[columns]`, at most 16,383 in size.
    pub quants: Vec<i16>,
    /// `[columns / 32]`; NaN for a block whose products are NaN whatever the weights.
    pub scales: Vec<f32>,
}

impl<'a> Head<'a> {
    /// A matrix out of packed rows; `None` if so many bytes are not such a matrix.
    #[must_use]
    pub fn new(
        kind: TensorType,
        bytes: &'a [u8],
        rows: usize,
        columns: usize,
        precision: Precision,
    ) -> Option<Self> {
        let stride = kind.row_bytes(columns)?;
        (rows.checked_mul(stride)? == bytes.len())
            .then_some(Self { view: MatrixView { kind, bytes, rows, columns, stride }, precision })
    }

    pub(super) fn of(view: MatrixView<'a>, precision: Precision) -> Self {
        Self { view, precision }
    }

    /// How the rows are packed.
    #[must_use]
    pub fn kind(&self) -> TensorType {
        self.view.kind
    }

    /// Tokens of the vocabulary.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.view.rows
    }

    /// Numbers of a hidden state.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.view.columns
    }

    /// Whether products are of integers, so that [`input`](Self::input) and
    /// [`unpack`](Self::unpack) say what is multiplied.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        self.view.kind.is_quantised() && self.precision == Precision::Native
    }

    /// One row as integers; `into` has room for its columns.
    pub fn unpack(&self, row: usize, into: &mut UnpackedRow) {
        self.view.kind.unpack(self.view.row(row), into);
    }

    /// A hidden state as the kernel rounds it.
    #[must_use]
    pub fn input(&self, hidden: &[f32]) -> HeadInput {
        let mut input = Activations::new(hidden, self.view.columns);
        let row = input.quantised().row(0);
        let blocks = self.view.columns / BLOCK;
        // The kernel adds each block's offset, 0 here, times the block's sum. That is no number
        // where the sum is none; so that nobody else needs the sums, the scale says it.
        let scale = |(scale, sum): (&f32, &f32)| if sum.is_finite() { *scale } else { f32::NAN };
        HeadInput {
            quants: row.quants[..blocks * BLOCK].to_vec(),
            scales: row.scales.iter().zip(row.sums).take(blocks).map(scale).collect(),
        }
    }

    /// The logits of some hidden states, `[positions, columns]` to `[positions, rows]`.
    #[must_use]
    pub fn multiply(&self, hidden: &[f32]) -> Vec<f32> {
        let mut output = vec![0.0; hidden.len() / self.view.columns * self.view.rows];
        let mut input = Activations::new(hidden, self.view.columns);
        kernel::multiply(&self.view, &mut input, self.precision == Precision::F32, &mut output);
        output
    }
}
