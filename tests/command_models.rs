//! `logitscope logits` and `logitscope tokenize`, as a caller sees them.
#![cfg(all(feature = "cli", not(target_arch = "wasm32")))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::{
    io::Write,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

/// Lines of output, the error, and the exit status.
fn run(arguments: &[&str], input: &str) -> (Vec<Value>, String, i32) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_logitscope"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (lines, String::from_utf8(output.stderr).unwrap(), output.status.code().unwrap())
}

#[test]
fn logits_of_the_last_position_or_of_all() {
    let (last, error, status) =
        run(&["logits", "--model", "default", "--prompt", "The dog", "--top", "3"], "");
    assert_eq!((error.as_str(), status), ("", 0));
    let (all, _, _) =
        run(&["logits", "--model", "default", "--prompt", "The dog", "--top", "3", "--all-positions"], "");
    assert_eq!(last, all[all.len() - 1..], "the same numbers, however many positions are shown");
    let positions: Vec<_> = all.iter().map(|line| line["position"].as_u64().unwrap()).collect();
    assert_eq!(positions, (0..all.len() as u64).collect::<Vec<_>>());
    let top = last[0]["top"].as_array().unwrap();
    assert_eq!(top.len(), 3);
    assert!(top[0][1].is_string() && top[0][2].as_f64() >= top[1][2].as_f64());
}

#[test]
fn ids_may_stand_for_the_prompt() {
    let (ids, _, _) = run(&["tokenize", "--model", "default"], "\"The dog\"\n");
    let ids = ids[0]["ids"].to_string();
    let by_text = run(&["logits", "--model", "default", "--prompt", "The dog"], "");
    let by_ids = run(&["logits", "--model", "default", "--prompt-ids", &ids], "");
    assert_eq!(by_text, by_ids);
    let exact = run(&["logits", "--model", "default", "--prompt-ids", &ids, "--precision", "f32"], "");
    assert_eq!(exact.2, 0);
    assert_ne!(exact.0, by_ids.0, "the modes round differently");
}

#[test]
fn a_table_model_has_ids_only() {
    let path = std::env::temp_dir().join(format!("logitscope-table-{}.json", std::process::id()));
    std::fs::write(&path, r#"{"vocab": 2, "table": [0, 1, 2, 3, 4, 5, 7, 6]}"#).unwrap();
    let model = format!("table:{}", path.display());
    let (lines, ..) = run(&["logits", "--model", &model, "--prompt-ids", "1,1"], "");
    let (_, error, status) = run(&["logits", "--model", &model, "--prompt", "a"], "");
    std::fs::remove_file(path).unwrap();
    assert_eq!(lines, [json!({"position": 1, "top": [[0, "", 7.0], [1, "", 6.0]]})]);
    assert!(error.starts_with("needs_vocabulary: "), "{error}");
    assert_eq!(status, 2);
}

#[test]
fn tokenize_answers_line_by_line() {
    let (lines, error, status) = run(&["tokenize", "--model", "default"], "\"a b\"\n\"<|endoftext|>é\"\n");
    assert_eq!((error.as_str(), status), ("", 0));
    assert_eq!(lines[0]["pieces"], json!(["<|endoftext|>", "a", " b"]), "BOS, because the file says so");
    assert_eq!(lines[1]["ids"][0], lines[1]["ids"][1], "a special token in the text is parsed");
    let (lines, ..) = run(&["tokenize", "--model", "default", "--special-as-text"], "\"<|endoftext|>\"\n");
    assert!(lines[0]["ids"].as_array().unwrap().len() > 2);
    // Bytes that are no whole character are shown as such, and given in full beside it.
    let (lines, ..) = run(&["tokenize", "--model", "default"], "\"日\"\n");
    assert_eq!(lines[0]["pieces_hex"], json!(["3c7c656e646f66746578747c3e", "e6", "97", "a5"]));
}

/// Read whole, it would take all memory there is.
#[test]
#[cfg(unix)]
fn what_is_no_model_is_not_read_to_its_end() {
    let (_, error, status) = run(&["info", "--model", "/dev/zero"], "");
    assert!(error.starts_with("model_format: ") && error.contains("GGUF"), "{error}");
    assert_eq!(status, 2);
}

#[test]
fn every_refusal_is_one_line_with_a_code() {
    let cases: [(&[&str], &str, &str); 8] = [
        (&["logits", "--model", "default"], "", "bad_input: "),
        (&["logits", "--model", "default", "--prompt", ""], "", ""),
        (&["logits", "--model", "nowhere.gguf", "--prompt", "a"], "", "io: nowhere.gguf"),
        (&["logits", "--model", "Cargo.toml", "--prompt", "a"], "", "model_format: "),
        (
            &["logits", "--model", "default", "--prompt-ids", "99999"],
            "",
            "token_out_of_vocabulary: token 99999",
        ),
        (&["logits", "--model", "default", "--prompt-ids", "x"], "", "bad_input: \"x\""),
        (
            &["logits", "--model", "default", "--prompt", "a", "--precision", "f16"],
            "",
            "out_of_range: precision",
        ),
        (&["tokenize", "--model", "default"], "\"a\"\n{}\n", "bad_input: line 2"),
    ];
    for (arguments, input, begins) in cases {
        let (_, error, status) = run(arguments, input);
        if begins.is_empty() {
            assert_eq!((error.as_str(), status), ("", 0), "BOS alone can be continued");
            continue;
        }
        assert!(error.starts_with(begins) && error.lines().count() == 1, "{arguments:?}: {error}");
        assert_eq!(status, 2, "{arguments:?}");
    }
}
