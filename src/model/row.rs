//! A row of logits that is computed when it is wanted, and then only once.
//!
//! A pass of a model ends in a hidden state of a few hundred numbers; the last matrix makes V
//! logits of it, and is the largest there is. Whoever holds a [`Row`] may leave that product to
//! a device, to the CPU, together with that of other rows, or undone. Copies share what was
//! computed, so that all branches after one prompt pay for it once.

use std::sync::{Arc, OnceLock};

use super::LanguageModel;

/// Rows that are multiplied together at most: more would only hold memory.
const TOGETHER: usize = 32;

/// What a model left after a position.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use logitscope::{TokenId, model::{self, LanguageModel, Precision, row::Row}};
///
/// let file: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.gguf"));
/// let model = model::open(file, Precision::Native)?;
/// let hidden = model.start().advance_hidden(&[TokenId(1), TokenId(7)], 2)?;
/// let rows: Vec<Row> = hidden.into_iter().map(|hidden| Row::of(&model, hidden)).collect();
/// assert!(rows.iter().all(|row| row.pending().is_some()));
/// Row::fill(&[&rows[0], &rows[1]]);
/// assert_eq!(rows[1].logits(), model.start().advance(&[TokenId(1), TokenId(7)], 1)?[0]);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Row(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Whose last matrix makes the logits, and of what; nothing where they were given.
    source: Option<(Arc<dyn LanguageModel>, Vec<f32>)>,
    logits: OnceLock<Vec<f32>>,
}

impl Row {
    /// A row that [`ModelState::advance_hidden`](super::ModelState::advance_hidden) returned.
    #[must_use]
    pub fn of(model: &Arc<dyn LanguageModel>, hidden: Vec<f32>) -> Self {
        if model.head().is_none() {
            return Self::known(hidden);
        }
        Self(Arc::new(Inner { source: Some((Arc::clone(model), hidden)), logits: OnceLock::new() }))
    }

    /// A row whose logits `[V]` are there.
    #[must_use]
    pub fn known(logits: Vec<f32>) -> Self {
        Self(Arc::new(Inner { source: None, logits: OnceLock::from(logits) }))
    }

    /// The model and the hidden state that its last matrix is to be multiplied by, unless the
    /// logits are known.
    #[must_use]
    pub fn pending(&self) -> Option<(&Arc<dyn LanguageModel>, &[f32])> {
        self.source().filter(|_| self.0.logits.get().is_none())
    }

    /// What the logits are or were made of.
    pub(crate) fn source(&self) -> Option<(&Arc<dyn LanguageModel>, &[f32])> {
        self.0.source.as_ref().map(|(model, hidden)| (model, &hidden[..]))
    }

    /// V, without computing anything.
    #[cfg(feature = "gpu")]
    pub(crate) fn width(&self) -> usize {
        self.pending().map_or_else(|| self.logits().len(), |(model, _)| model.vocab().len())
    }

    /// The logits `[V]` in nats.
    #[must_use]
    pub fn logits(&self) -> &[f32] {
        let make = || self.source().map_or_else(Vec::new, |(model, hidden)| model.logits(hidden));
        self.0.logits.get_or_init(make)
    }

    /// Takes the logits from whoever computed them elsewhere; they must be those of
    /// [`logits`](Self::logits).
    #[cfg(feature = "gpu")]
    pub(crate) fn learn(&self, logits: Vec<f32>) {
        // A copy may have learned them already.
        let _ = self.0.logits.set(logits);
    }

    /// Computes what is pending of some rows, those of one model in one product.
    pub fn fill(rows: &[&Self]) {
        let distinct = distinct(rows);
        let of_one_model = distinct.chunk_by(|a, b| same_model(a, b));
        for rows in of_one_model.flat_map(|rows| rows.chunks(TOGETHER)) {
            let Some((model, _)) = rows[0].pending() else { continue };
            let model = Arc::clone(model);
            let hidden: Vec<f32> =
                rows.iter().filter_map(|row| row.pending()).flat_map(|(_, hidden)| hidden).copied().collect();
            let logits = model.logits(&hidden);
            for (row, logits) in rows.iter().zip(logits.chunks_exact(logits.len() / rows.len())) {
                let _ = row.0.logits.set(logits.to_vec());
            }
        }
    }
}

/// The rows that are pending, each once.
pub(crate) fn distinct<'a>(rows: &[&'a Row]) -> Vec<&'a Row> {
    let mut distinct: Vec<&Row> = Vec::with_capacity(rows.len());
    for row in rows.iter().filter(|row| row.pending().is_some()) {
        if !distinct.iter().any(|other| Arc::ptr_eq(&row.0, &other.0)) {
            distinct.push(row);
        }
    }
    distinct
}

/// Whether two pending rows wait for the same matrix.
pub(crate) fn same_model(a: &Row, b: &Row) -> bool {
    a.pending().zip(b.pending()).is_some_and(|((a, _), (b, _))| Arc::ptr_eq(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        TokenId,
        model::{Precision, open},
    };

    const FILES: [&[u8]; 2] =
        [include_bytes!("../../models/default.gguf"), include_bytes!("../../models/draft.gguf")];

    /// Rows of both models that ship, alternating, and their logits.
    fn rows() -> (Vec<Row>, Vec<Vec<f32>>) {
        let tokens: Vec<TokenId> = (5..9).map(TokenId).collect();
        let both = FILES.map(|file| {
            let model = open(file, Precision::Native).expect("a model that ships");
            let hidden = model.start().advance_hidden(&tokens, tokens.len()).expect("hidden states");
            let logits = model.start().advance(&tokens, tokens.len()).expect("logits");
            (hidden.into_iter().map(|hidden| Row::of(&model, hidden)).collect::<Vec<_>>(), logits)
        });
        let [(a, a_logits), (b, b_logits)] = both;
        let alternating = a.into_iter().zip(b).flat_map(|(a, b)| [a, b]).collect();
        (alternating, a_logits.into_iter().zip(b_logits).flat_map(|(a, b)| [a, b]).collect())
    }

    #[test]
    fn rows_of_several_models_are_filled_with_their_own_logits() {
        let (rows, wanted) = rows();
        let [first, .., last] = &rows[..] else { panic!("there are eight rows") };
        assert_eq!(first.logits(), wanted[0]);
        let copy = last.clone();
        let all: Vec<&Row> = rows.iter().chain([&copy]).collect();
        assert_eq!(distinct(&all).len(), 7, "one is known, and one is a copy");
        Row::fill(&all);
        assert!(copy.pending().is_none(), "a copy shares what was computed");
        for (row, wanted) in rows.iter().zip(&wanted) {
            assert_eq!(row.logits(), wanted);
        }
    }
}
