//! The arithmetic of a step, as a person would write it.
//!
//! A [`Worksheet`] is the trace of one row with every token in view, and beside each stage what
//! a hand calculation needs: the highest score, each score below it, its exponential, and their
//! sum. It decides nothing: probabilities and survivors are those of the trace, whose weights
//! are integers, and the exponentials beside them are for reading.

use serde::{Deserialize, Serialize};

use crate::{
    TokenId, Vocab,
    compare::{Comparison, compare},
    config::Args,
    error::{Error, ErrorCode, Result},
    logits::Logits,
    pipeline::Pipeline,
    random::{Purpose, Randomness, from_unit},
    sampler::{Draw, Pick},
    step::StepContext,
    trace::{Judge, Observer, Recorder, StepTrace},
    transform::Outcome,
};

/// How many tokens are written out; nobody reads a longer table. Sums are over all of them.
pub const IN_VIEW: usize = 64;

/// How many of the likeliest tokens of each side a comparison lists.
const COMPARED: usize = 12;

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
    /// The probabilities before anything was multiplied or added, of the raw row's tokens in
    /// view; empty if nothing was.
    pub before: Vec<Before>,
    /// How far the largest rounding of a score to f32 moved it, in nats; `None` where that
    /// cannot be seen, below [`VISIBLE`].
    pub rounding: Option<f64>,
}

/// The least rounding of a score that a reader could notice in three decimals of a probability.
pub const VISIBLE: f64 = 0.001;

/// A token's probability in the row as it was given.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Before {
    /// The token.
    pub token: TokenId,
    /// Its probability.
    pub probability: f64,
}

/// How the scores after a stage become probabilities.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sum {
    /// The highest score.
    pub highest: f64,
    /// The live tokens in view, highest first.
    pub terms: Vec<Term>,
    /// How many live tokens are out of view.
    pub others: usize,
    /// The sum of the exponentials of those.
    pub others_total: f64,
    /// The sum of all exponentials.
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
/// `out_of_range` for a draw outside `0..1`; what the pipeline text or the row is refused for.
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
    let pipeline = Pipeline::parse(&request.pipeline)?;
    let (context, pick) = request.surroundings(&pipeline)?;
    let mut watch = Watch { recorder: Recorder::new(IN_VIEW), sums: Vec::new() };
    let mut logits = Logits::unfilled();
    pipeline.decode(&request.row(), &mut logits, &context, &mut *pipeline.sampler(), pick, &mut watch)?;
    let trace = watch.recorder.finish();
    let mut before = Vec::new();
    if (request.multiply, request.add) != (1.0, 0.0) {
        let mut given = Logits::new(&Request { multiply: 1.0, add: 0.0, ..request.clone() }.row())?;
        for row in trace.stages.iter().take(1).flat_map(|raw| &raw.rows) {
            before.push(Before { token: row.token, probability: given.probability(row.token)? });
        }
    }
    let rounding =
        request.changed().zip(request.row()).map(|(exact, score)| (exact - f64::from(score)).abs());
    let rounding = rounding.filter(|moved| moved.is_finite()).fold(0.0, f64::max);
    Ok(Worksheet { trace, sums: watch.sums, before, rounding: (rounding >= VISIBLE).then_some(rounding) })
}

/// What other pipelines make of the same row and the same draw; `labels` name the tokens.
///
/// # Errors
/// As [`work`], and what a text of `pipelines` is refused for.
///
/// # Examples
/// ```
/// use logitscope::worksheet::{Request, compared};
///
/// let request = Request {
///     logits: vec![3.0, 2.0, 1.0],
///     multiply: 1.0,
///     add: 0.0,
///     pipeline: "greedy()".to_owned(),
///     u: Some(0.9),
/// };
/// let sides = ["top_p(p=0.8) | temperature(t=0.5)", "temperature(t=0.5) | top_p(p=0.8)"];
/// let found = compared(&request, &sides.map(String::from), &["cat", "dog", "fish"].map(String::from))?;
/// assert_eq!((found.sides[0].kept, found.sides[1].kept), (2, 1));
/// assert!(found.partings[0].words.contains("Only A can draw “dog”."));
/// # Ok::<(), logitscope::Error>(())
/// ```
pub fn compared(request: &Request, pipelines: &[String], labels: &[String]) -> Result<Comparison> {
    let (context, pick) = request.surroundings(&Pipeline::parse(&request.pipeline)?)?;
    let vocab = Vocab::from_texts(&labels.iter().map(String::as_str).collect::<Vec<_>>());
    let context = StepContext { vocab: Some(&vocab), ..context };
    let u = if let Pick::Uniform(u) = pick { u } else { context.draw(Purpose::Token) };
    let pipelines: Result<Vec<Pipeline>> = pipelines.iter().map(|text| Pipeline::parse(text)).collect();
    compare(&pipelines?, &request.row(), &context, u, COMPARED)
}

impl Request {
    /// The scores, multiplied and added to.
    fn changed(&self) -> impl Iterator<Item = f64> {
        self.logits.iter().map(|&score| score * self.multiply + self.add)
    }

    /// The same as the engine holds them.
    fn row(&self) -> Vec<f32> {
        #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
        self.changed().map(|score| score as f32).collect()
    }

