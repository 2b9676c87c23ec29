//! The model that ships, and table models: what every state promises.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::{fs, sync::Arc};

use logitscope::{
    ErrorCode, Logits, TokenId,
    model::{
        LanguageModel, Precision,
        fnv::fnv_1a,
        gguf::Container,
        open,
        synthetic::{LogitsSpec, SplitMix64},
        table::{TableModel, TableSpec},
    },
};
use serde_json::Value;

const FILE: &[u8] = include_bytes!("../models/default.gguf");

fn default_model(precision: Precision) -> Arc<dyn LanguageModel> {
    open(FILE, precision).unwrap()
}

/// Twenty tokens and more than one block of the cache.
fn prompt(model: &dyn LanguageModel) -> Vec<TokenId> {
    let text = "The little dog ran over the hill and found a house with a red door, so it sat down to wait.";
    let ids = model.tokenize(text, true, true).unwrap();
    assert!(ids.len() > 20, "{}", ids.len());
    ids
}

fn bits(rows: &[Vec<f32>]) -> Vec<Vec<u32>> {
    rows.iter().map(|row| row.iter().map(|logit| logit.to_bits()).collect()).collect()
}

#[test]
fn bits_do_not_depend_on_how_tokens_are_split_into_calls() {
    for precision in [Precision::Native, Precision::F32] {
        let model = default_model(precision);
        let ids = prompt(&*model);
        let together = bits(&model.start().advance(&ids, ids.len()).unwrap());
        for size in [1, 3, 7] {
            let mut state = model.start();
            let parts = ids.chunks(size).flat_map(|part| state.advance(part, part.len()).unwrap());
            assert_eq!(bits(&parts.collect::<Vec<_>>()), together, "{precision:?} in parts of {size}");
            assert_eq!(state.tokens(), ids);
        }
        // More than one batch of positions.
        let long: Vec<TokenId> = ids.iter().copied().cycle().take(100).collect();
        let mut state = model.start();
        let last = state.advance(&long[..40], 0).and_then(|_| state.advance(&long[40..], 2)).unwrap();
        assert_eq!(bits(&model.start().advance(&long, 2).unwrap()), bits(&last));
    }
}

#[test]
fn forks_are_independent() {
    let model = default_model(Precision::Native);
    let ids = prompt(&*model);
    let mut first = model.start();
    first.advance(&ids[..18], 1).unwrap();
    let mut second = first.fork();
    second.advance(&[TokenId(5), TokenId(6)], 1).unwrap();
    let after = first.advance(&ids[18..], 1).unwrap();
    assert_eq!(bits(&after), bits(&model.start().advance(&ids, 1).unwrap()));
    let other = second.advance(&ids[18..], 1).unwrap();
    assert_ne!(bits(&after), bits(&other), "the fork has another context");
    assert_eq!(second.tokens()[..18], ids[..18]);
}

#[test]
fn truncating_forgets() {
    let model = default_model(Precision::Native);
    let ids = prompt(&*model);
    for length in [0, 1, 15, 16, 17] {
        let mut state = model.start();
        state.advance(&ids, 0).unwrap();
        state.truncate(length);
        assert_eq!(state.tokens(), &ids[..length]);
        let again = state.advance(&ids[length..], 1).unwrap();
        assert_eq!(bits(&again), bits(&model.start().advance(&ids, 1).unwrap()), "{length}");
    }
}

