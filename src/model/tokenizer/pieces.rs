//! SentencePiece's tokenizer as files of the llama family carry it.
//!
//! A text starts as single characters, with `▁` for spaces; the neighbours whose joint
//! piece scores best are joined, the leftmost of equals, until no joint piece exists.
//! Characters that are no piece become byte tokens.
//!
//! Source: Kudo, Richardson 2018, "SentencePiece", <https://arxiv.org/abs/1808.06226>.

use std::collections::{BinaryHeap, HashMap};

use super::{super::gguf::malformed, Encoding, Role};
use crate::{TokenId, error::Result};

/// Where a file keeps the scores.
pub(super) const KEY: &str = "tokenizer.ggml.scores";

/// What stands for a space.
const SPACE: &str = "\u{2581}";

/// Scored pieces.
#[derive(Debug)]
pub(super) struct Pieces {
    /// Piece to id and score.
    scored: HashMap<String, (u32, f32)>,
    /// The token of each single byte; a vocabulary may lack some.
    bytes: Vec<Option<u32>>,
    /// Whether text begins with a space that is not written.
    space_prefix: bool,
}

/// The byte that a text such as `<0x0A>` names.
fn named_byte(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// The bytes that a token of the file's vocabulary adds to the text.
pub(super) fn bytes_of(text: &str, role: Role) -> Vec<u8> {
    match named_byte(text) {
        Some(byte) if role == Role::Byte => vec![byte],
        _ => text.replace(SPACE, " ").into_bytes(),
    }
}

/// Two neighbours that could be joined; the greatest is joined first.
#[derive(Debug)]
struct Candidate {
    score: f32,
    left: usize,
    right: usize,
    /// Bytes of both together, to see whether either has changed since.
    length: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.score
            .total_cmp(&other.score)
            .then(other.left.cmp(&self.left))
            .then(self.length.cmp(&other.length))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

impl Pieces {
    /// # Errors
    /// `model_format` when there is not one finite score for each token, or a byte token names none.
    pub(super) fn new(texts: &[&str], roles: &[Role], scores: &[f32], space_prefix: bool) -> Result<Self> {
        if scores.len() != texts.len() {
            let (tokens, scores) = (texts.len(), scores.len());
            return Err(malformed(format!("{KEY} has {scores} entries, but there are {tokens} tokens")));
        }
        if let Some(token) = scores.iter().position(|score| !score.is_finite()) {
            return Err(malformed(format!("{KEY} of token {token} is {}", scores[token])));
        }
        let mut scored = HashMap::with_capacity(texts.len());
        let mut bytes = vec![None; 256];
        for (id, ((text, role), score)) in (0_u32..).zip(texts.iter().zip(roles).zip(scores)) {
            match role {
                Role::Text | Role::UserDefined => {
                    scored.entry((*text).to_owned()).or_insert((id, *score));
                }
                Role::Byte => {
                    let byte = named_byte(text)
                        .ok_or_else(|| malformed(format!("byte token {text:?} names no byte")))?;
                    bytes[usize::from(byte)].get_or_insert(id);
                }
                Role::Control | Role::Unused => {}
            }
        }
        Ok(Self { scored, bytes, space_prefix })
    }

    pub(super) fn encode(&self, text: &str, fresh: bool, encoding: &mut Encoding) {
        if text.is_empty() {
            return;
        }
        let prefix = if fresh && self.space_prefix { SPACE } else { "" };
        let text = format!("{prefix}{}", text.replace(' ', SPACE));
        for piece in self.merge(&text) {
            if let Some((id, _)) = self.scored.get(piece) {
                encoding.ids.push(TokenId(*id));
                continue;
            }
            for byte in piece.bytes() {
                match self.bytes[usize::from(byte)] {
                    Some(id) => encoding.ids.push(TokenId(id)),
                    None => encoding.dropped.push(byte),
                }
            }
        }
    }

    /// The text cut into pieces and characters that are none.
    fn merge<'a>(&self, text: &'a str) -> Vec<&'a str> {
        // Each symbol is a stretch of the text; a joined one lives on in its left half.
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let count = starts.len();
        let mut ends: Vec<usize> = starts.iter().skip(1).copied().chain([text.len()]).collect();
        let mut next: Vec<usize> = (1..=count).collect();
        let mut previous: Vec<Option<usize>> = (0..count).map(|at| at.checked_sub(1)).collect();
        let mut alive = vec![true; count];
        let mut candidates = BinaryHeap::new();
        let consider = |ends: &[usize], left: usize, right: usize, candidates: &mut BinaryHeap<_>| {
            if right < count {
                let joint = &text[starts[left]..ends[right]];
                if let Some((_, score)) = self.scored.get(joint) {
                    candidates.push(Candidate { score: *score, left, right, length: joint.len() });
                }
            }
        };
        for left in 0..count.saturating_sub(1) {
            consider(&ends, left, left + 1, &mut candidates);
        }
        while let Some(Candidate { left, right, length, .. }) = candidates.pop() {
            let current = alive[left] && next[left] == right && ends[right] - starts[left] == length;
            if !current {
                continue;
            }
            ends[left] = ends[right];
            alive[right] = false;
            next[left] = next[right];
            if next[right] < count {
                previous[next[right]] = Some(left);
            }
            if let Some(before) = previous[left] {
                consider(&ends, before, left, &mut candidates);
            }
            consider(&ends, left, next[left], &mut candidates);
        }
        (0..count).filter(|at| alive[*at]).map(|at| &text[starts[at]..ends[at]]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Pieces {
        let texts = ["<s>", "<0xC3>", "<0xA9>", "▁", "a", "b", "ab", "▁a", "▁ab", "s", ">", "s>"];
        let roles = [[Role::Control, Role::Byte, Role::Byte].as_slice(), [Role::Text; 9].as_slice()].concat();
        let scores = [0.0, 0.0, 0.0, -9.0, -8.0, -7.0, -2.0, -1.0, -3.0, -6.0, -6.0, -5.0];
        Pieces::new(&texts, &roles, &scores, true).unwrap()
    }

    #[test]
    fn refuses_scores_that_are_none() {
        for (scores, why) in [
            ([0.0, f32::NAN].as_slice(), "tokenizer.ggml.scores of token 1 is NaN"),
            (&[f32::INFINITY, 0.0], "tokenizer.ggml.scores of token 0 is inf"),
            (&[0.0], "tokenizer.ggml.scores has 1 entries, but there are 2 tokens"),
        ] {
            let error = Pieces::new(&["a", "b"], &[Role::Text; 2], scores, true).unwrap_err();
            assert!(error.message.contains(why), "{error}");
        }
    }

    fn ids(text: &str, fresh: bool) -> (Vec<u32>, Vec<u8>) {
        let mut encoding = Encoding::default();
        example().encode(text, fresh, &mut encoding);
        (encoding.ids.iter().map(|id| id.0).collect(), encoding.dropped)
    }

    #[test]
    fn joins_the_best_score_first() {
        assert_eq!(ids("ab ab", true).0, [8, 8], "▁a, then ▁ab");
        assert_eq!(ids("ab", false).0, [6], "no space is put before a continued text");
    }

    /// Made by `tests/tokenizers/generate.py`.
    #[test]
    fn ids_are_those_of_sentencepiece() {
        let file = include_str!("../../../tests/tokenizers/pieces.json");
        let file: serde_json::Value = serde_json::from_str(file).unwrap();
        let tokens: Vec<(String, f32, i32)> = serde_json::from_value(file["tokens"].clone()).unwrap();
        let texts: Vec<&str> = tokens.iter().map(|(text, ..)| text.as_str()).collect();
        let scores: Vec<f32> = tokens.iter().map(|(_, score, _)| *score).collect();
        let roles: Vec<Role> = tokens.iter().map(|(.., code)| Role::from_code(*code).unwrap()).collect();
        let pieces = Pieces::new(&texts, &roles, &scores, true).unwrap();
        let cases = file["cases"].as_array().unwrap();
        assert!(cases.len() > 25);
        for case in cases {
            let text = case["text"].as_str().unwrap();
            let expected: Vec<TokenId> = serde_json::from_value(case["ids"].clone()).unwrap();
            let mut encoding = Encoding::default();
            pieces.encode(text, true, &mut encoding);
            assert_eq!(encoding, Encoding { ids: expected, dropped: Vec::new() }, "{text:?}");
        }
    }

    #[test]
    fn falls_back_to_bytes() {
        assert_eq!(ids("é", false), (vec![1, 2], vec![]));
        assert_eq!(ids("aü", false), (vec![4, 1], vec![0xbc]), "a byte without a token is reported");
    }

    #[test]
    fn text_never_becomes_a_control_token() {
        assert_eq!(ids("<s>", false), (vec![11], vec![b'<']));
    }

    #[test]
    fn bytes_of_pieces() {
        assert_eq!(bytes_of("▁ab", Role::Text), b" ab");
        assert_eq!(bytes_of("<0x0A>", Role::Byte), b"\n");
        assert_eq!(bytes_of("<0x0A>", Role::Text), b"<0x0A>");
    }
}
