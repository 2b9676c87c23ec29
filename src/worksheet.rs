//! The arithmetic of a step, as a person would write it.
//!
//! A [`Worksheet`] is the trace of one row with every token in view, and beside each stage what
//! a hand calculation needs: the highest score, each score below it, its exponential, and their
//! sum. It decides nothing: probabilities and survivors are those of the trace, whose weights
//! are integers, and the exponentials beside them are for reading.

use serde::{Deserialize, Serialize};

use crate::{
    TokenId,
    error::{Error, ErrorCode, Result},
    logits::Logits,
    pipeline::Pipeline,
    random::{Randomness, from_unit},
    sampler::Pick,
    step::StepContext,
    trace::{Recorder, StepTrace},
};

/// A hand calculation has few tokens; more would be a table that nobody reads.
pub const MOST_TOKENS: usize = 64;

/// What is to be worked out.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub struct Request {
    /// The scores in nats; `-∞` is a token that cannot be drawn.
    pub logits: Vec<f64>,
    /// What every score is multiplied by first.
    #[serde(default = "one")]
    pub multiply: f64,
    /// What is then added to every score.
    #[serde(default)]
    pub add: f64,
    /// The pipeline text.
    pub pipeline: String,
    /// The uniform draw in `0..1`; left out, the pipeline's seed decides, or one half.
    #[serde(default)]
    pub u: Option<f64>,
}

fn one() -> f64 {
    1.0
}

/// A step with its arithmetic.
#[derive(Debug, Clone, Serialize)]
pub struct Worksheet {
    /// What happened, with every token in view.
    pub trace: StepTrace,
    /// The arithmetic after each stage of the trace, in the same order.
    pub sums: Vec<Sum>,
}

/// How the scores after a stage become probabilities.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sum {
    /// The highest score.
    pub highest: f64,
    /// The live tokens, highest first.
    pub terms: Vec<Term>,
    /// The sum of their exponentials.
    pub total: f64,
    /// That sum without subtracting the highest first; `None` where it would overflow.
    pub plain_total: Option<f64>,
}

/// One token's part of a [`Sum`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Term {
    /// The token.
    pub token: TokenId,
    /// Its score less the highest.
    pub below: f64,
    /// e to that power.
    pub exponential: f64,
    /// e to the power of the score itself; `None` where it would overflow.
    pub plain: Option<f64>,
}

/// Works a row out.
///
/// # Errors
/// `out_of_range` for more than [`MOST_TOKENS`] tokens or a draw outside `0..1`; what the
/// pipeline text or the row is refused for.
///
/// # Examples
/// ```
/// use logitscope::worksheet::{Request, work};
///
/// let request = Request {
///     logits: vec![2.0, 1.0, 0.0], // cat, dog, fish
///     multiply: 1.0,
///     add: 0.0,
///     pipeline: "temperature(t=2) | top_p(p=0.6)".to_owned(),
///     u: Some(0.9),
/// };
/// let sheet = work(&request)?;
/// let raw = &sheet.sums[0];
/// assert_eq!(format!("{:.2}", raw.plain_total.unwrap()), "11.11");
/// assert_eq!(format!("{:.3}", raw.terms[1].exponential / raw.total), "0.245");
/// let hot = &sheet.sums[1];
/// assert_eq!(format!("{:.2}", hot.plain_total.unwrap()), "5.37");
/// assert_eq!(sheet.trace.stages[2].alive, 2); // 0.506 does not reach 0.6, with dog it does
/// # Ok::<(), logitscope::Error>(())
/// ```
pub fn work(request: &Request) -> Result<Worksheet> {
    if request.logits.len() > MOST_TOKENS {
        let message =
            format!("the row has {} tokens, but must have at most {MOST_TOKENS}", request.logits.len());
        return Err(Error::new(ErrorCode::OutOfRange, message).param("logits"));
    }
    let u = request.u.map(checked_u).transpose()?;
    let pipeline = Pipeline::parse(&request.pipeline)?;
    let seed = pipeline.seed();
    let pick = match (u, seed) {
        (Some(u), _) => Pick::Uniform(from_unit(u)),
        (None, Some(_)) => Pick::Seeded,
        (None, None) => Pick::Uniform(from_unit(0.5)),
    };
    #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
    let row: Vec<f32> =
        request.logits.iter().map(|&score| (score * request.multiply + request.add) as f32).collect();
    let mut recorder = Recorder::new(row.len());
    let context =
        StepContext::new(&[], 0, Randomness { seed: seed.unwrap_or_default(), ..Randomness::default() });
    let mut logits = Logits::unfilled();
    pipeline.decode(&row, &mut logits, &context, &mut *pipeline.sampler(), pick, &mut recorder)?;
    let trace = recorder.finish();
    let sums = trace.stages.iter().map(|stage| {
        let scores = stage.rows.iter().filter(|row| row.alive).map(|row| (row.token, row.score));
        sum(&scores.collect::<Vec<_>>())
    });
    let sums = sums.collect();
    Ok(Worksheet { trace, sums })
}

