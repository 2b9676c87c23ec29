//! Byte-level byte-pair encoding, as GPT-2 introduced it.
//!
//! A word starts as single bytes; the pair whose merge was learned first is joined, the
//! leftmost of equals, until none is left.
//!
//! Sources: Sennrich et al. 2016, <https://arxiv.org/abs/1508.07909>; Radford et al. 2019,
//! "Language Models are Unsupervised Multitask Learners", for the bytes.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use super::{super::gguf::malformed, Encoding, Role, split::Splitter};
use crate::{TokenId, error::Result};

/// Merges over bytes.
#[derive(Debug)]
pub(super) struct BytePairs {
    splitter: &'static Splitter,
    /// The token of each single byte; a vocabulary may lack some.
    bytes: Vec<Option<u32>>,
    /// For two neighbours, when their merge was learned and what it makes.
    merges: HashMap<(u32, u32), (u32, u32)>,
    /// Tokens by their bytes, where whole words are looked up.
    words: HashMap<Vec<u8>, u32>,
}

/// The character that stands for a byte in the file's texts: printable Latin-1 for itself,
/// the rest from U+0100 on, in order.
fn char_of(byte: u8) -> char {
    let shown = |byte: u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    if shown(byte) {
        return char::from(byte);
    }
    let rank = (0..byte).filter(|byte| !shown(*byte)).count();
    u32::try_from(rank).ok().and_then(|rank| char::from_u32(0x100 + rank)).unwrap_or('\0')
}

