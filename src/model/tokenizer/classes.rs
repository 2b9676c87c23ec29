//! Sets of characters that pre-tokenizers make runs of.

use super::unicode::{
    contains, is_letter, is_lowercase, is_mark, is_number, is_punctuation, is_space, is_symbol, is_uppercase,
};

/// A set of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// `\p{L}`
    Letters,
    /// `\p{N}`
    Numbers,
    /// `\p{P}`
    Punctuation,
    /// `\p{P}` and these.
    PunctuationAnd(&'static str),
    /// Neither white space nor any of these.
    Beside(&'static str),
    /// Inclusive ranges, in order.
    Ranges(&'static [(char, char)]),
}

impl Class {
    pub(super) fn contains(self, c: char) -> bool {
        match self {
            Self::Letters => is_letter(c),
            Self::Numbers => is_number(c),
            Self::Punctuation => is_punctuation(c),
            Self::PunctuationAnd(more) => is_punctuation(c) || more.contains(c),
            Self::Beside(these) => !is_space(c) && !these.contains(c),
            Self::Ranges(ranges) => contains(ranges, c),
        }
    }
}

/// Neither white space, letter nor number.
pub(super) fn is_other(c: char) -> bool {
    !is_space(c) && !is_letter(c) && !is_number(c)
}

/// `[\p{L}\p{M}]`
pub(super) fn is_letter_or_mark(c: char) -> bool {
    is_letter(c) || is_mark(c)
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`: what may stand before the small letters of a word.
pub(super) fn is_head(c: char) -> bool {
    is_letter_or_mark(c) && !is_lowercase(c)
}

/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`: what may stand after the capitals of a word.
pub(super) fn is_tail(c: char) -> bool {
    is_letter_or_mark(c) && !is_uppercase(c)
}

/// `[\p{P}\p{S}]`
pub(super) fn is_sign(c: char) -> bool {
    is_punctuation(c) || is_symbol(c)
}

/// `[\r\n]`
pub(super) const LINE_BREAKS: Class = Class::Ranges(&[('\n', '\n'), ('\r', '\r')]);

/// `[\n]`
pub(super) const NEWLINES: Class = Class::Ranges(&[('\n', '\n')]);

/// `[一-龥ࠀ-一가-퟿]`, which holds some rare spaces, such as U+2028, that llama.cpp leaves out
pub(super) const EAST_ASIAN: Class = Class::Ranges(&[('\u{800}', '\u{9fa5}'), ('\u{ac00}', '\u{d7ff}')]);

/// `[一-龥぀-ゟ゠-ヿ]`
pub(super) const HAN_AND_KANA: Class = Class::Ranges(&[('\u{3040}', '\u{30ff}'), ('\u{4e00}', '\u{9fa5}')]);

/// `[!-/:-~！-／：-～‘-‟　-。]`
pub(super) const DEEPSEEK_SIGNS: Class = Class::Ranges(&[
    ('!', '/'),
    (':', '~'),
    ('\u{2018}', '\u{201f}'),
    ('\u{3000}', '\u{3002}'),
    ('\u{ff01}', '\u{ff0f}'),
    ('\u{ff1a}', '\u{ff5e}'),
]);

/// The cased letters that the expressions of `DeepSeek` LLM list one by one. Some are missing, such as
/// Armenian small ones.
#[rustfmt::skip]
pub(super) const DEEPSEEK_LETTERS: Class = Class::Ranges(&[
    ('A', 'Z'), ('a', 'z'), ('\u{b5}', '\u{b5}'), ('\u{c0}', '\u{d6}'),
    ('\u{d8}', '\u{f6}'), ('\u{f8}', '\u{1ba}'), ('\u{1bc}', '\u{1bf}'), ('\u{1c4}', '\u{293}'),
    ('\u{295}', '\u{2af}'), ('\u{370}', '\u{373}'), ('\u{376}', '\u{376}'), ('\u{377}', '\u{377}'),
    ('\u{37b}', '\u{37d}'), ('\u{37f}', '\u{37f}'), ('\u{386}', '\u{386}'), ('\u{388}', '\u{38a}'),
    ('\u{38c}', '\u{38c}'), ('\u{38e}', '\u{3a1}'), ('\u{3a3}', '\u{3f5}'), ('\u{3f7}', '\u{481}'),
    ('\u{48a}', '\u{52f}'), ('\u{531}', '\u{556}'), ('\u{10a0}', '\u{10c5}'), ('\u{13a0}', '\u{13f5}'),
    ('\u{13f8}', '\u{13fd}'), ('\u{1c90}', '\u{1cba}'), ('\u{1cbd}', '\u{1cbf}'), ('\u{1d00}', '\u{1d2b}'),
    ('\u{1d6b}', '\u{1d77}'), ('\u{1d79}', '\u{1d9a}'), ('\u{1e00}', '\u{1f15}'), ('\u{1f18}', '\u{1f1d}'),
    ('\u{1f20}', '\u{1f45}'), ('\u{1f48}', '\u{1f4d}'), ('\u{1f50}', '\u{1f57}'), ('\u{1f59}', '\u{1f59}'),
    ('\u{1f5b}', '\u{1f5b}'), ('\u{1f5d}', '\u{1f5d}'), ('\u{1f5f}', '\u{1f7d}'), ('\u{1f80}', '\u{1fb4}'),
    ('\u{1fb6}', '\u{1fbc}'), ('\u{1fbe}', '\u{1fbe}'), ('\u{1fc2}', '\u{1fc4}'), ('\u{1fc6}', '\u{1fcc}'),
    ('\u{1fd0}', '\u{1fd3}'), ('\u{1fd6}', '\u{1fdb}'), ('\u{1fe0}', '\u{1fec}'), ('\u{1ff2}', '\u{1ff4}'),
    ('\u{1ff6}', '\u{1ffc}'), ('\u{2102}', '\u{2102}'), ('\u{2107}', '\u{2107}'), ('\u{210a}', '\u{2113}'),
    ('\u{2115}', '\u{2115}'), ('\u{2119}', '\u{211d}'), ('\u{2124}', '\u{2124}'), ('\u{2126}', '\u{2126}'),
    ('\u{2128}', '\u{2128}'), ('\u{212a}', '\u{212d}'), ('\u{212f}', '\u{2134}'), ('\u{2139}', '\u{2139}'),
    ('\u{213c}', '\u{213f}'), ('\u{2145}', '\u{2149}'), ('\u{214e}', '\u{214e}'), ('\u{2183}', '\u{2183}'),
    ('\u{2184}', '\u{2184}'), ('\u{2c00}', '\u{2c7b}'), ('\u{2c7e}', '\u{2ce4}'), ('\u{2ceb}', '\u{2cee}'),
    ('\u{2cf2}', '\u{2cf2}'), ('\u{2cf3}', '\u{2cf3}'), ('\u{a640}', '\u{a66d}'), ('\u{a680}', '\u{a69b}'),
    ('\u{a722}', '\u{a76f}'), ('\u{a771}', '\u{a787}'), ('\u{a78b}', '\u{a78e}'), ('\u{ab70}', '\u{abbf}'),
    ('\u{fb00}', '\u{fb06}'), ('\u{fb13}', '\u{fb17}'), ('\u{ff21}', '\u{ff3a}'), ('\u{ff41}', '\u{ff5a}'),
    ('\u{10400}', '\u{1044f}'), ('\u{104b0}', '\u{104d3}'), ('\u{104d8}', '\u{104fb}'), ('\u{10c80}', '\u{10cb2}'),
    ('\u{10cc0}', '\u{10cf2}'), ('\u{118a0}', '\u{118df}'), ('\u{1e900}', '\u{1e943}'),
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_in_order() {
        for class in [LINE_BREAKS, EAST_ASIAN, HAN_AND_KANA, DEEPSEEK_SIGNS, DEEPSEEK_LETTERS] {
            let Class::Ranges(ranges) = class else { panic!("{class:?}") };
            assert!(ranges.iter().all(|(from, to)| from <= to));
            assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{class:?}");
        }
    }

    #[test]
    fn heads_and_tails_share_what_has_no_case() {
        for (c, head, tail) in [
            ('A', true, false),
            ('a', false, true),
            ('ǅ', true, false),
            ('ª', true, true),
            ('日', true, true),
        ] {
            assert_eq!((is_head(c), is_tail(c)), (head, tail), "{c}");
        }
        assert!(is_head('\u{301}') && is_tail('\u{301}') && !is_head('Ⅷ') && !is_tail('ⅷ'));
    }
}
