//! Cutting text into words before byte pairs are merged: what `tokenizer.ggml.pre` names.
//!
//! [`KNOWN`] says which rules a name stands for. Each rule is a regular expression in the
//! tokenizer's original definition, quoted at the function that implements it by hand: the
//! alternatives are tried in order at each character, and each is as greedy as the expression. A
//! regular expression engine with Unicode classes would be larger than the rest of the crate.
//!
//! Source of the names: llama.cpp, which gives them to the files that it writes.

use super::{
    classes::{
        Class, DEEPSEEK_LETTERS, DEEPSEEK_SIGNS, EAST_ASIAN, HAN_AND_KANA, LINE_BREAKS, NEWLINES, is_head,
        is_letter_or_mark, is_other, is_sign, is_tail,
    },
    unicode::{is_letter, is_mark, is_number, is_space},
};

/// What a value of `tokenizer.ggml.pre` means.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Splitter {
    names: &'static [&'static str],
    /// They cut the text one after the other.
    rules: &'static [Rule],
    /// Whether BOS is added when the file does not say.
    pub(super) adds_bos: bool,
    /// Whether a word that is a token is taken whole, whatever the merges say.
    pub(super) takes_whole_words: bool,
}

/// Cuts every text into what it matches and the stretches between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// `X{1,most}`, with a character before it that is one of `before`.
    Run { before: Before, class: Class, most: usize },
    /// `[0-9][0-9][0-9]`
    Threes,
    /// `\s+$`
    Trailing,
    /// GPT-2's expression.
    Gpt2,
    /// Llama 3's expression and its kin.
    Words(Words),
    /// `DeepSeek` V3's expression.
    Signs,
}

/// What a run of characters takes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// ` ?`
    Blank,
    /// `\s?`
    Space,
}

/// In what Llama 3's expression and its kin differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Words {
    /// Where `(?i:'s|'t|'re|'ve|'m|'ll|'d)` is cut off.
    contractions: Contractions,
    /// What stands for `\p{L}+`.
    letters: Letters,
    /// Numbers that stay together.
    digits: usize,
    /// What goes with the punctuation before it.
    after: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contractions {
    Apart,
    WithTheWord,
    NotAtAll,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letters {
    /// `\p{L}+`
    Plain,
    /// `[\p{L}\p{M}]+`; marks are no punctuation then.
    Marked,
    /// Capitals, then small letters: a capital begins a word.
    Cased,
}

const MANY: usize = usize::MAX;

const fn run(class: Class, most: usize) -> Rule {
    Rule::Run { before: Before::Nothing, class, most }
}

const fn spaced(class: Class) -> Rule {
    Rule::Run { before: Before::Space, class, most: MANY }
}

const EVERY_NUMBER: Rule = run(Class::Numbers, 1);

/// ` ?[^(\s|.,!?…。，、।۔،)]+`
const CLAUSES: Rule =
    Rule::Run { before: Before::Blank, class: Class::Beside("(|.,!?…。，、।۔،)"), most: MANY };

const LLAMA3: Words =
    Words { contractions: Contractions::Apart, letters: Letters::Plain, digits: 3, after: "\r\n" };
const QWEN2: Words = Words { digits: 1, ..LLAMA3 };
const GPT4O: Words =
    Words { contractions: Contractions::WithTheWord, letters: Letters::Cased, digits: 3, after: "\r\n/" };
const TEKKEN: Words = Words { contractions: Contractions::NotAtAll, digits: 1, ..GPT4O };

/// A kind of tokenizer that implies nothing else.
const fn known(names: &'static [&'static str], rules: &'static [Rule]) -> Splitter {
    Splitter { names, rules, adds_bos: false, takes_whole_words: false }
}