#[test]
fn refusals_leave_the_state_as_it_was() {
    let model = default_model(Precision::Native);
    let mut state = model.start();
    state.advance(&[TokenId(1)], 1).unwrap();
    let size = model.vocab().len();
    let outside = TokenId(u32::try_from(size).unwrap());
    let too_many = vec![TokenId(1); model.context_length()];
    let refusals = [
        (state.advance(&[outside], 1), ErrorCode::TokenOutOfVocabulary, size.to_string()),
        (state.advance(&too_many, 1), ErrorCode::ContextFull, model.context_length().to_string()),
        (state.advance(&[TokenId(1)], 2), ErrorCode::BadInput, "2 rows".to_owned()),
    ];
    for (refusal, code, named) in refusals {
        let error = refusal.unwrap_err();
        assert_eq!(error.code, code);
        assert!(error.message.contains(&named), "{error}");
    }
    assert_eq!(state.tokens(), [TokenId(1)]);
    assert_eq!(state.advance(&too_many[1..], 1).unwrap().len(), 1, "the last place can be used");
}

#[test]
fn says_what_it_is() {
    let model = default_model(Precision::Native);
    let info = model.info();
    assert_eq!((info.architecture.as_str(), info.vocabulary_size), ("llama", model.vocab().len()));
    assert_eq!(info.file_bytes, FILE.len() as u64);
    assert_eq!(model.hash(), fnv_1a(FILE.iter().copied()));
    assert!(info.tensor_types["Q8_0"] > 10, "{info:?}");
}

#[test]
fn text_survives_the_tokenizer() {
    let model = default_model(Precision::Native);
    for text in ["", " ", "Hello,  world!\n", "naïve 日本 👨‍👩‍👧 \u{0}\u{7f}", "it's 12345\t\r\n"]
    {
        let ids = model.tokenize(text, true, false).unwrap();
        let bytes: Vec<u8> = ids.iter().flat_map(|id| model.vocab().bytes(*id).to_vec()).collect();
        assert_eq!(bytes, text.as_bytes(), "{text:?}");
    }
    let with_bos = model.tokenize("a", true, true).unwrap();
    assert_eq!(Some(with_bos[0]), model.vocab().bos, "the file asks for BOS");
    let end = "<|endoftext|>";
    assert_eq!(model.tokenize(end, true, false).unwrap(), [model.vocab().eos[0]]);
    assert!(model.tokenize(end, false, false).unwrap().len() > 1, "as text");
}

// --- Files that lie -------------------------------------------------------------------

/// Opens a file, and where it opens, runs it: whatever happens, it must not panic.
fn open_and_run(file: Vec<u8>) -> bool {
    match open(file, Precision::Native) {
        Ok(model) => {
            let ids = model.tokenize("a b", true, true).unwrap_or_default();
            let mut state = model.start();
            // Logits may be anything, NaN included; the pipeline refuses those.
            let _ = ids.first().map(|id| state.advance(&[*id], 1));
            true
        }
        Err(error) => {
            assert!(matches!(error.code, ErrorCode::ModelFormat | ErrorCode::ModelUnsupported), "{error:?}");
            assert!(!error.message.is_empty());
            false
        }
    }
}

/// Where the tensor data begin: everything before it is structure.
fn header_length() -> usize {
    let needle = b".weight";
    let at = FILE.windows(needle.len()).rposition(|window| window == needle);
    at.expect("the last tensor's name") + needle.len() + 64
}

#[test]
fn truncated_files_are_refused() {
    let header = header_length();
    let lengths =
        (0..header).step_by(97).chain((header..FILE.len()).step_by(100_003)).chain([FILE.len() - 1]);
    let mut ran = 0;
    for length in lengths {
        assert!(!open_and_run(FILE[..length].to_vec()), "{length} bytes of {} were accepted", FILE.len());
        ran += 1;
    }
    assert!(ran > 300, "only {ran} lengths");
}

