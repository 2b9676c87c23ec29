//! Language models: a context of tokens in, logits for the next token out.
//!
//! A [`LanguageModel`] holds what never changes (weights, vocabulary); a [`ModelState`]
//! holds one context. States are cheap to fork, so that branches, beams and speculation
//! share the work already done.
//!
//! [`open`] reads a GGUF file; [`table::TableModel`] is a model small enough to check by
//! hand. The same file, tokens and [`Precision`] give the same bits on every device.

mod activations;
mod blueprint;
mod cache;
#[cfg(feature = "chat")]
pub mod chat;
pub mod fnv;
pub mod gguf;
mod group_sums;
pub mod head;
pub mod incoming;
pub mod kernel;
mod matrix;
#[cfg(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128")))]
mod packed;
pub mod quant;
mod rope;
pub mod row;
pub mod sliding;
pub mod synthetic;
pub mod table;
mod tokenizer;
mod transformer;

use std::{borrow::Cow, collections::BTreeMap, fmt, str::FromStr, sync::Arc};

use serde::Serialize;

use head::Head;

use crate::{Error, ErrorCode, TokenId, Vocab, error::Result};

/// The unchanging half of a model.
pub trait LanguageModel: fmt::Debug + Send + Sync {
    /// What the tokens stand for. Its length V is the length of every row of logits.
    fn vocab(&self) -> &Vocab;

    /// How many tokens a context can hold.
    fn context_length(&self) -> usize;

    /// What is known about the model without running it.
    fn info(&self) -> &ModelInfo;

    /// A hash of all that the model is made of: for a file, FNV-1a of its bytes.
    fn hash(&self) -> u64;

    /// Token ids of a text, and what of the text has none. Special tokens written in the
    /// text are parsed when `parse_special` is set, and are plain text otherwise. BOS is
    /// added only when the model's file asks for it and `add_bos` is set.
    ///
    /// # Errors
    /// `needs_vocabulary` when the model has no tokenizer.
    fn encode(&self, text: &str, parse_special: bool, add_bos: bool) -> Result<Encoding>;

    /// As [`encode`](Self::encode), but a text that cannot be written whole is refused.
    ///
    /// # Errors
    /// `needs_vocabulary` when the model has no tokenizer, `bad_input` when bytes of the
    /// text have no token.
    fn tokenize(&self, text: &str, parse_special: bool, add_bos: bool) -> Result<Vec<TokenId>> {
        let encoding = self.encode(text, parse_special, add_bos)?;
        if encoding.dropped.is_empty() {
            return Ok(encoding.ids);
        }
        let message = format!("the model has no token for the bytes {:02x?}", encoding.dropped);
        Err(Error::new(ErrorCode::BadInput, message))
    }

    /// A state with an empty context.
    fn start(&self) -> Box<dyn ModelState>;

    /// The matrix that ends every pass, if the model has one; see [`ModelState::advance_hidden`].
    fn head(&self) -> Option<Head<'_>> {
        None
    }

    /// The logits `[positions, V]` of rows that [`ModelState::advance_hidden`] returned, one
    /// after the other.
    fn logits(&self, hidden: &[f32]) -> Vec<f32> {
        self.head().map_or_else(|| hidden.to_vec(), |head| head.multiply(hidden))
    }

    /// Of so many tokens, how many of the first (BOS apart) it no longer sees; see [`sliding`].
    fn forgotten(&self, _tokens: usize) -> usize {
        0
    }
}

/// One context, and whatever the model has remembered about it.
pub trait ModelState: fmt::Debug + Send {
    /// The tokens fed so far.
    fn tokens(&self) -> &[TokenId];

    /// Appends tokens and returns the logits after the last `rows` of them, oldest first:
    /// `[rows, V]` in nats. `rows` is at most `tokens.len()`.
    ///
    /// The bits of every row are the same however the tokens were split into calls. Damaged weights
    /// make logits that are no numbers; [`Logits`](crate::Logits) refuses them, and names the token.
    ///
    /// # Errors
    /// `context_full` when the tokens do not fit, `token_out_of_vocabulary` for a bad id,
    /// `bad_input` for more rows than tokens; the state is unchanged then.
    fn advance(&mut self, tokens: &[TokenId], rows: usize) -> Result<Vec<Vec<f32>>>;

