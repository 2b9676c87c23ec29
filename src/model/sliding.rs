//! A model that forgets: when its context is full, the oldest half of it makes room.
//!
//! [`slide`] wraps a model so that its context never fills. Which tokens are still seen
//! depends on how many there are and on nothing else, so texts stay a pure function of their
//! prompt, pipeline and seed. The window that is left is read anew, from position 0: nothing
//! that was computed with the forgotten tokens in view is used any longer.

use std::sync::Arc;

use super::{Encoding, LanguageModel, ModelInfo, ModelState, check_advance, head::Head};
use crate::{TokenId, Vocab, error::Result};

/// The same model with a context that slides instead of filling.
///
/// # Examples
/// ```
/// use logitscope::model::{Precision, open, sliding::slide};
///
/// let file: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.gguf"));
/// let model = open(file, Precision::Native)?;
/// let context = model.context_length();
/// let sliding = slide(model);
/// assert_eq!(sliding.forgotten(context), 0);
/// assert_eq!(sliding.forgotten(context + 1), context / 2);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[must_use]
pub fn slide(model: Arc<dyn LanguageModel>) -> Arc<dyn LanguageModel> {
    Arc::new(Sliding { model })
}

#[derive(Debug)]
struct Sliding {
    model: Arc<dyn LanguageModel>,
}

/// Of `tokens` tokens, how many a model with this context no longer sees.
fn forgotten(tokens: usize, context: usize) -> usize {
    let half = (context / 2).max(1);
    tokens.saturating_sub(context).div_ceil(half) * half
}

impl LanguageModel for Sliding {
    fn vocab(&self) -> &Vocab {
        self.model.vocab()
    }

    fn context_length(&self) -> usize {
        usize::MAX
    }

    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn hash(&self) -> u64 {
        self.model.hash()
    }

    fn encode(&self, text: &str, parse_special: bool, add_bos: bool) -> Result<Encoding> {
        self.model.encode(text, parse_special, add_bos)
    }

    fn head(&self) -> Option<Head<'_>> {
        self.model.head()
    }

    fn start(&self) -> Box<dyn ModelState> {
        Box::new(State {
            model: Arc::clone(&self.model),
            tokens: Vec::new(),
            forgotten: 0,
            window: self.model.start(),
        })
    }

    fn forgotten(&self, tokens: usize) -> usize {
        forgotten(tokens, self.model.context_length())
    }
}

#[derive(Debug)]
struct State {
    model: Arc<dyn LanguageModel>,
    tokens: Vec<TokenId>,
    /// How many tokens `window` does not hold.
    forgotten: usize,
    window: Box<dyn ModelState>,
}

impl State {
    /// Reads the tokens that are still seen when so many are forgotten.
    fn read_window(&mut self, forgotten: usize) -> Result<()> {
        // The beginning-of-sequence token stays: models are at a loss without it.
        let head =
            usize::from(self.tokens.first().is_some_and(|first| Some(*first) == self.model.vocab().bos));
        let mut seen = self.tokens[..head].to_vec();
        seen.extend(self.tokens.iter().skip(head + forgotten));
        self.window.truncate(0);
        self.forgotten = forgotten;
        self.window.advance(&seen, 0)?;
        Ok(())
    }

    /// Feeds the window in parts between which it slides.
    fn advance_by(
        &mut self,
        tokens: &[TokenId],
        rows: usize,
        feed: impl Fn(&mut dyn ModelState, &[TokenId], usize) -> Result<Vec<Vec<f32>>>,
    ) -> Result<Vec<Vec<f32>>> {
        check_advance(&self.tokens, tokens, rows, self.model.vocab().len(), usize::MAX)?;
        let context = self.model.context_length();
        let mut all = Vec::with_capacity(rows);
        let mut rest = tokens;
        while !rest.is_empty() {
            let forgotten = forgotten(self.tokens.len() + 1, context);
            if forgotten != self.forgotten {
                self.read_window(forgotten)?;
            }
            // As many as fit before the window slides again.
            let room = context + forgotten - self.tokens.len();
            let (now, later) = rest.split_at(room.min(rest.len()));
            let rows_here = rows.saturating_sub(later.len()).min(now.len());
            all.extend(feed(&mut *self.window, now, rows_here)?);
            self.tokens.extend(now);
            rest = later;
        }
        Ok(all)
    }
}

