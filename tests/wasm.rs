//! What only a browser can show: that the crate works there as it does natively.
//!
//! `wasm-pack test --headless --chrome` runs these, and so does `cargo xtask test wasm`. The
//! page has its own tests in `www/tests/`.
#![cfg(target_arch = "wasm32")]

use js_sys::{Error, Reflect};
use logitscope::model::{self, Precision, gguf, head::Head, quant::TensorType};
use logitscope::session::Session;
use logitscope::wasm::{Decoder, parse_pipeline, version};
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

#[wasm_bindgen_test]
fn the_version_crosses_the_boundary() {
    assert_eq!(version(), env!("CARGO_PKG_VERSION"));
}

#[wasm_bindgen_test]
fn a_refusal_is_a_javascript_error_with_its_fields() {
    let thrown = Error::from(parse_pipeline("temperature(t=0.8) | top_p(p=1.5)").expect_err("out of range"));
    let field = |name: &str| Reflect::get(&thrown, &name.into()).expect("an object").as_string();
    assert_eq!(field("name").as_deref(), Some("LogitscopeError"));
    assert_eq!(field("code").as_deref(), Some("out_of_range"));
    assert_eq!(field("stage").as_deref(), Some("top_p"));
    assert_eq!(field("param").as_deref(), Some("p"));
    assert!(field("message").is_some_and(|message| message.contains("1.5")));
}

#[wasm_bindgen_test]
fn a_decoder_takes_logits_from_javascript() {
    // Probabilities 2/3 and 1/3 survive top-k; the draw 0.7 falls past the first.
    let row = [2.0_f32.ln(), 0.0, -1.0];
    let mut decoder = Decoder::new("top_k(k=2) | categorical(seed=1)").expect("a pipeline");
    assert_eq!(decoder.decode(&row, &[], 0, Some(0.6)).expect("a token"), 0);
    assert_eq!(decoder.decode(&row, &[], 0, Some(0.7)).expect("a token"), 1);
    assert!(decoder.decode(&row, &[], 0, Some(1.0)).is_err());
    assert!(decoder.decode(&row, &[2], 2, None).is_err());
}

#[wasm_bindgen_test]
fn traces_have_the_digests_recorded_natively() {
    let model =
        model::open(&include_bytes!("../models/default.gguf")[..], Precision::Native).expect("a model");
    let recorded: serde_json::Value =
        serde_json::from_str(include_str!("digests.json")).expect("the recorded digests");
    let cases = recorded["cases"].as_array().expect("a list of cases");
    assert!(cases.len() >= 3, "only {} cases", cases.len());
    for case in cases {
        let options = serde_json::from_value(case["options"].clone()).expect("options of a session");
        let mut session = Session::new(model.clone(), &options).expect("a session");
        while session.step().expect("a step").is_some() {}
        assert_eq!(case["digest"], session.digest().as_str(), "{options:?}");
    }
}

/// The model that ships with its matrices in another type: each block of `Q8_0` becomes one of
/// `Q4_0` (2) or `Q4_1` (3), with the sixteenth part of every quant.
fn repacked(kind: u8) -> Vec<u8> {
    let file: &[u8] = include_bytes!("../models/default.gguf");
    let container = gguf::Container::read(file).expect("a container");
    let mut tensors: Vec<_> = container.tensors().collect();
    tensors.sort_by_key(|(_, tensor)| tensor.range.start);
    let data = tensors[0].1.range.start;
    let mut bytes = file[..data].to_vec();
    for (name, tensor) in tensors {
        let mut key = u64::try_from(name.len()).expect("short").to_le_bytes().to_vec();
        key.extend(name.as_bytes());
        let at = file.windows(key.len()).position(|window| window == key).expect("its entry");
        // After the name: the number of dimensions, the dimensions, the type, the place.
        let type_at = at + key.len() + 4 + 8 * tensor.dimensions.len();
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        let place = u64::try_from(bytes.len() - data).expect("small");
        bytes[type_at + 4..type_at + 12].copy_from_slice(&place.to_le_bytes());
        if tensor.kind != TensorType::Q8_0 {
            bytes.extend(&file[tensor.range.clone()]);
            continue;
        }
        assert_eq!(bytes[type_at], 8, "{name}");
        bytes[type_at] = kind;
        for block in file[tensor.range.clone()].as_chunks::<34>().0 {
            let scale = u16::from_le_bytes([block[0], block[1]]);
            // Half floats times 16, and times -128.
            bytes.extend((scale + (4 << 10)).to_le_bytes());
            if kind == 3 {
                bytes.extend(((scale + (7 << 10)) | 0x8000).to_le_bytes());
            }
            let nibble = |byte: u8| (byte.wrapping_add(128)) >> 4;
            bytes.extend((2..18).map(|i| nibble(block[i]) | nibble(block[i + 16]) << 4));
        }
    }
    bytes
}

