//! From text to token ids, as the model's file defines it.
//!
//! Owns the vocabulary of a GGUF file and the treatment of special tokens; what lies
//! between special tokens goes to [`byte_pairs`] (`gpt2` in the file) or [`pieces`]
//! (`llama` in the file).

mod byte_pairs;
mod classes;
mod pieces;
mod split;
mod unicode;

use byte_pairs::BytePairs;
use pieces::Pieces;
use split::Splitter;

use super::{
    Encoding,
    gguf::{Container, malformed, unsupported},
};
use crate::{TokenId, Vocab, error::Result, vocab::TokenInfo};

/// What the file says a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Ordinary text.
    Text,
    /// Text of its own that nothing merges into: found before anything else is.
    UserDefined,
    /// Control or unknown: found in a text only where special tokens are parsed.
    Control,
    /// A place in the vocabulary that stands for nothing: no text becomes one.
    Unused,
    /// One byte, where nothing better exists.
    Byte,
}

impl Role {
    fn from_code(code: i32) -> Option<Self> {
        match code {
            1 => Some(Self::Text),
            2 | 3 => Some(Self::Control),
            5 => Some(Self::Unused),
            4 => Some(Self::UserDefined),
            6 => Some(Self::Byte),
            _ => None,
        }
    }
}

/// A tokenizer and its vocabulary.
#[derive(Debug)]
pub(super) struct Tokenizer {
    name: String,
    vocab: Vocab,
    algorithm: Algorithm,
    /// Tokens that are looked for in the text as they are written, the longest first.
    written: Vec<Written>,
    add_bos: bool,
}

#[derive(Debug)]
enum Algorithm {
    BytePairs(BytePairs),
    Pieces(Pieces),
}

#[derive(Debug)]
struct Written {
    text: String,
    id: TokenId,
    /// Found even where special tokens are not parsed.
    always: bool,
}

