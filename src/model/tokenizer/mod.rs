//! From text to token ids, as the model's file defines it.
//!
//! Owns the vocabulary of a GGUF file and the treatment of special tokens; what lies
//! between special tokens goes to [`byte_pairs`] (`gpt2` in the file) or [`pieces`]
//! (`llama` in the file).

mod byte_pairs;
mod classes;
mod ends;
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

const BOS: &str = "tokenizer.ggml.bos_token_id";
const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";
const ADD_SPACE_PREFIX: &str = "tokenizer.ggml.add_space_prefix";

/// What would change the tokens of a text and is not implemented, where it is true.
const VARIANTS: [&str; 3] = [
    "tokenizer.ggml.remove_extra_whitespaces",
    "tokenizer.ggml.normalizer.lowercase",
    "tokenizer.ggml.normalizer.strip_accents",
];

/// The same, where it is a list that is not empty.
const LISTS: [&str; 2] = ["tokenizer.ggml.precompiled_charsmap", "tokenizer.ggml.suppress_tokens"];

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
        refuse_variants(container, model)?;
        let mut roles = roles(container, texts.len())?;
        let merges = container.texts("tokenizer.ggml.merges")?.unwrap_or_default();
        let is_made = |text: &str| {
            merges.iter().any(|merge| {
                merge.split_once(' ').is_some_and(|(left, right)| text.strip_prefix(left) == Some(right))
            })
        };
        let eos = ends::ends(container, &texts, &mut roles, is_made)?;
        let before = container.text("tokenizer.ggml.pre")?;
        let (name, algorithm, default_bos) = match model {
            "gpt2" => {
                // A file that names none means this one.
                let before = before.filter(|name| !name.is_empty()).unwrap_or("default");
                let splitter = Splitter::named(before).ok_or_else(|| {
                    unsupported(format!("the pre-tokenizer {before:?} of the model is not supported"))
                })?;
                if container.count("tokenizer.ggml.merges").is_none() {
                    return Err(missing("tokenizer.ggml.merges"));
                }
                let pairs = BytePairs::new(splitter, &texts, &roles, &merges)?;
                (format!("gpt2/{before}"), Algorithm::BytePairs(pairs), splitter.adds_bos)
            }
            "llama" => {
                let scores = container.reals(pieces::KEY)?.ok_or_else(|| missing(pieces::KEY))?;
                let prefix = container.truth(ADD_SPACE_PREFIX)?.unwrap_or(true);
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
        let bos = special_id(container, BOS, texts.len())?;
        let add_bos = container.truth(ADD_BOS)?.unwrap_or(default_bos);
        if add_bos && bos.is_none() {
            let message = format!("a token is to be put before every text ({ADD_BOS}), but {BOS} is missing");
            return Err(malformed(message));
        }
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

/// Refuses what would otherwise be ignored: `model` would make other tokens of a text than its
/// makers did.
fn refuse_variants(container: &Container, model: &str) -> Result<()> {
    let adds = container.keys().filter(|key| {
        let known = *key == ADD_BOS || (*key == ADD_SPACE_PREFIX && model == "llama");
        key.starts_with("tokenizer.ggml.add_") && !known
    });
    for key in adds.chain(VARIANTS) {
        if container.truth(key)? == Some(true) {
            return Err(unsupported(format!("{key} is true, which is not supported")));
        }
    }
    for key in LISTS {
        if let Some(count @ 1..) = container.count(key) {
            return Err(unsupported(format!("{key} has {count} entries, which are not supported")));
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    /// A value of metadata.
    pub(super) enum Entry {
        Text(&'static str),
        Texts(Vec<&'static str>),
        Integers(Vec<i32>),
        Reals(Vec<f32>),
        Unsigned(u64),
        Truth(bool),
    }

    fn push_text(file: &mut Vec<u8>, text: &str) {
        file.extend((text.len() as u64).to_le_bytes());
        file.extend(text.as_bytes());
    }

    /// A file of nothing but metadata.
    pub(super) fn container(entries: impl IntoIterator<Item = (String, Entry)>) -> Container {
        let mut body = Vec::new();
        let mut count = 0_u64;
        let list = |body: &mut Vec<u8>, kind: u32, length: usize| {
            body.extend(9_u32.to_le_bytes());
            body.extend(kind.to_le_bytes());
            body.extend((length as u64).to_le_bytes());
        };
        for (key, entry) in entries {
            count += 1;
            push_text(&mut body, &key);
            match entry {
                Entry::Text(text) => {
                    body.extend(8_u32.to_le_bytes());
                    push_text(&mut body, text);
                }
                Entry::Texts(texts) => {
                    list(&mut body, 8, texts.len());
                    for text in texts {
                        push_text(&mut body, text);
                    }
                }
                Entry::Integers(numbers) => {
                    list(&mut body, 5, numbers.len());
                    body.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
                }
                Entry::Reals(numbers) => {
                    list(&mut body, 6, numbers.len());
                    body.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
                }
                Entry::Unsigned(number) => {
                    body.extend(10_u32.to_le_bytes());
                    body.extend(number.to_le_bytes());
                }
                Entry::Truth(truth) => {
                    body.extend(7_u32.to_le_bytes());
                    body.push(u8::from(truth));
                }
            }
        }
        let mut file = b"GGUF".to_vec();
        file.extend(3_u32.to_le_bytes());
        file.extend(0_u64.to_le_bytes());
        file.extend(count.to_le_bytes());
        file.extend(body);
        Container::read(file).unwrap()
    }

    /// A small tokenizer of this model with one more entry, which may replace another.
    fn read(model: &'static str, more: Option<(&str, Entry)>) -> Result<Tokenizer> {
        let texts = vec!["<s>", "</s>", "a", "b", "ab", "\u{2581}", "</"];
        let mut entries = std::collections::BTreeMap::from([
            ("model", Entry::Text(model)),
            ("pre", Entry::Text("gpt-2")),
            ("tokens", Entry::Texts(texts)),
            ("token_type", Entry::Integers(vec![3, 3, 1, 1, 1, 1, 1])),
            ("merges", Entry::Texts(vec!["a b"])),
            ("scores", Entry::Reals(vec![0.0; 7])),
            ("bos_token_id", Entry::Unsigned(0)),
        ]);
        entries.extend(more);
        Tokenizer::read(&container(
            entries.into_iter().map(|(name, entry)| (format!("tokenizer.ggml.{name}"), entry)),
        ))
    }

    #[test]
    fn what_would_be_ignored_is_refused_by_name() {
        let refused = [
            ("gpt2", "add_eos_token", Entry::Truth(true)),
            ("llama", "add_eos_token", Entry::Truth(true)),
            ("llama", "add_sep_token", Entry::Truth(true)),
            ("gpt2", "add_space_prefix", Entry::Truth(true)),
            ("llama", "add_something_new", Entry::Truth(true)),
            ("llama", "remove_extra_whitespaces", Entry::Truth(true)),
            ("gpt2", "normalizer.lowercase", Entry::Truth(true)),
            ("gpt2", "suppress_tokens", Entry::Integers(vec![2])),
            ("llama", "precompiled_charsmap", Entry::Integers(vec![1, 2])),
        ];
        for (model, key, entry) in refused {
            let error = read(model, Some((key, entry))).unwrap_err();
            assert_eq!(error.code, ErrorCode::ModelUnsupported, "{key}");
            assert!(error.message.contains(&format!("tokenizer.ggml.{key}")), "{error}");
        }
        let error = read("gpt2", Some(("pre", Entry::Text("of-tomorrow")))).unwrap_err();
        assert!(
            error.code == ErrorCode::ModelUnsupported && error.message.contains("\"of-tomorrow\""),
            "{error}"
        );
        // What changes nothing is no reason.
        assert_eq!(read("gpt2", Some(("pre", Entry::Text("")))).unwrap().name(), "gpt2/default");
        for model in ["gpt2", "llama"] {
            for key in ["add_eos_token", "add_sep_token", "add_space_prefix", "normalizer.lowercase"] {
                assert!(read(model, Some((key, Entry::Truth(false)))).is_ok(), "{model} {key}");
            }
            assert!(read(model, Some(("suppress_tokens", Entry::Integers(vec![])))).is_ok());
        }
    }

    fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
        tokenizer.encode(text, true, true).ids.iter().map(|id| id.0).collect()
    }

    #[test]
    fn what_the_file_adds_is_added() {
        let plain = read("gpt2", None).unwrap();
        assert_eq!(ids(&plain, "ab"), [4], "GPT-2 adds nothing");
        assert_eq!(ids(&read("gpt2", Some(("add_bos_token", Entry::Truth(true)))).unwrap(), "ab"), [0, 4]);
        assert_eq!(ids(&read("llama", None).unwrap(), "ab"), [0, 5, 4], "BOS, a space, the text");
        let bare = read("llama", Some(("add_space_prefix", Entry::Truth(false)))).unwrap();
        assert_eq!(ids(&bare, "ab"), [0, 4]);
        let bare = read("llama", Some(("add_bos_token", Entry::Truth(false)))).unwrap();
        assert_eq!(ids(&bare, "ab"), [5, 4]);
        assert_eq!(plain.vocab().eos, [TokenId(1)], "by its text");
    }

    #[test]
    fn what_is_to_be_added_must_be_named() {
        let entries = |add: bool| {
            [
                ("model", Entry::Text("gpt2")),
                ("tokens", Entry::Texts(vec!["a"])),
                ("merges", Entry::Texts(vec![])),
                ("add_bos_token", Entry::Truth(add)),
            ]
            .map(|(name, entry)| (format!("tokenizer.ggml.{name}"), entry))
        };
        assert!(Tokenizer::read(&container(entries(false))).is_ok());
        let error = Tokenizer::read(&container(entries(true))).unwrap_err();
        assert_eq!(error.code, ErrorCode::ModelFormat);
        assert!(error.message.contains("tokenizer.ggml.bos_token_id is missing"), "{error}");
    }

    #[test]
    fn a_text_of_html_stays_text() {
        let read = |merges| {
            let entries = [
                ("model", Entry::Text("gpt2")),
                ("tokens", Entry::Texts(vec!["</", "s>", "</s>"])),
                ("token_type", Entry::Integers(vec![1; 3])),
                ("merges", Entry::Texts(merges)),
            ];
            let named = entries.into_iter().map(|(name, entry)| (format!("tokenizer.ggml.{name}"), entry));
            Tokenizer::read(&container(named)).unwrap().vocab().eos.clone()
        };
        assert_eq!(read(vec!["</ s>"]), [], "merges make it");
        assert_eq!(read(vec![]), [TokenId(2)], "nothing else does");
    }
}
