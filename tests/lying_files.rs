//! Model files that lack something, contradict themselves, or say it in another way: what is
//! refused, by which name, and that nothing panics.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

#[path = "support/gguf.rs"]
mod gguf;

use gguf::{ARRAY, BOOL, F32, Part, Parts, STRING, U32, list, text};
use logitscope::{
    ErrorCode, TokenId,
    model::{Precision, incoming::Incoming, open},
};

const ARCHITECTURES: [&str; 3] = ["llama", "qwen2", "qwen3"];

fn parts(name: &str) -> Parts {
    let path = format!("{}/tests/architectures/{name}.gguf", env!("CARGO_MANIFEST_DIR"));
    Parts::of(&std::fs::read(path).unwrap())
}

/// A llama file whose tokenizer is SentencePiece's: bytes, pieces, and their scores.
fn with_pieces() -> Parts {
    let mut parts = parts("llama");
    let pieces = ["▁", "a", "▁a", "b"].map(str::to_owned);
    let bytes = (0..=255_u8).map(|byte| format!("<0x{byte:02X}>"));
    let tokens: Vec<Vec<u8>> = bytes.chain(pieces).map(|token| text(&token)).collect();
    let codes = (0..260).map(|id: i32| if id < 256 { 6_i32 } else { 1 }.to_le_bytes().to_vec());
    let scores = (0..260_u16).map(|id| (-f32::from(id)).to_le_bytes().to_vec());
    parts.set("tokenizer.ggml.model", STRING, text("llama"));
    parts.set("tokenizer.ggml.tokens", ARRAY, list(STRING, &tokens));
    parts.set("tokenizer.ggml.token_type", ARRAY, list(5, &codes.collect::<Vec<_>>()));
    parts.set("tokenizer.ggml.scores", ARRAY, list(F32, &scores.collect::<Vec<_>>()));
    parts.metadata.retain(|(key, ..)| key != "tokenizer.ggml.merges" && key != "tokenizer.ggml.pre");
    parts
}

fn refusal(file: Vec<u8>) -> (ErrorCode, String) {
    let error = open(file, Precision::Native).unwrap_err();
    (error.code, error.message)
}

fn logits(parts: &Parts) -> Vec<u32> {
    let model = open(parts.write(), Precision::Native).unwrap();
    let ids = [3, 1, 4, 1, 5].map(TokenId);
    model.start().advance(&ids, 5).unwrap().concat().iter().map(|logit| logit.to_bits()).collect()
}

#[test]
fn a_file_written_again_is_the_same_model() {
    for name in ARCHITECTURES {
        let path = format!("{}/tests/architectures/{name}.gguf", env!("CARGO_MANIFEST_DIR"));
        assert!(parts(name).write() == std::fs::read(path).unwrap(), "{name}");
    }
}

/// What an architecture cannot do without, those of a layer without its number.
fn required(architecture: &str) -> Vec<&'static str> {
    let mut names = vec!["attn_norm.weight", "ffn_norm.weight", "ffn_gate.weight", "ffn_up.weight"];
    names.extend(["attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight"]);
    names.push("ffn_down.weight");
    match architecture {
        "qwen2" => names.extend(["attn_q.bias", "attn_k.bias", "attn_v.bias"]),
        "qwen3" => names.extend(["attn_q_norm.weight", "attn_k_norm.weight"]),
        _ => {}
    }
    names
}

#[test]
fn every_required_tensor_is_missed_by_its_name() {
    for (architecture, wanted) in ARCHITECTURES.into_iter().zip([20, 26, 24]) {
        let parts = parts(architecture);
        let of_layers = required(architecture);
        let names: Vec<String> = (0..2)
            .flat_map(|layer| of_layers.iter().map(move |part| format!("blk.{layer}.{part}")))
            .chain(["token_embd.weight", "output_norm.weight"].map(str::to_owned))
            .collect();
        assert_eq!(names.len(), wanted);
        for name in names {
            assert!(parts.tensors.iter().any(|part| part.name == name), "{architecture} has {name}");
            let (code, message) = refusal(parts.without(&name).write());
            let why = format!("tensor {name:?} is missing");
            assert!(code == ErrorCode::ModelFormat && message.contains(&why), "{architecture}: {message}");
        }
    }
    // Without a matrix of its own the output is the embedding, and rotations have no factors.
    let parts = parts("llama");
    for name in ["output.weight", "rope_freqs.weight"] {
        assert_ne!(logits(&parts.without(name)), logits(&parts), "{name} matters");
    }
}

