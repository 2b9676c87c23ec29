//! Tokens that belong together: the same word in another case, with or without a leading space,
//! or in pieces.

use serde::Serialize;

use crate::{TokenId, Vocab};

/// How a token is related to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kinship {
    /// The token itself.
    Itself,
    /// The same text but for a leading space.
    Space,
    /// The same text but for the case of its letters, and perhaps a leading space.
    Case,
    /// The beginning of the word.
    Fragment,
}

/// A relative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Relative {
    /// The token.
    pub token: TokenId,
    /// How it is related.
    pub kinship: Kinship,
}

/// The relatives of a token, closest first, then by id; the token itself included.
///
/// A fragment is a proper beginning of the word with at least two characters. Tokens that are
/// not whole UTF-8 texts, or nothing but white space, have no relatives.
///
/// # Examples
/// ```
/// use logitscope::{TokenId, Vocab, family::{Kinship, family}};
///
/// let vocab = Vocab::from_texts(&["the", " the", " The", "th", " cat", "THE", "t"]);
/// let found: Vec<_> = family(&vocab, TokenId(1)).iter().map(|found| (found.token.0, found.kinship)).collect();
/// assert_eq!(
///     found,
///     [
///         (1, Kinship::Itself),
///         (0, Kinship::Space),
///         (2, Kinship::Case),
///         (5, Kinship::Case),
///         (3, Kinship::Fragment),
///     ]
/// );
/// ```
#[must_use]
pub fn family(vocab: &Vocab, token: TokenId) -> Vec<Relative> {
    let itself = Relative { token, kinship: Kinship::Itself };
    let Some(own) = word(vocab, token) else { return vec![itself] };
    let folded = own.to_lowercase();
    let mut relatives = vec![itself];
    for id in 0..vocab.len() {
        let Ok(id) = u32::try_from(id) else { break };
        let other = TokenId(id);
        let Some(text) = word(vocab, other).filter(|_| other != token && !vocab.is_special(other)) else {
            continue;
        };
        let kinship = if text == own {
            Kinship::Space
        } else {
            let text = text.to_lowercase();
            if text == folded {
                Kinship::Case
            } else if text.chars().nth(1).is_some() && folded.starts_with(&text) {
                Kinship::Fragment
            } else {
                continue;
            }
        };
        relatives.push(Relative { token: other, kinship });
    }
    relatives.sort_by_key(|found| (found.kinship, found.token));
    relatives
}

/// A token's text without the spaces before it.
fn word(vocab: &Vocab, token: TokenId) -> Option<&str> {
    let text = std::str::from_utf8(vocab.bytes(token)).ok()?.trim_start_matches(' ');
    (!text.trim().is_empty()).then_some(text)
}