/// Tokens one by one take another way through the weights than several at once.
#[wasm_bindgen_test]
fn one_position_has_the_bits_of_several() {
    let files = [include_bytes!("../models/default.gguf").to_vec(), repacked(2), repacked(3)];
    for (index, file) in files.into_iter().enumerate() {
        let model = model::open(file, Precision::Native).expect("a model");
        let ids = model.tokenize("The dog ran to the house", true, true).expect("tokens");
        let bits =
            |rows: Vec<Vec<f32>>| -> Vec<u32> { rows.into_iter().flatten().map(f32::to_bits).collect() };
        let together = bits(model.start().advance(&ids, ids.len()).expect("logits"));
        assert!(together.iter().all(|bits| f32::from_bits(*bits).is_finite()), "file {index}");
        let mut state = model.start();
        let one_by_one = ids.iter().flat_map(|id| bits(state.advance(&[*id], 1).expect("logits")));
        assert!(one_by_one.eq(together), "file {index}");
    }
}

/// Scales of packed weights become numbers in vectors; those of unpacked ones do not.
#[wasm_bindgen_test]
fn odd_scales_give_one_position_the_bits_of_several() {
    // Around the least normal one, the largest, a zero; then what is no finite number.
    const HALVES: [u16; 13] = [
        0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x7bff, 0xfbff, 0x8000, 0x7c00, 0xfc00, 0x7e00,
        0xfd01,
    ];
    const COLUMNS: usize = 9 * 32;
    let hidden: Vec<f32> = (0_u8..=255).cycle().take(COLUMNS).map(|i| f32::from(i) - 99.5).collect();
    for (kind, factors) in [(TensorType::Q8_0, 1), (TensorType::Q4_0, 1), (TensorType::Q4_1, 2)] {
        for halves in [&HALVES[..9], &HALVES[..]] {
            let size = kind.row_bytes(32).expect("a block");
            let mut bytes: Vec<u8> = (0_u8..=250).cycle().take(9 * 9 * size).collect();
            let places =
                bytes.chunks_exact_mut(size).flat_map(|block| block[..2 * factors].chunks_exact_mut(2));
            // One number in five has an odd scale, so that some rows stay finite.
            for (index, place) in places.enumerate() {
                let half = if index % 5 == 1 { halves[index / 5 % halves.len()] } else { 0x8411 };
                place.copy_from_slice(&half.to_le_bytes());
            }
            let head = Head::new(kind, &bytes, 9, COLUMNS, Precision::Native).expect("a matrix");
            let one = head.multiply(&hidden);
            let two = head.multiply(&[hidden.as_slice(), &hidden].concat());
            let finite = one.iter().filter(|number| number.is_finite()).count();
            assert!(finite > 0 && (finite == 9) == (halves.len() == 9), "{kind}: {finite} finite");
            for (one, two) in one.iter().zip(&two) {
                assert!(
                    one.to_bits() == two.to_bits() || (one.is_nan() && two.is_nan()),
                    "{kind} {one} {two}"
                );
            }
        }
    }
}
