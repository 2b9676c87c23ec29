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

const F32_ENTROPY: &str = "llama.cpp sums the entropy of 50,257 tokens in f32; ooba agrees with ours";

const DRAW: &str = "whether XTC acts at probability 0.5 is up to the peer's own random numbers";

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
    Suite {
        file: "stage_sequence_bias",
        cases: 3,
        comparisons: 3,
        pipelines: &[(&["hf"], |p| format!("sequence_bias(bias={})", p["bias"]))],
        exceptions: &[],
    },
    Suite {
        file: "stage_bad_words",
        cases: 5,
        comparisons: 5,
        pipelines: &[(&["hf"], |p| format!("bad_words(sequences={})", p["bad_words"]))],
        exceptions: &[],
    },
    Suite {
        file: "stage_no_repeat_ngram",
        cases: 10,
        comparisons: 10,
        pipelines: &[(&["hf"], |p| format!("no_repeat_ngram(n={})", p["ngram"]))],
        exceptions: &[],
    },
    Suite {
        file: "stage_dynatemp",
        cases: 20,
        comparisons: 34,
        pipelines: &[
            (&["llama_cpp"], |p| dynamic_temperature(p, "all")),
            (&["ooba"], |p| dynamic_temperature(p, "alive")),
        ],
        exceptions: &[("dynatemp/036", "llama_cpp", F32_ENTROPY), ("dynatemp/038", "llama_cpp", F32_ENTROPY)],
    },
    Suite {
        file: "stage_typical_p",
        cases: 21,
        comparisons: 38,
        pipelines: &[
            (&["hf"], |p| format!("typical(p={}, min_keep={})", p["typical_p"], min_keep(p))),
            (&["llama_cpp"], |p| {
                format!("typical(p={}, boundary=exceed, min_keep={})", p["typical_p"], min_keep(p))
            }),
        ],
        exceptions: &[
            ("typical_p/008", "llama_cpp", TIE),
            ("typical_p/010", "llama_cpp", TIE),
            ("typical_p/036", "llama_cpp", EARLY_STOP),
            ("typical_p/038", "llama_cpp", TIE),
        ],
    },
    Suite {
        file: "stage_epsilon_cutoff",
        cases: 20,
        comparisons: 20,
        pipelines: &[(&["hf"], |p| format!("epsilon(e={})", p["epsilon"]))],
        exceptions: &[],
    },
    Suite {
        file: "stage_eta_cutoff",
        cases: 20,
        comparisons: 20,
        pipelines: &[(&["hf"], |p| format!("eta(e={})", p["epsilon"]))],
        exceptions: &[],
    },
    Suite {
        file: "stage_top_h",
        cases: 18,
        comparisons: 16,
        pipelines: &[(&["hf"], |p| format!("top_h(h={})", p["top_h"]))],
        exceptions: &[("top_h/004", "hf", TIE), ("top_h/006", "hf", TIE)],
    },
    Suite {
        file: "stage_top_a",
        cases: 30,
        comparisons: 30,
        pipelines: &[(&["ooba"], |p| format!("top_a(a={})", p["top_a"]))],
        exceptions: &[],
    },
    Suite {
        file: "stage_tail_free",
        cases: 16,
        comparisons: 16,
        pipelines: &[(&["ooba"], |p| format!("tail_free(z={})", p["tfs"]))],
        exceptions: &[],
    },
    Suite {
        file: "stage_top_n_sigma",
        cases: 25,
        comparisons: 50,
        pipelines: &[
            (&["llama_cpp"], |p| format!("top_n_sigma(n={})", p["n"])),
            (&["ooba"], |p| format!("top_n_sigma(n={}, deviation=sample)", p["n"])),
        ],
        exceptions: &[],
    },
    Suite {
        file: "stage_xtc",
        cases: 34,
        comparisons: 54,
        pipelines: &[(&["llama_cpp", "ooba"], |p| {
            format!(
                "xtc(probability={}, threshold={}, min_keep={})",
                p["probability"],
                p["threshold"],
                min_keep(p)
            )
        })],
        exceptions: &[
            ("xtc/056", "llama_cpp", DRAW),
            ("xtc/058", "llama_cpp", DRAW),
            ("xtc/060", "llama_cpp", DRAW),
            ("xtc/062", "llama_cpp", DRAW),
            ("xtc/064", "llama_cpp", DRAW),
            ("xtc/066", "llama_cpp", DRAW),
        ],
    },
];