/// The byte that a character stands for.
fn byte_of(c: char) -> Option<u8> {
    match u32::from(c) {
        code @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => u8::try_from(code).ok(),
        // 33 bytes before '!', 34 from DEL to the no-break space, one soft hyphen.
        code @ 0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        code @ 0x121..=0x142 => u8::try_from(code - 0x121 + 0x7f).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// The bytes that a token of the file's vocabulary adds to the text.
///
/// Characters outside the byte alphabet stand for themselves.
pub(super) fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

impl BytePairs {
    /// # Errors
    /// `model_format` when a merge does not join two tokens into a third.
    pub(super) fn new(
        splitter: &'static Splitter,
        texts: &[&str],
        roles: &[Role],
        merges: &[&str],
    ) -> Result<Self> {
        let mut ids = HashMap::with_capacity(texts.len());
        for (id, (text, role)) in (0_u32..).zip(texts.iter().zip(roles)) {
            // A text of its own may be one that merges make, too.
            if matches!(role, Role::Text | Role::Byte | Role::UserDefined) {
                ids.entry(*text).or_insert(id);
            }
        }
        let bytes =
            (0..=u8::MAX).map(|byte| ids.get(char_of(byte).encode_utf8(&mut [0; 4]) as &str).copied());
        let bytes = bytes.collect();
        let mut ranked = HashMap::with_capacity(merges.len());
        let mut joined = String::new();
        for (rank, merge) in (0_u32..).zip(merges) {
            let parts = merge.split_once(' ').and_then(|(left, right)| {
                joined.clear();
                joined.push_str(left);
                joined.push_str(right);
                Some(((*ids.get(left)?, *ids.get(right)?), *ids.get(joined.as_str())?))
            });
            let Some((pair, product)) = parts else {
                return Err(malformed(format!("merge {merge:?} does not join two tokens into a third")));
            };
            ranked.entry(pair).or_insert((rank, product));
        }
        let words = if splitter.takes_whole_words {
            ids.iter().map(|(text, id)| (bytes_of(text), *id)).collect()
        } else {
            HashMap::new()
        };
        Ok(Self { splitter, bytes, merges: ranked, words })
    }

    pub(super) fn encode(&self, text: &str, encoding: &mut Encoding) {
        for word in self.splitter.split(text) {
            if let Some(id) = self.words.get(word.as_bytes()) {
                encoding.ids.push(TokenId(*id));
            } else {
                self.encode_word(word.as_bytes(), encoding);
            }
        }
    }

    fn encode_word(&self, word: &[u8], encoding: &mut Encoding) {
        let mut symbols = Vec::with_capacity(word.len());
        for byte in word {
            match self.bytes[usize::from(*byte)] {
                Some(id) => symbols.push(id),
                None => encoding.dropped.push(*byte),
            }
        }
        self.merge(&mut symbols);
        encoding.ids.extend(symbols.into_iter().map(TokenId));
    }

    /// Joins neighbours, in time `n log n`, so that a very long word is no trap.
    fn merge(&self, symbols: &mut Vec<u32>) {
        let count = symbols.len();
        // Neighbours by index, where a joined symbol lives on in its left half.
        let mut next: Vec<usize> = (1..=count).collect();
        let mut previous: Vec<Option<usize>> = (0..count).map(|at| at.checked_sub(1)).collect();
        let mut alive = vec![true; count];
        let mut candidates = BinaryHeap::new();
        let consider = |symbols: &[u32], left: usize, right: usize, candidates: &mut BinaryHeap<_>| {
            if right < count
                && let Some((rank, _)) = self.merges.get(&(symbols[left], symbols[right]))
            {
                candidates.push(Reverse((*rank, left, right, symbols[left], symbols[right])));
            }
        };
        for left in 0..count.saturating_sub(1) {
            consider(symbols, left, left + 1, &mut candidates);
        }
        while let Some(Reverse((_, left, right, left_id, right_id))) = candidates.pop() {
            // Either may have been joined to another since.
            let current =
                alive[left] && next[left] == right && symbols[left] == left_id && symbols[right] == right_id;
            let Some((_, product)) = self.merges.get(&(left_id, right_id)).filter(|_| current) else {
                continue;
            };
            symbols[left] = *product;
            alive[right] = false;
            next[left] = next[right];
            if next[right] < count {
                previous[next[right]] = Some(left);
            }
            if let Some(before) = previous[left] {
                consider(symbols, before, left, &mut candidates);
            }
            consider(symbols, left, next[left], &mut candidates);
        }
        let mut keep = alive.into_iter();
        symbols.retain(|_| keep.next().unwrap_or(false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_own_character() {
        for byte in 0..=u8::MAX {
            assert_eq!(byte_of(char_of(byte)), Some(byte), "{byte:#04x}");
        }
        assert_eq!((char_of(b' '), char_of(b'\n'), char_of(b'a')), ('Ġ', 'Ċ', 'a'));
    }

    fn example() -> BytePairs {
        let texts = ["a", "b", "c", "ab", "bc", "abc", "abab"];
        let merges = ["b c", "a b", "ab c", "ab ab"];
        BytePairs::new(Splitter::named("gpt-2").unwrap(), &texts, &[Role::Text; 7], &merges).unwrap()
    }

    /// The definition: look at every pair, join the best, start again.
    fn merge_slowly(pairs: &BytePairs, symbols: &mut Vec<u32>) {
        loop {
            let ranks = symbols.windows(2).enumerate().filter_map(|(at, pair)| {
                pairs.merges.get(&(pair[0], pair[1])).map(|(rank, product)| (*rank, at, *product))
            });
            let Some((_, at, product)) = ranks.min() else { return };
            symbols.splice(at..at + 2, [product]);
        }
    }

    #[test]
    fn merges_in_the_order_they_were_learned() {
        let pairs = example();
        let mut encoding = Encoding::default();
        pairs.encode("abcabab", &mut encoding);
        assert_eq!(encoding.ids, [0, 4, 6].map(TokenId), "b c comes before a b");
        assert!(encoding.dropped.is_empty());
    }

    #[test]
    fn fast_merging_is_slow_merging() {
        let pairs = example();
        for code in 0..3_u32.pow(9) {
            let mut fast: Vec<u32> = (0..9).map(|digit| code / 3_u32.pow(digit) % 3).collect();
            let mut slow = fast.clone();
            pairs.merge(&mut fast);
            merge_slowly(&pairs, &mut slow);
            assert_eq!(fast, slow, "{code}");
        }
    }

    #[test]
    fn says_which_bytes_have_no_token() {
        let mut encoding = Encoding::default();
        example().encode("axb", &mut encoding);
        assert_eq!((encoding.ids, encoding.dropped), (vec![TokenId(3)], vec![b'x']));
    }

    #[test]
    fn a_text_of_its_own_may_be_made_by_merges() {
        let splitter = Splitter::named("gpt-2").unwrap();
        for (role, sound) in [(Role::UserDefined, true), (Role::Control, false)] {
            let roles = [Role::Text, Role::Text, role];
            let pairs = BytePairs::new(splitter, &["a", "b", "ab"], &roles, &["a b"]);
            assert_eq!(pairs.is_ok(), sound, "{role:?}");
        }
    }

    #[test]
    fn refuses_merges_that_lead_nowhere() {
        for merge in ["a d", "ab", "c c"] {
            let error = BytePairs::new(
                Splitter::named("gpt-2").unwrap(),
                &["a", "b", "c"],
                &[Role::Text; 3],
                &[merge],
            )
            .unwrap_err();
            assert!(error.message.contains(merge), "{error}");
        }
    }
}
