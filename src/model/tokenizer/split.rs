//! Cutting text into words before byte pairs are merged: what `tokenizer.ggml.pre` names.
//!
//! Each rule is a regular expression in the tokenizer's original definition, quoted above
//! the function that implements it by hand: the alternatives are tried in order at each
//! character, and each is as greedy as the expression. A regular expression engine with
//! Unicode classes would be larger than the rest of the crate.

use super::unicode::{is_letter, is_number, is_punctuation, is_space};

/// Which rules cut a text, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Splitter {
    /// GPT-2's expression.
    Gpt2,
    /// Each digit alone, then GPT-2's expression.
    Digits,
    /// Llama 3's expression: numbers of up to three digits.
    Llama3,
    /// As Llama 3's, without what else goes with that name: no BOS, no words taken whole.
    Threes,
    /// Qwen2's expression: as Llama 3's, but every digit alone.
    Qwen2,
    /// `DeepSeek` Coder's expressions: breaks of lines, letters, punctuation, characters of East Asia,
    /// every digit alone.
    DeepseekCoder,
    /// What a file means that says `default`: punctuation runs, GPT-2's, digits by threes.
    Default,
}

impl Splitter {
    /// The rules for a value of `tokenizer.ggml.pre`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "gpt-2" | "gpt2" | "phi-2" | "jina-es" | "jina-de" | "jina-v2-es" | "jina-v2-de"
            | "roberta-bpe" | "olmo" | "mpt" | "jais" | "gigachat" | "a.x-4.0" | "mellum" => Self::Gpt2,
            "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone" => Self::Digits,
            "llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "pixtral" | "midm-2.0" => Self::Llama3,
            "dbrx" | "smaug-bpe" => Self::Threes,
            "qwen2" | "deepseek-r1-qwen" | "stablelm2" | "megrez" | "kormo" => Self::Qwen2,
            "deepseek-coder" => Self::DeepseekCoder,
            "default" => Self::Default,
            _ => return None,
        })
    }

    /// Whether BOS is added when the file does not say.
    pub(super) fn adds_bos(self) -> bool {
        self == Self::Llama3
    }

    /// Whether a word that is a token is taken whole, whatever the merges say.
    pub(super) fn takes_whole_words(self) -> bool {
        self == Self::Llama3
    }

    /// The words of a text; together they are the text.
    pub(super) fn split(self, text: &str) -> Vec<&str> {
        match self {
            Self::Gpt2 => cut(vec![text], &gpt2),
            Self::Digits => cut(cut(vec![text], &digits), &gpt2),
            Self::Llama3 | Self::Threes => cut(vec![text], &|rest| llama3(rest, 3)),
            Self::Qwen2 => cut(vec![text], &|rest| llama3(rest, 1)),
            Self::DeepseekCoder => {
                let words = cut(cut(vec![text], &line_break), &|rest| spaced(rest, &is_letter));
                cut(cut(cut(words, &|rest| spaced(rest, &is_punctuation)), &east_asian), &digits)
            }
            Self::Default => {
                let words = cut(cut(vec![text], &punctuation), &gpt2);
                cut(cut(words, &numbers), &threes)
            }
        }
    }
}

/// Cuts every text into matches of `rule`, which gives the length of the match at the start
/// of what it is given (at least one character), and the stretches that it does not match.
fn cut<'a>(texts: Vec<&'a str>, rule: &dyn Fn(&str) -> Match) -> Vec<&'a str> {
    let mut words = Vec::new();
    for text in texts {
        let (mut start, mut at) = (0, 0);
        while at < text.len() {
            match rule(&text[at..]) {
                Match::None(skip) => at += skip,
                Match::Word(length) => {
                    if start < at {
                        words.push(&text[start..at]);
                    }
                    words.push(&text[at..at + length]);
                    at += length;
                    start = at;
                }
            }
        }
        if start < text.len() {
            words.push(&text[start..]);
        }
    }
    words
}

/// What a rule found at the start of a text, in bytes.
enum Match {
    Word(usize),
    /// Nothing; the number of bytes of the first character.
    None(usize),
}