/// Every value of `tokenizer.ggml.pre` that is understood.
const KNOWN: &[Splitter] = &[
    known(
        &[
            "gpt-2",
            "gpt2",
            "phi-2",
            "jina-es",
            "jina-de",
            "jina-v2-es",
            "jina-v2-de",
            "jina-v1-en",
            "jina-v2-code",
            "roberta-bpe",
            "modern-bert",
            "olmo",
            "mpt",
            "jais",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "exaone4",
            "trillion",
            "granite-docling",
        ],
        &[Rule::Gpt2],
    ),
    known(
        &["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"],
        &[EVERY_NUMBER, Rule::Gpt2],
    ),
    Splitter {
        adds_bos: true,
        takes_whole_words: true,
        ..known(
            &[
                "llama3",
                "llama-v3",
                "llama-bpe",
                "falcon3",
                "falcon-h1",
                "pixtral",
                "midm-2.0",
                "lfm2",
                "jina-v5-nano",
            ],
            &[Rule::Words(LLAMA3)],
        )
    },
    // As Llama 3's, without what else goes with that name.
    known(&["dbrx", "smaug-bpe", "glm4", "chatglm-bpe"], &[Rule::Words(LLAMA3)]),
    Splitter {
        takes_whole_words: true,
        ..known(&["minicpm5"], &[run(Class::Numbers, 3), Rule::Words(Words { digits: MANY, ..LLAMA3 })])
    },
    known(
        &[
            "qwen2",
            "deepseek-r1-qwen",
            "stablelm2",
            "megrez",
            "kormo",
            "f2llmv2",
            "hunyuan",
            "solar-open",
            "grok-2",
            "bailingmoe",
            "bailingmoe2",
            "llada-moe",
        ],
        &[Rule::Words(QWEN2)],
    ),
    known(&["qwen35"], &[Rule::Words(Words { letters: Letters::Marked, ..QWEN2 })]),
    known(&["seed-coder"], &[Rule::Words(Words { after: "", ..QWEN2 })]),
    known(&["ufakzeka"], &[Rule::Words(Words { contractions: Contractions::NotAtAll, ..QWEN2 })]),
    known(&["laguna"], &[run(NEWLINES, MANY), Rule::Words(QWEN2)]),
    known(&["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"], &[Rule::Words(GPT4O)]),
    Splitter { adds_bos: true, takes_whole_words: true, ..known(&["tekken"], &[Rule::Words(TEKKEN)]) },
    known(
        &["deepseek-llm"],
        &[
            run(LINE_BREAKS, 1),
            spaced(DEEPSEEK_LETTERS),
            spaced(DEEPSEEK_SIGNS),
            Rule::Trailing,
            run(EAST_ASIAN, MANY),
            run(Class::Numbers, MANY),
        ],
    ),
    known(
        &["deepseek-coder"],
        &[
            run(LINE_BREAKS, 1),
            spaced(Class::Letters),
            spaced(Class::Punctuation),
            run(EAST_ASIAN, MANY),
            EVERY_NUMBER,
        ],
    ),
    known(
        &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        &[run(Class::Numbers, 3), run(HAN_AND_KANA, MANY), Rule::Signs],
    ),
    known(
        &["falcon"],
        &[run(Class::PunctuationAnd("$+<=>^~|`"), MANY), Rule::Gpt2, run(Class::Numbers, MANY), Rule::Threes],
    ),
    known(&["bloom", "gpt3-finnish", "poro-chat"], &[CLAUSES]),
    known(&["viking"], &[CLAUSES, EVERY_NUMBER]),
    // What a file means that names none.
    known(
        &["default"],
        &[run(Class::PunctuationAnd("$+<=>^~|"), MANY), Rule::Gpt2, run(Class::Numbers, MANY), Rule::Threes],
    ),
];

impl Splitter {
    /// What a value of `tokenizer.ggml.pre` means, if it is understood.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.names.contains(&name))
    }

    /// The words of a text; together they are the text.
    pub(super) fn split<'a>(&self, text: &'a str) -> Vec<&'a str> {
        self.rules.iter().fold(vec![text], |texts, rule| match rule {
            Rule::Trailing => cut_trailing(&texts),
            Rule::Run { before, class, most } => cut(&texts, |rest| run_at(rest, *before, *class, *most)),
            Rule::Threes => cut(&texts, threes),
            Rule::Gpt2 => cut(&texts, gpt2),
            Rule::Words(words) => cut(&texts, |rest| words.match_at(rest)),
            Rule::Signs => cut(&texts, signs),
        })
    }
}

