//! `logitscope generate`, as a caller sees it.
#![cfg(all(feature = "cli", not(target_arch = "wasm32")))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::process::Command;

use serde_json::Value;

/// What is written, the error, and the exit status.
fn generate(arguments: &[&str]) -> (String, String, i32) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_logitscope")).arg("generate").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

/// The arguments of a command as a shell reads them: in quotes or between blanks.
fn words(command: &str) -> Vec<&str> {
    let parts = command.split('"').enumerate();
    let words = parts.flat_map(|(place, part)| match place % 2 {
        0 => part.split_whitespace().filter(|word| *word != "\\").collect(),
        _ => vec![part],
    });
    words.collect()
}

#[test]
fn the_readme_shows_what_is_printed() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let (_, rest) = readme.split_once("cargo run --release -- generate").unwrap();
    let (command, rest) = rest.split_once("```").unwrap();
    let shown = rest.split_once("```text\n").unwrap().1.split_once("```").unwrap().0;
    let (printed, error, status) = generate(&words(command));
    assert_eq!((error.as_str(), status), ("", 0));
    assert!(printed.contains(shown), "README.md shows\n{shown}but what is printed is\n{printed}");
}

#[test]
fn a_full_context_ends_the_text_or_slides() {
    let prompt = "The dog ran. ".repeat(58);
    let run = |more: &[&str]| -> Value {
        let mut arguments = vec!["--prompt", &prompt, "--pipeline", "greedy()", "--eos", "1", "--json"];
        arguments.extend_from_slice(more);
        let (printed, error, _) = generate(&arguments);
        assert_eq!(error, "");
        serde_json::from_str(printed.lines().last().unwrap()).unwrap()
    };
    let ended = run(&["--max-tokens", "80"]);
    let tokens = |result: &Value| result["tokens"].as_array().unwrap().len();
    assert_eq!(ended["finish_reason"], "context_full");
    assert!(tokens(&ended) < 80);
    let slid = run(&["--max-tokens", "80", "--slide"]);
    assert_eq!(slid["finish_reason"], "max_tokens");
    assert_eq!(tokens(&slid), 80);
}

#[test]
fn a_model_without_a_chat_template_says_so() {
    let (_, error, status) = generate(&["--prompt", "Hello", "--chat"]);
    assert_ne!(status, 0);
    assert!(error.contains("chat template"), "{error}");
}

#[test]
fn what_is_given_is_used_or_refused() {
    let prompt = ["--prompt", "The dog", "--max-tokens", "1"];
    for (more, named) in [
        (["--samples", "0"], "--samples"),
        (["--samples", "-1"], "'-1'"),
        (["--seed", "-1"], "--seed"),
        (["--stop", ""], "--stop"),
        (["--pipeline", "suppress(ids=[99999])"], "suppress.ids names token 99999"),
    ] {
        let (printed, error, status) = generate(&[&prompt[..], &more[..]].concat());
        assert_eq!((printed.as_str(), status), ("", 2), "{more:?}: {error}");
        assert!(error.contains(named), "{error}");
    }
    let (_, error, status) = generate(&["--prompt-ids", "1,,2"]);
    assert_eq!(status, 2);
    assert!(error.contains("\"\" is not a token id"), "{error}");
    let (printed, error, status) = generate(&[&prompt[..], &["--trace", "/nowhere/at/all"]].concat());
    assert_eq!((printed.as_str(), status), ("", 1), "told before the run, not after it");
    assert!(error.contains("/nowhere/at/all"), "{error}");
}

#[test]
fn noise_is_not_told_as_a_slice_that_the_draw_fell_into() {
    let (printed, _, _) =
        generate(&["--prompt", "The dog", "--max-tokens", "3", "--pipeline", "gumbel_max(seed=3)"]);
    assert_eq!(printed.matches("by noise on every score").count(), 3, "{printed}");
    assert!(!printed.contains(" in ["), "{printed}");
}