#[test]
fn altered_files_never_panic() {
    let header = header_length();
    let mut stream = SplitMix64::new(1);
    let mut draw = |below: usize| usize::try_from(stream.next_bits() % below as u64).unwrap();
    let (mut ran, mut refused) = (0, 0);
    // Densely over the first metadata and the last tensors, sparsely between.
    let places =
        (0..1200).step_by(3).chain((1200..header).step_by(97)).chain((header - 3000..header).step_by(7));
    let values = [0x00, 0xff, 0x7f, 0x80, 0x01];
    for (index, place) in places.enumerate() {
        let mut file = FILE.to_vec();
        file[place] = if index % 3 == 0 { file[place] ^ (1 << draw(8)) } else { values[draw(values.len())] };
        if index % 5 == 0 {
            // A whole length or count at once.
            let end = (place + 8).min(header);
            file[place..end].fill(values[draw(values.len())]);
        }
        ran += 1;
        refused += usize::from(!open_and_run(file));
    }
    assert!(ran > 1000, "only {ran} files");
    assert!(refused > ran / 10, "only {refused} of {ran} files were refused");
}

// --- Table models and synthetic rows ---------------------------------------------------

#[test]
fn generated_tables_are_those_of_the_oracle() {
    let file: Value = serde_json::from_str(include_str!("oracle/beam.json")).unwrap();
    let models = file["models"].as_object().unwrap();
    assert_eq!(models.len(), 5);
    for (name, entry) in models {
        let model =
            TableModel::from_json(&entry.to_string()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(format!("{:016x}", model.hash()), entry["table_fnv"], "{name}");
    }
    let table = file["table_m8"].as_array().unwrap();
    let model = TableModel::from_json(&models["m8"].to_string()).unwrap();
    for previous in 0..8 {
        for last in 0..8 {
            let rows = model.start().advance(&[TokenId(previous), TokenId(last)], 1).unwrap();
            let start = ((previous * 8 + last) * 8) as usize;
            for (have, want) in rows[0].iter().zip(&table[start..]) {
                assert!((f64::from(*have) - want.as_f64().unwrap()).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn table_models_that_lie_are_refused() {
    let spec =
        TableSpec { vocab: 2, seed: 1, scale: 1.0, eos: None, eos_bias: 0.0, table: None, table_fnv: None };
    let refusal = |change: fn(&mut TableSpec)| {
        let mut spec = spec.clone();
        change(&mut spec);
        TableModel::new(&spec).map(|_| ()).unwrap_err()
    };
    assert!(refusal(|spec| spec.vocab = 0).message.contains("vocab is 0"));
    assert!(refusal(|spec| spec.vocab = 1 << 40).message.contains("vocab"));
    assert!(refusal(|spec| spec.eos = Some(2)).message.contains("eos is 2"));
    assert!(refusal(|spec| spec.table = Some(vec![0.0; 7])).message.contains('7'));
    assert!(refusal(|spec| spec.table_fnv = Some("00".to_owned())).message.contains("table_fnv"));
    assert_eq!(TableModel::from_json("{").unwrap_err().code, ErrorCode::BadInput);
    let model = TableModel::new(&spec).unwrap();
    assert_eq!(model.tokenize("a", true, true).unwrap_err().code, ErrorCode::NeedsVocabulary);
}

#[test]
fn synthetic_rows_check_their_hash() {
    let mut spec = LogitsSpec {
        generator: "ih12".to_owned(),
        seed: 3,
        n: 10,
        scale: 1.0,
        shift: 0.0,
        quant: None,
        check_fnv: None,
    };
    let logits = spec.generate().unwrap();
    spec.check_fnv = Some(logitscope::model::synthetic::hash_hex(&logits));
    assert_eq!(spec.generate().unwrap(), logits);
    spec.seed = 4;
    let error = spec.generate().unwrap_err();
    assert!(error.message.contains("check_fnv"), "{error}");
    spec.generator = "other".to_owned();
    assert!(spec.generate().unwrap_err().message.contains("other"));
}

/// A file with one more line of metadata: a key, the number of its type, and the value's bytes.
fn with_metadata(file: &[u8], key: &str, kind: u32, value: &[u8]) -> Vec<u8> {
    let line = |key: &str, kind: u32, value: &[u8]| {
        [&(key.len() as u64).to_le_bytes(), key.as_bytes(), &kind.to_le_bytes(), value].concat()
    };
    let mut lines = line(key, kind, value);
    // Tensors lie at multiples of 32 bytes, and must go on doing so: a text fills the rest.
    let filler = lines.len() + "filler".len() + 8 + 4 + 8;
    let text = vec![b' '; filler.next_multiple_of(32) - filler];
    lines.extend(line("filler", 8, &[&(text.len() as u64).to_le_bytes(), text.as_slice()].concat()));
    let count = u64::from_le_bytes(file[16..24].try_into().unwrap()) + 2;
    [&file[..16], &count.to_le_bytes(), &lines, &file[24..]].concat()
}

fn refusal(file: Vec<u8>) -> (ErrorCode, String) {
    let error = open(file, Precision::Native).unwrap_err();
    (error.code, error.message)
}

#[test]
fn metadata_that_would_change_the_numbers_are_refused_or_applied() {
    let real = |value: f32| value.to_le_bytes();
    for (key, kind, value) in [
        ("logit_scale", 6, real(0.5).as_slice()),
        ("attention.scale", 6, &real(0.1)),
        ("final_logit_softcapping", 6, &real(30.0)),
        ("rope.scaling.attn_factor", 6, &real(2.0)),
        ("attention.causal", 7, &[0]),
        ("expert_count", 4, &8_u32.to_le_bytes()),
    ] {
        let (code, message) = refusal(with_metadata(FILE, &format!("llama.{key}"), kind, value));
        assert_eq!(code, ErrorCode::ModelUnsupported);
        assert!(message.contains(key), "{message}");
    }
    for (key, kind, value) in [
        ("logit_scale", 6, real(1.0).as_slice()),
        ("attention.causal", 7, &[1]),
        ("expert_count", 4, &[0; 4]),
    ] {
        open(with_metadata(FILE, &format!("llama.{key}"), kind, value), Precision::Native)
            .unwrap_or_else(|error| panic!("{key} changes nothing: {error}"));
    }
    // Both names of the linear scaling slow the rotations.
    let logits = |file: Vec<u8>| {
        let model = open(file, Precision::Native).unwrap();
        bits(&model.start().advance(&prompt(&*model), 1).unwrap())
    };
    let scaled = ["llama.rope.scaling.factor", "llama.rope.scale_linear"]
        .map(|key| logits(with_metadata(FILE, key, 6, &real(4.0))));
    assert_eq!(scaled[0], scaled[1]);
    assert_ne!(scaled[0], logits(FILE.to_vec()));
}

#[test]
fn tensors_that_nothing_reads_are_refused_by_name() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/architectures/qwen2.gguf");
    let mut file = fs::read(path).unwrap();
    let name = b"blk.0.attn_q.bias";
    let place = file.windows(name.len()).position(|bytes| bytes == name).unwrap();
    open(file.clone(), Precision::Native).unwrap();
    file[place..place + name.len()].copy_from_slice(b"blk.0.attn_x.bias");
    let (code, message) = refusal(file);
    assert_eq!(code, ErrorCode::ModelUnsupported);
    assert!(message.contains("blk.0.attn_x.bias"), "{message}");
}

#[test]
fn an_architecture_has_its_tensors_and_no_others() {
    let refused_as = |name: &str, other: &[u8; 5]| {
        let path = format!("{}/tests/architectures/{name}.gguf", env!("CARGO_MANIFEST_DIR"));
        let mut file = fs::read(path).unwrap();
        // The value of `general.architecture`, after its length, and the beginnings of keys.
        let value = [&5_u64.to_le_bytes(), name.as_bytes()].concat();
        for (text, at) in [(value, 8), (format!("{name}.").into_bytes(), 0)] {
            while let Some(place) = file.windows(text.len()).position(|bytes| bytes == text) {
                file[place + at..place + at + 5].copy_from_slice(other);
            }
        }
        refusal(file)
    };
    for (name, other, code, why) in [
        ("llama", b"qwen2", ErrorCode::ModelFormat, "\"blk.0.attn_q.bias\" is missing"),
        ("llama", b"qwen3", ErrorCode::ModelFormat, "\"blk.0.attn_q_norm.weight\" is missing"),
        ("qwen3", b"llama", ErrorCode::ModelUnsupported, "\"blk.0.attn_k_norm.weight\""),
    ] {
        let (have, message) = refused_as(name, other);
        assert!(have == code && message.contains(why), "{name}: {have:?} {message}");
    }
}

#[test]
fn what_is_no_whole_model_is_refused_as_such() {
    let mut file = FILE.to_vec();
    let key = b"general.type";
    if let Some(place) = file.windows(key.len()).position(|bytes| bytes == key) {
        file[place] = b'x';
    }
    let adapter = [&7_u64.to_le_bytes(), b"adapter".as_slice()].concat();
    for (key, kind, value) in [("split.count", 2, [2, 0].as_slice()), ("general.type", 8, &adapter)] {
        let (code, message) = refusal(with_metadata(&file, key, kind, value));
        assert_eq!(code, ErrorCode::ModelUnsupported);
        assert!(message.contains(key), "{message}");
    }
    open(with_metadata(FILE, "split.count", 2, &[1, 0]), Precision::Native).unwrap();
}

#[test]
fn sizes_that_do_not_fit_are_refused_by_the_names_of_their_fields() {
    for (key, value, why) in [
        ("llama.attention.value_length", 7_u32, "llama.attention.value_length is 7"),
        ("llama.attention.head_count_kv", 3, "llama.attention.head_count_kv, which is 3"),
        ("llama.rope.dimension_count", 31, "llama.rope.dimension_count is 31"),
    ] {
        // A key may occur once: the one that is there gets another name of the same length.
        let mut file = FILE.to_vec();
        if let Some(place) = file.windows(key.len()).position(|bytes| bytes == key.as_bytes()) {
            file[place] = b'x';
        }
        let (code, message) = refusal(with_metadata(&file, key, 4, &value.to_le_bytes()));
        assert!(matches!(code, ErrorCode::ModelFormat | ErrorCode::ModelUnsupported));
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn sizes_that_differ_from_layer_to_layer_are_refused() {
    let key = "llama.attention.head_count_kv";
    let mut file = FILE.to_vec();
    if let Some(place) = file.windows(key.len()).position(|bytes| bytes == key.as_bytes()) {
        file[place] = b'x';
    }
    // A list of two whole numbers of 32 bits.
    let list = [4_u32, 2, 0, 1, 2].map(u32::to_le_bytes).concat();
    let (code, message) = refusal(with_metadata(&file, key, 9, &list));
    assert_eq!(code, ErrorCode::ModelUnsupported);
    assert!(message.contains("llama.attention.head_count_kv is a list"), "{message}");
}

#[test]
fn logits_of_damaged_weights_are_for_whoever_reads_them_to_refuse() {
    // A block begins with its scale, a half float.
    for (tensor, damaged) in [("token_embd.weight", 0..1), ("blk.4.ffn_down.weight", 0..2048)] {
        let range = Container::read(FILE).unwrap().tensor(tensor).unwrap().range.clone();
        let mut file = FILE.to_vec();
        file[range.start..range.start + 2].copy_from_slice(&[0, 0x7e]);
        let model = open(file, Precision::Native).unwrap();
        let rows = model.start().advance(&[TokenId(1), TokenId(2)], 1).unwrap();
        let faulty = (0..).zip(&rows[0]).filter(|(_, logit)| !logit.is_finite());
        assert_eq!(faulty.map(|(id, _)| id).collect::<Vec<_>>(), damaged.collect::<Vec<_>>());
        let error = Logits::new(&rows[0]).unwrap_err();
        assert_eq!((error.code, &*error.message), (ErrorCode::NanLogit, "the logit of token 0 is NaN"));
    }
}
