//! Chat templates against jinja2, and the one that SmolLM2's file carries.
//!
//! `tests/chat/cases.json` is written by `generate.py` beside it, with jinja2 3.1.6 as transformers
//! 5.24.0 sets it up.
#![cfg(all(feature = "chat", not(target_arch = "wasm32")))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

#[path = "support/gguf.rs"]
mod gguf;
mod support;

use logitscope::model::{
    Precision,
    chat::{Message, prompt, render},
    open,
};
use serde_json::Value;

#[test]
fn templates_give_what_jinja2_gives() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("chat/cases.json")).unwrap();
    assert_eq!(cases.len(), 44);
    let mut refused = 0;
    for case in cases {
        let messages: Vec<Message> = serde_json::from_value(case["messages"].clone()).unwrap();
        let date = case["date"].as_str().unwrap().parse().unwrap();
        let have = render(case["template"].as_str().unwrap(), &messages, "<s>", "</s>", Some(date));
        match case["refused"].as_str() {
            None => assert_eq!(have.unwrap(), case["prompt"], "{}", case["name"]),
            Some(why) => {
                let error = have.unwrap_err();
                assert!(error.message.contains(why), "{}: {error}", case["name"]);
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 2);
}

#[test]
fn smollm2_is_asked_as_its_file_wants_it() {
    let model = support::smollm2(Precision::Native);
    let text = prompt(&*model, &[Message::from_user("What is a token?")], None).unwrap();
    let expected = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging \
                    Face<|im_end|>\n<|im_start|>user\nWhat is a token?<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(text, expected);
    // The marks are single tokens, not text.
    let ids = model.tokenize(&text, true, true).unwrap();
    let start = model.tokenize("<|im_start|>", true, true).unwrap();
    assert_eq!(start.len(), 1);
    assert_eq!(ids.iter().filter(|id| **id == start[0]).count(), 3);
}

/// As `www/tests/browser/models.test.js` finds it on the page.
#[test]
fn a_template_is_given_the_models_own_marks() {
    const TEMPLATE: &str = "{{ bos_token }}{% for m in messages %}<{{ m['role'] }}> {{ m['content'] | trim }}\
                            {{ eos_token }}{% endfor %}{% if add_generation_prompt %} <reply>{% endif %}";
    for (file, expected) in [
        // Its tokenizer puts the first mark there by itself.
        ("models/default.gguf", "<user> The dog ran to the<|endoftext|> <reply>"),
        ("tests/architectures/qwen2.gguf", "<|begin|><user> The dog ran to the<|end|> <reply>"),
    ] {
        let file = std::fs::read(format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let mut parts = gguf::Parts::of(&file);
        parts.set("tokenizer.chat_template", gguf::STRING, gguf::text(TEMPLATE));
        let model = open(parts.write(), Precision::Native).unwrap();
        assert_eq!(prompt(&*model, &[Message::from_user("The dog ran to the ")], None).unwrap(), expected);
    }
}
