//! Suspicious orders of stages, as typed notes.
//!
//! Nothing here reorders anything: a pipeline runs as written. Each warning has a code, the
//! stage concerned and the reason in a sentence.

use serde::Serialize;

use crate::{
    config::Args,
    spec::{Kind, StageSpec},
};

/// Something worth telling the author of a pipeline, though it is not an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// A stable name for the kind of note.
    pub code: &'static str,
    /// The stage concerned.
    pub stage: String,
    /// What is worth knowing, in a sentence.
    pub message: String,
}

/// A temperature from which a tail that nothing cuts is worth a warning.
const HIGH_TEMPERATURE: f64 = 1.2;

/// What is suspicious about stages in this order; the sampler comes last.
///
/// - `high_temperature_untruncated`: the temperatures multiply to more than 1.2 and a sampler
///   draws from everything.
/// - `penalty_after_truncation`: a stage that edits scores stands after one that removed
///   tokens.
/// - `temperature_after_nucleus`: a temperature stands after `top_p` or `typical`, whose cut
///   depends on it.
/// - `mask_after_truncation`: a stage that forbids tokens stands after one that removed tokens,
///   so that the row may end empty.
///
/// # Examples
/// ```
/// use logitscope::Pipeline;
///
/// let pipeline = Pipeline::parse("top_p(p=0.8) | temperature(t=0.5) | categorical(seed=7)")?;
/// assert_eq!(pipeline.notes()[0].code, "temperature_after_nucleus");
/// # Ok::<(), logitscope::Error>(())
/// ```
#[must_use]
pub fn warnings(stages: &[&Args]) -> Vec<Note> {
    warnings_with_constraint(stages, None)
}

/// As [`warnings`], for a constraint that masks before the stage at this place: a constraint
/// after a truncation is `truncation_before_grammar`.
#[must_use]
pub fn warnings_with_constraint(stages: &[&Args], constraint_at: Option<usize>) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut truncation: Option<&Args> = None;
    let mut nucleus: Option<&Args> = None;
    let mut temperature = 1.0;
    let mut hottest: Option<&Args> = None;
    let grammar = |truncation: &Args| Note {
        code: "truncation_before_grammar",
        stage: truncation.spec.id.to_owned(),
        message: format!(
            "{} cuts before the grammar masks: if the grammar allows none of the tokens it keeps, nothing is \
             left, and otherwise the survivors were chosen among forbidden ones",
            truncation.brief()
        ),
    };
    for (place, args) in stages.iter().enumerate() {
        if constraint_at == Some(place)
            && let Some(truncation) = truncation
        {
            notes.push(grammar(truncation));
        }
        if does_nothing(args) {
            continue;
        }
        match args.spec.kind {
            Kind::Edit => {
                if let Some(before) = truncation {
                    notes.push(edit_after(args, before));
                }
            }
            Kind::Reshape => {
                if let Ok(t) = args.number("t") {
                    temperature *= t;
                } else if let (Ok(low), Ok(high)) = (args.number("low"), args.number("high")) {
                    temperature *= f64::midpoint(low, high);
                }
                hottest = Some(args);
                if let Some(before) = nucleus {
                    notes.push(Note {
                        code: "temperature_after_nucleus",
                        stage: args.spec.id.to_owned(),
                        message: format!(
                            "{} comes after {}, so the cut was made on probabilities the sampler does not \
                             see; in the other order another set may stay",
                            args.brief(),
                            before.brief()
                        ),
                    });
                }
            }
            Kind::Truncate => {
                truncation = Some(args);
                if matches!(args.spec.id, "top_p" | "typical") {
                    nucleus = Some(args);
                }
            }
            Kind::Sampler => {}
        }
    }
    if constraint_at.is_some_and(|place| place >= stages.len())
        && let Some(truncation) = truncation
    {
        notes.push(grammar(truncation));
    }
    let draws_from_all =
        stages.last().is_none_or(|last| last.spec.kind != Kind::Sampler || draws_from_everything(last.spec));
    if let Some(hottest) = hottest
        && temperature > HIGH_TEMPERATURE
        && truncation.is_none()
        && draws_from_all
    {
        notes.push(Note {
            code: "high_temperature_untruncated",
            stage: hottest.spec.id.to_owned(),
            message: format!(
                "{} flattens the row and nothing truncates it: the long tail of unlikely tokens takes a \
                 large share of the draws",
                hottest.brief()
            ),
        });
    }
    notes
}

fn edit_after(args: &Args, truncation: &Args) -> Note {
    let (edit, cut) = (args.brief(), truncation.brief());
    let masks = matches!(
        args.spec.id,
        "suppress" | "bad_words" | "min_new_tokens" | "no_repeat_ngram" | "forced_tokens"
    );
    let (code, message) = if masks {
        (
            "mask_after_truncation",
            format!(
                "{edit} forbids tokens after {cut} has cut: if it forbids all that stayed, nothing is \
                 left"
            ),
        )
    } else {
        (
            "penalty_after_truncation",
            format!(
                "{edit} changes scores after {cut} has cut: it can revive nothing, and the cut was \
                 made on the scores before it"
            ),
        )
    };
    Note { code, stage: args.spec.id.to_owned(), message }
}

fn draws_from_everything(spec: &StageSpec) -> bool {
    matches!(spec.id, "categorical" | "gumbel_max")
}

/// Whether a parameter has the value at which it has no effect.
fn does_nothing(args: &Args) -> bool {
    let mut strengths = args.spec.params.iter().filter(|param| param.neutral.is_some()).peekable();
    strengths.peek().is_some()
        && strengths.all(|param| {
            let neutral = param.neutral.and_then(|text| crate::config::parse_value(text).ok());
            let neutral = neutral.and_then(|value| param.check(args.spec.id, &value).ok());
            neutral.is_some() && args.get(param.name).ok().flatten() == neutral.as_ref()
        })
}
