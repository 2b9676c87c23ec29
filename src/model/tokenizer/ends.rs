//! Which tokens end a generation.
//!
//! A file names one or a few by id. Many name too few: a chat model whose turns end with
//! `<|im_end|>`, but whose file knows only `<|endoftext|>`, would talk to itself. So tokens with
//! texts that nothing else is called end a generation too.
//!
//! Source: llama.cpp's list of such texts (`llama-vocab.cpp`), to which `ends.json` holds this one.

use super::{Role, special_id};
use crate::{TokenId, error::Result, model::gguf::Container};

/// The ids that end a generation by the file's own word.
const KEYS: [&str; 6] = ["eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep"];

/// Texts of tokens that end a generation.
const TEXTS: [&str; 21] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
];

/// Texts of which one ends a generation, where the file gives no id for what they are.
const ALTERNATIVES: [(&str, &[&str]); 3] = [
    ("fim_pad", &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"]),
    ("fim_rep", &["<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"]),
    ("fim_sep", &["<|file_sep|>"]),
];

/// A text that ends nothing in a vocabulary that has all of the others.
const UNLESS: [(&str, [&str; 2]); 4] = [
    ("<|end|>", ["<|return|>", "<|call|>"]),
    ("<|end|>", ["<|return|>", "<|calls|>"]),
    ("<|end|>", ["<|flush|>", "<|call|>"]),
    ("<|end|>", ["<|flush|>", "<|calls|>"]),
];

/// The tokens that end a generation: those that the file names first, then the others by id.
///
/// Those that are found by their text become control tokens. `is_made` tells whether merges make a
/// text: then it is text.
///
/// # Errors
/// `model_format` when the file names a token that it does not have.
pub(super) fn ends(
    container: &Container,
    texts: &[&str],
    roles: &mut [Role],
    is_made: impl Fn(&str) -> bool,
) -> Result<Vec<TokenId>> {
    let mut ends = Vec::new();
    let mut given = Vec::new();
    for name in KEYS {
        if let Some(id) = special_id(container, &format!("tokenizer.ggml.{name}_token_id"), texts.len())? {
            given.push(name);
            if !ends.contains(&id) {
                ends.push(id);
            }
        }
    }
    let has = |text: &str| texts.contains(&text);
    let mut named: Vec<&str> = TEXTS.into_iter().filter(|text| has(text)).collect();
    named.retain(|text| {
        !UNLESS.iter().any(|(end, others)| end == text && others.iter().all(|other| has(other)))
    });
    for (name, alternatives) in ALTERNATIVES {
        if !given.contains(&name) {
            named.extend(texts.iter().find(|text| alternatives.contains(text)));
        }
    }
    for (id, (text, role)) in (0..).zip(texts.iter().zip(roles)) {
        if named.contains(text) && *role != Role::Unused && !is_made(text) {
            *role = Role::Control;
            if !ends.contains(&TokenId(id)) {
                ends.push(TokenId(id));
            }
        }
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tokenizer::tests::{Entry, container};

    fn roles(codes: &[i32]) -> Vec<Role> {
        codes.iter().map(|code| Role::from_code(*code).unwrap()).collect()
    }

    /// Made by `tests/tokenizers/ends.py`.
    #[test]
    fn ends_are_those_of_llama_cpp() {
        let file = include_str!("../../../tests/tokenizers/ends.json");
        let file: serde_json::Value = serde_json::from_str(file).unwrap();
        let cases = file["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 10);
        for case in cases {
            let tokens: Vec<(String, i32)> = serde_json::from_value(case["tokens"].clone()).unwrap();
            let texts: Vec<&str> = tokens.iter().map(|(text, _)| text.as_str()).collect();
            let mut roles = roles(&tokens.iter().map(|(_, code)| *code).collect::<Vec<_>>());
            let ids = case["ids"].as_object().unwrap().iter();
            let ids = ids.map(|(name, id)| {
                (format!("tokenizer.ggml.{name}_token_id"), Entry::Unsigned(id.as_u64().unwrap()))
            });
            let mut have = ends(&container(ids), &texts, &mut roles, |_| false).unwrap();
            have.sort_unstable();
            let want: Vec<TokenId> = serde_json::from_value(case["ends"].clone()).unwrap();
            assert_eq!(have, want, "{}", case["name"]);
        }
    }

    #[test]
    fn what_the_file_names_comes_first() {
        let named = |name: &str, id| (format!("tokenizer.ggml.{name}_token_id"), Entry::Unsigned(id));
        let container = container([named("eot", 0), named("eos", 2)]);
        let texts = ["a", "<|im_end|>", "b"];
        let have = ends(&container, &texts, &mut roles(&[3, 3, 3]), |_| false).unwrap();
        assert_eq!(have, [TokenId(2), TokenId(0), TokenId(1)]);
    }

    #[test]
    fn a_text_that_merges_make_is_text() {
        let texts = ["</s>", "<|im_end|>", "<eos>"];
        let mut roles = roles(&[1, 1, 5]);
        let have = ends(&container([]), &texts, &mut roles, |text| text == "</s>").unwrap();
        assert_eq!(have, [TokenId(1)], "and what is unused is no end");
        assert_eq!(roles, [Role::Text, Role::Control, Role::Unused]);
    }
}
