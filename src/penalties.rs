//! What the penalties of a pipeline looked at, and what they did.
//!
//! For each penalty: the part of the history in view, how often each token occurs there, where
//! its score went, and for DRY the repetition that was matched. A warning is raised when a
//! penalised token is a brace, a quote or a digit: a structured text has to repeat those.

use std::ops::Range;

use serde::Serialize;

use crate::{
    TokenId, Vocab,
    error::Result,
    logits::Logits,
    pipeline::{Note, Pipeline, Stage},
    step::{Lookback, StepContext},
    transform::{counts, dry::Dry},
};

/// Where a score went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Down: the token became less likely.
    Down,
    /// Up.
    Up,
    /// Nowhere: a score of 0 that was multiplied.
    Same,
    /// It was removed.
    Removed,
}

/// What a penalty did to one token.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Penalised {
    /// The token.
    pub token: TokenId,
    /// How often it occurs in view.
    pub count: u32,
    /// Its score before, in nats.
    pub before: f64,
    /// Its score after; `None` if it was removed.
    pub after: Option<f64>,
    /// Which way it moved.
    pub direction: Direction,
    /// Why, in words.
    pub why: String,
    /// The repetition it would continue, for DRY.
    pub repetition: Option<Span>,
}

/// A repetition that DRY matched, in places of the history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Span {
    /// The earlier occurrence.
    pub earlier: Range<usize>,
    /// The end of the history that equals it.
    pub now: Range<usize>,
    /// How many tokens match, L.
    pub length: usize,
    /// What that costs, in nats.
    pub penalty: f64,
}

/// One penalty at a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PenaltyView {
    /// The stage with every parameter.
    pub stage: String,
    /// The stage's name.
    pub id: String,
    /// The part of the history it looked at.
    pub view: Range<usize>,
    /// The tokens it changed, by ascending id.
    pub tokens: Vec<Penalised>,
    /// Where the breaker stands that cut the match, for DRY.
    pub breaker: Option<usize>,
    /// What is worth knowing.
    pub warnings: Vec<Note>,
}

/// What every penalty of a pipeline does at a step.
///
/// # Errors
/// What a stage refuses.
///
/// # Examples
/// ```
/// use logitscope::{Pipeline, StepContext, TokenId, penalties::{Direction, views}};
///
/// let pipeline = Pipeline::parse("repetition_penalty(r=2, window=2)")?;
/// let history = [0, 1, 2].map(TokenId);
/// let context = StepContext::new(&history, 0, Default::default());
/// let seen = views(&pipeline, &[4.0, -1.0, 3.0], &context)?;
/// assert_eq!(seen[0].view, 1..3);
/// assert_eq!(seen[0].tokens[0].after, Some(-2.0)); // negative, so multiplied
/// assert_eq!(seen[0].tokens[0].direction, Direction::Down);
/// # Ok::<(), logitscope::Error>(())
/// ```
pub fn views(pipeline: &Pipeline, row: &[f32], context: &StepContext) -> Result<Vec<PenaltyView>> {
    let mut logits = Logits::new(row)?;
    let mut found = Vec::new();
    for stage in pipeline.stages() {
        let at = |error: crate::Error| error.in_stage(stage.args.spec.id);
        let before = logits.clone();
        stage.transform.apply(&mut logits, context).map_err(at)?;
        let penalises = matches!(
            stage.args.spec.id,
            "repetition_penalty" | "frequency_penalty" | "presence_penalty" | "dry" | "no_repeat_ngram"
        );
        if penalises {
            found.push(view(stage, &before, &logits, context).map_err(at)?);
        }
    }
    Ok(found)
}

