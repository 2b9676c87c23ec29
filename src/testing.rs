//! Made-up rows of logits that tests and benchmarks share: a few that look like a language
//! model's, and many that do not and have broken samplers before.

use crate::random::splitmix;

/// A name, and a function from vocabulary size and seed to a row of finite scores.
pub type Distribution = (&'static str, fn(usize, u64) -> Vec<f32>);

/// Every made-up distribution.
pub const DISTRIBUTIONS: &[Distribution] = &[
    ("language model", language_model),
    ("normal", |n, seed| normal(n, seed, 3.0)),
    ("peaked", peaked),
    ("flat", |n, seed| normal(n, seed, 0.01)),
    ("all equal", |n, _| vec![1.5; n]),
    ("heavy ties", |n, seed| normal(n, seed, 2.0).into_iter().map(libm::roundf).collect()),
    ("bfloat16", |n, seed| {
        normal(n, seed, 3.0).into_iter().map(|x| f32::from_bits(x.to_bits() & 0xffff_0000)).collect()
    }),
    ("dyadic", |n, seed| {
        let mut state = seed;
        (0..n).map(|_| -((splitmix(&mut state) >> 60) as f32)).collect()
    }),
    ("zipf", zipf),
    ("subnormal", |n, seed| {
        let mut state = seed;
        (0..n).map(|_| f32::from_bits((splitmix(&mut state) >> 44) as u32)).collect()
    }),
    ("huge", |n, seed| normal(n, seed, 1e37).into_iter().map(|x| x.clamp(f32::MIN, f32::MAX)).collect()),
    ("neighbours", |n, seed| {
        let mut state = seed;
        (0..n).map(|_| f32::from_bits(0x4120_0000 + (splitmix(&mut state) >> 61) as u32)).collect()
    }),
    ("highest last", |n, seed| {
        let mut row = normal(n, seed, 1.0);
        if let Some(last) = row.last_mut() {
            *last = 30.0;
        }
        row
    }),
    ("signed zeros", |n, seed| {
        let mut state = seed;
        (0..n).map(|_| if splitmix(&mut state) >> 63 == 1 { 0.0 } else { -0.0 }).collect()
    }),
    ("masked by a billion", |n, seed| {
        let mut row = normal(n, seed, 2.0);
        for x in row.iter_mut().skip(3).step_by(2) {
            *x = -1e9;
        }
        row
    }),
];

/// A sum of twelve uniforms, close enough to a normal and exactly reproducible.
fn standard(state: &mut u64) -> f64 {
    (0..12).map(|_| crate::random::unit(splitmix(state))).sum::<f64>() - 6.0
}

#[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
fn normal(n: usize, seed: u64, scale: f64) -> Vec<f32> {
    let mut state = seed;
    (0..n).map(|_| (standard(&mut state) * scale) as f32).collect()
}

/// A broad bulk and a few hundred strong candidates, as trained models give.
#[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
fn language_model(n: usize, seed: u64) -> Vec<f32> {
    let mut row = normal(n, seed, 2.2);
    let mut state = seed ^ 0x5eed;
    for rank in 0..n.min(300) {
        let id = (splitmix(&mut state) % n as u64) as usize;
        row[id] = (16.0 - 1.6 * libm::log(1.0 + rank as f64) + 0.3 * standard(&mut state)) as f32;
    }
    row
}

fn peaked(n: usize, seed: u64) -> Vec<f32> {
    let mut row = normal(n, seed, 1.0);
    row[n / 2] = 25.0;
    row
}

#[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
fn zipf(n: usize, seed: u64) -> Vec<f32> {
    let mut row: Vec<f32> = (0..n).map(|rank| -(libm::log(rank as f64 + 1.0) as f32)).collect();
    let mut state = seed;
    for i in (1..n).rev() {
        row.swap(i, (splitmix(&mut state) % (i as u64 + 1)) as usize);
    }
    row
}