impl ModelState for State {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn advance(&mut self, tokens: &[TokenId], rows: usize) -> Result<Vec<Vec<f32>>> {
        self.advance_by(tokens, rows, |window, now, rows| window.advance(now, rows))
    }

    fn advance_hidden(&mut self, tokens: &[TokenId], rows: usize) -> Result<Vec<Vec<f32>>> {
        self.advance_by(tokens, rows, |window, now, rows| window.advance_hidden(now, rows))
    }

    fn truncate(&mut self, length: usize) {
        let before = self.tokens.len();
        self.tokens.truncate(length);
        let taken_back = before - self.tokens.len();
        if taken_back > self.window.tokens().len() {
            // Beyond what the window holds; the next advance reads it anew.
            self.window.truncate(0);
            self.forgotten = usize::MAX;
        } else {
            self.window.truncate(self.window.tokens().len() - taken_back);
        }
    }

    fn fork(&self) -> Box<dyn ModelState> {
        Box::new(Self {
            model: Arc::clone(&self.model),
            tokens: self.tokens.clone(),
            forgotten: self.forgotten,
            window: self.window.fork(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Precision, open};
    use super::*;

    fn model() -> Arc<dyn LanguageModel> {
        let file: &[u8] = include_bytes!("../../models/default.gguf");
        open(file, Precision::Native).unwrap()
    }

    fn text(model: &dyn LanguageModel, length: usize) -> Vec<TokenId> {
        let ids = model.tokenize("The dog ran to the house and the cat sat down.", true, true).unwrap();
        ids.into_iter().cycle().take(length).collect()
    }

    #[test]
    fn a_row_is_that_of_the_window_alone() {
        let model = model();
        let context = model.context_length();
        let ids = text(&*model, context + 3);
        let row = slide(Arc::clone(&model)).start().advance(&ids, 1).unwrap();
        let mut seen = vec![ids[0]];
        assert_eq!(Some(ids[0]), model.vocab().bos);
        seen.extend(&ids[1 + context / 2..]);
        assert_eq!(row, model.start().advance(&seen, 1).unwrap());
        // Until the context is full nothing is different.
        let whole = slide(Arc::clone(&model)).start().advance(&ids[..context], 1).unwrap();
        assert_eq!(whole, model.start().advance(&ids[..context], 1).unwrap());
    }

    #[test]
    fn rows_do_not_depend_on_how_tokens_came() {
        let model = slide(model());
        let length = 2 * model.info().context_length + 5;
        let ids = text(&*model, length);
        let together = model.start().advance(&ids, 40).unwrap();
        let mut state = model.start();
        let parts: Vec<_> =
            ids.chunks(97).flat_map(|part| state.advance(part, part.len()).unwrap()).collect();
        assert_eq!(parts[length - 40..], together);
        // There and back again, past two slides.
        for kept in [length - 3, length - 60, 10] {
            state.truncate(kept);
            assert_eq!(state.tokens(), &ids[..kept]);
            let rows = state.fork().advance(&ids[kept..], 2).unwrap();
            assert_eq!(rows, together[38..], "{kept}");
            assert_eq!(state.advance(&ids[kept..], 2).unwrap(), together[38..]);
        }
    }

    #[test]
    fn small_contexts_slide_too() {
        assert_eq!([0, 1, 2, 3, 4].map(|tokens| forgotten(tokens, 1)), [0, 0, 1, 2, 3]);
        assert_eq!([4, 5, 6, 7].map(|tokens| forgotten(tokens, 4)), [0, 2, 2, 4]);
    }
}
