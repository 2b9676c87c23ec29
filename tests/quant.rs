//! Every tensor type against numbers that the Python package `gguf` computed.
//!
//! `tests/quant/generate.py` says how they were made. Equality is exact.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use logitscope::model::quant::{BLOCK, TensorType, UnpackedRow};
use serde_json::Value;

const TYPES: [TensorType; 11] = [
    TensorType::F32,
    TensorType::F16,
    TensorType::BF16,
    TensorType::Q8_0,
    TensorType::Q4_0,
    TensorType::Q4_1,
    TensorType::Q5_0,
    TensorType::Q5_1,
    TensorType::Q4_K,
    TensorType::Q5_K,
    TensorType::Q6_K,
];

struct Row {
    kind: TensorType,
    bytes: Vec<u8>,
    values: Vec<f32>,
}

fn bytes(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn rows() -> Vec<Row> {
    let file: Value = serde_json::from_str(include_str!("quant/rows.json")).unwrap();
    let rows: Vec<Row> = TYPES
        .into_iter()
        .flat_map(|kind| {
            file["types"][kind.to_string()]
                .as_array()
                .unwrap()
                .clone()
                .into_iter()
                .map(move |row| (kind, row))
        })
        .map(|(kind, row)| {
            let values = bytes(&row["values"]);
            let values = values.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
            Row { kind, bytes: bytes(&row["bytes"]), values }
        })
        .collect();
    assert_eq!(rows.len(), 2 * TYPES.len(), "two rows of every type");
    rows
}

#[test]
fn dequantised_rows_are_the_reference_to_the_bit() {
    for Row { kind, bytes, values } in rows() {
        assert_eq!(kind.row_bytes(values.len()), Some(bytes.len()), "{kind}");
        let mut have = vec![f32::NAN; values.len()];
        kind.dequantise(&bytes, &mut UnpackedRow::new(values.len()), &mut have);
        let differ = have.iter().zip(&values).filter(|(have, want)| have != want).count();
        assert_eq!(differ, 0, "{kind}: {differ} of {} numbers differ", values.len());
    }
}

#[test]
fn unpacked_rows_stand_for_the_same_numbers() {
    for Row { kind, bytes, values } in rows().into_iter().filter(|row| row.kind.is_quantised()) {
        let mut row = UnpackedRow::new(values.len());
        kind.unpack(&bytes, &mut row);
        for (i, want) in values.iter().enumerate() {
            let have = row.scales[i / BLOCK] * f32::from(row.quants[i]) + row.offsets[i / BLOCK];
            // `Q6_K` multiplies in another order, so the last bit may differ.
            assert!((have - want).abs() <= want.abs() * f32::EPSILON, "{kind} {i}: {have} {want}");
            assert!(row.quants[i].unsigned_abs() <= 4096, "{kind}");
        }
    }
}
