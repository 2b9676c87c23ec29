//! The Unicode classes that pre-tokenizers ask for: `\p{L}`, `\p{N}`, `\p{P}` and `\s`.
//!
//! Numbers and white space are those of the standard library, which has just these
//! classes. Letters and punctuation are tables, because `char::is_alphabetic` is a larger
//! class. The tables are generated and held to `regex-syntax` by the test below.

mod tables;

use std::cmp::Ordering;

/// `\p{L}`
pub(super) fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { contains(tables::LETTERS, c) }
}

/// `\p{N}`
pub(super) fn is_number(c: char) -> bool {
    c.is_numeric()
}

/// `\p{P}`
pub(super) fn is_punctuation(c: char) -> bool {
    contains(tables::PUNCTUATION, c)
}

/// `\s`
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace()
}

fn contains(ranges: &[(char, char)], c: char) -> bool {
    let compare = |range: &(char, char)| {
        if range.1 < c {
            Ordering::Less
        } else if range.0 > c {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    };
    ranges.binary_search_by(compare).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use regex_syntax::hir::{Class, HirKind};

    use super::*;

    fn ranges(pattern: &str) -> Vec<(char, char)> {
        let HirKind::Class(Class::Unicode(class)) = regex_syntax::parse(pattern).unwrap().into_kind() else {
            panic!("{pattern} is no class")
        };
        class.ranges().iter().map(|range| (range.start(), range.end())).collect()
    }

    /// `LOGITSCOPE_UPDATE=1 cargo test unicode` writes the tables anew.
    #[test]
    fn tables_are_current() {
        let mut text = "//! Generated from `regex-syntax`; see `tables_are_current`.\n".to_owned();
        for (name, pattern) in [("LETTERS", r"\p{L}"), ("PUNCTUATION", r"\p{P}")] {
            writeln!(text, "\n/// `{pattern}`, as inclusive ranges.").unwrap();
            writeln!(text, "#[rustfmt::skip]\npub(super) const {name}: &[(char, char)] = &[").unwrap();
            for line in ranges(pattern).chunks(4) {
                let line: Vec<_> = line
                    .iter()
                    .map(|(from, to)| {
                        format!("('\\u{{{:x}}}', '\\u{{{:x}}}'),", u32::from(*from), u32::from(*to))
                    })
                    .collect();
                writeln!(text, "    {}", line.join(" ")).unwrap();
            }
            text.push_str("];\n");
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/model/tokenizer/unicode/tables.rs");
        if std::env::var_os("LOGITSCOPE_UPDATE").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        assert!(std::fs::read_to_string(path).unwrap() == text, "run LOGITSCOPE_UPDATE=1 cargo test unicode");
    }

    #[test]
    fn every_character_is_in_the_right_classes() {
        type Test = fn(char) -> bool;
        let classes: [(&str, Test); 4] =
            [(r"\p{L}", is_letter), (r"\p{N}", is_number), (r"\p{P}", is_punctuation), (r"\s", is_space)];
        // The standard library's Unicode may be newer than the tables'.
        let unassigned = ranges(r"\p{Cn}");
        for (pattern, test) in classes {
            let ranges = ranges(pattern);
            for c in ('\0'..=char::MAX).filter(|c| !contains(&unassigned, *c)) {
                assert_eq!(test(c), contains(&ranges, c), "{pattern} {c:?}");
            }
        }
    }
}