/// The texts with the white space at the end of each apart.
fn cut_trailing<'a>(texts: &[&'a str]) -> Vec<&'a str> {
    let parts =
        texts.iter().flat_map(|text| <[&str; 2]>::from(text.split_at(text.trim_end_matches(is_space).len())));
    parts.filter(|part| !part.is_empty()).collect()
}

/// The stretches of texts that a rule matches and those between; `match_at` tells how many bytes
/// match at the start of what it is given.
fn cut<'a>(texts: &[&'a str], match_at: impl Fn(&str) -> usize) -> Vec<&'a str> {
    let mut words = Vec::new();
    for &text in texts {
        let (mut start, mut at) = (0, 0);
        while at < text.len() {
            let length = match_at(&text[at..]);
            if length == 0 {
                at += first(&text[at..]).map_or(1, char::len_utf8);
                continue;
            }
            if start < at {
                words.push(&text[start..at]);
            }
            words.push(&text[at..at + length]);
            at += length;
            start = at;
        }
        if start < text.len() {
            words.push(&text[start..]);
        }
    }
    words
}

fn first(text: &str) -> Option<char> {
    text.chars().next()
}

/// The length in bytes of the longest start of `text` whose characters all satisfy `accepts`.
fn length(text: &str, accepts: &dyn Fn(char) -> bool) -> usize {
    text.find(|c| !accepts(c)).unwrap_or(text.len())
}

/// As [`length`], of at most so many characters.
fn bounded(text: &str, most: usize, accepts: &dyn Fn(char) -> bool) -> usize {
    text.chars().take(most).take_while(|c| accepts(*c)).map(char::len_utf8).sum()
}

/// What `matches` finds after an optional `lead`, that included; without the lead if nothing.
fn after(text: &str, lead: usize, matches: impl Fn(&str) -> usize) -> usize {
    match matches(&text[lead..]) {
        0 if lead > 0 => matches(text),
        0 => 0,
        length => lead + length,
    }
}

fn run_at(text: &str, before: Before, class: Class, most: usize) -> usize {
    let lead = match (before, first(text)) {
        (Before::Blank, Some(' ')) => 1,
        (Before::Space, Some(c)) if is_space(c) => c.len_utf8(),
        _ => 0,
    };
    after(text, lead, |rest| bounded(rest, most, &|c| class.contains(c)))
}

/// `[0-9][0-9][0-9]`
fn threes(text: &str) -> usize {
    let three = text.len() >= 3 && text.as_bytes()[..3].iter().all(u8::is_ascii_digit);
    if three { 3 } else { 0 }
}