    /// No history, and the draw: that of the request, else of the pipeline's seed, else 1/2.
    fn surroundings(&self, pipeline: &Pipeline) -> Result<(StepContext<'static>, Pick)> {
        let u = self.u.map(checked_u).transpose()?;
        let pick = match (u, pipeline.seed()) {
            (Some(u), _) => Pick::Uniform(from_unit(u)),
            (None, Some(_)) => Pick::Seeded,
            (None, None) => Pick::Uniform(from_unit(0.5)),
        };
        let seed = pipeline.seed().unwrap_or_default();
        Ok((StepContext::new(&[], 0, Randomness { seed, ..Randomness::default() }), pick))
    }
}

fn checked_u(u: f64) -> Result<f64> {
    if (0.0..1.0).contains(&u) {
        return Ok(u);
    }
    let message = format!("u is {u}, but must be at least 0 and below 1");
    Err(Error::new(ErrorCode::OutOfRange, message).param("u"))
}

/// Records the trace, and the arithmetic after each stage.
struct Watch {
    recorder: Recorder,
    sums: Vec<Sum>,
}

impl Observer for Watch {
    const ENABLED: bool = true;

    fn raw(&mut self, logits: &mut Logits) -> Result<()> {
        self.sums.push(sum(logits)?);
        self.recorder.raw(logits)
    }

    fn before(&mut self, logits: &mut Logits) -> Result<()> {
        self.recorder.before(logits)
    }

    fn after(
        &mut self,
        index: usize,
        args: &Args,
        judge: Judge,
        outcome: &Outcome,
        logits: &mut Logits,
    ) -> Result<()> {
        self.sums.push(sum(logits)?);
        self.recorder.after(index, args, judge, outcome, logits)
    }

    fn drawn(&mut self, row: &[f32], logits: &mut Logits, draw: &Draw, pick: Pick) -> Result<()> {
        self.recorder.drawn(row, logits, draw, pick)
    }
}

/// The exponentials of the scores and their sum, from the highest down.
fn sum(logits: &mut Logits) -> Result<Sum> {
    let live: Vec<f64> = logits.support().into_iter().filter_map(|token| logits.score(token)).collect();
    let highest = live.iter().copied().fold(f64::MIN, f64::max);
    let finite = |value: f64| value.is_finite().then_some(value);
    let terms: Vec<Term> = logits
        .top(IN_VIEW)?
        .iter()
        .map(|standing| Term {
            token: standing.token,
            below: standing.score - highest,
            exponential: libm::exp(standing.score - highest),
            plain: finite(libm::exp(standing.score)),
        })
        .collect();
    let total: f64 = live.iter().map(|score| libm::exp(score - highest)).sum();
    let in_view: f64 = terms.iter().map(|term| term.exponential).sum();
    Ok(Sum {
        highest,
        others: live.len() - terms.len(),
        others_total: if live.len() == terms.len() { 0.0 } else { total - in_view },
        terms,
        total,
        plain_total: finite(live.iter().map(|&score| libm::exp(score)).sum()),
    })
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
        assert!(plain.before.is_empty());
        let before: Vec<_> =
            doubled.before.iter().map(|before| format!("{:.3}", before.probability)).collect();
        assert_eq!(before, ["0.665", "0.245", "0.090"]);
        assert_eq!(printed(&doubled, 0), ["0.867", "0.117", "0.016"]);
        assert_eq!((added.rounding, doubled.rounding), (None, None));
    }

    #[test]
    fn a_sum_too_large_for_f32_says_how_far_it_was_rounded() {
        // Near 10^8 an f32 moves in steps of 8, so that all three scores become the same.
        let sheet =
            work(&Request { add: 1e8, ..request(&[2.0, 1.0, 0.0], "greedy()") }).expect("a worksheet");
        assert_eq!(sheet.rounding, Some(2.0));
        assert_eq!(printed(&sheet, 0), ["0.333", "0.333", "0.333"]);
    }

    #[test]
    fn a_long_row_is_summed_whole_though_few_tokens_are_in_view() {
        let row: Vec<f64> = (0..1000).map(|token| f64::from(token % 7)).collect();
        let sheet = work(&request(&row, "top_k(k=500)")).expect("a worksheet");
        for (stage, sum) in sheet.trace.stages.iter().zip(&sheet.sums) {
            assert_eq!(sum.terms.len(), IN_VIEW.min(stage.alive));
            assert_eq!(sum.others, stage.alive - sum.terms.len());
            let first = stage.rows[0].probability;
            assert!((first - sum.terms[0].exponential / sum.total).abs() < 1e-6);
            let in_view: f64 = sum.terms.iter().map(|term| term.exponential).sum();
            assert!((in_view + sum.others_total - sum.total).abs() < 1e-9);
        }
    }

    #[test]
    fn what_cannot_be_worked_out_is_refused() {
        let outside = work(&Request { u: Some(1.0), ..request(&[0.0], "") }).expect_err("u is excluded");
        assert_eq!(outside.param.as_deref(), Some("u"));
        assert_eq!(work(&request(&[], "")).expect_err("no token").code, ErrorCode::EmptyRow);
        assert_eq!(work(&request(&[0.0], "top_q()")).expect_err("no stage").code, ErrorCode::UnknownStage);
        let overflowing = work(&request(&[800.0, 1.0], "")).expect("a worksheet");
        assert_eq!(overflowing.sums[0].plain_total, None);
    }
}