    /// As [`advance`](Self::advance), but stops before the [`head`](LanguageModel::head): rows
    /// of which [`LanguageModel::logits`] makes the logits, with the same bits. A model without
    /// a head returns the logits themselves.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    fn advance_hidden(&mut self, tokens: &[TokenId], rows: usize) -> Result<Vec<Vec<f32>>> {
        self.advance(tokens, rows)
    }

    /// Forgets all but the first `length` tokens.
    fn truncate(&mut self, length: usize);

    /// An independent copy that shares what has been computed.
    fn fork(&self) -> Box<dyn ModelState>;
}

/// How a model multiplies by quantised weights. Both are the same on every device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// In integers: inputs are rounded to blocks of small integers too. Fast.
    #[default]
    Native,
    /// In f32: weights are taken as the numbers they stand for. Slow, the reference.
    F32,
}

impl FromStr for Precision {
    type Err = Error;

    /// Reads `native` or `f32`.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "native" => Ok(Self::Native),
            "f32" => Ok(Self::F32),
            _ => Err(Error::new(ErrorCode::OutOfRange, format!("precision is {text:?}, not native or f32"))
                .param("precision")),
        }
    }
}

/// The tokens of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Encoding {
    /// The ids in order.
    pub ids: Vec<TokenId>,
    /// Bytes of the text that no token stands for; they are missing from the ids.
    pub dropped: Vec<u8>,
}

/// What a model's file says about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelInfo {
    /// The name its makers gave it.
    pub name: Option<String>,
    /// `llama`, `qwen2`, `qwen3`, or `table`.
    pub architecture: String,
    /// The licence as the file states it.
    pub license: Option<String>,
    /// How many numbers it has learned.
    pub parameters: u64,
    /// The size of its file.
    pub file_bytes: u64,
    /// Blocks of attention and feed-forward network.
    pub layers: usize,
    /// Numbers that represent one position between layers.
    pub embedding_length: usize,
    /// Attention heads.
    pub heads: usize,
    /// Heads of keys and values, which groups of attention heads share.
    pub key_heads: usize,
    /// Numbers inside a feed-forward network.
    pub feed_forward_length: usize,
    /// Tokens that a context can hold.
    pub context_length: usize,
    /// Tokens in its vocabulary.
    pub vocabulary_size: usize,
    /// The kind of its tokenizer, with the pre-tokenizer it names, such as `gpt2/smollm`.
    pub tokenizer: String,
    /// How many tensors there are of each type.
    pub tensor_types: BTreeMap<String, usize>,
    /// The text of the token that begins a sequence.
    pub bos_token: Option<String>,
    /// The text of the token that ends one; of several, that which its file names first.
    pub eos_token: Option<String>,
    /// Its chat template, as source text.
    pub chat_template: Option<String>,
    /// Bytes that each token of a context takes in memory.
    pub cache_bytes_per_token: u64,
    /// How it multiplies.
    pub precision: Precision,
}

/// Opens a GGUF file held in memory. The weights stay where they are.
///
/// # Errors
/// `model_format` when the file is malformed, cut short or contradicts itself;
/// `model_unsupported` when it is sound but needs something that is not implemented.
///
/// # Examples
/// ```
/// use logitscope::model::{Precision, open};
///
/// let file: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.gguf"));
/// let model = open(file, Precision::Native)?;
/// let prompt = model.tokenize("The dog ran", true, true)?;
/// let logits = model.start().advance(&prompt, 1)?;
/// assert_eq!(logits[0].len(), model.vocab().len());
/// # Ok::<(), logitscope::Error>(())
/// ```
pub fn open(bytes: impl Into<Cow<'static, [u8]>>, precision: Precision) -> Result<Arc<dyn LanguageModel>> {
    let container = gguf::Container::read(bytes)?;
    Ok(Arc::new(transformer::Transformer::open(container, precision)?))
}

/// What every state checks before it computes anything.
fn check_advance(
    have: &[TokenId],
    tokens: &[TokenId],
    rows: usize,
    vocabulary: usize,
    context: usize,
) -> Result<()> {
    if rows > tokens.len() {
        let message = format!("{rows} rows of logits were asked for, but only {} tokens given", tokens.len());
        return Err(Error::new(ErrorCode::BadInput, message));
    }
    if let Some(token) = tokens.iter().find(|token| token.index() >= vocabulary) {
        let message = format!("token {token} is not below the vocabulary size of {vocabulary}");
        return Err(Error::new(ErrorCode::TokenOutOfVocabulary, message));
    }
    if tokens.len() > context - have.len().min(context) {
        let message = format!(
            "{} tokens are in the context and {} more do not fit into its {context}",
            have.len(),
            tokens.len()
        );
        return Err(Error::new(ErrorCode::ContextFull, message));
    }
    Ok(())
}
