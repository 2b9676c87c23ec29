//! How long a constraint's mask takes at each step, beside the pass of the model:
//! `cargo bench --bench constraint`.
//!
//! With `SmolLM2` in `cache/` or `LOGITSCOPE_SMOLLM2` the vocabulary has 49,152 tokens;
//! without it the default model's is measured.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark prints and may panic"
)]

use std::{env, fs, time::Instant};

use logitscope::{
    Logits, Pipeline, StepContext,
    constraint::{no_files, open as compile},
    model::{Precision, open},
    random::Randomness,
};

const CONSTRAINTS: &[&str] = &[
    r#"regex("[a-z]+@[a-z]+\\.(com|org)")"#,
    "json()",
    r#"json_schema({"type": "object", "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}, "age": {"type": "integer"}}, "required": ["name", "tags", "age"]})"#,
    "sql_select()",
];

const STEPS: u32 = 60;

fn main() {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/cache/SmolLM2-135M-Instruct.Q4_1.gguf");
    let path = env::var("LOGITSCOPE_SMOLLM2").unwrap_or_else(|_| kept.to_owned());
    let shipped: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.gguf"));
    let bytes = fs::read(&path).unwrap_or_else(|_| shipped.to_vec());
    let model = open(bytes, Precision::Native).unwrap();
    println!("{:?}, {} tokens", model.info().name, model.vocab().len());
    let prompt = model.tokenize("The answer is", true, true).unwrap();
    let pipeline = Pipeline::parse("temperature(t=0.8) | categorical(seed=7)").unwrap();
    for text in CONSTRAINTS {
        let begin = Instant::now();
        let fresh = compile(&model, text, &no_files).unwrap();
        let compiled = begin.elapsed().as_secs_f64() * 1e3;
        let (mut masks, mut commits, mut passes) = (Vec::new(), Vec::new(), Vec::new());
        // Several walks, since the end may come early.
        let mut walk = 0;
        while u32::try_from(masks.len()).unwrap() < STEPS && walk < 20 {
            walk += 1;
            let mut follower = fresh.fork();
            let mut state = model.start();
            let mut row = state.advance(&prompt, 1).unwrap().pop().unwrap();
            let mut logits = Logits::unfilled();
            for position in 0..STEPS {
                let begin = Instant::now();
                let mask = follower.allowed().unwrap().clone();
                masks.push(begin.elapsed().as_secs_f64() * 1e3);
                if mask.count() == 0 {
                    break;
                }
                logits.refill(&row).unwrap();
                logits.retain(|token| mask.contains(token.index()));
                let randomness = Randomness { seed: 7, sample: walk, position };
                let context = StepContext::new(&prompt, prompt.len(), randomness);
                pipeline.reshape(&mut logits, &context).unwrap();
                let u = context.draw(logitscope::random::Purpose::Token);
                let token = logitscope::sampler::Draw::by_mass(&mut logits, u).unwrap().token;
                let begin = Instant::now();
                follower.commit(token).unwrap();
                commits.push(begin.elapsed().as_secs_f64() * 1e3);
                let begin = Instant::now();
                row = state.advance(&[token], 1).unwrap().pop().unwrap();
                passes.push(begin.elapsed().as_secs_f64() * 1e3);
            }
        }
        println!(
            "{:<60} compile {compiled:7.2} ms  mask median {:.3} worst {:.3} ms  commit median {:.3} ms  pass \
             median {:.2} ms  ({} steps)",
            text.chars().take(60).collect::<String>(),
            median(&mut masks),
            masks.last().unwrap(),
            median(&mut commits),
            median(&mut passes),
            masks.len(),
        );
    }
}

/// The middle one; the list is sorted by it, so its last is the worst.
fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}
