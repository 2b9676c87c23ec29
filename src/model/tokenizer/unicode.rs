//! The Unicode classes that pre-tokenizers ask for, such as `\p{L}` and `\s`.
//!
//! Numbers and white space are those of the standard library, which has just these
//! classes. Letters, marks, punctuation and symbols are tables, because `char::is_alphabetic` is a
//! larger class, and small tables correct its notion of case. The tables are generated and held to
//! `regex-syntax` by the test below.

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

/// `\p{S}`
pub(super) fn is_symbol(c: char) -> bool {
    contains(tables::SYMBOLS, c)
}

/// `\p{M}`
pub(super) fn is_mark(c: char) -> bool {
    contains(tables::MARKS, c)
}

/// `\p{Ll}`
pub(super) fn is_lowercase(c: char) -> bool {
    // Unicode 17 took the case of the first; the tokenizers that ask are older.
    c == '\u{295}' || (c.is_lowercase() && is_letter(c) && !contains(tables::SMALL_WITHOUT_CASE, c))
}

/// `[\p{Lu}\p{Lt}]`
pub(super) fn is_uppercase(c: char) -> bool {
    (c.is_uppercase() && is_letter(c)) || contains(tables::TITLECASE, c)
}

/// `\s`
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace()
}

/// Whether inclusive ranges, in order, hold a character.
pub(super) fn contains(ranges: &[(char, char)], c: char) -> bool {
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
        for (name, pattern) in [
            ("LETTERS", r"\p{L}"),
            ("PUNCTUATION", r"\p{P}"),
            ("SYMBOLS", r"\p{S}"),
            ("MARKS", r"\p{M}"),
            ("SMALL_WITHOUT_CASE", r"[\p{Lowercase}&&\p{L}--\p{Ll}]"),
            ("TITLECASE", r"\p{Lt}"),
        ] {
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
        let classes: [(&str, Test); 8] = [
            (r"\p{L}", is_letter),
            (r"\p{N}", is_number),
            (r"\p{P}", is_punctuation),
            (r"\p{S}", is_symbol),
            (r"\p{M}", is_mark),
            (r"\p{Ll}", is_lowercase),
            (r"[\p{Lu}\p{Lt}]", is_uppercase),
            (r"\s", is_space),
        ];
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