/// A llama file with biases where `has` says so, as llama.cpp reads them; elsewhere zeros if
/// `zeros`, else none.
fn with_biases(has: impl Fn(usize, &str) -> bool, zeros: bool) -> Parts {
    let mut parts = parts("llama");
    for layer in 0..2 {
        for (least, name, length) in [(0.0, "q", 32_u16), (-1.0, "k", 16), (-2.0, "v", 16)] {
            let there = has(layer, name);
            if !there && !zeros {
                continue;
            }
            let number = |i: u16| if there { f32::from(i % 7) / 4.0 + least } else { 0.0_f32 };
            parts.tensors.push(Part {
                name: format!("blk.{layer}.attn_{name}.bias"),
                dimensions: vec![u64::from(length)],
                kind: 0,
                bytes: (0..length).flat_map(|i| number(i).to_le_bytes()).collect(),
            });
        }
    }
    parts
}

#[test]
fn a_bias_that_is_missing_adds_nothing() {
    let plain = logits(&parts("llama"));
    let cases: [fn(usize, &str) -> bool; 5] = [
        |_, name| name == "q",
        |_, name| name != "k",
        |layer, _| layer == 1,
        |layer, name| layer == 0 && name == "v",
        |_, _| true,
    ];
    for (case, has) in cases.into_iter().enumerate() {
        let have = logits(&with_biases(has, false));
        assert_eq!(have, logits(&with_biases(has, true)), "case {case}: as if it were zero");
        assert_ne!(have, plain, "case {case}: those that are there are added");
    }
}

#[test]
fn names_that_only_look_like_a_tensors_are_refused() {
    for name in ["blk.00.attn_norm.weight", "blk.+0.attn_norm.weight", "blk.attn_norm.weight", "blk.2.x", ""]
    {
        let mut parts = parts("llama");
        let twin = Part { name: name.to_owned(), ..parts.tensor("blk.0.attn_norm.weight").clone() };
        parts.tensors.push(twin);
        let (code, message) = refusal(parts.write());
        let why = format!("a tensor {name:?}");
        assert!(code == ErrorCode::ModelUnsupported && message.contains(&why), "{message}");
    }
}

#[test]
fn another_number_of_tokens_than_the_metadata_say_is_refused() {
    for (size, fits) in [(260_u32, true), (259, false), (32_000, false), (0, false)] {
        let mut parts = parts("llama");
        parts.set("llama.vocab_size", U32, size.to_le_bytes().to_vec());
        if fits {
            open(parts.write(), Precision::Native).unwrap();
            continue;
        }
        let (code, message) = refusal(parts.write());
        assert!(code == ErrorCode::ModelFormat && message.contains(&format!("llama.vocab_size is {size}")));
    }
}

#[test]
fn dimensions_that_lie_are_refused_before_the_weights_have_come() {
    for name in ["token_embd.weight", "blk.1.ffn_down.weight", "blk.1.attn_norm.weight"] {
        let mut parts = parts("llama");
        parts.tensor(name).dimensions[0] /= 2;
        parts.tensor(name).dimensions.push(2);
        let file = parts.write();
        let data: usize = parts.tensors.iter().map(|part| part.bytes.len()).sum();
        let mut incoming = Incoming::reserve(Some(file.len() as u64)).unwrap();
        let error = file.chunks(512).find_map(|piece| incoming.push(piece).err()).expect("a refusal");
        assert!(error.message.contains(&format!("tensor {name:?} has dimensions")), "{error}");
        let header = file.len() - data;
        assert!(incoming.len() < 2 * header, "{} bytes were taken of {header}", incoming.len());
    }
}