fn first(text: &str) -> Option<char> {
    text.chars().next()
}

/// The length in bytes of the longest start of `text` whose characters all satisfy `accepts`.
fn run(text: &str, accepts: &dyn Fn(char) -> bool) -> usize {
    text.find(|c| !accepts(c)).unwrap_or(text.len())
}

fn word_or_skip(text: &str, length: usize) -> Match {
    if length > 0 { Match::Word(length) } else { Match::None(first(text).map_or(1, char::len_utf8)) }
}

/// `[\r\n]`
fn line_break(text: &str) -> Match {
    word_or_skip(text, usize::from(text.starts_with(['\r', '\n'])))
}

/// `\s?X+`, where `accepts` tells what is X
fn spaced(text: &str, accepts: &dyn Fn(char) -> bool) -> Match {
    let space = first(text).filter(|c| is_space(*c)).map_or(0, char::len_utf8);
    let length = run(&text[space..], accepts);
    word_or_skip(text, if length > 0 { space + length } else { 0 })
}

/// `[一-龥ࠀ-一가-퟿]+`, which holds some rare spaces, such as U+2028, that llama.cpp leaves out
fn east_asian(text: &str) -> Match {
    word_or_skip(text, run(text, &|c| matches!(c, '\u{800}'..='\u{9fa5}' | '\u{ac00}'..='\u{d7ff}')))
}

/// `\p{N}`
fn digits(text: &str) -> Match {
    match first(text) {
        Some(c) if is_number(c) => Match::Word(c.len_utf8()),
        _ => word_or_skip(text, 0),
    }
}

/// `\p{N}+`
fn numbers(text: &str) -> Match {
    word_or_skip(text, run(text, &is_number))
}

/// `[0-9][0-9][0-9]`
fn threes(text: &str) -> Match {
    let three = text.len() >= 3 && text.as_bytes()[..3].iter().all(u8::is_ascii_digit);
    word_or_skip(text, if three { 3 } else { 0 })
}

/// `[\p{P}\$\+<=>\^~\|]+`
fn punctuation(text: &str) -> Match {
    word_or_skip(text, run(text, &|c| is_punctuation(c) || "$+<=>^~|".contains(c)))
}

fn is_other(c: char) -> bool {
    !is_space(c) && !is_letter(c) && !is_number(c)
}

/// `'s|'t|'re|'ve|'m|'ll|'d`
fn contraction(text: &str, any_case: bool) -> usize {
    let bytes = text.as_bytes();
    ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"]
        .into_iter()
        .find(|ending| {
            bytes.get(..ending.len()).is_some_and(|start| {
                if any_case {
                    start.eq_ignore_ascii_case(ending.as_bytes())
                } else {
                    start == ending.as_bytes()
                }
            })
        })
        .map_or(0, str::len)
}

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
fn gpt2(text: &str) -> Match {
    let ending = contraction(text, false);
    if ending > 0 {
        return Match::Word(ending);
    }
    let space = usize::from(text.starts_with(' '));
    for class in [is_letter, is_number, is_other] {
        let length = run(&text[space..], &class);
        if length > 0 {
            return Match::Word(space + length);
        }
    }
    Match::Word(spaces(text))
}