impl Tokenizer {
    /// Reads the tokenizer of a file.
    ///
    /// # Errors
    /// `model_format` when it is missing or contradicts itself, `model_unsupported` when its
    /// kind is not implemented.
    pub(super) fn read(container: &Container) -> Result<Self> {
        let missing = |key: &str| malformed(format!("{key} is missing"));
        let model = container.text("tokenizer.ggml.model")?.ok_or_else(|| missing("tokenizer.ggml.model"))?;
        let texts =
            container.texts("tokenizer.ggml.tokens")?.ok_or_else(|| missing("tokenizer.ggml.tokens"))?;
        if texts.is_empty() {
            return Err(malformed("tokenizer.ggml.tokens is empty"));
        }
        let roles = roles(container, texts.len())?;
        let before = container.text("tokenizer.ggml.pre")?;
        let (name, algorithm, default_bos) = match model {
            "gpt2" => {
                // A file that names none means this one.
                let before = before.unwrap_or("default");
                let splitter = Splitter::named(before).ok_or_else(|| {
                    unsupported(format!("the pre-tokenizer {before:?} of the model is not supported"))
                })?;
                let merges = container
                    .texts("tokenizer.ggml.merges")?
                    .ok_or_else(|| missing("tokenizer.ggml.merges"))?;
                let pairs = BytePairs::new(splitter, &texts, &roles, &merges)?;
                (format!("gpt2/{before}"), Algorithm::BytePairs(pairs), splitter.adds_bos)
            }
            "llama" => {
                let scores = container.reals(pieces::KEY)?.ok_or_else(|| missing(pieces::KEY))?;
                let prefix = container.truth("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
                ("llama".to_owned(), Algorithm::Pieces(Pieces::new(&texts, &roles, &scores, prefix)?), true)
            }
            other => {
                return Err(unsupported(format!(
                    "the model's tokenizer is {other:?}; gpt2 and llama are supported"
                )));
            }
        };
        let tokens = texts.iter().zip(&roles).map(|(text, role)| {
            let bytes = match (*role, &algorithm) {
                (Role::Control | Role::Unused | Role::UserDefined, _) => text.as_bytes().to_vec(),
                (_, Algorithm::BytePairs(_)) => byte_pairs::bytes_of(text),
                (_, Algorithm::Pieces(_)) => pieces::bytes_of(text, *role),
            };
            TokenInfo { bytes, special: matches!(role, Role::Control | Role::Unused) }
        });
        let tokens: Vec<_> = tokens.collect();
        let id = |key: &str| special_id(container, key, texts.len());
        let bos = id("tokenizer.ggml.bos_token_id")?;
        let mut eos = Vec::new();
        for key in ["eos", "eot", "eom"] {
            if let Some(id) = id(&format!("tokenizer.ggml.{key}_token_id"))?
                && !eos.contains(&id)
            {
                eos.push(id);
            }
        }
        let add_bos = container.truth("tokenizer.ggml.add_bos_token")?.unwrap_or(default_bos);
        let written = written(&texts, &roles);
        Ok(Self { name, vocab: Vocab::new(tokens, bos, eos), algorithm, written, add_bos })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn vocab(&self) -> &Vocab {
        &self.vocab
    }

    pub(super) fn encode(&self, text: &str, parse_special: bool, add_bos: bool) -> Encoding {
        let mut encoding = Encoding::default();
        if add_bos && self.add_bos {
            encoding.ids.extend(self.vocab.bos);
        }
        // Text at the start, and after a special token, is where a word begins.
        let mut fresh = true;
        let mut plain = 0;
        let mut at = 0;
        while at < text.len() {
            let found = self.written.iter().find(|token| {
                (parse_special || token.always) && text.as_bytes()[at..].starts_with(token.text.as_bytes())
            });
            let Some(token) = found else {
                at += 1;
                continue;
            };
            self.encode_plain(&text[plain..at], fresh, &mut encoding);
            encoding.ids.push(token.id);
            at += token.text.len();
            (plain, fresh) = (at, true);
        }
        self.encode_plain(&text[plain..], fresh, &mut encoding);
        encoding
    }

    fn encode_plain(&self, text: &str, fresh: bool, encoding: &mut Encoding) {
        match &self.algorithm {
            Algorithm::BytePairs(pairs) => pairs.encode(text, encoding),
            Algorithm::Pieces(pieces) => pieces.encode(text, fresh, encoding),
        }
    }
}

fn roles(container: &Container, count: usize) -> Result<Vec<Role>> {
    const KEY: &str = "tokenizer.ggml.token_type";
    let Some(codes) = container.integers(KEY)? else {
        return Ok(vec![Role::Text; count]);
    };
    if codes.len() != count {
        return Err(malformed(format!("{KEY} has {} entries, but there are {count} tokens", codes.len())));
    }
    let role = |(token, code)| {
        Role::from_code(code)
            .ok_or_else(|| malformed(format!("{KEY} of token {token} is {code}, which does not exist")))
    };
    codes.into_iter().enumerate().map(role).collect()
}

fn special_id(container: &Container, key: &str, count: usize) -> Result<Option<TokenId>> {
    let Some(id) = container.unsigned(key)? else { return Ok(None) };
    match u32::try_from(id) {
        Ok(small) if id < count as u64 => Ok(Some(TokenId(small))),
        _ => Err(malformed(format!("{key} is {id}, but there are {count} tokens"))),
    }
}

fn written(texts: &[&str], roles: &[Role]) -> Vec<Written> {
    let mut written: Vec<_> = (0..)
        .zip(texts.iter().zip(roles))
        .filter(|(_, (text, role))| !text.is_empty() && matches!(role, Role::Control | Role::UserDefined))
        .map(|(id, (text, role))| Written {
            text: (*text).to_owned(),
            id: TokenId(id),
            always: *role == Role::UserDefined,
        })
        .collect();
    written.sort_by_key(|token| std::cmp::Reverse(token.text.len()));
    written
}