#[test]
fn numbers_of_a_norm_or_bias_that_are_none_are_refused_by_their_place() {
    for (name, value) in [
        ("output_norm.weight", f32::NAN),
        ("blk.1.attn_norm.weight", f32::INFINITY),
        ("blk.0.attn_k.bias", f32::NEG_INFINITY),
    ] {
        let mut parts = parts("qwen2");
        parts.tensor(name).bytes[12..16].copy_from_slice(&value.to_le_bytes());
        let (code, message) = refusal(parts.write());
        let why = format!("number 3 of tensor {name:?} is {value}");
        assert!(code == ErrorCode::ModelFormat && message.contains(&why), "{message}");
    }
}

// --- Every line and every tensor, said in another way ----------------------------------

/// Values of every type, sound and not.
fn values() -> Vec<(u32, Vec<u8>)> {
    let mut values = Vec::new();
    for (kind, size) in
        [(0, 1), (1, 1), (2, 2), (3, 2), (U32, 4), (5, 4), (F32, 4), (BOOL, 1), (10, 8), (11, 8), (12, 8)]
    {
        for byte in [0x00, 0x01, 0x7f, 0xff] {
            values.push((kind, vec![byte; size]));
        }
        values.push((ARRAY, list(kind, &[vec![0; size], vec![1; size]])));
        values.push((ARRAY, list(kind, &[])));
    }
    for words in ["", "llama", "▁ \u{0}"] {
        values.push((STRING, text(words)));
        values.push((ARRAY, list(STRING, &[text(words), text(words)])));
    }
    values.push((STRING, [&2_u64.to_le_bytes(), [0xff, 0xfe].as_slice()].concat()));
    let nested = list(ARRAY, &[list(U32, &[vec![1; 4]]), list(STRING, &[])]);
    values.push((ARRAY, nested.clone()));
    values.push((ARRAY, list(ARRAY, &[list(ARRAY, &[nested])])));
    values
}

/// A list with its last element gone, twice the elements, and counts that lie.
fn other_lists(value: &[u8]) -> Vec<Vec<u8>> {
    let (head, elements) = value.split_at(12);
    let count = u64::from_le_bytes(head[4..].try_into().unwrap());
    let with = |count: u64, elements: &[u8]| [&head[..4], &count.to_le_bytes(), elements].concat();
    let mut lists = [count - 1, count + 1, 0, u64::MAX, 1 << 61].map(|count| with(count, elements)).to_vec();
    lists.push(with(2 * count, &[elements, elements].concat()));
    lists
}

/// Files that differ from a sound one in one thing.
fn others(sound: &Parts) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut add = |what: String, parts: &Parts| files.push((what, parts.write()));
    for (index, (key, kind, value)) in sound.metadata.iter().enumerate() {
        let mut gone = sound.clone();
        gone.metadata.remove(index);
        add(format!("{key} gone"), &gone);
        let mut twice = sound.clone();
        twice.metadata.push((key.clone(), *kind, value.clone()));
        add(format!("{key} twice"), &twice);
        let lists = if *kind == ARRAY { other_lists(value) } else { Vec::new() };
        for (kind, value) in lists.into_iter().map(|list| (ARRAY, list)).chain(values()) {
            let mut other = sound.clone();
            let what = format!("{key} as type {kind} of {} bytes", value.len());
            other.metadata[index] = (key.clone(), kind, value);
            add(what, &other);
        }
    }
    for (index, part) in sound.tensors.iter().enumerate() {
        let sizes = &part.dimensions;
        let flat = sizes.iter().product();
        let mut shapes =
            vec![vec![], vec![0], vec![flat], vec![flat, 1, 1, 1], vec![1, flat], vec![u64::MAX; 2]];
        shapes.extend([1, 2, 0, 1 << 31, 1 << 32, u64::MAX].map(|more| [&sizes[..], &[more]].concat()));
        shapes.push([&sizes[..], &[1; 4]].concat());
        shapes.push(sizes.iter().rev().copied().collect());
        for dimensions in shapes {
            let mut other = sound.clone();
            other.tensors[index].dimensions.clone_from(&dimensions);
            add(format!("{} {dimensions:?}", part.name), &other);
        }
        for kind in (0..42).chain([u32::MAX]) {
            let mut other = sound.clone();
            other.tensors[index].kind = kind;
            add(format!("{} as type {kind}", part.name), &other);
        }
        for length in [0, part.bytes.len() / 2, part.bytes.len() + 32] {
            let mut other = sound.clone();
            other.tensors[index].bytes.resize(length, 0x7f);
            add(format!("{} of {length} bytes", part.name), &other);
        }
    }
    for kind in [U32, 10] {
        for alignment in [0_u64, 1, 3, 8, 16, 64, 1 << 31, 1 << 32, 1 << 63, u64::MAX] {
            let size = if kind == U32 { 4 } else { 8 };
            let value = alignment.to_le_bytes()[..size].to_vec();
            let mut other = sound.clone();
            other.set("general.alignment", kind, value);
            add(format!("aligned to {alignment} by its word"), &other);
            if (8..=64).contains(&alignment) {
                other.alignment = usize::try_from(alignment).unwrap();
                add(format!("aligned to {alignment}"), &other);
            }
        }
    }
    files
}