/// `'s|'t|'re|'ve|'m|'ll|'d`
fn contraction(text: &str, any_case: bool) -> usize {
    // The long s, which is an s in another case.
    if any_case && text.starts_with("'\u{17f}") {
        return 3;
    }
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
fn gpt2(text: &str) -> usize {
    let ending = contraction(text, false);
    if ending > 0 {
        return ending;
    }
    let blank = usize::from(text.starts_with(' '));
    for class in [is_letter, is_number, is_other] {
        let length = length(&text[blank..], &class);
        if length > 0 {
            return blank + length;
        }
    }
    spaces(text)
}

/// `\s+(?!\S)|\s+`: all but the last of a run of spaces, unless it is alone or ends the text.
fn spaces(text: &str) -> usize {
    let length = length(text, &is_space);
    let last = text[..length].chars().next_back().map_or(0, char::len_utf8);
    if length < text.len() && length > last { length - last } else { length }
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+`
fn lines_or_spaces(text: &str) -> usize {
    let blank = length(text, &is_space);
    text[..blank].rfind(['\r', '\n']).map_or_else(|| spaces(text), |last| last + 1)
}

/// ` ?X+[…]*`, where `accepts` tells what is X, and `more` lists what may come after it
fn with_more(text: &str, accepts: &dyn Fn(char) -> bool, more: &str) -> usize {
    let blank = usize::from(text.starts_with(' '));
    match length(&text[blank..], accepts) {
        0 => 0,
        some => blank + some + length(&text[blank + some..], &|c| more.contains(c)),
    }
}

/// `[!-/:-@\[-\x60{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*`, then
/// [`lines_or_spaces`]
fn signs(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_punctuation()) {
        let letters = length(&text[1..], &|c| c.is_ascii_alphabetic());
        if letters > 0 {
            return 1 + letters;
        }
    }
    let lead = first(text)
        .filter(|c| !matches!(c, '\r' | '\n') && !is_letter(*c) && !is_sign(*c))
        .map_or(0, char::len_utf8);
    let word = after(text, lead, |rest| length(rest, &is_letter_or_mark));
    if word > 0 {
        return word;
    }
    match with_more(text, &is_sign, "\r\n") {
        0 => lines_or_spaces(text),
        some => some,
    }
}

impl Words {
    /// Llama 3's:
    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*`,
    /// then [`lines_or_spaces`]
    fn match_at(self, text: &str) -> usize {
        if self.contractions == Contractions::Apart {
            let ending = contraction(text, true);
            if ending > 0 {
                return ending;
            }
        }
        let lead = first(text)
            .filter(|c| !matches!(c, '\r' | '\n') && !is_letter(*c) && !is_number(*c))
            .map_or(0, char::len_utf8);
        let word = match self.letters {
            Letters::Plain => after(text, lead, |rest| length(rest, &is_letter)),
            Letters::Marked => after(text, lead, |rest| length(rest, &is_letter_or_mark)),
            Letters::Cased => match after(text, lead, capitals_and_small) {
                0 => after(text, lead, capitals),
                word => word,
            },
        };
        if word > 0 {
            return match self.contractions {
                Contractions::WithTheWord => word + contraction(&text[word..], true),
                _ => word,
            };
        }
        let number = bounded(text, self.digits, &is_number);
        if number > 0 {
            return number;
        }
        let marks = self.letters == Letters::Marked;
        match with_more(text, &|c| is_other(c) && !(marks && is_mark(c)), self.after) {
            0 => lines_or_spaces(text),
            some => some,
        }
    }
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
fn capitals_and_small(text: &str) -> usize {
    let head = length(text, &is_head);
    let tail = length(&text[head..], &is_tail);
    if tail > 0 {
        return head + tail;
    }
    // What is no capital may be the small one after those before it.
    text[..head].rfind(is_tail).map_or(0, |at| at + first(&text[at..]).map_or(0, char::len_utf8))
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`, where no small letter follows
fn capitals(text: &str) -> usize {
    length(text, &is_head)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn words<'a>(name: &str, text: &'a str) -> Vec<&'a str> {
        Splitter::named(name).unwrap().split(text)
    }

    #[test]
    fn gpt2_keeps_the_space_with_the_word() {
        let have = words("gpt-2", "Hello  world, it's 123\n\n x ");
        assert_eq!(have, ["Hello", " ", " world", ",", " it", "'s", " 123", "\n\n", " x", " "]);
    }

    #[test]
    fn digits_stand_alone() {
        assert_eq!(words("smollm", "a 12 b"), ["a", " ", "1", "2", " b"]);
    }

    #[test]
    fn llama3_takes_three_digits_and_newlines_after_punctuation() {
        let have = words("llama3", "It'S 12345!\n\n  y\t\tz");
        assert_eq!(have, ["It", "'S", " ", "123", "45", "!\n\n", " ", " y", "\t", "\tz"]);
        assert_eq!(words("qwen2", "12 \n \n  a"), ["1", "2", " \n \n", " ", " a"]);
    }

    #[test]
    fn the_reference_lists_the_names_that_are_known() {
        let reference = include_str!("../../../docs/models.md");
        let (_, list) = reference.split_once("| expression | names |").expect("the table");
        let rows = list.lines().skip(2).take_while(|line| line.starts_with('|'));
        let mut listed: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
        let mut names: Vec<&str> = KNOWN.iter().flat_map(|kind| kind.names).copied().collect();
        listed.sort_unstable();
        names.sort_unstable();
        assert_eq!(listed, names);
        names.dedup();
        assert_eq!(names.len(), listed.len(), "a name means one thing");
    }

    #[test]
    fn only_llama3_itself_implies_more_than_its_expression() {
        for name in ["dbrx", "smaug-bpe", "glm4"] {
            let splitter = Splitter::named(name).unwrap();
            assert_eq!(splitter.split("a 1234"), words("llama3", "a 1234"));
            assert!(!splitter.adds_bos && !splitter.takes_whole_words, "{name}");
        }
    }

    #[test]
    fn deepseek_coder_takes_a_space_to_what_follows() {
        let have = words("deepseek-coder", "if x  == 12:\r\n\t# 日本, 한국");
        let expected = ["if", " x", "  == ", "1", "2", ":", "\r", "\n", "\t#", " ", "日本", ",", " ", "한국"];
        assert_eq!(have, expected);
    }

    #[test]
    fn capitals_begin_words_of_gpt4o() {
        let text = "HTTPServer isn'T 12345 /\n/x 日A";
        let have = words("gpt-4o", text);
        assert_eq!(have, ["HTTPServer", " isn'T", " ", "123", "45", " /\n/", "x", " 日", "A"]);
        let have = words("tekken", text);
        assert_eq!(
            have,
            ["HTTPServer", " isn", "'T", " ", "1", "2", "3", "4", "5", " /\n/", "x", " 日", "A"]
        );
        assert_eq!(words("gpt-4o", "camelCase"), ["camel", "Case"]);
    }

    #[test]
    fn long_runs_take_no_long() {
        // Quadratic time would be minutes.
        for run in [" ", "A", "日", "'", "\u{301}", "\n", "1", "x\u{301}"] {
            let text = format!("{}!", run.repeat(20_000));
            for kind in KNOWN {
                assert_eq!(kind.split(&text).concat().len(), text.len(), "{:?}", kind.names);
            }
        }
    }

    #[test]
    fn default_cuts_punctuation_first() {
        assert_eq!(words("default", "a+b 12345"), ["a", "+", "b", " ", "123", "45"]);
    }

    /// Made by `tests/tokenizers/generate.py`.
    #[test]
    fn words_are_those_of_the_regular_expressions() {
        let file = include_str!("../../../tests/tokenizers/splits.json");
        let file: serde_json::Value = serde_json::from_str(file).unwrap();
        let texts: Vec<String> = serde_json::from_value(file["texts"].clone()).unwrap();
        let rules: BTreeMap<String, Vec<Vec<usize>>> =
            serde_json::from_value(file["lengths"].clone()).unwrap();
        let mut failures = Vec::new();
        for (name, lengths) in &rules {
            assert_eq!(lengths.len(), texts.len());
            for (text, lengths) in texts.iter().zip(lengths) {
                let have = words(name, text);
                if !have.iter().map(|word| word.chars().count()).eq(lengths.iter().copied()) {
                    failures.push(format!("{name}: {have:?} instead of {lengths:?}"));
                }
            }
        }
        assert!(failures.is_empty(), "{} of\n{}", failures.len(), failures.join("\n"));
        assert_eq!((rules.len(), texts.len()), (19, 102));
    }

    #[test]
    fn every_kind_is_compared_with_its_expressions() {
        let file = include_str!("../../../tests/tokenizers/splits.json");
        let file: serde_json::Value = serde_json::from_str(file).unwrap();
        let compared: Vec<&str> = file["lengths"].as_object().unwrap().keys().map(String::as_str).collect();
        for kind in KNOWN {
            let same = |name: &&str| Splitter::named(name).unwrap().rules == kind.rules;
            assert!(compared.iter().any(same), "{:?}", kind.names);
        }
    }

    #[test]
    fn words_together_are_the_text() {
        let text = "  naïve\u{a0}\u{3000}१२३ 👨‍👩‍👧 e\u{301}\r\n'll";
        for splitter in KNOWN {
            assert_eq!(splitter.split(text).concat(), text, "{splitter:?}");
        }
    }
}
