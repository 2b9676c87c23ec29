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

/// Each stage alone, at a setting that makes it work.
const SINGLE: &[&str] = &[
    "logit_bias(bias={\"5\": 2.5})",
    "sequence_bias(bias=[[[255],1]])",
    "suppress(ids=[1,2])",
    "bad_words(sequences=[[3],[255,4]])",
    "min_new_tokens(n=1000, eos=[0])",
    "length_decay(start=1, factor=1.01, eos=[0])",
    "repetition_penalty(r=1.1)",
    "presence_penalty(s=0.2)",
    "frequency_penalty(f=0.1)",
    "no_repeat_ngram(n=1)",
    "dry(multiplier=0.8, breakers=[])",
    "temperature(t=0.8)",
    "dynamic_temperature(low=0.5, high=1.5)",
    "top_k(k=40)",
    "top_p(p=0.95)",
    "min_p(m=0.05)",
    "typical(p=0.9)",
    "epsilon(e=0.0003)",
    "eta(e=0.0003)",
    "top_h(h=0.7)",
    "top_a(a=0.2)",
    "tail_free(z=0.95)",
    "top_n_sigma(n=2)",
    "quadratic(factor=0.3)",
    "xtc(probability=1, threshold=0.05)",
    "gumbel_max(seed=7)",
    "mirostat1()",
    "mirostat2()",
    "adaptive_p()",
];

fn main() {
    let history: Vec<TokenId> = (0..256).map(TokenId).collect();
    for vocabulary in [49_152, 131_072, 262_144] {
        for (name, make) in DISTRIBUTIONS.iter().filter(|(name, _)| ["language model", "flat"].contains(name))
        {
            let row = make(vocabulary, 1);
            let single: &[&str] = if vocabulary == 262_144 { SINGLE } else { &[] };
            for text in PIPELINES.iter().chain(single) {
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
