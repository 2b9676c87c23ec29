//! Does speculative output follow the target's distribution? Many runs, counted.
//!
//! [`run`] generates short sequences many times and holds how often each came to the exact
//! probability that the target and the pipeline give it. A [`Fault`] can be switched on; then
//! the distance grows and the test fails.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;

use crate::{
    TokenId,
    error::{Error, ErrorCode, Result},
    logits::Logits,
    model::LanguageModel,
    random::Randomness,
    statistics::{ChiSquare, chi_square, total_variation},
    step::StepContext,
    strategy::{
        sample::Request,
        speculative::{Fault, Options, Speculation, Summary},
    },
};

/// What is tried.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The model whose distribution is to be met.
    pub target: Arc<dyn LanguageModel>,
    /// The draft model, unless the prompt drafts.
    pub draft: Option<Arc<dyn LanguageModel>>,
    /// Prompt, pipeline and stop rules; `stop.max_tokens` is the length of a sequence.
    pub request: Request,
    /// How is speculated.
    pub options: Options,
    /// The mistake to make.
    pub fault: Fault,
    /// How many sequences are generated.
    pub runs: u32,
}

/// One sequence, how often it should come and how often it did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// The sequence.
    pub tokens: Vec<TokenId>,
    /// The probability that the target gives it.
    pub expected: f64,
    /// The share of runs that gave it.
    pub observed: f64,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// The test of the counts against the target.
    pub chi_square: ChiSquare,
    /// How far the shares lie from the probabilities.
    pub total_variation: f64,
    /// The sequences, likeliest first.
    pub cells: Vec<Cell>,
    /// Tokens per pass and acceptance over all runs.
    pub summary: Summary,
}

/// More sequences than this cannot be compared one by one.
const MOST_CELLS: usize = 1 << 14;

/// Runs an experiment.
///
/// # Errors
/// `out_of_range` when the target allows more sequences than can be compared; what a model
/// or a stage refuses.
pub fn run(experiment: &Experiment) -> Result<Findings> {
    let mut exact = BTreeMap::new();
    let mut prefix = Vec::new();
    enumerate(experiment, &mut prefix, 1.0, &mut exact)?;
    let mut counts: BTreeMap<Vec<TokenId>, u64> = BTreeMap::new();
    let mut speculation = Speculation::new(
        Arc::clone(&experiment.target),
        experiment.draft.clone(),
        experiment.request.clone(),
        experiment.options.clone(),
    )?
    .with_fault(experiment.fault);
    let mut total = Summary::default();
    for sample in 0..experiment.runs {
        speculation.restart(sample);
        speculation.run()?;
        *counts.entry(speculation.tokens().to_vec()).or_default() += 1;
        let one = speculation.summary();
        total.tokens += one.tokens;
        total.target_passes += one.target_passes;
        total.draft_passes += one.draft_passes;
        total.drafted += one.drafted;
        total.judged += one.judged;
        total.accepted += one.accepted;
        total.draft_size = one.draft_size;
    }
    total.acceptance_rate = total.accepted as f64 / total.judged.max(1) as f64;
    total.tokens_per_pass = total.tokens as f64 / total.target_passes.max(1) as f64;
    let cost = total.target_passes as f64 + total.draft_passes as f64 * total.draft_size;
    total.speedup = total.tokens as f64 / cost.max(1.0);

    for sequence in counts.keys() {
        exact.entry(sequence.clone()).or_insert(0.0);
    }
    let observed: Vec<u64> =
        exact.keys().map(|sequence| counts.get(sequence).copied().unwrap_or(0)).collect();
    let expected: Vec<f64> = exact.values().copied().collect();
    let shares: Vec<f64> = observed.iter().map(|&count| count as f64 / f64::from(experiment.runs)).collect();
    let mut cells: Vec<Cell> = exact
        .into_iter()
        .zip(&shares)
        .map(|((tokens, expected), &observed)| Cell { tokens, expected, observed })
        .collect();
    cells.sort_by(|a, b| b.expected.total_cmp(&a.expected));
    Ok(Findings {
        chi_square: chi_square(&observed, &expected),
        total_variation: total_variation(&shares, &expected),
        cells,
        summary: total,
    })
}

