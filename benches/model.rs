//! Tokens a second of the forward pass, on one thread.
//!
//! Where the system tells it (Linux), time is the thread's own processor time, so that other
//! work on the machine disturbs little; elsewhere it is the clock's.
//!
//! `cargo bench --bench model` measures the default model, and SmolLM2 where
//! `LOGITSCOPE_SMOLLM2` names its file or the tests have left it in `cache/`. Its peer,
//! llama.cpp, is measured in the same way by `benches/llama_cpp.py`.
#![expect(clippy::print_stdout, reason = "a bench reports on standard output")]

use std::{error::Error, fs, path::PathBuf, time::Instant};

use logitscope::{
    TokenId,
    model::{LanguageModel, Precision, open},
};

const GENERATED: usize = 64;
const REPEATS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let smollm2 = std::env::var_os("LOGITSCOPE_SMOLLM2")
        .map_or_else(|| root.join("cache/SmolLM2-135M-Instruct.Q4_1.gguf"), PathBuf::from);
    println!("{:<10} {:<8} {:>16} {:>16}", "model", "mode", "prompt tok/s", "generate tok/s");
    for (name, path, prompt) in
        [("default", root.join("models/default.gguf"), 128), ("SmolLM2", smollm2, 256)]
    {
        let Ok(bytes) = fs::read(&path) else {
            println!("{name}: {} is not there, so it is not measured", path.display());
            continue;
        };
        for precision in [Precision::Native, Precision::F32] {
            let model = open(bytes.clone(), precision)?;
            let (prompt, generated) = measure(&*model, prompt)?;
            println!("{name:<10} {:<8} {prompt:>16.1} {generated:>16.1}", format!("{precision:?}"));
        }
    }
    Ok(())
}

/// Seconds of this thread's processor time, or of the clock.
#[derive(Debug)]
struct Stopwatch {
    clock: Instant,
    processor: Option<f64>,
}

impl Stopwatch {
    fn start() -> Self {
        Self { clock: Instant::now(), processor: processor_seconds() }
    }

    fn seconds(&self) -> f64 {
        match (self.processor, processor_seconds()) {
            (Some(from), Some(to)) => to - from,
            _ => self.clock.elapsed().as_secs_f64(),
        }
    }
}

fn processor_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? * 1e-9)
}

/// The best of some runs: tokens a second of a prompt read at once, and of tokens one by one.
fn measure(model: &dyn LanguageModel, length: usize) -> Result<(f64, f64), Box<dyn Error>> {
    let text =
        "The quick brown fox jumps over the lazy dog, and then it runs back home before the rain starts. ";
    let ids = model.tokenize(&text.repeat(length / 8), true, true)?;
    let ids = ids.get(..length).ok_or("the prompt is too short")?;
    let (mut prompt, mut generated) = (0.0_f64, 0.0_f64);
    for _ in 0..REPEATS {
        let mut state = model.start();
        let start = Stopwatch::start();
        let mut row = state.advance(ids, 1)?;
        prompt = prompt.max(length as f64 / start.seconds());
        let start = Stopwatch::start();
        for _ in 0..GENERATED {
            row = state.advance(&[best(&row[0])], 1)?;
        }
        generated = generated.max(GENERATED as f64 / start.seconds());
    }
    Ok((prompt, generated))
}

fn best(row: &[f32]) -> TokenId {
    let best = (0..).zip(row).max_by(|a, b| a.1.total_cmp(b.1));
    TokenId(best.map_or(0, |(id, _)| id))
}
