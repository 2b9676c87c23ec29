//! Token ids, and what each one stands for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The index of a token in the vocabulary, `0..V`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenId(pub u32);

impl TokenId {
    /// The id as an index into a row of logits.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One entry of a [`Vocab`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TokenInfo {
    /// The bytes the token adds to the text; they need not be whole UTF-8 characters.
    pub bytes: Vec<u8>,
    /// Whether the token is a control token, which stands for no text.
    pub special: bool,
}

/// The bytes of every token, and which tokens begin and end a sequence.
///
/// # Examples
/// ```
/// use logitscope::{TokenId, Vocab};
///
/// let vocab = Vocab::from_texts(&["a", " the", "\n"]);
/// assert_eq!(vocab.len(), 3);
/// assert_eq!(vocab.bytes(TokenId(1)), b" the");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vocab {
    tokens: Vec<TokenInfo>,
    /// Prepended to a prompt when the model's file says so.
    pub bos: Option<TokenId>,
    /// Tokens that end a sequence; there may be several.
    pub eos: Vec<TokenId>,
}

impl Vocab {
    /// A vocabulary of these tokens, in id order.
    #[must_use]
    pub fn new(tokens: Vec<TokenInfo>, bos: Option<TokenId>, eos: Vec<TokenId>) -> Self {
        Self { tokens, bos, eos }
    }

    /// A vocabulary of plain texts without special tokens, for tests and examples.
    #[must_use]
    pub fn from_texts(texts: &[&str]) -> Self {
        let tokens =
            texts.iter().map(|text| TokenInfo { bytes: text.as_bytes().to_vec(), special: false }).collect();
        Self { tokens, ..Self::default() }
    }

    /// How many tokens there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The bytes of one token; empty for an id outside the vocabulary.
    #[must_use]
    pub fn bytes(&self, id: TokenId) -> &[u8] {
        self.tokens.get(id.index()).map_or(&[], |token| &token.bytes)
    }

    /// Whether a token is a control token.
    #[must_use]
    pub fn is_special(&self, id: TokenId) -> bool {
        self.tokens.get(id.index()).is_some_and(|token| token.special)
    }
}
