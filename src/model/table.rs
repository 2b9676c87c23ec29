//! A model that is a table: logits looked up by the last two tokens.
//!
//! Small enough to check strategies by hand. Its vocabulary has no texts and it has no
//! tokenizer. Source of the layout and of the generated tables: `tests/oracle/beam.json`.

use std::{collections::BTreeMap, sync::Arc};

use serde::Deserialize;

use super::{
    Encoding, LanguageModel, ModelInfo, ModelState, Precision, check_advance,
    fnv::fnv_1a,
    synthetic::{SplitMix64, hash_hex},
};
use crate::{Error, ErrorCode, TokenId, Vocab, error::Result, vocab::TokenInfo};

/// A context of a table model may hold this many tokens.
const CONTEXT: usize = 1 << 20;
/// A table of `V³` entries for more tokens than this would not be small.
const MOST_TOKENS: usize = 256;

/// How a table model is written down; unknown fields are ignored.
///
/// Entry `i` of a generated table is `x · scale`, plus `eos_bias` where the next token is
/// `eos`, rounded to f32; `x` is the `i`-th `ih12` number of the stream from `seed`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TableSpec {
    /// V, the number of tokens.
    pub vocab: usize,
    /// Where the stream of a generated table starts.
    #[serde(default)]
    pub seed: u64,
    /// The spread of a generated table, in nats.
    #[serde(default)]
    pub scale: f64,
    /// The token that ends a sequence.
    pub eos: Option<u32>,
    /// Added to the logit of `eos` in a generated table, in nats.
    #[serde(default)]
    pub eos_bias: f64,
    /// The table itself, `[V, V, V]`: last but one token, last token, next token.
    pub table: Option<Vec<f32>>,
    /// If given, FNV-1a of the table's little-endian bytes, in hexadecimal.
    pub table_fnv: Option<String>,
}

/// A table and what it is called.
#[derive(Debug, Clone)]
pub struct TableModel(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    table: Vec<f32>,
    vocab: Vocab,
    info: ModelInfo,
}

impl TableModel {
    /// Reads a [`TableSpec`] from JSON.
    ///
    /// # Errors
    /// `bad_input` when it is not readable, or as [`TableModel::new`].
    ///
    /// # Examples
    /// ```
    /// use logitscope::{TokenId, model::{LanguageModel, table::TableModel}};
    ///
    /// let model = TableModel::from_json(
    ///     r#"{"vocab": 2, "eos": 1, "table": [0, 1, 2, 3, 4, 5, 6, 7], "note": "ignored"}"#,
    /// )?;
    /// let mut state = model.start();
    /// // After one token the last but one counts as 0.
    /// assert_eq!(state.advance(&[TokenId(1)], 1)?, [[2.0, 3.0]]);
    /// assert_eq!(state.advance(&[TokenId(0)], 1)?, [[4.0, 5.0]]);
    /// # Ok::<(), logitscope::Error>(())
    /// ```
    pub fn from_json(json: &str) -> Result<Self> {
        let spec: TableSpec = serde_json::from_str(json).map_err(|error| {
            Error::new(ErrorCode::BadInput, format!("the table model is not readable: {error}"))
        })?;
        Self::new(&spec)
    }

    /// Takes or generates the table.
    ///
    /// # Errors
    /// `bad_input` for no tokens or more than 256, a table of another size than `V³`, an
    /// `eos` outside the vocabulary, or a hash that differs.
    pub fn new(spec: &TableSpec) -> Result<Self> {
        let refuse = |message: String| Err(Error::new(ErrorCode::BadInput, message));
        let size = spec.vocab;
        if size == 0 || size > MOST_TOKENS {
            return refuse(format!("vocab is {size}, but must be in 1..={MOST_TOKENS}"));
        }
        if let Some(eos) = spec.eos
            && eos as usize >= size
        {
            return refuse(format!("eos is {eos}, but must be below the vocabulary size of {size}"));
        }
        let table = match &spec.table {
            Some(table) => table.clone(),
            None => generate(spec),
        };
        if table.len() != size.pow(3) {
            return refuse(format!("table has {} entries, but must have {size}³", table.len()));
        }
        if let Some(want) = &spec.table_fnv {
            let have = hash_hex(&table);
            if have != *want {
                return refuse(format!("table_fnv is {want}, but the table's hash is {have}"));
            }
        }
        let eos = spec.eos.map(TokenId).into_iter().collect();
        let vocab = Vocab::new(vec![TokenInfo::default(); size], None, eos);
        let info = ModelInfo {
            name: None,
            architecture: "table".to_owned(),
            license: None,
            parameters: table.len() as u64,
            file_bytes: table.len() as u64 * 4,
            layers: 0,
            embedding_length: 0,
            heads: 0,
            key_heads: 0,
            feed_forward_length: 0,
            context_length: CONTEXT,
            vocabulary_size: size,
            tokenizer: "none".to_owned(),
            tensor_types: BTreeMap::from([("F32".to_owned(), 1)]),
            bos_token: None,
            eos_token: None,
            chat_template: None,
            cache_bytes_per_token: 4,
            precision: Precision::F32,
        };
        Ok(Self(Arc::new(Inner { table, vocab, info })))
    }
}

fn generate(spec: &TableSpec) -> Vec<f32> {
    let mut stream = SplitMix64::new(spec.seed);
    let eos = spec.eos.map(|eos| eos as usize);
    let entry = |index: usize| {
        let bias = if Some(index % spec.vocab) == eos { spec.eos_bias } else { 0.0 };
        let logit = stream.next_ih12() * spec.scale + bias;
        #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is the last step")]
        let logit = logit as f32;
        logit
    };
    (0..spec.vocab.pow(3)).map(entry).collect()
}

impl LanguageModel for TableModel {
    fn vocab(&self) -> &Vocab {
        &self.0.vocab
    }

    fn context_length(&self) -> usize {
        CONTEXT
    }

    fn info(&self) -> &ModelInfo {
        &self.0.info
    }

    fn hash(&self) -> u64 {
        fnv_1a(self.0.table.iter().flat_map(|logit| logit.to_le_bytes()))
    }

    fn encode(&self, _: &str, _: bool, _: bool) -> Result<Encoding> {
        Err(Error::new(ErrorCode::NeedsVocabulary, "a table model has no tokenizer; give token ids"))
    }

    fn start(&self) -> Box<dyn ModelState> {
        Box::new(State { model: Arc::clone(&self.0), tokens: Vec::new() })
    }
}

#[derive(Debug, Clone)]
struct State {
    model: Arc<Inner>,
    tokens: Vec<TokenId>,
}

impl ModelState for State {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn advance(&mut self, tokens: &[TokenId], rows: usize) -> Result<Vec<Vec<f32>>> {
        let size = self.model.vocab.len();
        check_advance(&self.tokens, tokens, rows, size, CONTEXT)?;
        self.tokens.extend(tokens);
        let first = self.tokens.len() - rows;
        let row = |position: usize| {
            let before = position.checked_sub(1).map_or(0, |before| self.tokens[before].index());
            let start = (before * size + self.tokens[position].index()) * size;
            self.model.table[start..start + size].to_vec()
        };
        Ok((first..self.tokens.len()).map(row).collect())
    }

    fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
    }

    fn fork(&self) -> Box<dyn ModelState> {
        Box::new(self.clone())
    }
}
