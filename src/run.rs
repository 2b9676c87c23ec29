//! A whole run, and what it is judged by.
//!
//! A [`Run`] is one sequence from the prompt to its end, as the page shows it. Three things are
//! recorded apart, because each can go wrong alone: why it ended, whether the constraint's
//! parser accepts it, and whether a check of its content passed.

use std::sync::Arc;

use serde::Serialize;

#[cfg(feature = "gpu")]
use crate::gpu::Engine;
use crate::{
    TokenId,
    constraint::{self, Constraint, Standing, no_files},
    error::Result,
    model::LanguageModel,
    pipeline::Note,
    session::{Options, Session, Step, readable_bytes},
    statistics::repeated_share,
    stop::Finish,
    strategy::tree::Taken,
    trace::ConstraintTrace,
};

/// How many tokens in a row count as a repetition when they come again.
pub const REPEATED_LENGTH: usize = 3;

/// How many other tokens a step shows.
const OTHERS: usize = 5;

/// A token that could have been drawn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Other {
    /// The token.
    pub token: TokenId,
    /// Its final probability.
    pub probability: f64,
}

/// One token of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunStep {
    /// The token and what it cost.
    #[serde(flatten)]
    pub taken: Taken,
    /// The raw log-probabilities up to here together, in nats.
    pub running_logprob: f64,
    /// How many tokens were left to draw from.
    pub alive: usize,
    /// The likeliest of them, likeliest first.
    pub others: Vec<Other>,
    /// What the constraint did, if there is one.
    pub constraint: Option<ConstraintTrace>,
    /// All text that may be shown after it.
    pub text: String,
    /// What is held back, since it may become a stop string.
    pub held_back: String,
    /// The bytes of a character that is not complete, readable.
    pub partial: String,
}

/// One sequence from the prompt to its end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// Its tokens, an ending one included.
    pub steps: Vec<RunStep>,
    /// Its text.
    pub text: String,
    /// Why it ended; `None` if it has not.
    pub finish: Option<Finish>,
    /// Where the constraint's parser stood at the end, if there is a constraint.
    pub standing: Option<Standing>,
    /// Whether the text as a whole keeps to the check, if there is one.
    pub check: Option<bool>,
    /// The sum of the raw log-probabilities, in nats.
    pub raw_logprob: f64,
    /// The sum of the log-probabilities as drawn, in nats.
    pub final_logprob: f64,
    /// Of all runs of [`REPEATED_LENGTH`] tokens, the share that had come before.
    pub repetition: f64,
    /// The last step at which another token could have been drawn, if there is one.
    pub last_fork: Option<usize>,
    /// What the reader should know.
    pub notes: Vec<Note>,
    /// The pipeline, every parameter filled in.
    pub pipeline: String,
    /// The seed in force, in decimal.
    pub seed: String,
}

/// Runs to the end. `check` is the text form of a constraint that the finished text is held to.
///
/// # Errors
/// What the options, the model, a stage or the constraint refuse.
///
/// # Examples
/// ```
/// use logitscope::{model::{self, Precision}, run::run, session::Options};
///
/// let model = model::open(std::fs::read("models/default.gguf")?, Precision::Native)?;
/// let options: Options = serde_json::from_str(
///     r#"{"prompt": "The answer is ", "pipeline": "categorical(seed=7)",
///         "constraint": "regex(\"[0-9]{3}\")", "maxTokens": 20}"#)?;
/// let found = run(&model, &options, Some(r#"regex("1.*")"#))?;
/// assert_eq!(found.text.len(), 3);
/// assert_eq!(found.finish.unwrap().reason, logitscope::stop::FinishReason::Grammar);
/// assert!(found.standing.unwrap().accepting);
/// assert_eq!(found.check, Some(found.text.starts_with('1')));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run(model: &Arc<dyn LanguageModel>, options: &Options, check: Option<&str>) -> Result<Run> {
    let mut writing = Writing::begin(model, options, check)?;
    while let Some(step) = writing.session.step()? {
        writing.take(step);
    }
    writing.end()
}

/// As [`run`], each step on a device where that is faster: the same run.
///
/// # Errors
/// As [`run`].
#[cfg(feature = "gpu")]
pub async fn run_on(
    engine: &mut Engine,
    model: &Arc<dyn LanguageModel>,
    options: &Options,
    check: Option<&str>,
) -> Result<Run> {
    let mut writing = Writing::begin(model, options, check)?;
    while let Some(step) = writing.session.step_on(engine).await? {
        writing.take(step);
    }
    writing.end()
}

/// A run in the making.
struct Writing {
    session: Session,
    check: Option<Box<dyn Constraint>>,
    steps: Vec<RunStep>,
    running_logprob: f64,
}

impl Writing {
    fn begin(model: &Arc<dyn LanguageModel>, options: &Options, check: Option<&str>) -> Result<Self> {
        let check = check.map(|text| constraint::open(model, text, &no_files)).transpose()?;
        let session = Session::new(Arc::clone(model), options)?;
        Ok(Self { session, check, steps: Vec::new(), running_logprob: 0.0 })
    }

    fn take(&mut self, step: Step) {
        // A step that was taken has a draw.
        let Some(draw) = &step.trace.draw else { return };
        self.running_logprob += draw.raw_logprob;
        let stages = &step.trace.stages;
        // `greedy` leaves one token; what could have been taken instead stands before it.
        let left = stages.iter().rev().take(2).find(|stage| stage.alive > 1).or(stages.last());
        let rows = left.map_or(&[][..], |stage| &stage.rows[..]);
        let stream = self.session.generation().stream();
        self.steps.push(RunStep {
            taken: Taken {
                token: step.token,
                raw_logprob: draw.raw_logprob,
                final_logprob: draw.final_logprob,
            },
            running_logprob: self.running_logprob,
            alive: left.map_or(0, |stage| stage.alive),
            others: rows
                .iter()
                .filter(|row| row.alive)
                .take(OTHERS)
                .map(|row| Other { token: row.token, probability: row.probability })
                .collect(),
            constraint: step.trace.constraint,
            text: step.text,
            held_back: stream.held_back().to_owned(),
            partial: readable_bytes(stream.partial()),
        });
    }

    fn end(mut self) -> Result<Run> {
        let standing = self.session.standing()?;
        let generation = self.session.generation();
        let text = generation.text().to_owned();
        let check = match self.check {
            Some(check) => Some(constraint::accepts(&**generation.model(), &*check, &text)?),
            None => None,
        };
        let (raw_logprob, final_logprob) = self.session.logprob();
        let tokens = generation.tokens();
        Ok(Run {
            last_fork: self.steps.iter().rposition(|step| step.alive > 1),
            steps: self.steps,
            text,
            finish: generation.finish().cloned(),
            standing,
            check,
            raw_logprob,
            final_logprob,
            repetition: repeated_share(&tokens, REPEATED_LENGTH),
            notes: [generation.pipeline().notes(), generation.notes()].concat(),
            pipeline: generation.pipeline().to_string(),
            seed: generation.seed().to_string(),
        })
    }
}
