//! Chat templates against jinja2, and the one that SmolLM2's file carries.
//!
//! `tests/chat/cases.json` is written by `generate.py` beside it, with jinja2 3.1.6.
#![cfg(all(feature = "chat", not(target_arch = "wasm32")))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use logitscope::model::{
    Precision,
    chat::{Message, prompt, render},
};
use serde_json::Value;

#[test]
fn templates_give_what_jinja2_gives() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("chat/cases.json")).unwrap();
    assert_eq!(cases.len(), 12);
    for case in cases {
        let messages: Vec<Message> = serde_json::from_value(case["messages"].clone()).unwrap();
        let have = render(case["template"].as_str().unwrap(), &messages, "<s>", "</s>").unwrap();
        assert_eq!(have, case["prompt"], "{}", case["name"]);
    }
}

#[test]
fn smollm2_is_asked_as_its_file_wants_it() {
    let model = support::smollm2(Precision::Native);
    let text = prompt(&*model, &[Message::from_user("What is a token?")]).unwrap();
    let expected = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging \
                    Face<|im_end|>\n<|im_start|>user\nWhat is a token?<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(text, expected);
    // The marks are single tokens, not text.
    let ids = model.tokenize(&text, true, true).unwrap();
    let start = model.tokenize("<|im_start|>", true, true).unwrap();
    assert_eq!(start.len(), 1);
    assert_eq!(ids.iter().filter(|id| **id == start[0]).count(), 3);
}
