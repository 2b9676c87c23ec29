//! Holds `apply` to numbers that other implementations computed.
//!
//! The files in `tests/oracle/` are inputs and results of transformers 5.24.0, llama.cpp
//! (llama-cpp-python 0.3.36), vLLM's torch functions and text-generation-webui's samplers
//! ("ooba"); `tests/oracle/README.md` says how they were made. For each file a [`Suite`] says
//! which pipeline text reproduces which of these peers. All failures are reported at once, the
//! number of comparisons that ran is asserted, and every exception is listed with its reason.

use logitscope::apply::{Defaults, answer};
use serde_json::{Value, json};

/// Some peers, and the pipeline that reproduces them for a case's parameters.
type Reproduction = (&'static [&'static str], fn(&Value) -> String);

/// One file of the oracle.
struct Suite {
    /// Its name in `tests/oracle/`.
    file: &'static str,
    /// How many cases it has.
    cases: usize,
    /// How many comparisons with a peer must run.
    comparisons: usize,
    /// Groups of peers, and the pipeline that reproduces them.
    pipelines: &'static [Reproduction],
    /// Case, peer, and why that peer's answer is not ours.
    exceptions: &'static [(&'static str, &'static str, &'static str)],
}

const EARLY_STOP: &str = "llama.cpp adds f32 probabilities and stops short of p; f64 agrees with ours";

const TIE: &str = "a tie decides the members; the peer's sort is not by id, ours keeps the lower id";

const SUITES: &[Suite] = &[
    Suite {
        file: "stage_temperature",
        cases: 18,
        comparisons: 50,
        pipelines: &[(&["hf", "vllm", "llama_cpp"], |p| format!("temperature(t={})", p["temperature"]))],
        exceptions: &[],
    },
    Suite {
        file: "stage_top_k",
        cases: 20,
        comparisons: 59,
        pipelines: &[
            (&["hf", "vllm"], |p| format!("top_k(k={}, ties=keep)", p["top_k"])),
            (&["llama_cpp"], |p| format!("top_k(k={})", p["top_k"])),
        ],
        exceptions: &[],
    },
    Suite {
        file: "stage_top_p",
        cases: 31,
        comparisons: 81,
        pipelines: &[(&["hf", "vllm", "llama_cpp"], |p| {
            format!("top_p(p={}, min_keep={})", p["top_p"], min_keep(p))
        })],
        exceptions: &[
            ("top_p/034", "hf", TIE),
            ("top_p/034", "vllm", TIE),
            ("top_p/034", "llama_cpp", TIE),
            ("top_p/052", "llama_cpp", EARLY_STOP),
            ("top_p/054", "llama_cpp", EARLY_STOP),
            ("top_p/056", "hf", TIE),
            ("top_p/056", "vllm", TIE),
            ("top_p/056", "llama_cpp", EARLY_STOP),
        ],
    },
    Suite {
        file: "stage_min_p",
        cases: 21,
        comparisons: 62,
        pipelines: &[(&["hf", "vllm", "llama_cpp"], |p| {
            format!("min_p(m={}, min_keep={})", p["min_p"], min_keep(p))
        })],
        exceptions: &[],
    },
    Suite {
        file: "stage_repetition_penalty",
        cases: 14,
        comparisons: 56,
        pipelines: &[(&["hf", "vllm", "llama_cpp", "ooba"], |p| {
            format!("repetition_penalty(r={})", p["penalty"])
        })],
        exceptions: &[],
    },
    Suite {
        file: "stage_freq_presence_penalty",
        cases: 16,
        comparisons: 48,
        pipelines: &[(&["vllm", "llama_cpp", "ooba"], |p| {
            format!(
                "frequency_penalty(f={}, scope=context) | presence_penalty(s={}, scope=context)",
                p["frequency"], p["presence"]
            )
        })],
        exceptions: &[],
    },
    Suite {
        file: "stage_all_penalties",
        cases: 7,
        comparisons: 21,
        pipelines: &[(&["vllm", "llama_cpp", "ooba"], all_penalties)],
        exceptions: &[],
    },
    Suite {
        file: "stage_penalty_window",
        cases: 2,
        comparisons: 4,
        pipelines: &[(&["llama_cpp", "ooba"], all_penalties)],
        exceptions: &[],
    },
];

fn all_penalties(p: &Value) -> String {
    let window = p.get("last_n").unwrap_or(&json!(0)).clone();
    format!(
        "repetition_penalty(r={}, window={window}) | frequency_penalty(f={}, scope=context, window={window}) \
         | presence_penalty(s={}, scope=context, window={window})",
        p["penalty"], p["frequency"], p["presence"]
    )
}

fn min_keep(params: &Value) -> u64 {
    // Some peers count 0 and 1 alike: at least one token always stays.
    params.get("min_keep").and_then(Value::as_u64).unwrap_or(1).max(1)
}

