//! Profiles against independent twins, and against the chains that their frameworks ran.
//!
//! Each case gives a request in a framework's own words, a row, and what a person gets who
//! works the framework's documented steps in f64 ([`twin`]), without this project's engine.
#![cfg(not(target_arch = "wasm32"))]

use logitscope::apply::{Defaults, answer};
use logitscope::profile::copy::{Target, copy};
use logitscope::{Pipeline, profile};
use serde_json::{Value, json};

/// The framework's steps in f64, on probabilities and logits by id; dead tokens are `-∞`.
mod twin {
    pub(super) fn softmax(z: &[f64]) -> Vec<f64> {
        let max = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let e: Vec<f64> = z.iter().map(|x| (x - max).exp()).collect();
        let sum: f64 = e.iter().sum();
        e.iter().map(|x| x / sum).collect()
    }

    fn order(p: &[f64]) -> Vec<usize> {
        let mut ids: Vec<usize> = (0..p.len()).filter(|&id| p[id] > 0.0).collect();
        ids.sort_by(|&a, &b| p[b].total_cmp(&p[a]).then(a.cmp(&b)));
        ids
    }

    fn keep(z: &mut [f64], kept: &[usize]) {
        for (id, x) in z.iter_mut().enumerate() {
            if !kept.contains(&id) {
                *x = f64::NEG_INFINITY;
            }
        }
    }

    pub(super) fn temperature(z: &mut [f64], t: f64) {
        for x in z.iter_mut() {
            *x /= t;
        }
    }

    pub(super) fn top_k(z: &mut [f64], k: usize, ties: bool) {
        let ids = order(&softmax(z));
        let k = k.min(ids.len());
        let last = z[ids[k - 1]];
        let kept: Vec<usize> =
            if ties { ids.into_iter().filter(|&id| z[id] >= last).collect() } else { ids[..k].to_vec() };
        keep(z, &kept);
    }

    /// Mass before a token is below `p`, or at most `p`; of these probabilities.
    pub(super) fn top_p_of(z: &mut [f64], probabilities: &[f64], p: f64, exceed: bool) {
        let mut before = 0.0;
        let alive: Vec<f64> =
            z.iter().zip(probabilities).map(|(x, p)| if x.is_finite() { *p } else { 0.0 }).collect();
        let kept: Vec<usize> = order(&alive)
            .into_iter()
            .filter(|&id| {
                let stays = before < p - 1e-9 || exceed && before <= p + 1e-9 || before == 0.0;
                before += alive[id];
                stays
            })
            .collect();
        keep(z, &kept);
    }

    pub(super) fn top_p(z: &mut [f64], p: f64) {
        let probabilities = softmax(z);
        top_p_of(z, &probabilities, p, false);
    }

    pub(super) fn min_p(z: &mut [f64], m: f64) {
        let p = softmax(z);
        let max = p.iter().copied().fold(0.0, f64::max);
        let kept: Vec<usize> = (0..z.len()).filter(|&id| p[id] >= m * max - 1e-12).collect();
        keep(z, &kept);
    }

    pub(super) fn repetition(z: &mut [f64], seen: &[usize], r: f64) {
        let mut distinct = seen.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        for id in distinct {
            z[id] = if z[id] > 0.0 { z[id] / r } else { z[id] * r };
        }
    }

    pub(super) fn subtract(z: &mut [f64], seen: &[usize], frequency: f64, presence: f64) {
        for (id, x) in z.iter_mut().enumerate() {
            let count = seen.iter().filter(|&&other| other == id).count();
            if count > 0 {
                *x -= frequency * count as f64 + presence;
            }
        }
    }

    pub(super) fn sigma(z: &mut [f64], n: f64, sample: bool) {
        let all: Vec<f64> = if sample {
            z.iter().map(|x| if x.is_finite() { *x } else { 0.0 }).collect()
        } else {
            z.iter().copied().filter(|x| x.is_finite()).collect()
        };
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let squares: f64 = all.iter().map(|x| (x - mean).powi(2)).sum();
        let sigma = (squares / (all.len() as f64 - if sample { 1.0 } else { 0.0 })).sqrt();
        let max = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let kept: Vec<usize> = (0..z.len()).filter(|&id| z[id] >= max - n * sigma - 1e-9).collect();
        keep(z, &kept);
    }

    pub(super) fn argmax(z: &mut [f64]) {
        top_k(z, 1, false);
    }
}

const ROW: [f64; 6] = [3.0, 2.0, 1.5, 1.5, 0.0, -1.0];
const HISTORY: [usize; 4] = [1, 0, 0, 5];
const PROMPT: usize = 1;

type Work = fn(&mut Vec<f64>);