/// `\s+(?!\S)|\s+`: all but the last of a run of spaces, unless it is alone or ends the text.
fn spaces(text: &str) -> usize {
    let length = run(text, &is_space);
    let last = text[..length].chars().next_back().map_or(0, char::len_utf8);
    if length < text.len() && length > last { length - last } else { length }
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
fn llama3(text: &str, most_digits: usize) -> Match {
    let ending = contraction(text, true);
    if ending > 0 {
        return Match::Word(ending);
    }
    let lead = match first(text) {
        Some(c) if !matches!(c, '\r' | '\n') && !is_letter(c) && !is_number(c) => c.len_utf8(),
        _ => 0,
    };
    let letters = run(&text[lead..], &is_letter);
    if letters > 0 {
        return Match::Word(lead + letters);
    }
    let number: usize =
        text.chars().take(most_digits).take_while(|c| is_number(*c)).map(char::len_utf8).sum();
    if number > 0 {
        return Match::Word(number);
    }
    let space = usize::from(text.starts_with(' '));
    let other = run(&text[space..], &is_other);
    if other > 0 {
        let length = space + other;
        return Match::Word(length + run(&text[length..], &|c| matches!(c, '\r' | '\n')));
    }
    let blank = run(text, &is_space);
    match text[..blank].rfind(['\r', '\n']) {
        Some(last) => Match::Word(last + 1),
        None => Match::Word(spaces(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpt2_keeps_the_space_with_the_word() {
        let words = Splitter::Gpt2.split("Hello  world, it's 123\n\n x ");
        assert_eq!(words, ["Hello", " ", " world", ",", " it", "'s", " 123", "\n\n", " x", " "]);
    }

    #[test]
    fn digits_stand_alone() {
        assert_eq!(Splitter::Digits.split("a 12 b"), ["a", " ", "1", "2", " b"]);
    }

    #[test]
    fn llama3_takes_three_digits_and_newlines_after_punctuation() {
        let words = Splitter::Llama3.split("It'S 12345!\n\n  y\t\tz");
        assert_eq!(words, ["It", "'S", " ", "123", "45", "!\n\n", " ", " y", "\t", "\tz"]);
        assert_eq!(Splitter::Qwen2.split("12 \n \n  a"), ["1", "2", " \n \n", " ", " a"]);
    }

    #[test]
    fn the_reference_lists_names_that_are_known() {
        let reference = include_str!("../../../docs/models.md");
        let (_, list) = reference.split_once("| expression | names |").expect("the table");
        let rows = list.lines().skip(2).take_while(|line| line.starts_with('|'));
        let names: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
        assert_eq!(names.len(), 35);
        for name in names {
            assert!(Splitter::named(name).is_some(), "{name}");
        }
    }

    #[test]
    fn only_llama3_itself_implies_more_than_its_expression() {
        for name in ["dbrx", "smaug-bpe"] {
            let splitter = Splitter::named(name).unwrap();
            assert_eq!(splitter.split("a 1234"), Splitter::Llama3.split("a 1234"));
            assert!(!splitter.adds_bos() && !splitter.takes_whole_words(), "{name}");
        }
    }

    #[test]
    fn deepseek_coder_takes_a_space_to_what_follows() {
        let words = Splitter::DeepseekCoder.split("if x  == 12:\r\n\t# 日本, 한국");
        let expected = ["if", " x", "  == ", "1", "2", ":", "\r", "\n", "\t#", " ", "日本", ",", " ", "한국"];
        assert_eq!(words, expected);
    }

    #[test]
    fn default_cuts_punctuation_first() {
        assert_eq!(Splitter::Default.split("a+b 12345"), ["a", "+", "b", " ", "123", "45"]);
    }

    /// Made by `tests/tokenizers/generate.py`.
    #[test]
    fn words_are_those_of_the_regular_expressions() {
        let file = include_str!("../../../tests/tokenizers/splits.json");
        let file: serde_json::Value = serde_json::from_str(file).unwrap();
        let texts: Vec<String> = serde_json::from_value(file["texts"].clone()).unwrap();
        let mut failures = Vec::new();
        let mut ran = 0;
        for (name, words) in file["words"].as_object().unwrap() {
            let words: Vec<Vec<String>> = serde_json::from_value(words.clone()).unwrap();
            for (text, words) in texts.iter().zip(words) {
                let have = Splitter::named(name).unwrap().split(text);
                if have != words {
                    failures.push(format!("{name}: {have:?} instead of {words:?}"));
                }
                ran += 1;
            }
        }
        assert_eq!(ran, 5 * 22);
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }

    #[test]
    fn words_together_are_the_text() {
        let text = "  naïve\u{a0}\u{3000}१२३ 👨‍👩‍👧 e\u{301}\r\n'll";
        for splitter in [
            Splitter::Gpt2,
            Splitter::Digits,
            Splitter::Llama3,
            Splitter::Qwen2,
            Splitter::DeepseekCoder,
            Splitter::Default,
        ] {
            assert_eq!(splitter.split(text).concat(), text, "{splitter:?}");
        }
    }
}