#[test]
fn whatever_a_file_says_it_runs_or_is_refused() {
    let (mut ran, mut refused) = (0, 0);
    for sound in ARCHITECTURES.map(parts).into_iter().chain([with_pieces()]) {
        open(sound.write(), Precision::Native).unwrap();
        for (what, file) in others(&sound) {
            match open(file, Precision::Native) {
                Ok(model) => {
                    let ids = model.tokenize("a b", true, true).unwrap_or_default();
                    match model.start().advance(&[ids, vec![TokenId(2)]].concat(), 1) {
                        Ok(rows) => assert_eq!(rows[0].len(), model.vocab().len(), "{what}"),
                        // A context of one token, a vocabulary of two.
                        Err(error) => assert!(
                            [ErrorCode::ContextFull, ErrorCode::TokenOutOfVocabulary].contains(&error.code),
                            "{what}: {error}"
                        ),
                    }
                    ran += 1;
                }
                Err(error) => {
                    let codes = [ErrorCode::ModelFormat, ErrorCode::ModelUnsupported];
                    assert!(codes.contains(&error.code) && !error.message.is_empty(), "{what}: {error:?}");
                    refused += 1;
                }
            }
        }
    }
    assert!(ran > 300 && refused > 10_000, "{ran} ran, {refused} were refused");
}

/// Lines that change nothing, or nothing that is computed, or what is computed in a known way.
#[test]
fn what_a_file_may_say_in_other_ways_stays_the_same_model() {
    let sound = parts("llama");
    let want = logits(&sound);
    let mut wide = sound.clone();
    for (_, kind, value) in &mut wide.metadata {
        if *kind == U32 {
            value.resize(8, 0);
            *kind = 10;
        }
    }
    let mut aligned = sound.clone();
    aligned.set("general.alignment", U32, 64_u32.to_le_bytes().to_vec());
    aligned.alignment = 64;
    let mut backwards = sound.clone();
    backwards.metadata.reverse();
    backwards.tensors.reverse();
    let mut unknown = sound.clone();
    unknown.set("general.quantized_by", STRING, text("somebody"));
    unknown.set("custom.nested", ARRAY, list(ARRAY, &[list(U32, &[]), list(STRING, &[text("a")])]));
    let mut untyped = sound.clone();
    untyped.metadata.retain(|(key, ..)| key != "tokenizer.ggml.token_type");
    for (what, other) in [
        ("wider integers", wide),
        ("another alignment", aligned),
        ("another order", backwards),
        ("lines that nobody reads", unknown),
        ("tokens without types", untyped),
    ] {
        assert_eq!(logits(&other), want, "{what}");
    }
}