/// Profile, request, and the framework's steps by hand.
const CASES: &[(&str, &str, Work)] = &[
    ("lesson", r#"{"temperature": 0.5, "top_p": 0.8}"#, |z| {
        twin::temperature(z, 0.5);
        twin::top_p(z, 0.8);
    }),
    ("lesson", r#"{"top_k": 3}"#, |z| twin::top_k(z, 3, true)),
    ("lesson", r#"{"temperature": 0}"#, |z| twin::argmax(z)),
    ("lesson", r#"{"rep_penalty": 2, "min_p": 0.2}"#, |z| {
        twin::repetition(z, &HISTORY[PROMPT..], 2.0);
        twin::min_p(z, 0.2);
    }),
    ("lesson", r#"{"top_p": 0.9, "min_p": 0.3, "temperature": 2}"#, |z| {
        twin::temperature(z, 2.0);
        twin::top_p(z, 0.9);
        twin::min_p(z, 0.3);
    }),
    ("transformers", r#"{"do_sample": true, "top_k": 3}"#, |z| twin::top_k(z, 3, true)),
    ("transformers", r#"{"temperature": 0.1}"#, |z| twin::argmax(z)),
    ("transformers", r#"{"do_sample": true, "temperature": 0.5, "top_p": 0.8}"#, |z| {
        twin::temperature(z, 0.5);
        twin::top_p(z, 0.8);
    }),
    ("transformers", r#"{"do_sample": true, "repetition_penalty": 1.5}"#, |z| {
        twin::repetition(z, &HISTORY, 1.5);
    }),
    ("transformers", r#"{"do_sample": true, "min_p": 0.3, "temperature": 2.0}"#, |z| {
        twin::temperature(z, 2.0);
        twin::min_p(z, 0.3);
    }),
    ("llama.cpp", "{}", |z| {
        twin::top_p(z, 0.95);
        twin::min_p(z, 0.05);
        twin::temperature(z, 0.8);
    }),
    ("llama.cpp", r#"{"temp": 0.5, "top_p": 0.8, "min_p": 0}"#, |z| {
        twin::top_p(z, 0.8);
        twin::temperature(z, 0.5);
    }),
    ("llama.cpp", r#"{"top_k": 3, "top_p": 1, "min_p": 0, "temp": 1}"#, |z| twin::top_k(z, 3, false)),
    ("llama.cpp", r#"{"temperature": -1}"#, |z| twin::argmax(z)),
    (
        "llama.cpp",
        r#"{"repeat_penalty": 2, "frequency_penalty": 0.5, "presence_penalty": 0.5, "top_p": 1, "min_p": 0, "temp": 1}"#,
        |z| {
            twin::repetition(z, &HISTORY, 2.0);
            twin::subtract(z, &HISTORY, 0.5, 0.5);
        },
    ),
    ("llama.cpp", r#"{"top_n_sigma": 1, "top_p": 1, "min_p": 0, "temp": 1}"#, |z| twin::sigma(z, 1.0, false)),
    ("vllm", r#"{"logit_bias": {"1": 150, "2": "-inf"}}"#, |z| {
        z[1] += 100.0;
        z[2] -= 100.0;
    }),
    ("vllm", r#"{"temperature": 0.001}"#, |z| twin::temperature(z, 0.01)),
    ("vllm", r#"{"temperature": 0, "top_k": 2}"#, |z| twin::argmax(z)),
    ("vllm", r#"{"top_k": 3, "min_p": 0.1}"#, |z| {
        twin::min_p(z, 0.1);
        twin::top_k(z, 3, true);
    }),
    ("vllm", r#"{"repetition_penalty": 2, "frequency_penalty": 0.5, "presence_penalty": 0.5}"#, |z| {
        twin::repetition(z, &HISTORY, 2.0);
        twin::subtract(z, &HISTORY[PROMPT..], 0.5, 0.5);
    }),
    ("vllm", r#"{"top_k": 2, "top_p": 0.6}"#, |z| {
        twin::top_k(z, 2, true);
        twin::top_p(z, 0.6);
    }),
    ("sglang", r#"{"top_k": 2, "top_p": 0.7}"#, |z| {
        let p = twin::softmax(z);
        twin::top_k(z, 2, false);
        twin::top_p_of(z, &p, 0.7, true);
    }),
    ("sglang", r#"{"temperature": 1e-7}"#, |z| twin::argmax(z)),
    ("sglang", r#"{"repetition_penalty": 2, "frequency_penalty": 0.5}"#, |z| {
        twin::subtract(z, &HISTORY[PROMPT..], 0.5, 0.0);
        twin::repetition(z, &HISTORY[PROMPT..], 2.0);
    }),
    ("sglang", r#"{"top_k": 3}"#, |z| twin::top_k(z, 3, false)),
    ("sglang", r#"{"temperature": 2, "min_p": 0.3}"#, |z| {
        twin::temperature(z, 2.0);
        twin::min_p(z, 0.3);
    }),
    ("koboldcpp", r#"{"temperature": 2, "top_p": 0.8}"#, |z| {
        twin::top_p(z, 0.8);
        twin::temperature(z, 2.0);
    }),
    ("koboldcpp", r#"{"temperature": 2, "top_p": 0.8, "sampler_order": [5, 2]}"#, |z| {
        twin::temperature(z, 2.0);
        twin::top_p(z, 0.8);
    }),
    ("koboldcpp", r#"{"temperature": 0}"#, |z| twin::argmax(z)),
    ("koboldcpp", r#"{"temperature": 0.5, "nsigma": 1}"#, |z| {
        twin::temperature(z, 0.5);
        twin::sigma(z, 1.0, false);
    }),
    ("koboldcpp", r#"{"top_p": 0.9, "min_p": 0.3}"#, |z| {
        twin::top_p(z, 0.9);
        twin::min_p(z, 0.3);
    }),
    ("text-generation-webui", r#"{"top_n_sigma": 1, "temperature": 0.5}"#, |z| {
        twin::sigma(z, 1.0, true);
        twin::temperature(z, 0.5);
    }),
    ("text-generation-webui", r#"{"temperature": 2, "top_p": 0.8}"#, |z| {
        twin::temperature(z, 2.0);
        twin::top_p(z, 0.8);
    }),
    ("text-generation-webui", r#"{"temperature": 2, "top_p": 0.8, "temperature_last": true}"#, |z| {
        twin::top_p(z, 0.8);
        twin::temperature(z, 2.0);
    }),
    ("text-generation-webui", r#"{"frequency_penalty": 0.5}"#, |z| twin::subtract(z, &HISTORY, 0.5, 0.0)),
    ("text-generation-webui", r#"{"do_sample": false, "top_k": 3}"#, |z| twin::argmax(z)),
    ("transformers.js", r#"{"do_sample": true, "top_p": 0.5}"#, |_| {}),
    ("transformers.js", r#"{"do_sample": true, "temperature": 0}"#, |z| twin::argmax(z)),
    ("transformers.js", r#"{"do_sample": true, "top_k": 3}"#, |z| twin::top_k(z, 3, false)),
    ("transformers.js", "{}", |z| twin::argmax(z)),
    ("transformers.js", r#"{"do_sample": true, "repetition_penalty": 1.5, "temperature": 0.5}"#, |z| {
        twin::repetition(z, &HISTORY, 1.5);
        twin::temperature(z, 0.5);
    }),
    ("web-llm", r#"{"top_p": 0.6}"#, |z| twin::top_p(z, 0.6)),
    ("web-llm", r#"{"temperature": 0.5, "top_p": 0.8}"#, |z| {
        twin::temperature(z, 0.5);
        twin::top_p(z, 0.8);
    }),
    ("web-llm", r#"{"repetition_penalty": 2}"#, |z| twin::repetition(z, &HISTORY[PROMPT..], 2.0)),
    ("web-llm", r#"{"frequency_penalty": 0.5, "presence_penalty": 0.25}"#, |z| {
        twin::subtract(z, &HISTORY[PROMPT..], 0.5, 0.25);
    }),
    ("web-llm", r#"{"temperature": 0}"#, |z| twin::temperature(z, 1e-6)),
    ("candle", r#"{"temperature": 1, "top_k": 2, "top_p": 0.7, "repeat_penalty": 1}"#, |z| {
        let p = twin::softmax(z);
        twin::top_k(z, 2, false);
        twin::top_p_of(z, &p, 0.7, false);
    }),
    ("candle", r#"{"repeat_penalty": 1}"#, |z| twin::argmax(z)),
    ("candle", r#"{"temperature": 1, "top_p": 0}"#, |z| twin::repetition(z, &HISTORY, 1.1)),
    ("candle", r#"{"temperature": 0.5, "repeat_penalty": 2, "repeat_last_n": 1}"#, |z| {
        twin::repetition(z, &HISTORY[3..], 2.0);
        twin::temperature(z, 0.5);
    }),
    ("candle", r#"{"temperature": 1, "top_k": 3, "repeat_penalty": 1}"#, |z| twin::top_k(z, 3, false)),
    (
        "mistral.rs",
        r#"{"temperature": 1, "repetition_penalty": 2, "frequency_penalty": 0.5, "presence_penalty": 0.5}"#,
        |z| {
            twin::subtract(z, &HISTORY[PROMPT..], 0.5, 0.5);
            twin::repetition(z, &HISTORY, 2.0);
        },
    ),
    ("mistral.rs", "{}", |z| twin::argmax(z)),
    ("mistral.rs", r#"{"temperature": 1, "top_p": 0}"#, |_| {}),
    ("mistral.rs", r#"{"temperature": 1, "top_k": 2, "top_p": 0.7}"#, |z| {
        twin::top_k(z, 2, false);
        twin::top_p(z, 0.7);
    }),
    ("mistral.rs", r#"{"temperature": 2, "min_p": 0.3}"#, |z| {
        twin::temperature(z, 2.0);
        twin::min_p(z, 0.3);
    }),
    ("rten", "{}", |_| {}),
    ("rten", r#"{"chain": ["top_k", "temperature"], "top_k": 3, "temperature": 0.5}"#, |z| {
        twin::top_k(z, 3, false);
        twin::temperature(z, 0.5);
    }),
    ("rten", r#"{"chain": ["temperature", "top_p"], "temperature": 0.5, "top_p": 0.8}"#, |z| {
        twin::temperature(z, 0.5);
        twin::top_p(z, 0.8);
    }),
    ("rten", r#"{"chain": ["top_p", "temperature"], "temperature": 0.5, "top_p": 0.8}"#, |z| {
        twin::top_p(z, 0.8);
        twin::temperature(z, 0.5);
    }),
    ("rten", r#"{"sampler": "argmax"}"#, |z| twin::argmax(z)),
    ("tgi", "{}", |z| twin::argmax(z)),
    ("tgi", r#"{"temperature": 0.5}"#, |z| twin::temperature(z, 0.5)),
    ("tgi", r#"{"top_k": 3}"#, |z| twin::top_k(z, 3, true)),
    ("tgi", r#"{"repetition_penalty": 1.5, "do_sample": true}"#, |z| twin::repetition(z, &HISTORY, 1.5)),
    ("tgi", r#"{"temperature": 2, "top_k": 4, "top_p": 0.8}"#, |z| {
        twin::temperature(z, 2.0);
        twin::top_k(z, 4, true);
        twin::top_p(z, 0.8);
    }),
    ("openai", r#"{"temperature": 0.5, "top_p": 0.8}"#, |z| {
        twin::temperature(z, 0.5);
        twin::top_p(z, 0.8);
    }),
    ("openai", r#"{"temperature": 0}"#, |z| twin::argmax(z)),
    ("openai", r#"{"frequency_penalty": 0.5, "presence_penalty": 0.25}"#, |z| {
        twin::subtract(z, &HISTORY[PROMPT..], 0.5, 0.25);
    }),
    ("openai", r#"{"logit_bias": {"4": 5}}"#, |z| z[4] += 5.0),
    ("openai", "{}", |_| {}),
    ("anthropic", "{}", |_| {}),
    ("anthropic", r#"{"temperature": 0}"#, |z| twin::argmax(z)),
    ("anthropic", r#"{"top_k": 3}"#, |z| twin::top_k(z, 3, false)),
    ("anthropic", r#"{"temperature": 0.5, "top_p": 0.8}"#, |z| {
        twin::temperature(z, 0.5);
        twin::top_p(z, 0.8);
    }),
    ("anthropic", r#"{"top_p": 0.6}"#, |z| twin::top_p(z, 0.6)),
];

fn probabilities(answer: &Value) -> Result<Vec<f64>, String> {
    let stages = answer["stages"].as_array().ok_or_else(|| answer.to_string())?;
    let last = stages.last().ok_or("no stage")?;
    let mut all = vec![0.0; ROW.len()];
    for (id, p) in
        last["ids"].as_array().into_iter().flatten().zip(last["probs"].as_array().into_iter().flatten())
    {
        let id = id.as_u64().and_then(|id| usize::try_from(id).ok()).ok_or("an id")?;
        all[id] = p.as_f64().ok_or("a number")?;
    }
    Ok(all)
}

fn run(name: &str, params: &str) -> Value {
    let params: Value = serde_json::from_str(params).expect("JSON");
    let profile = profile::find(name).expect("a profile");
    let defaults = Defaults { profile: Some((profile, params)), ..Defaults::default() };
    let request = json!({ "logits": ROW, "history": HISTORY, "prompt_len": PROMPT, "u": 0.5 });
    answer(&request.to_string(), &defaults)
}

#[test]
fn profiles_do_what_their_frameworks_do() {
    let mut failures = Vec::new();
    for name in profile::names() {
        let cases = CASES.iter().filter(|(known, ..)| *known == name).count();
        if cases < 5 {
            failures.push(format!("{name}: {cases} cases, at least five are due"));
        }
    }
    for (name, params, work) in CASES {
        let mut z = ROW.to_vec();
        work(&mut z);
        let wanted = twin::softmax(&z);
        let answer = run(name, params);
        match probabilities(&answer) {
            Ok(own) if own.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-6) => {}
            other => failures
                .push(format!("{name} {params}: {} gives {other:?}, not {wanted:?}", answer["pipeline"])),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_same_request_differs_between_frameworks() {
    // Every profile gives another answer than some other one to a request in common words.
    let request = r#"{"temperature": 0.5, "top_p": 0.8}"#;
    let first = |name: &str| {
        let request = match name {
            "transformers" | "transformers.js" => r#"{"do_sample": true, "temperature": 0.5, "top_p": 0.8}"#,
            "rten" => r#"{"chain": ["top_p", "temperature"], "temperature": 0.5, "top_p": 0.8}"#,
            _ => request,
        };
        probabilities(&run(name, request)).unwrap_or_else(|why| panic!("{name}: {why}"))
    };
    let answers: Vec<_> = profile::names().into_iter().map(|name| (name, first(name))).collect();
    for (name, own) in &answers {
        let other = answers.iter().find(|(_, p)| p.iter().zip(own).any(|(a, b)| (a - b).abs() > 1e-4));
        assert!(other.is_some(), "{name} differs from nobody");
    }
}

#[test]
fn what_a_framework_refuses_is_refused_by_name() {
    for (name, params, param) in [
        ("transformers", r#"{"temperature": 0}"#, "temperature"),
        ("vllm", r#"{"top_p": 0}"#, "top_p"),
        ("vllm", r#"{"temperature": 2.5}"#, "temperature"),
        ("openai", r#"{"presence_penalty": 3}"#, "presence_penalty"),
        ("anthropic", r#"{"temperature": 1.5}"#, "temperature"),
        ("tgi", r#"{"temperature": 0}"#, "temperature"),
        ("llama.cpp", r#"{"samplers": ["top_q"]}"#, "samplers"),
        ("llama.cpp", r#"{"top_k": 2.5}"#, "top_k"),
    ] {
        let answer = run(name, params);
        assert_eq!(answer["error"]["param"], json!(param), "{name} {params}: {answer}");
    }
}

#[test]
fn notes_say_what_is_ignored_replaced_and_unknown() {
    for (name, params, code) in [
        ("transformers.js", r#"{"top_p": 0.5}"#, "ignored"),
        ("transformers", "{}", "on_by_default"),
        ("vllm", r#"{"temperature": 0.001}"#, "replaced"),
        ("openai", r#"{"temperature": 0.5, "top_p": 0.8}"#, "unknown_order"),
        ("koboldcpp", r#"{"rep_pen_slope": 0.5}"#, "not_expressed"),
        ("sglang", r#"{"top_p": 0.5}"#, "differs"),
    ] {
        let answer = run(name, params);
        let notes = answer["profile"]["notes"].as_array().unwrap_or_else(|| panic!("{name}: {answer}"));
        assert!(notes.iter().any(|note| note["code"] == code), "{name} {params}: {notes:?}");
    }
    let both = run("openai", r#"{"temperature": 0.5, "top_p": 0.8}"#);
    assert_eq!(both["profile"]["alternatives"].as_array().map(Vec::len), Some(1));
}

/// A request as a client sends it or a file keeps it, and the part of it that a step depends on.
const BODIES: &[(&str, &str, &str)] = &[
    ("lesson", r#"{"logits": [1, 2], "generated": [0], "top_p": 0.9}"#, r#"{"top_p": 0.9}"#),
    (
        "transformers",
        r#"{"bos_token_id": 1, "do_sample": true, "eos_token_id": [2, 3], "max_new_tokens": 64, "pad_token_id": 0,
            "num_beams": 1, "num_return_sequences": 1, "stop_strings": ["\n\n"], "temperature": 0.6, "top_p": 0.9,
            "use_cache": true, "transformers_version": "5.24.0"}"#,
        r#"{"do_sample": true, "eos_token_id": [2, 3], "max_new_tokens": 64, "temperature": 0.6, "top_p": 0.9}"#,
    ),
    (
        "llama.cpp",
        r#"{"prompt": "Once", "n_predict": 64, "cache_prompt": true, "id_slot": -1, "n_keep": 0, "n_probs": 5,
            "stop": ["\n"], "stream": true, "grammar": "", "logit_bias": [], "ignore_eos": false, "seed": 4294967295,
            "temperature": 0.5, "timings_per_token": false, "speculative.n_max": 16, "lora": []}"#,
        r#"{"temperature": 0.5}"#,
    ),
    (
        "vllm",
        r#"{"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": false, "n": 2, "max_tokens": 32,
            "logprobs": true, "top_logprobs": 5, "stop": ["\n"], "user": "me", "tools": [], "tool_choice": "auto",
            "temperature": 0.5, "extra_body": {"top_k": 3, "ignore_eos": true}}"#,
        r#"{"temperature": 0.5, "top_k": 3}"#,
    ),
    (
        "sglang",
        r#"{"text": "Once", "sampling_params": {"temperature": 0.5, "max_new_tokens": 16, "stop": ["."]},
            "stream": true, "return_logprob": true}"#,
        r#"{"temperature": 0.5}"#,
    ),
    (
        "koboldcpp",
        r#"{"prompt": "Once", "max_context_length": 2048, "max_length": 80, "stop_sequence": ["."], "trim_stop": true,
            "genkey": "K", "quiet": true, "rep_pen": 1.1, "rep_pen_slope": 1, "logit_bias": {}, "memory": ""}"#,
        r#"{"rep_pen": 1.1}"#,
    ),
    (
        "text-generation-webui",
        r#"{"prompt": "Once", "max_tokens": 16, "preset": null, "truncation_length": 0, "grammar_string": "",
            "custom_token_bans": "", "ban_eos_token": false, "guidance_scale": 1, "min_p": 0.1, "stream": true}"#,
        r#"{"min_p": 0.1}"#,
    ),
    (
        "transformers.js",
        r#"{"max_new_tokens": 64, "do_sample": true, "pad_token_id": 0, "return_full_text": false, "top_k": 3}"#,
        r#"{"do_sample": true, "top_k": 3}"#,
    ),
    (
        "web-llm",
        r#"{"messages": [], "stream": true, "stream_options": {"include_usage": true}, "n": 1, "top_p": 0.5}"#,
        r#"{"top_p": 0.5}"#,
    ),
    ("candle", r#"{"prompt": "Once", "sample_len": 64, "temperature": 0.5}"#, r#"{"temperature": 0.5}"#),
    (
        "mistral.rs",
        r#"{"model": "default", "messages": [], "max_tokens": 64, "stop": ["."], "temperature": 0.5}"#,
        r#"{"temperature": 0.5}"#,
    ),
    ("rten", r#"{"prompt": [1], "chain": ["top_k"], "top_k": 3}"#, r#"{"chain": ["top_k"], "top_k": 3}"#),
    (
        "tgi",
        r#"{"inputs": "Once", "stream": true, "parameters": {"temperature": 0.5, "max_new_tokens": 20, "details": true,
            "return_full_text": false, "stop": ["."], "best_of": null}}"#,
        r#"{"temperature": 0.5}"#,
    ),
    (
        "openai",
        r#"{"model": "m", "messages": [], "max_tokens": 9, "n": 1, "stop": null, "logprobs": true, "top_p": 0.5}"#,
        r#"{"top_p": 0.5}"#,
    ),
    (
        "anthropic",
        r#"{"model": "m", "max_tokens": 1024, "system": "Be brief.", "messages": [], "stop_sequences": ["."],
            "stream": true, "metadata": {"user_id": "me"}, "top_k": 3}"#,
        r#"{"top_k": 3}"#,
    ),
];

fn translate(name: &str, params: &str) -> logitscope::Result<profile::Translation> {
    let params = serde_json::from_str(params).unwrap_or_else(|error| panic!("{params}: {error}"));
    profile::find(name)?.translate(&params, 1)
}

/// The messages of the notes of one kind.
fn messages(name: &str, params: &str, code: &str) -> Vec<String> {
    let found = translate(name, params).unwrap_or_else(|error| panic!("{name} {params}: {error}"));
    let notes = found.notes.into_iter().filter(|note| note.code == code);
    notes.map(|note| note.message).collect()
}

#[test]
fn a_whole_request_is_read_and_one_note_names_what_is_not_about_a_step() {
    for name in profile::names() {
        assert!(BODIES.iter().any(|(known, ..)| *known == name), "{name} has no request");
    }
    for (name, body, step) in BODIES {
        let whole = translate(name, body).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(whole.pipeline, translate(name, step).expect("translated").pipeline, "{name}");
        let told = messages(name, body, "not_a_step");
        assert_eq!(told.len(), 1, "{name}: {told:?}");
        let body: Value = serde_json::from_str(body).expect("JSON");
        let step: Value = serde_json::from_str(step).expect("JSON");
        for (field, value) in body.as_object().expect("an object") {
            let inner: Vec<&String> = match value {
                Value::Object(inner)
                    if ["extra_body", "parameters", "sampling_params"].contains(&field.as_str()) =>
                {
                    inner.keys().collect()
                }
                _ => vec![field],
            };
            let parameters = profile::find(name).expect("a profile").parameters;
            for field in inner {
                let is_parameter = parameters.iter().any(|param| param.name == *field);
                assert!(step.get(field).is_none() || is_parameter, "{name}: {field}");
                let named = told[0]
                    .split("A run here")
                    .next()
                    .is_some_and(|list| list.contains(&format!("`{field}`")));
                assert_ne!(named, is_parameter, "{name}: {field}: {}", told[0]);
            }
        }
    }
    // What a run can be given here is said.
    assert_eq!(
        messages(
            "vllm",
            r#"{"prompt": "Once", "max_tokens": 5, "stop": ["."], "n": 2, "user": "me"}"#,
            "not_a_step"
        ),
        [
            "Not about one step: `prompt`, `max_tokens`, `stop`, `n`, `user`. A run here can be given the same: \
          stop strings (`stop`), the length (`max_tokens`), the number of samples (`n`), the prompt (`prompt`)."
        ]
    );
    // A constraint changes the step, so it is told apart.
    let told = messages("vllm", r#"{"response_format": {"type": "json_object"}}"#, "not_expressed");
    assert!(told.len() == 1 && told[0].contains("`response_format`"), "{told:?}");
    assert!(messages("vllm", r#"{"response_format": {"type": "text"}}"#, "not_expressed").is_empty());
    assert!(messages("transformers", r#"{"num_beams": 1}"#, "not_expressed").is_empty());
    assert_eq!(messages("transformers", r#"{"num_beams": 4}"#, "not_expressed").len(), 1);
}

#[test]
fn a_misspelt_field_is_refused_with_the_nearest_name() {
    for (name, field, near) in [
        ("vllm", "temprature", Some("temperature")),
        ("vllm", "max_token", Some("max_tokens")),
        ("llama.cpp", "n_predictt", Some("n_predict")),
        ("llama.cpp", "repeat_penality", Some("repeat_penalty")),
        ("transformers", "pad_token", Some("pad_token_id")),
        ("openai", "top_k", Some("top_p")),
        ("openai", "xyzzy", None),
        ("lesson", "model", None),
    ] {
        let error = translate(name, &format!("{{\"{field}\": 1}}")).expect_err("an unknown field");
        assert_eq!(error.code.as_str(), "unknown_param");
        assert_eq!(error.param.as_deref(), Some(field));
        match near {
            Some(near) => assert!(error.message.ends_with(&format!("did you mean `{near}`?")), "{error}"),
            None => assert!(error.message.contains("; it has temperature, "), "{error}"),
        }
    }
}

#[test]
fn every_refusal_is_told() {
    let error = translate("vllm", r#"{"temperature": 3, "top_p": 0, "topk": 1, "presence_penalty": "a"}"#)
        .expect_err("four faults");
    for part in ["`topk`", "temperature = 3", "top_p = 0", "presence_penalty is \"a\""] {
        assert!(error.message.contains(part), "{part}: {error}");
    }
    assert_eq!(error.param.as_deref(), Some("topk"));
    let error =
        translate("llama.cpp", r#"{"samplers": ["top_q", "top_p", "tempt"]}"#).expect_err("two names");
    assert!(error.message.contains("`top_q`, `tempt`"), "{error}");
    let error =
        translate("openai", r#"{"logit_bias": {"1": 101, "2": 100, "3": -101}}"#).expect_err("two biases");
    assert!(error.message.contains("of 1 is 101") && error.message.contains("of 3 is -101"), "{error}");
    assert_eq!(error.code.as_str(), "out_of_range");

    // Copied code tells them too, and what else is different.
    let text = "temperature(t=3) | repetition_penalty(r=5) | typical(p=0.9) | frequency_penalty(f=0.5)";
    let copied = copy(&Pipeline::parse(text).expect("a pipeline"), Target::VllmJson).expect("copied");
    let told: Vec<_> =
        copied.warnings.iter().map(|note| (note.code.as_str(), note.param.as_deref())).collect();
    assert_eq!(
        told,
        [("refused", Some("temperature")), ("refused", Some("repetition_penalty")), ("not_expressed", None)],
        "{:?}",
        copied.warnings
    );
}

#[test]
fn llama_cpp_takes_biases_as_pairs_and_as_an_object() {
    let biased = |bias: &str| -> String {
        let params = format!(r#"{{"samplers": [], "logit_bias": {bias}}}"#);
        translate("llama.cpp", &params).unwrap_or_else(|error| panic!("{bias}: {error}")).pipeline
    };
    for (bias, stage) in [
        ("[[15043, 1.0]]", r#"logit_bias(bias={"15043":1.0}) | "#),
        ("[[1, -2], [2, false]]", r#"logit_bias(bias={"1":-2,"2":"-inf"}) | "#),
        (r#"[["7", 0.5], [7, 1], [8, 1], [8, false]]"#, r#"logit_bias(bias={"7":1.5,"8":"-inf"}) | "#),
        (r#"{"3": 2, "4": false}"#, r#"logit_bias(bias={"3":2,"4":"-inf"}) | "#),
        ("[]", ""),
    ] {
        assert_eq!(biased(bias).split("categorical").next(), Some(stage), "{bias}");
    }
    for (name, bias, code, part) in [
        ("llama.cpp", r#"[["Hello, World!", -0.5]]"#, "needs_vocabulary", "Hello, World!"),
        ("llama.cpp", r#"{"Hello": -0.5}"#, "needs_vocabulary", "Hello"),
        ("llama.cpp", "[[1, true]]", "wrong_type", "true"),
        ("llama.cpp", "[[1]]", "wrong_type", "[1]"),
        ("llama.cpp", "[[-1, 2]]", "wrong_type", "-1"),
        ("llama.cpp", "3", "wrong_type", "3"),
        ("vllm", "[[1, 2]]", "wrong_type", "must be an object"),
        ("vllm", r#"{"1": false}"#, "wrong_type", "false"),
        ("openai", r#"{"Hello": 1}"#, "wrong_type", "Hello"),
        ("openai", r#"{"1": 150}"#, "out_of_range", "150"),
        ("web-llm", r#"{"1": -150}"#, "out_of_range", "-150"),
    ] {
        let error = translate(name, &format!(r#"{{"logit_bias": {bias}}}"#)).expect_err(bias);
        assert_eq!((error.code.as_str(), error.param.as_deref()), (code, Some("logit_bias")), "{error}");
        assert!(error.message.contains(part), "{error}");
    }
    let refused = translate("llama.cpp", r#"{"logit_bias": [["a b", 1], ["c", 2]]}"#).expect_err("two texts");
    assert!(refused.message.contains("\"a b\"") && refused.message.contains("\"c\""), "{refused}");
}

#[test]
fn what_a_setting_switches_off_is_listed() {
    for (name, params, wanted) in [
        (
            "transformers",
            r#"{"do_sample": false, "temperature": 0.7, "top_p": 0.9, "min_p": null, "repetition_penalty": 1.1}"#,
            vec!["Ignored, because do_sample is false: temperature, top_p."],
        ),
        ("transformers", r#"{"do_sample": true, "temperature": 0.7}"#, vec![]),
        ("transformers", r#"{"do_sample": false}"#, vec![]),
        (
            "vllm",
            r#"{"temperature": 0, "top_k": 5, "seed": 1}"#,
            vec!["Ignored, because greedy resets them: top_k."],
        ),
        (
            "llama.cpp",
            r#"{"samplers": ["temperature"], "top_k": 40, "xtc_probability": 0.5, "xtc_threshold": 0.1}"#,
            vec![
                "Ignored, because samplers does not name top_k: top_k.",
                "Ignored, because samplers does not name xtc: xtc_probability, xtc_threshold.",
            ],
        ),
        (
            "llama.cpp",
            r#"{"mirostat": 2, "top_k": 40, "temperature": 0.7}"#,
            vec!["Ignored, because mirostat replaces the chain: top_k."],
        ),
        (
            "mistral.rs",
            r#"{"temperature": 1, "min_p": 1}"#,
            vec!["A min_p of 1 is off. Only tokens above the limit stay, and none is above the likeliest."],
        ),
    ] {
        assert_eq!(messages(name, params, "ignored"), wanted, "{name} {params}");
    }
}

#[test]
fn defaults_that_do_not_act_are_not_told() {
    let on = |params: &str| messages("llama.cpp", params, "on_by_default");
    assert_eq!(on("{}").len(), 4);
    assert_eq!(on(r#"{"samplers": ["min_p"]}"#), ["min_p 0.05 is on by default."]);
    assert_eq!(on(r#"{"samplers": []}"#), Vec::<String>::new());
    assert_eq!(on(r#"{"mirostat": 2}"#).len(), 1);
    assert!(messages("llama.cpp", "{}", "differs").iter().any(|note| note.contains("long tails")));
    assert!(
        !messages("llama.cpp", r#"{"samplers": []}"#, "differs").iter().any(|note| note.contains("tails"))
    );
}

/// With a range, llama.cpp takes its temperature from the entropy, even around 0.
#[test]
fn a_dynamic_temperature_around_zero_is_not_greedy() {
    for (params, wanted) in [
        (
            r#"{"temperature": 0, "dynatemp_range": 0.5}"#,
            "dynamic_temperature(low=0, high=0.5, exponent=1, entropy_over=alive) | categorical()",
        ),
        (
            r#"{"temperature": -0.25, "dynatemp_range": 0.5}"#,
            "dynamic_temperature(low=0, high=0.25, exponent=1, entropy_over=alive) | categorical()",
        ),
        (r#"{"temperature": -1, "dynatemp_range": 0.5}"#, "greedy()"),
        (r#"{"temperature": 0, "dynatemp_range": 0}"#, "greedy()"),
    ] {
        let params = params.replace('{', r#"{"samplers": ["temperature"], "#);
        assert_eq!(translate("llama.cpp", &params).expect("translated").pipeline, wanted, "{params}");
        let told = messages("llama.cpp", &params, "differs");
        assert_eq!(told.iter().any(|note| note.contains("is not greedy")), wanted != "greedy()", "{told:?}");
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "how much ran is worth reading")]
fn chains_agree_with_the_frameworks_that_ran_them() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/chains.json");
    let oracle: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("the oracle")).expect("JSON");
    let mut failures = Vec::new();
    for (group, name, ran) in
        [("hf", "transformers", 45), ("llama_cpp", "llama.cpp", 36), ("vllm", "vllm", 36)]
    {
        let cases = oracle[group].as_array().expect("cases");
        for case in cases {
            let mut params = case["params"].clone();
            if name == "transformers" {
                params["do_sample"] = json!(true);
            }
            let profile = profile::find(name).expect("a profile");
            let defaults = Defaults { profile: Some((profile, params.clone())), ..Defaults::default() };
            let ids = |field: &str| case[field].as_array().cloned().unwrap_or_default();
            let (history, prompt_len) = if name == "vllm" {
                ([ids("prompt_ids"), ids("output_ids")].concat(), ids("prompt_ids").len())
            } else {
                (ids("history"), 0)
            };
            let mut request = json!({ "history": history, "prompt_len": prompt_len, "u": 0.5 });
            for field in ["logits", "logits_spec"] {
                if !case[field].is_null() {
                    request[field] = case[field].clone();
                }
            }
            let answer = answer(&request.to_string(), &defaults);
            if let Err(why) = agrees(
                &answer,
                &case["expected"],
                CHAIN_TIES.contains(&case["id"].as_str().unwrap_or_default()),
            ) {
                failures.push(format!("{} {params}: {}: {why}", case["id"], answer["pipeline"]));
            }
        }
        println!("chains of {name}: {} cases", cases.len());
        assert_eq!(cases.len(), ran);
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// Chains in which a tie decides the members, or llama.cpp's f32 sums stop short of `top_p`:
/// the count must agree to 0.3 %, the members need not.
const CHAIN_TIES: &[&str] = &[
    "chain_hf/080",
    "chain_hf/082",
    "chain_hf/086",
    "chain_llama_cpp/058",
    "chain_llama_cpp/064",
    "chain_llama_cpp/066",
    "chain_llama_cpp/070",
    "chain_vllm/064",
    "chain_vllm/066",
    "chain_vllm/070",
];

fn agrees(answer: &Value, expected: &Value, tie: bool) -> Result<(), String> {
    let stage = answer["stages"].as_array().and_then(|stages| stages.last()).ok_or(answer.to_string())?;
    let ids: Vec<u64> = stage["ids"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let wanted = expected["kept_count"].as_u64().ok_or("no count")?;
    if tie {
        let close = (ids.len() as f64 - wanted as f64).abs() <= 0.003 * wanted as f64;
        return if close { Ok(()) } else { Err(format!("kept {}, not {wanted}", ids.len())) };
    }
    if ids.len() as u64 != wanted {
        return Err(format!("kept {}, not {wanted}", ids.len()));
    }
    if let Some(fnv) = expected["kept_fnv"].as_str() {
        let bytes = ids.iter().flat_map(|&id| u32::try_from(id).expect("an id").to_le_bytes());
        let own = format!("{:016x}", logitscope::model::fnv::fnv_1a(bytes));
        if own != fnv {
            return Err(format!("hash of the kept ids is {own}, not {fnv}"));
        }
    }
    let own = |field: &str, id: u64| -> f64 {
        ids.binary_search(&id)
            .ok()
            .and_then(|place| stage[field][place].as_f64())
            .unwrap_or(f64::NEG_INFINITY)
    };
    let close = |own: f64, wanted: f64| own == wanted || (own - wanted).abs() <= 1e-4 * wanted.abs() + 1e-9;
    for (id, wanted) in expected["logits"].as_array().into_iter().flatten().enumerate() {
        let wanted = wanted.as_f64().unwrap_or(f64::NEG_INFINITY);
        if !close(own("scores", id as u64), wanted) {
            return Err(format!("score of {id} is {}, not {wanted}", own("scores", id as u64)));
        }
    }
    for row in expected["probe"].as_array().into_iter().flatten() {
        let id = row[0].as_u64().ok_or("an id")?;
        for (field, wanted) in [("scores", &row[1]), ("probs", &row[2])] {
            let Some(wanted) = wanted.as_f64() else { continue };
            if wanted > f64::MIN && wanted != 0.0 && !close(own(field, id), wanted) {
                return Err(format!("{field} of {id} is {}, not {wanted}", own(field, id)));
            }
        }
    }
    Ok(())
}

/// A sampler that is not in llama.cpp's list does not run, whatever its parameters say.
#[test]
fn llama_cpp_runs_the_samplers_it_is_given() {
    for (params, sampler) in [
        (r#"{"temperature": 0, "samplers": ["top_p"]}"#, "categorical"),
        (r#"{"temperature": 0, "samplers": ["top_p", "temperature"]}"#, "greedy"),
        (r#"{"temperature": 0, "mirostat": 2, "samplers": []}"#, "greedy"),
        (r#"{"adaptive_target": 0.5}"#, "categorical"),
        (r#"{"adaptive_target": 0.5, "samplers": ["adaptive_p"]}"#, "adaptive_p"),
    ] {
        let params_read = serde_json::from_str(params).expect("JSON");
        let found = profile::find("llama.cpp").and_then(|llama| llama.translate(&params_read, 0));
        let pipeline = Pipeline::parse(&found.expect("translated").pipeline).expect("a pipeline");
        assert_eq!(pipeline.sampler_args().spec.id, sampler, "{params}");
    }
}

#[test]
fn copied_settings_mean_the_pipeline_or_warn() {
    for (text, target, wanted) in [
        (
            "temperature(t=0.7) | top_k(k=40, ties=keep) | top_p(p=0.9) | categorical(seed=7)",
            Target::Transformers,
            "transformers.set_seed(7)\nmodel.generate(**inputs, do_sample=True, top_k=40, temperature=0.7, top_p=0.9)",
        ),
        (
            "top_k(k=40) | top_p(p=0.9) | temperature(t=0.7) | categorical(seed=7)",
            Target::LlamaCppFlags,
            "--temp 0.7 --top-k 40 --top-p 0.9 --min-p 0.0 --seed 7 --samplers \"top_k;top_p;temperature\"",
        ),
        (
            "repetition_penalty(r=1.1) | greedy()",
            Target::VllmJson,
            r#"{"repetition_penalty":1.1,"temperature":0.0}"#,
        ),
        (
            "min_p(m=0.05) | temperature(t=1.5) | categorical()",
            Target::LlamaCppJson,
            r#"{"temperature":1.5,"top_k":0,"top_p":1.0,"min_p":0.05,"samplers":["min_p","temperature"]}"#,
        ),
        (
            "top_p(p=0.9) | greedy()",
            Target::LlamaCppFlags,
            "--temp 0.0 --top-k 0 --top-p 0.9 --min-p 0.0 --samplers \"top_p;temperature\"",
        ),
        (
            "top_k(k=40) | adaptive_p(target=0.3, decay=0.9)",
            Target::LlamaCppJson,
            r#"{"temperature":1.0,"top_k":40,"top_p":1.0,"min_p":0.0,"adaptive_target":0.3,"adaptive_decay":0.9,"samplers":["top_k","adaptive_p"]}"#,
        ),
        // Biases add up, and a ban stays one; what stands between them adds as well.
        (
            "logit_bias(bias={\"1\": 1.5, \"2\": \"-inf\"}) | presence_penalty(s=0.5, scope=context) | \
             logit_bias(bias={\"1\": -0.5, \"2\": 3, \"4\": 2})",
            Target::LlamaCppJson,
            r#"{"temperature":1.0,"top_k":0,"top_p":1.0,"min_p":0.0,"logit_bias":[[1,1.0],[2,false],[4,2]],"presence_penalty":0.5,"repeat_last_n":-1,"samplers":["penalties"]}"#,
        ),
        (
            "suppress(ids=[1]) | temperature(t=0.5) | suppress(ids=[2])",
            Target::Transformers,
            "model.generate(**inputs, do_sample=True, top_k=0, suppress_tokens=[1, 2], temperature=0.5)",
        ),
    ] {
        let copied = copy(&Pipeline::parse(text).expect("a pipeline"), target).expect("copied");
        assert_eq!(copied.text, wanted);
        assert!(copied.warnings.is_empty(), "{text}: {:?}", copied.warnings);
    }
    for (text, target, code) in [
        ("top_p(p=0.9) | temperature(t=0.7)", Target::VllmPython, "order"),
        ("typical(p=0.9)", Target::VllmJson, "not_expressed"),
        ("top_k(k=40)", Target::Transformers, "differs"),
        ("mirostat2()", Target::Transformers, "differs"),
        ("frequency_penalty(f=0.5)", Target::LlamaCppFlags, "differs"),
        ("tail_free(z=0.9)", Target::LlamaCppJson, "not_expressed"),
        ("temperature(t=3)", Target::VllmPython, "refused"),
        ("logit_bias(bias={\"3\": 150})", Target::VllmJson, "differs"),
        ("temperature(t=2) | temperature(t=2)", Target::Transformers, "not_expressed"),
        ("dry(multiplier=0.8, breakers=[])", Target::VllmJson, "not_expressed"),
        ("dry(multiplier=0.8, breakers=[[5, 6]])", Target::LlamaCppJson, "not_expressed"),
        ("top_p(p=0.9, min_keep=3)", Target::LlamaCppFlags, "differs"),
        ("mirostat1(m=20)", Target::LlamaCppFlags, "differs"),
    ] {
        let copied = copy(&Pipeline::parse(text).expect("a pipeline"), target).expect("copied");
        assert!(copied.warnings.iter().any(|warning| warning.code == code), "{text}: {:?}", copied.warnings);
    }
}

#[test]
fn copied_code_is_warned_about_for_each_pair_whose_order_matters() {
    let orders = |text: &str, target| -> Vec<String> {
        let copied = copy(&Pipeline::parse(text).expect("a pipeline"), target).expect("copied");
        let orders = copied.warnings.into_iter().filter(|warning| warning.code == "order");
        orders.map(|warning| warning.message).collect()
    };
    let applies = |pairs: &[(&str, &str)]| -> Vec<String> {
        pairs.iter().map(|(a, b)| format!("the framework applies {a} before {b}")).collect()
    };
    let text = "top_p(p=0.9) | min_p(m=0.1) | top_k(k=40, ties=keep) | temperature(t=0.7)";
    assert_eq!(
        orders(text, Target::VllmPython),
        applies(&[
            ("min_p", "top_p"),
            ("top_k", "top_p"),
            ("temperature", "top_p"),
            ("temperature", "min_p")
        ])
    );
    let text = "top_k(k=40, ties=keep) | min_p(m=0.1) | temperature(t=1) | repetition_penalty(r=1)";
    assert_eq!(orders(text, Target::VllmPython), applies(&[]));
    let text = "top_k(k=40, ties=keep) | temperature(t=0.7)";
    assert_eq!(orders(text, Target::VllmPython), applies(&[]));
    let text = "temperature(t=0.7) | repetition_penalty(r=1.2)";
    assert_eq!(orders(text, Target::VllmPython), applies(&[]));
    let text = "temperature(t=0.7) | logit_bias(bias={\"1\": 2})";
    assert_eq!(orders(text, Target::VllmPython), applies(&[("logit_bias", "temperature")]));
}

/// Two lists are not one where what stands between them would be done to the second as well.
#[test]
fn lists_are_merged_only_where_that_is_exact() {
    let text = "logit_bias(bias={\"1\": 2}) | temperature(t=0.5) | logit_bias(bias={\"3\": 4})";
    let copied = copy(&Pipeline::parse(text).expect("a pipeline"), Target::VllmJson).expect("copied");
    assert!(copied.warnings.iter().any(|warning| warning.code == "not_expressed"), "{:?}", copied.warnings);
}
