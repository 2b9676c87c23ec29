//! `logitscope generate`, as a caller sees it.
#![cfg(all(feature = "cli", not(target_arch = "wasm32")))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::{
    io::Write,
    process::{Command, Stdio},
};

use serde_json::Value;

/// What is written, the error, and the exit status, on the CPU.
fn generate(arguments: &[&str]) -> (String, String, i32) {
    generate_with("off", arguments)
}

/// The same with a device or without.
fn generate_with(gpu: &str, arguments: &[&str]) -> (String, String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_logitscope"));
    command.env("LOGITSCOPE_GPU", gpu).arg("generate").args(arguments);
    let output = command.output().unwrap();
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

#[test]
fn samples_are_told_one_after_the_other() {
    let pipeline = ["--prompt", "The dog", "--pipeline", "categorical(seed=3)", "--max-tokens", "4"];
    let (printed, error, _) = generate(&[&pipeline[..], &["--samples", "2"]].concat());
    assert_eq!(error, "");
    let order: Vec<_> = ["sample 0", "ended", "sample 1"].map(|what| printed.find(what).unwrap()).into();
    assert!(order.is_sorted(), "{printed}");
    let (alone, _, _) = generate(&pipeline);
    assert!(printed.starts_with(&alone), "{printed}");
}

#[cfg(feature = "gpu")]
#[test]
fn a_device_finds_the_same_and_says_how() {
    use logitscope::gpu::Policy;
    use serde_json::json;

    let common =
        ["--prompt", "The dog ran to the house. The dog ran", "--max-tokens", "8", "--seed", "5", "--json"];
    for (more, rows, draws) in [
        (&["--pipeline", "top_p(p=0.9) | categorical()", "--samples", "3"][..], 3 * 8, 3 * 8),
        (&["--strategy", "beam(width=3)"], 1 + 3 * 7, 0),
        (&["--pipeline", "greedy()", "--strategy", "prompt_lookup(ngram=1, tokens=3, rule=match)"], 0, 0),
    ] {
        let arguments = [&common[..], more, &["--eos", "1"]].concat();
        let lines = |gpu: &str| -> Option<Vec<Value>> {
            let (printed, error, status) = generate_with(gpu, &arguments);
            // A driver may say something, too.
            if error.contains("gpu_required") {
                assert_ne!(Policy::from_environment(), Ok(Policy::Require), "{error}");
                return None;
            }
            assert_eq!(status, 0, "{error}");
            Some(printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
        };
        let wanted = lines("off").unwrap();
        let Some(mut found) = lines("require") else { return };
        let device = found.last_mut().and_then(Value::as_object_mut).unwrap().remove("device").unwrap();
        assert_eq!(found, wanted);
        assert!(device["adapter"].is_string() && device["why"].is_null(), "{device}");
        let all = device["logits"]["device"].clone();
        let logits = json!({ "stage": "logits", "device": true, "why": "", "rows": all, "of": all });
        assert_eq!(device["places"][0], logits, "{device}");
        if rows > 0 {
            let once_a_step = json!({ "device": rows, "launches": 8, "cpu": 0 });
            assert_eq!(device["logits"], once_a_step, "{device}");
            assert_eq!(device["draws"]["device"], json!(draws), "{device}");
        } else {
            let blocks = found.iter().filter(|line| line["block"].is_object()).count();
            assert_eq!(device["logits"]["launches"], json!(blocks), "{device}");
            assert_eq!(device["logits"], device["draws"], "{device}");
        }
    }
}

#[test]
fn logits_that_are_no_numbers_are_told_with_their_step() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    // The scale of one block, a half float, becomes NaN: that of the token's own row, whose logit
    // follows, or one of the layers', which all logits follow.
    let damaged = |name: &str, tensor: &str, row: usize| {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("models/{name}.gguf"));
        let mut file = std::fs::read(file).unwrap();
        let container = logitscope::model::gguf::Container::read(file.clone()).unwrap();
        let tensor = container.tensor(tensor).unwrap();
        let start = tensor.range.start + row * tensor.range.len() / tensor.dimensions[1];
        file[start..start + 2].copy_from_slice(&[0, 0x7e]);
        let path = folder.join(format!("nan-{name}-{row}.gguf"));
        std::fs::write(&path, file).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (one, all) =
        (damaged("default", "token_embd.weight", 7), damaged("default", "blk.0.ffn_up.weight", 0));
    let draft = format!("speculative(draft=\"{}\")", damaged("draft", "token_embd.weight", 7));
    let speculative = format!("speculative(draft=\"{}/models/draft.gguf\")", env!("CARGO_MANIFEST_DIR"));
    for (model, strategy, why) in [
        (&*one, "sample()", "at step 0: the logit of token 7 is NaN, as the model gave it"),
        (&one, "beam(width=2)", "at step 0: the logit of token 7 is NaN, as the model gave it"),
        (&one, &speculative, "at step 0: the logit of token 7 is NaN, as the model gave it"),
        ("default", &draft, "in the draft, at step 0: the logit of token 7 is NaN, as the model gave it"),
        (&all, "sample()", "at step 0: the logit of token 0 is NaN, as the model gave it"),
        (&all, "beam(width=2)", "at step 0: the logit of token 0 is NaN, as the model gave it"),
    ] {
        let (_, error, status) = generate(&[
            "--model",
            model,
            "--prompt-ids",
            "300,301",
            "--max-tokens",
            "3",
            "--strategy",
            strategy,
        ]);
        assert_eq!((error.trim(), status), (&*format!("nan_logit: {why}"), 1), "{strategy}");
    }
    let mut logits = Command::new(env!("CARGO_BIN_EXE_logitscope"));
    let output = logits.args(["logits", "--model", &one, "--prompt-ids", "300,301"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    let why = "nan_logit: after position 1: the logit of token 7 is NaN";
    assert_eq!((error.trim(), output.status.code()), (why, Some(1)));
}

/// The answers of `--jsonl` to these lines.
fn answers(lines: &[u8]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_logitscope"));
    command.env("LOGITSCOPE_GPU", "off").args(["generate", "--jsonl"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn nothing_that_is_asked_for_is_ignored() {
    for arguments in [
        "--jsonl --prompt a",
        "--jsonl --prompt-ids 1",
        "--jsonl --pipeline greedy()",
        "--jsonl --strategy beam(width=2)",
        "--jsonl --constraint json()",
        "--jsonl --check json()",
        "--jsonl --eos 1",
        "--jsonl --seed 1",
        "--jsonl --stop a",
        "--jsonl --keep-stop",
        "--jsonl --max-tokens 1",
        "--jsonl --samples 1",
        "--jsonl --slide",
        "--jsonl --trace t.json",
        "--jsonl --top 1",
        "--prompt a --strategy beam(width=2) --slide",
        "--prompt a --strategy beam(width=2) --trace t.json",
        "--prompt a --strategy prompt_lookup() --top 1",
    ] {
        let (printed, error, status) = generate(&words(arguments));
        assert_eq!((&*printed, status), ("", 2), "{arguments}: {error}");
        assert!(error.starts_with("bad_input: "), "{error}");
    }
    let answers = answers(
        b"5\n{}\n{\"prompt\": \"a\", \"prompt_ids\": [1]}\n\xff\n\n{\"prompt\": \"a\", \"max_tokens\": 1, \"max_token\": 9}",
    );
    let whys = ["no JSON object", "a prompt is missing", "given twice", "not JSON"];
    assert_eq!(answers.len(), whys.len() + 1, "{answers:?}");
    for (answer, why) in answers.iter().zip(whys) {
        assert_eq!(answer["error"]["code"], "bad_input", "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(why), "{answer}");
    }
    let last = answers.last().unwrap();
    assert_eq!(last["sequences"][0].as_array().unwrap().len(), 1);
    let told = last["notes"].as_array().unwrap().iter().any(|note| {
        note["code"] == "unknown_field" && note["message"].as_str().unwrap().contains("`max_token`")
    });
    assert!(told, "{last}");
}