/// Both peers take a temperature and what it may move by; without that it is an ordinary one.
fn dynamic_temperature(p: &Value, entropy_over: &str) -> String {
    let (temperature, delta) = (p["temp"].as_f64().expect("temp"), p["delta"].as_f64().expect("delta"));
    if delta == 0.0 {
        return format!("temperature(t={temperature})");
    }
    format!(
        "dynamic_temperature(low={}, high={}, exponent={}, entropy_over={entropy_over})",
        (temperature - delta).max(0.0),
        temperature + delta,
        p["exponent"]
    )
}

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

/// Case, peer, and why that peer's answer is not ours.
const DRY_EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("dry/008", "llama_cpp", "a base below 1 switches the peer off; here it is a base like any other"),
    (
        "dry/010",
        "llama_cpp",
        "a window of 0 switches the peer off; here it is the whole history, and the profile says so",
    ),
    ("dry/036", "ooba", "the peer takes the last token of the encoded text alone as the breaker"),
    ("dry/038", "ooba", "the peer takes the last token of the encoded text alone as the breaker"),
];

/// Texts that stand for the ids in the cases with breakers.
const DRY_TEXTS: &[(usize, &str)] = &[
    (30, "."),
    (42, ":"),
    (49, "A"),
    (65, "Q"),
    (198, "\n"),
    (504, "The"),
    (582, " you"),
    (827, " ask"),
    (1296, " me"),
    (2643, " sat"),
    (2644, " cat"),
    (9786, "cat"),
];

