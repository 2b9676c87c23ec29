//! How long one decoding step takes natively: `cargo bench --bench step`.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark prints and may panic"
)]

use std::time::Instant;

use logitscope::{
    Logits, Pipeline, StepContext, TokenId,
    random::Randomness,
    sampler::Pick,
    testing::DISTRIBUTIONS,
    trace::{Off, Recorder},
};

const PIPELINES: &[&str] = &[
    "greedy()",
    "categorical(seed=7)",
    "top_k(k=40) | categorical(seed=7)",
    "top_p(p=0.95) | categorical(seed=7)",
    "repetition_penalty(r=1.1) | presence_penalty(s=0.2) | frequency_penalty(f=0.1) | temperature(t=0.8) \
     | top_k(k=40) | top_p(p=0.95) | min_p(m=0.05) | categorical(seed=7)",
];

fn main() {
    let history: Vec<TokenId> = (0..256).map(TokenId).collect();
    for vocabulary in [49_152, 131_072, 262_144] {
        for (name, make) in DISTRIBUTIONS.iter().filter(|(name, _)| ["language model", "flat"].contains(name))
        {
            let row = make(vocabulary, 1);
            for text in PIPELINES {
                let pipeline = Pipeline::parse(text).unwrap();
                let mut logits = Logits::unfilled();
                let mut run = |recorded: bool| {
                    let times: Vec<f64> = (0..25)
                        .map(|position| {
                            let context =
                                StepContext::new(&history, 16, Randomness { seed: 7, sample: 0, position });
                            let mut sampler = pipeline.sampler();
                            let start = Instant::now();
                            if recorded {
                                let mut recorder = Recorder::new(20);
                                pipeline
                                    .decode(
                                        &row,
                                        &mut logits,
                                        &context,
                                        &mut *sampler,
                                        Pick::Seeded,
                                        &mut recorder,
                                    )
                                    .unwrap();
                            } else {
                                pipeline
                                    .decode(
                                        &row,
                                        &mut logits,
                                        &context,
                                        &mut *sampler,
                                        Pick::Seeded,
                                        &mut Off,
                                    )
                                    .unwrap();
                            }
                            start.elapsed().as_secs_f64() * 1e3
                        })
                        .collect();
                    // The least disturbed of them: these machines are shared.
                    times.into_iter().fold(f64::INFINITY, f64::min)
                };
                let (bare, recorded) = (run(false), run(true));
                println!(
                    "V {vocabulary:>6}  {name:<14}  {bare:>7.3} ms  recorded {recorded:>7.3} ms  {text}"
                );
            }
        }
    }
}
