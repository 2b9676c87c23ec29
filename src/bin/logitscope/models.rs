//! The models that `--model` names.

use std::{
    fs::{self, File},
    io::{self, Read},
    sync::Arc,
};

use logitscope::{
    Error, ErrorCode, TokenId,
    error::Result,
    model::{self, LanguageModel, Precision, table::TableModel},
};

/// The model that ships with the program.
const DEFAULT_MODEL: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.gguf"));

/// A smaller one with the same tokens, which drafts for it.
const DRAFT_MODEL: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/models/draft.gguf"));

/// Opens `default`, `draft`, `table:FILE`, or the path of a GGUF file.
pub(crate) fn open(name: &str, precision: Precision) -> Result<Arc<dyn LanguageModel>> {
    if name == "draft" {
        return model::open(DRAFT_MODEL, precision);
    }
    if name == "default" {
        return model::open(DEFAULT_MODEL, precision);
    }
    if let Some(path) = name.strip_prefix("table:") {
        let json = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        return Ok(Arc::new(TableModel::from_json(&json)?));
    }
    let bytes = read_model(name).map_err(|error| unreadable(name, &error))?;
    model::open(bytes, precision)
}

/// A file's bytes; of one that is no GGUF file, which may be a device or larger than the memory, no
/// more than its first.
fn read_model(path: &str) -> io::Result<Vec<u8>> {
    const MAGIC: &[u8] = b"GGUF";
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut bytes)?;
    if bytes == MAGIC {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Reads a text file that a constraint names.
pub(crate) fn read_text(path: &str) -> Result<String> {
    fs::read_to_string(path).map_err(|error| {
        Error::new(ErrorCode::Io, format!("{path} could not be read: {error}")).param("constraint")
    })
}

fn unreadable(path: &str, error: &io::Error) -> Error {
    Error::new(ErrorCode::Io, format!("{path} could not be read: {error}")).param("model")
}

/// Reads token ids, with commas or spaces between them, with or without brackets.
pub(crate) fn parse_ids(text: &str) -> Result<Vec<TokenId>> {
    let inside = text.trim();
    let inside = inside.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(inside);
    if inside.trim().is_empty() {
        return Ok(Vec::new());
    }
    // Spaces beside a comma belong to it; nothing between two commas is no id.
    let words = inside.split(',').flat_map(|part| match part.trim() {
        "" => vec![""],
        part => part.split_whitespace().collect(),
    });
    words
        .map(|word| {
            word.parse().map(TokenId).map_err(|_| {
                Error::new(ErrorCode::BadInput, format!("{word:?} is not a token id")).param("prompt_ids")
            })
        })
        .collect()
}

/// A token's text for people: bytes that are no whole character appear as U+FFFD.
pub(crate) fn piece(model: &dyn LanguageModel, id: TokenId) -> String {
    String::from_utf8_lossy(model.vocab().bytes(id)).into_owned()
}
