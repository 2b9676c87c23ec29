//! The numbers that a person can check by hand, one test each.
//!
//! Each is a difference between frameworks, or an example from a course, computed
//! independently of this project.
#![cfg(not(target_arch = "wasm32"))]

use logitscope::random::Randomness;
use logitscope::{Logits, Pipeline, StepContext, TokenId};

/// The row after a pipeline: ids kept, and probabilities by id.
fn run(row: &[f32], pipeline: &str, history: &[u32], prompt_len: usize) -> (Vec<u32>, Vec<f64>, Vec<f64>) {
    let history: Vec<TokenId> = history.iter().copied().map(TokenId).collect();
    let context = StepContext::new(&history, prompt_len, Randomness::default());
    let mut logits = Logits::new(row).expect("a row");
    Pipeline::parse(pipeline).expect(pipeline).reshape(&mut logits, &context).expect(pipeline);
    let kept = logits.support().iter().map(|token| token.0).collect();
    let scores = (0..row.len()).map(|id| logits.score(TokenId(u32::try_from(id).expect("small"))));
    let scores = scores.map(|score| score.unwrap_or(f64::NEG_INFINITY)).collect();
    (kept, logits.probabilities().expect("alive"), scores)
}

fn kept(row: &[f32], pipeline: &str) -> Vec<u32> {
    run(row, pipeline, &[], 0).0
}

fn logs(probs: &[f64]) -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
    probs.iter().map(|p| libm::log(*p) as f32).collect()
}

#[track_caller]
fn about(own: f64, wanted: f64, digits: i32) {
    assert!((own - wanted).abs() <= 0.500_001 * 10f64.powi(-digits), "{own} is not {wanted}");
}

#[test]
fn number_1_the_order_of_temperature_and_top_p() {
    let row = [3.0, 2.0, 1.0];
    let (ids, _, _) = run(&row, "top_p(p=0.8) | temperature(t=0.5)", &[], 0);
    assert_eq!(ids, [0, 1]);
    let (_, raw, _) = run(&row, "", &[], 0);
    for (own, wanted) in raw.iter().zip([0.6652, 0.2447, 0.0900]) {
        about(*own, wanted, 4);
    }
    assert_eq!(kept(&row, "temperature(t=0.5) | top_p(p=0.8)"), [0]);
    about(run(&row, "temperature(t=0.5)", &[], 0).1[0], 0.8668, 4);
}

#[test]
fn number_2_renormalised_after_top_k_or_not() {
    let row = logs(&[0.5, 0.3, 0.2]);
    assert_eq!(kept(&row, "top_k(k=2) | top_p(p=0.6)"), [0]);
    assert_eq!(kept(&row, "top_k(k=2) | top_p(p=0.6, mass=original)"), [0, 1]);
}

#[test]
fn number_3_a_nucleus_at_exact_equality() {
    let row = [1.0, 0.0, 0.0];
    let octave = "temperature(t=1.4426950408889634)";
    assert_eq!(run(&row, octave, &[], 0).1, [0.5, 0.25, 0.25]);
    assert_eq!(kept(&row, &format!("{octave} | top_p(p=0.5)")), [0]);
    assert_eq!(kept(&row, &format!("{octave} | top_p(p=0.5, boundary=exceed)")), [0, 1]);
}

#[test]
fn number_4_ties_at_the_cutoff_of_top_k() {
    let row = logs(&[0.4, 0.3, 0.3]);
    assert_eq!(kept(&row, "top_k(k=2, ties=keep)").len(), 3);
    assert_eq!(kept(&row, "top_k(k=2)"), [0, 1]);
}

#[test]
fn number_5_the_order_of_penalties() {
    let score = |pipeline: &str| run(&[4.0, 0.0], pipeline, &[0, 0], 0).2[0];
    let subtract = "frequency_penalty(f=0.5) | presence_penalty(s=0.5)";
    assert_eq!(score(&format!("repetition_penalty(r=2) | {subtract}")), 0.5);
    assert_eq!(score(&format!("{subtract} | repetition_penalty(r=2)")), 1.25);
}

#[test]
fn number_6_a_penalty_on_logits_and_on_log_probabilities() {
    let probability = |row: &[f32]| run(row, "repetition_penalty(r=2)", &[0], 0).1[0];
    about(run(&[2.0, -1.0], "", &[], 0).1[0], 0.9526, 4);
    about(probability(&[2.0, -1.0]), 0.8808, 4);
    let log_probabilities = logs(&run(&[2.0, -1.0], "", &[], 0).1);
    about(probability(&log_probabilities), 0.9503, 4);
}