fn checked_u(u: f64) -> Result<f64> {
    if (0.0..1.0).contains(&u) {
        return Ok(u);
    }
    let message = format!("u is {u}, but must be at least 0 and below 1");
    Err(Error::new(ErrorCode::OutOfRange, message).param("u"))
}

/// The exponentials of scores and their sum, from the highest down.
fn sum(scores: &[(TokenId, f64)]) -> Sum {
    let highest = scores.iter().map(|&(_, score)| score).fold(f64::MIN, f64::max);
    let finite = |value: f64| value.is_finite().then_some(value);
    let terms: Vec<Term> = scores
        .iter()
        .map(|&(token, score)| Term {
            token,
            below: score - highest,
            exponential: libm::exp(score - highest),
            plain: finite(libm::exp(score)),
        })
        .collect();
    let total = terms.iter().map(|term| term.exponential).sum();
    let plain_total = finite(terms.iter().map(|term| term.plain.unwrap_or(f64::INFINITY)).sum());
    Sum { highest, terms, total, plain_total }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(logits: &[f64], pipeline: &str) -> Request {
        Request {
            logits: logits.to_vec(),
            multiply: 1.0,
            add: 0.0,
            pipeline: pipeline.to_owned(),
            u: Some(0.25),
        }
    }

    fn printed(sheet: &Worksheet, stage: usize) -> Vec<String> {
        let rows = sheet.trace.stages[stage].rows.iter().filter(|row| row.alive);
        rows.map(|row| format!("{:.3}", row.probability)).collect()
    }

    #[test]
    fn the_lessons_numbers_to_the_printed_digit() {
        let lesson = [2.0, 1.0, 0.0];
        let sheet = work(&request(&lesson, "temperature(t=0.5)")).expect("a worksheet");
        assert_eq!(printed(&sheet, 0), ["0.665", "0.245", "0.090"]);
        assert_eq!(printed(&sheet, 1), ["0.867", "0.117", "0.016"]);
        let plain: Vec<_> =
            sheet.sums[1].terms.iter().map(|term| format!("{:.2}", term.plain.unwrap_or_default())).collect();
        assert_eq!(plain, ["54.60", "7.39", "1.00"]);
        assert_eq!(format!("{:.2}", sheet.sums[1].plain_total.unwrap_or_default()), "62.99");
        let sheet = work(&request(&lesson, "temperature(t=2)")).expect("a worksheet");
        assert_eq!(printed(&sheet, 1), ["0.506", "0.307", "0.186"]);
    }

    #[test]
    fn the_written_arithmetic_is_that_of_the_engine() {
        let sheet = work(&request(&[3.1, -2.0, 0.4, 0.39, 2.9], "temperature(t=1.3) | top_k(k=3)"))
            .expect("a worksheet");
        for (stage, sum) in sheet.trace.stages.iter().zip(&sheet.sums) {
            for term in &sum.terms {
                let row = stage.rows.iter().find(|row| row.token == term.token).expect("the same tokens");
                assert!((row.probability - term.exponential / sum.total).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn adding_changes_nothing_and_multiplying_sharpens() {
        let plain = work(&request(&[2.0, 1.0, 0.0], "greedy()")).expect("a worksheet");
        let added =
            work(&Request { add: 5.0, ..request(&[2.0, 1.0, 0.0], "greedy()") }).expect("a worksheet");
        let doubled =
            work(&Request { multiply: 2.0, ..request(&[2.0, 1.0, 0.0], "greedy()") }).expect("a worksheet");
        assert_eq!(printed(&plain, 0), printed(&added, 0));
        assert_eq!(printed(&doubled, 0), ["0.867", "0.117", "0.016"]);
    }

    #[test]
    fn what_cannot_be_worked_out_is_refused() {
        let too_many = work(&request(&[0.0; 65], "")).expect_err("too many");
        assert_eq!((too_many.code, too_many.param.as_deref()), (ErrorCode::OutOfRange, Some("logits")));
        let outside = work(&Request { u: Some(1.0), ..request(&[0.0], "") }).expect_err("u is excluded");
        assert_eq!(outside.param.as_deref(), Some("u"));
        assert_eq!(work(&request(&[], "")).expect_err("no token").code, ErrorCode::EmptyRow);
        assert_eq!(work(&request(&[0.0], "top_q()")).expect_err("no stage").code, ErrorCode::UnknownStage);
        let overflowing = work(&request(&[800.0, 1.0], "")).expect("a worksheet");
        assert_eq!(overflowing.sums[0].plain_total, None);
    }
}