fn view(stage: &Stage, before: &Logits, after: &Logits, context: &StepContext) -> Result<PenaltyView> {
    let args = &stage.args;
    let length = context.history.len();
    let dry = (args.spec.id == "dry").then(|| Dry::from_args(args)).transpose()?;
    let view = if let Some(dry) = &dry {
        dry.view(context).1..length
    } else {
        let lookback = Lookback::from_args(args)?;
        let end = if args.word("scope")? == "prompt" { context.prompt_len } else { length };
        end - lookback.of(context).len()..end
    };
    let edits = stage.transform.edits(context)?;
    let (mut repetitions, mut breaker) = (Vec::new(), None);
    if let Some(dry) = dry.as_ref().filter(|_| !edits.is_empty() || length > 0) {
        repetitions = dry.repetitions(context)?;
        breaker = dry.last_break(context)?.map(|found| found.position);
    }
    let counts = counts(&context.history[view.clone()]);
    let mut tokens = Vec::new();
    for edit in edits {
        let Some(earlier) = before.score(edit.token) else { continue };
        let later = after.score(edit.token);
        let direction = match later {
            None => Direction::Removed,
            Some(later) if later < earlier => Direction::Down,
            Some(later) if later > earlier => Direction::Up,
            Some(_) => Direction::Same,
        };
        let found = repetitions.iter().find(|found| found.token == edit.token);
        let repetition = found.zip(dry.as_ref()).map(|(found, dry)| Span {
            earlier: found.position - found.length..found.position,
            now: length - found.length..length,
            length: found.length,
            penalty: dry.penalty(found.length),
        });
        tokens.push(Penalised {
            token: edit.token,
            count: counts.get(&edit.token).copied().unwrap_or(0),
            before: earlier,
            after: later,
            direction,
            why: edit.why,
            repetition,
        });
    }
    let warnings = context.vocab.and_then(|vocab| structured(args.spec.id, &tokens, vocab)).into_iter();
    Ok(PenaltyView {
        stage: args.to_string(),
        id: args.spec.id.to_owned(),
        view,
        tokens,
        breaker,
        warnings: warnings.collect(),
    })
}

/// A warning when what is penalised is what a structured text is made of.
fn structured(id: &'static str, tokens: &[Penalised], vocab: &Vocab) -> Option<Note> {
    let suffers = |token: &&Penalised| matches!(token.direction, Direction::Down | Direction::Removed);
    let mut texts: Vec<String> = Vec::new();
    for token in tokens.iter().filter(suffers) {
        let text = String::from_utf8_lossy(vocab.bytes(token.token)).into_owned();
        let bare = text.trim();
        let telling = |c: char| c.is_ascii_digit() || "{}[]\"'".contains(c);
        // A comma alone is as common in prose.
        if bare.chars().any(telling) && bare.chars().all(|c| telling(c) || ":,".contains(c)) {
            texts.push(format!("{text:?}"));
        }
    }
    let shown = texts.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    (!texts.is_empty()).then(|| Note {
        code: "penalty_damages_structure",
        stage: id.to_owned(),
        message: format!(
            "{id} makes {shown} less likely: JSON, code and numbers must repeat such tokens, so structured \
             output suffers"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dry_shows_its_span_its_breaker_and_its_length() {
        let history = [0, 1, 2, 2, 1, 2, 3, 0, 1, 2].map(TokenId);
        let context = StepContext::new(&history, 0, crate::random::Randomness::default());
        let pipeline = Pipeline::parse("dry(multiplier=0.8, breakers=[])").expect("a pipeline");
        let seen = views(&pipeline, &[0.0; 4], &context).expect("a view");
        let dry_penalty = |length| 0.8 * libm::pow(1.75, f64::from(length - 2));
        let c = &seen[0].tokens[0];
        assert_eq!((c.token, c.count), (TokenId(2), 4));
        // "a b c" at 7.. continues "a b" … the earlier match of the last three ends before place 3.
        assert_eq!(
            c.repetition,
            Some(Span { earlier: 0..3, now: 7..10, length: 3, penalty: dry_penalty(3) })
        );
        assert_eq!(seen[0].breaker, None);
        let pipeline = Pipeline::parse("dry(multiplier=0.8, breakers=[[0]])").expect("a pipeline");
        let seen = views(&pipeline, &[0.0; 4], &context).expect("a view");
        assert_eq!(seen[0].breaker, Some(7));
        assert!(seen[0].tokens.iter().all(|token| token.repetition.as_ref().is_some_and(|r| r.length == 2)));
    }

    #[test]
    fn structured_output_is_warned_about() {
        let vocab = Vocab::from_texts(&["{", "\"", " the", "7", ","]);
        let history = [0, 1, 2, 3, 4].map(TokenId);
        let context = StepContext {
            vocab: Some(&vocab),
            ..StepContext::new(&history, 0, crate::random::Randomness::default())
        };
        let pipeline = Pipeline::parse("frequency_penalty(f=1, scope=context)").expect("a pipeline");
        let seen = views(&pipeline, &[1.0; 5], &context).expect("a view");
        assert_eq!(seen[0].warnings[0].code, "penalty_damages_structure");
        assert!(!seen[0].warnings[0].message.contains("\",\""), "a comma alone is prose");
        assert!(seen[0].warnings[0].message.contains("\"7\""), "{}", seen[0].warnings[0].message);
        let encouraged = Pipeline::parse("frequency_penalty(f=-1, scope=context)").expect("a pipeline");
        let seen = views(&encouraged, &[1.0; 5], &context).expect("a view");
        assert!(seen[0].warnings.is_empty());
        assert!(seen[0].tokens.iter().all(|token| token.direction == Direction::Up));
    }
}