#[test]
#[expect(clippy::print_stdout, reason = "how much ran is worth reading")]
fn every_dry_penalty_agrees() {
    let oracle = load("dry");
    let mut texts = vec!["?"; 10_000];
    for (id, text) in DRY_TEXTS {
        texts[*id] = text;
    }
    let vocab = logitscope::Vocab::from_texts(&texts);
    let defaults = Defaults { vocab: Some(&vocab), ..Defaults::default() };
    let row = vec![0.0f32; texts.len()];
    let (mut comparisons, mut failures) = (0, Vec::new());
    let cases = oracle["cases"].as_array().expect("cases");
    for case in cases {
        let (id, p) = (case["id"].as_str().expect("an id"), &case["params"]);
        for (peer, expected) in case["expected"].as_object().expect("peers") {
            if DRY_EXCEPTIONS.iter().any(|(case, other, _)| *case == id && other == peer) {
                continue;
            }
            // llama.cpp looks for texts in the vocabulary; ooba has ids.
            let breakers = if peer == "llama_cpp" { &p["breakers"] } else { &p["breaker_token_ids"] };
            let pipeline = format!(
                "dry(multiplier={}, base={}, allowed_length={}, window={}, breakers={breakers})",
                p["dry_multiplier"], p["dry_base"], p["dry_allowed_length"], p["dry_penalty_last_n"]
            );
            let request =
                json!({ "logits": row, "history": case["history"], "pipeline": pipeline, "u": 0.5 });
            let answer = answer(&request.to_string(), &defaults);
            let scores = answer["stages"][0]["scores"].as_array();
            let Some(scores) = scores.filter(|scores| scores.len() == row.len()) else {
                failures.push(format!("{id} ({peer}): {pipeline} gave {}", answer["error"]));
                continue;
            };
            comparisons += 1;
            for (token, score) in scores.iter().enumerate() {
                let wanted = expected["penalty"][token.to_string()].as_f64().unwrap_or(0.0);
                let own = -score.as_f64().expect("a number");
                if (own - wanted).abs() > 3e-5 * wanted {
                    failures.push(format!("{id} ({peer}): the penalty of {token} is {own}, not {wanted}"));
                }
            }
        }
    }
    println!("dry: {} cases, {comparisons} comparisons, {} exceptions", cases.len(), DRY_EXCEPTIONS.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!((cases.len(), comparisons), (22, 37));
}

#[test]
#[expect(clippy::print_stdout, reason = "how much ran is worth reading")]
fn every_step_of_mirostat_agrees() {
    let oracle = load("mirostat");
    let (mut steps, mut excepted, mut failures) = (0, 0, Vec::new());
    for case in oracle["cases"].as_array().expect("cases") {
        let p = &case["params"];
        let pipeline = match p["version"].as_u64() {
            Some(1) => format!("mirostat1(tau={}, eta={}, m={})", p["tau"], p["eta"], p["m"]),
            _ => format!("mirostat2(tau={}, eta={})", p["tau"], p["eta"]),
        };
        for (place, step) in case["trajectory"].as_array().expect("steps").iter().enumerate() {
            let request = json!({
                "logits_spec": step["logits_spec"],
                "state": { "mu": step["mu_before"] },
                "force": step["selected_token"],
                "pipeline": pipeline,
            });
            let answer = answer(&request.to_string(), &Defaults::default());
            let at = format!("{} step {place}: {pipeline}", case["id"]);
            let stage = &answer["stages"][0];
            // llama.cpp casts k to an int without a bound, so that it keeps one token when k
            // exceeds 2^31; ours stops at V.
            if step["kept_count"] == 1 && stage["alive"] == step["logits_spec"]["n"] {
                excepted += 1;
                continue;
            }
            steps += 1;
            if stage["alive"] != step["kept_count"] {
                failures.push(format!("{at}: kept {}, not {}", stage["alive"], step["kept_count"]));
                continue;
            }
            let ids = stage["ids"].as_array().expect("ids");
            if !step["kept_top"].as_array().expect("ids").iter().all(|id| ids.contains(id)) {
                failures.push(format!("{at}: {} are not all kept", step["kept_top"]));
            }
            let (own, wanted) =
                (answer["state"]["mu"].as_f64().unwrap_or(f64::NAN), step["mu_after"].as_f64().expect("mu"));
            if (own - wanted).abs() > 1e-3 {
                failures.push(format!("{at}: mu is {own}, not {wanted}"));
            }
        }
    }
    println!("mirostat: {steps} steps, {excepted} exceptions");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!((steps, excepted), (91, 13));
}

/// A processor in the peer's words, and the pipeline that reproduces it; for the length
/// processors, how much of the history is the prompt.
const PROCESSORS: &[(&str, &str, usize)] = &[
    ("MinLength(min_length=2,eos=5)", "min_new_tokens(n=2, eos=[5])", 0),
    ("MinLength(min_length=3,eos=5)", "min_new_tokens(n=3, eos=[5])", 0),
    ("MinLength(min_length=4,eos=5)", "min_new_tokens(n=4, eos=[5])", 0),
    ("ForcedEOS(max_length=4,eos=5)", "forced_tokens(at={\"3\": 5})", 0),
    ("ForcedBOS(bos=1)", "forced_tokens(at={\"1\": 1})", 0),
    (
        "ExponentialDecayLengthPenalty(start_index=3,factor=1.5,eos=5,input_ids_seq_length=2)",
        "length_decay(start=3, factor=1.5, eos=[5])",
        2,
    ),
    (
        "ExponentialDecayLengthPenalty(start_index=0,factor=1.1,eos=5,input_ids_seq_length=3)",
        "length_decay(start=0, factor=1.1, eos=[5])",
        3,
    ),
];

#[test]
#[expect(clippy::print_stdout, reason = "how much ran is worth reading")]
fn every_length_and_forcing_processor_agrees() {
    let oracle = load("processors_misc");
    let (mut ran, mut left_out, mut failures) = (0, 0, Vec::new());
    for case in oracle["cases"].as_array().expect("cases") {
        let name = case["proc"].as_str().expect("a name");
        let Some((_, pipeline, prompt_len)) = PROCESSORS.iter().find(|(known, ..)| *known == name) else {
            // Guidance needs a second row, encoder penalties an encoder's input.
            assert!(name.starts_with("ClassifierFree") || name.starts_with("Encoder"), "{name}");
            left_out += 1;
            continue;
        };
        ran += 1;
        let request = json!({
            "logits": case["logits"], "history": case["history"], "prompt_len": prompt_len,
            "pipeline": pipeline, "u": 0.5,
        });
        let answer = answer(&request.to_string(), &Defaults::default());
        let stage = &answer["stages"][0];
        for (token, wanted) in case["out"].as_array().expect("logits").iter().enumerate() {
            let ids = stage["ids"].as_array().expect("ids");
            let own =
                ids.iter().position(|id| *id == token).and_then(|place| stage["scores"][place].as_f64());
            let close = match (own, wanted.as_f64()) {
                (Some(own), Some(wanted)) => (own - wanted).abs() <= 3e-5 * wanted.abs(),
                (own, wanted) => own.is_none() && wanted.is_none(),
            };
            if !close {
                failures.push(format!("{name}: the score of {token} is {own:?}, not {wanted}"));
            }
        }
    }
    println!("processors_misc: {ran} processors, {left_out} left out");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!((ran, left_out), (7, 2));
}