#[test]
fn number_7_dry() {
    let (a, b, c, y) = (0, 1, 2, 3);
    let history = [a, b, c, c, b, c, y, a, b, c];
    let scores = run(&[0.0; 4], "dry(multiplier=0.8, base=1.75, breakers=[])", &history, 0).2;
    about(scores[c as usize], -1.4, 6); // L = 3
    about(scores[y as usize], -0.8, 6); // L = 2
    about(scores[b as usize], 0.0, 6); // L = 1
}

#[test]
fn number_10_entropy_typical_order_and_dynamic_temperature() {
    let row = logs(&[0.5, 0.2, 0.15, 0.1, 0.05]);
    about(Logits::new(&row).expect("a row").entropy().expect("alive"), 1.3331, 4);
    let mut order: Vec<u32> = Vec::new();
    for count in 1..=5 {
        for id in kept(&row, &format!("typical(p=0, min_keep={count})")) {
            if !order.contains(&id) {
                order.push(id);
            }
        }
    }
    assert_eq!(order, [1, 2, 0, 3, 4]);
    let mut logits = Logits::new(&row).expect("a row");
    let pipeline = Pipeline::parse("dynamic_temperature(low=0.5, high=1.5)").expect("a pipeline");
    pipeline.reshape(&mut logits, &StepContext::default()).expect("alive");
    about(logits.temperature(), 1.3283, 4);
}

/// The limit that the only stage of a pipeline computes from a row.
fn threshold(row: &[f32], pipeline: &str) -> f64 {
    let mut logits = Logits::new(row).expect("a row");
    let pipeline = Pipeline::parse(pipeline).expect("a pipeline");
    let outcome = pipeline.stages()[0].transform.apply(&mut logits, &StepContext::default());
    outcome.expect("alive").limit.expect("a threshold")
}

#[test]
fn number_11_standard_deviations_with_and_without_masked_tokens() {
    let row = [5.0, 4.0, 1.0, 0.0, -2.0];
    let mut masked = row.to_vec();
    masked.extend([f32::NEG_INFINITY; 5]);
    about(threshold(&row, "top_n_sigma(n=1)"), 5.0 - 2.5768, 4);
    about(threshold(&masked, "top_n_sigma(n=1)"), 2.4232, 4);
    about(threshold(&masked, "top_n_sigma(n=1, deviation=sample)"), 2.9024, 4);
}

#[test]
fn number_12_adaptive_p_and_quadratic() {
    let mut logits = Logits::from_probabilities(&[0.5, 0.3, 0.2]).expect("a row");
    let mut sampler = Pipeline::parse("adaptive_p(target=0.3)").expect("a pipeline").sampler();
    sampler.prepare(&mut logits, &StepContext::default()).expect("alive");
    for (id, wanted) in [(0, 2.3333), (1, 5.0), (2, 4.1667)] {
        about(logits.score(TokenId(id)).expect("alive"), wanted, 4);
    }
    let scores = run(&[5.0, 4.0, 1.0], "quadratic(factor=0.3, curve=1)", &[], 0).2;
    for (own, wanted) in scores.iter().zip([5.0, 4.7, 0.2]) {
        about(*own, wanted, 6);
    }
}

#[test]
fn number_13_the_numbers_of_the_lessons() {
    let row = [2.0, 1.0, 0.0];
    for (t, wanted) in
        [(1.0, [0.665, 0.245, 0.090]), (0.5, [0.867, 0.117, 0.016]), (2.0, [0.506, 0.307, 0.186])]
    {
        let probs = run(&row, &format!("temperature(t={t})"), &[], 0).1;
        for (own, wanted) in probs.iter().zip(wanted) {
            about(*own, wanted, 3);
        }
    }
    let two = run(&row, "top_k(k=2)", &[], 0).1;
    about(two[0], 0.731, 3);
    about(two[1], 0.269, 3);
    for (t, count) in [(0.5, 1), (1.0, 2), (2.0, 2)] {
        let ids = kept(&row, &format!("temperature(t={t}) | top_p(p=0.8)"));
        assert_eq!(ids.len(), count, "T = {t}");
    }
    let two = |t: f64| run(&row, &format!("temperature(t={t})"), &[], 0).1[..2].iter().sum::<f64>();
    about(two(1.0), 0.910, 3);
    about(two(2.0), 0.814, 3);
}