/// The exact probability of every sequence that can come.
fn enumerate(
    experiment: &Experiment,
    prefix: &mut Vec<TokenId>,
    probability: f64,
    exact: &mut BTreeMap<Vec<TokenId>, f64>,
) -> Result<()> {
    let request = &experiment.request;
    let ended = prefix.last().is_some_and(|token| request.stop.eos.contains(token));
    if ended || prefix.len() >= request.stop.max_tokens {
        exact.insert(prefix.clone(), probability);
        if exact.len() > MOST_CELLS {
            let message = format!("more than {MOST_CELLS} sequences are possible; choose shorter ones");
            return Err(Error::new(ErrorCode::OutOfRange, message).param("max_tokens"));
        }
        return Ok(());
    }
    let history = [&request.prompt[..], &prefix[..]].concat();
    let row = experiment.target.start().advance(&history, 1)?.pop().unwrap_or_default();
    let mut logits = Logits::new(&row)?;
    let context = StepContext {
        vocab: Some(experiment.target.vocab()),
        ..StepContext::new(&history, request.prompt.len(), Randomness::default())
    };
    request.pipeline.reshape(&mut logits, &context)?;
    request.pipeline.sampler().prepare(&mut logits, &context)?;
    for token in logits.support() {
        let share = logits.probability(token)?;
        prefix.push(token);
        enumerate(experiment, prefix, probability * share, exact)?;
        prefix.pop();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Pipeline,
        model::table::{TableModel, TableSpec},
        stop::StopRules,
    };

    fn table(seed: u64) -> Arc<dyn LanguageModel> {
        let spec = TableSpec {
            vocab: 5,
            seed,
            scale: 1.0,
            eos: Some(4),
            eos_bias: 0.0,
            table: None,
            table_fnv: None,
        };
        Arc::new(TableModel::new(&spec).unwrap())
    }

    fn experiment(pipeline: &str, strategy: &str, fault: Fault) -> Findings {
        let target = table(1);
        let request = Request {
            prompt: vec![TokenId(0), TokenId(1), TokenId(0)],
            pipeline: Pipeline::parse(pipeline).unwrap(),
            sample: 0,
            seed: Some(2026),
            stop: StopRules::of_vocab(target.vocab(), 4),
        };
        let options = strategy.parse().unwrap();
        run(&Experiment { target, draft: Some(table(2)), request, options, fault, runs: 8000 }).unwrap()
    }

    const PIPELINES: [&str; 4] = [
        "temperature(t=0.8)",
        "top_p(p=0.85)",
        "repetition_penalty(r=1.4) | presence_penalty(s=0.5)",
        "frequency_penalty(f=0.7) | temperature(t=1.3) | top_p(p=0.95)",
    ];

    /// Fixed seeds, so the smallest of the p-values is what it is; it is not small.
    #[test]
    fn both_rules_follow_the_target() {
        for pipeline in PIPELINES {
            for strategy in [
                "speculative(draft=\"d\", tokens=1)",
                "speculative(draft=\"d\", tokens=2)",
                "speculative(draft=\"d\", tokens=4)",
                "speculative(draft=\"d\", tokens=3, rule=match)",
                "prompt_lookup(ngram=2, tokens=3)",
            ] {
                let findings = experiment(pipeline, strategy, Fault::None);
                let p = findings.chi_square.p_value;
                assert!(p > 1e-3, "{pipeline}, {strategy}: p {p}, {:?}", findings.chi_square);
                assert!(findings.summary.accepted > 0, "{pipeline}, {strategy} accepted nothing");
            }
        }
    }

    #[test]
    fn every_wrong_rule_is_found_out() {
        for pipeline in PIPELINES {
            for tokens in [1, 4] {
                for fault in [Fault::LikeliestDraft, Fault::MismatchedTemperature, Fault::NoResidual] {
                    let strategy = format!("speculative(draft=\"d\", tokens={tokens})");
                    let findings = experiment(pipeline, &strategy, fault);
                    let p = findings.chi_square.p_value;
                    assert!(p < 1e-6, "{pipeline}, {strategy}, {fault:?}: p {p}");
                }
            }
        }
    }
}
