//! Language models: a context of tokens in, logits for the next token out.
//!
//! A [`LanguageModel`] holds what never changes (weights, vocabulary); a [`ModelState`]
//! holds one context. States are cheap to fork, so that branches, beams and speculation
//! share the work already done.

use std::fmt;

use crate::{TokenId, Vocab, error::Result};

/// The unchanging half of a model.
pub trait LanguageModel: fmt::Debug + Send + Sync {
    /// What the tokens stand for. Its length V is the length of every row of logits.
    fn vocab(&self) -> &Vocab;

    /// How many tokens a context can hold.
    fn context_length(&self) -> usize;

    /// Token ids of a text. Special tokens written in the text are parsed when
    /// `parse_special` is set, and are plain text otherwise. BOS is added only when the
    /// model's file asks for it and `add_bos` is set.
    ///
    /// # Errors
    /// When the model has no tokenizer, or its tokenizer cannot express the text.
    fn tokenize(&self, text: &str, parse_special: bool, add_bos: bool) -> Result<Vec<TokenId>>;

    /// A state with an empty context.
    fn start(&self) -> Box<dyn ModelState>;
}

/// One context, and whatever the model has remembered about it.
pub trait ModelState: fmt::Debug + Send {
    /// The tokens fed so far.
    fn tokens(&self) -> &[TokenId];

    /// Appends tokens and returns the logits after the last `rows` of them, oldest first:
    /// `[rows, V]` in nats. `rows` is at most `tokens.len()`.
    ///
    /// The bits of every row are the same however the tokens were split into calls.
    ///
    /// # Errors
    /// `context_full` when the tokens do not fit, `token_out_of_vocabulary` for a bad id;
    /// the state is unchanged then.
    fn advance(&mut self, tokens: &[TokenId], rows: usize) -> Result<Vec<Vec<f32>>>;

    /// Forgets all but the first `length` tokens.
    fn truncate(&mut self, length: usize);

    /// An independent copy that shares what has been computed.
    fn fork(&self) -> Box<dyn ModelState>;
}