fn load(file: &str) -> Value {
    let path = format!("{}/tests/oracle/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).expect("the oracle is JSON")
}

#[test]
#[expect(clippy::print_stdout, reason = "how much ran is worth reading")]
fn every_public_case_agrees() {
    let mut failures = Vec::new();
    for suite in SUITES {
        let oracle = load(suite.file);
        let cases = oracle["cases"].as_array().expect("cases");
        let (mut comparisons, mut excepted) = (0, 0);
        for case in cases {
            let id = case["id"].as_str().expect("an id");
            for (peer, expected) in case["expected"].as_object().expect("peers") {
                if expected.get("error").is_some() {
                    continue; // the peer refuses this parameter; ours has a test of its own
                }
                if suite.exceptions.iter().any(|(case, other, _)| *case == id && other == peer) {
                    excepted += 1;
                    continue;
                }
                let Some((_, pipeline)) =
                    suite.pipelines.iter().find(|(peers, _)| peers.contains(&peer.as_str()))
                else {
                    failures.push(format!("{id}: no pipeline for {peer}"));
                    continue;
                };
                comparisons += 1;
                if let Err(why) = compare(case, expected, &pipeline(&case["params"])) {
                    failures.push(format!("{id} ({peer}): {why}"));
                }
            }
        }
        println!("{}: {} cases, {comparisons} comparisons, {excepted} exceptions", suite.file, cases.len());
        for (what, ran, wanted) in [
            ("cases", cases.len(), suite.cases),
            ("comparisons", comparisons, suite.comparisons),
            ("exceptions", excepted, suite.exceptions.len()),
        ] {
            if ran != wanted {
                failures.push(format!("{}: {ran} {what} ran, not {wanted}", suite.file));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// Runs one case and holds the last stage's answer to a peer's.
fn compare(case: &Value, expected: &Value, pipeline: &str) -> Result<(), String> {
    let mut request = json!({ "id": case["id"], "u": 0.5, "pipeline": pipeline });
    for (to, from) in [
        ("logits", &case["logits"]),
        ("logits_spec", &case["logits_spec"]),
        ("history", &case["params"]["history"]),
    ] {
        if !from.is_null() {
            request[to] = from.clone();
        }
    }
    let answer = answer(&request.to_string(), &Defaults::default());
    let stage = answer["stages"].as_array().and_then(|stages| stages.last());
    let stage = stage.ok_or_else(|| format!("{pipeline} gave {answer}"))?;
    agree(case, expected, stage).map_err(|why| format!("{pipeline}: {why}"))
}

fn agree(case: &Value, expected: &Value, stage: &Value) -> Result<(), String> {
    let numbers = |list: &Value| -> Vec<u64> {
        list.as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
    };
    let ids = numbers(&stage["ids"]);
    let cautious = case["caution"].as_array().is_some_and(|caution| !caution.is_empty());
    if cautious {
        // On a cutoff, or decided by a tie: any peer's count will do.
        let counts: Vec<_> = case["expected"].as_object().into_iter().flatten().collect();
        let counts: Vec<u64> = counts
            .iter()
            .flat_map(|(_, peer)| [&peer["kept_count"], &peer["f64"]["kept_count"]])
            .filter_map(Value::as_u64)
            .collect();
        return if counts.contains(&(ids.len() as u64)) {
            Ok(())
        } else {
            Err(format!("kept {}, peers kept {counts:?}", ids.len()))
        };
    }
    if expected["kept_count"] != json!(ids.len()) {
        return Err(format!("kept {} tokens, not {}", ids.len(), expected["kept_count"]));
    }
    if !expected["kept"].is_null() && numbers(&expected["kept"]) != ids {
        return Err(format!("kept {ids:?}, not {}", expected["kept"]));
    }
    if let Some(fnv) = expected["kept_fnv"].as_str() {
        let bytes = ids.iter().flat_map(|&id| u32::try_from(id).expect("an id").to_le_bytes());
        let own = format!("{:016x}", logitscope::model::fnv::fnv_1a(bytes));
        if own != fnv {
            return Err(format!("hash of the kept ids is {own}, not {fnv}"));
        }
    }
    let tolerance = if case["logits"].is_null() { 1e-4 } else { 3e-5 };
    let own = |field: &str, id: usize| -> Option<f64> {
        let place = ids.binary_search(&(id as u64)).ok()?;
        stage[field][place].as_f64()
    };
    let check = |what: &str, id: usize, value: Option<f64>, wanted: &Value| match wanted.as_f64() {
        // "-inf", or a probability of 0: dead.
        None => value.map_or(Ok(()), |value| Err(format!("{what} of {id} is {value}, not {wanted}"))),
        Some(wanted) => {
            let value = value.unwrap_or(0.0);
            let close = (value - wanted).abs() <= tolerance * wanted.abs() + 1e-12;
            if close { Ok(()) } else { Err(format!("{what} of {id} is {value}, not {wanted}")) }
        }
    };
    for (field, name) in [("logits", "scores"), ("probs", "probs")] {
        for (id, wanted) in expected[field].as_array().into_iter().flatten().enumerate() {
            check(field, id, own(name, id), wanted)?;
        }
    }
    for row in expected["probe"].as_array().into_iter().flatten() {
        let id = usize::try_from(row[0].as_u64().ok_or("a probe without id")?)
            .map_err(|error| error.to_string())?;
        check("logit", id, own("scores", id), &row[1])?;
        check("prob", id, own("probs", id), &row[2])?;
    }
    if let Some(wanted) = expected["entropy"].as_f64() {
        let value = stage["entropy"].as_f64().unwrap_or(f64::NAN);
        if (value - wanted).abs() > 1e-4 * wanted.abs() + 1e-6 {
            return Err(format!("entropy is {value}, not {wanted}"));
        }
    }
    Ok(())
}
