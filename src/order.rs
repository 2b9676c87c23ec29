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
///   draws from a tail that nothing cuts. XTC cuts the head, not the tail.
/// - `penalty_after_truncation`: a stage that edits scores stands after some that removed
///   tokens.
/// - `temperature_after_nucleus`: a temperature stands after truncations whose cut depends on
///   it: all but `top_k`, which counts, and `top_n_sigma`, whose measure scales along.
/// - `mask_after_truncation`: a stage that forbids tokens stands after some that removed tokens,
///   so that the row may end empty.
///
/// # Examples
/// ```
/// use logitscope::Pipeline;
///
/// let pipeline = Pipeline::parse("min_p(m=0.1) | temperature(t=1.5) | categorical(seed=7)")?;
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
    let mut cuts: Vec<&Args> = Vec::new();
    let mut temperature = 1.0;
    let mut hottest: Option<&Args> = None;
    for (place, args) in stages.iter().enumerate() {
        if constraint_at == Some(place) {
            notes.extend(cuts.last().map(|cut| before_grammar(cut)));
        }
        if does_nothing(args) {
            continue;
        }
        match args.spec.kind {
            Kind::Edit if cuts.is_empty() => {}
            Kind::Edit => notes.push(edit_after(args, &cuts)),
            Kind::Reshape => {
                if let Ok(t) = args.number("t") {
                    temperature *= t;
                } else if let (Ok(low), Ok(high)) = (args.number("low"), args.number("high")) {
                    temperature *= f64::midpoint(low, high);
                }
                hottest = Some(args);
                let moved: Vec<&Args> = cuts.iter().copied().filter(|cut| !cuts_alike(cut, args)).collect();
                if !moved.is_empty() {
                    notes.push(Note {
                        code: "temperature_after_nucleus",
                        stage: args.spec.id.to_owned(),
                        message: format!(
                            "{} comes after {}, so the cut was made on probabilities the sampler does not \
                             see; in the other order another set may stay",
                            args.brief(),
                            listed(&moved)
                        ),
                    });
                }
            }
            Kind::Truncate => cuts.push(args),
            Kind::Sampler => {}
        }
    }
    if constraint_at.is_some_and(|place| place >= stages.len()) {
        notes.extend(cuts.last().map(|cut| before_grammar(cut)));
    }
    let draws_from_all =
        stages.last().is_none_or(|last| last.spec.kind != Kind::Sampler || draws_from_everything(last.spec));
    let tail_is_cut = cuts.iter().any(|cut| cut.spec.id != "xtc");
    if let Some(hottest) = hottest
        && temperature > HIGH_TEMPERATURE
        && !tail_is_cut
        && draws_from_all
    {
        notes.push(Note {
            code: "high_temperature_untruncated",
            stage: hottest.spec.id.to_owned(),
            message: format!(
                "{} flattens the row and nothing cuts its tail: the many unlikely tokens take a large share \
                 of the draws",
                hottest.brief()
            ),
        });
    }
    notes
}

/// Whether two stages leave the same tokens with the same probabilities in either order,
/// whatever the row, but for rounding.
///
/// # Examples
/// ```
/// use logitscope::{config::Args, order::commute};
///
/// let temperature = Args::parse("temperature(t=2)")?;
/// assert!(commute(&Args::parse("top_k(k=40)")?, &temperature));
/// assert!(!commute(&Args::parse("top_p(p=0.9)")?, &temperature));
/// # Ok::<(), logitscope::Error>(())
/// ```
#[must_use]
pub fn commute(a: &Args, b: &Args) -> bool {
    let (first, second) = (acts(a), acts(b));
    does_nothing(a)
        || does_nothing(b)
        || COMMUTING.contains(&(first, second))
        || COMMUTING.contains(&(second, first))
}

/// What a stage does, as far as it decides what the stage commutes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Acts {
    /// Adds to scores what does not depend on them.
    Adds,
    /// Changes a score in proportion to itself.
    Stretches,
    /// Removes tokens by their ids.
    Forbids,
    /// Divides all scores by one number.
    Scales,
    /// Moves all scores by their distance to the highest, and keeps their order.
    Bends,
    /// Keeps so many.
    Counts,
    /// Keeps by the ratio to the highest probability.
    Compares,
    /// Keeps by a distance in units that grow with the scores.
    Measures,
    /// Depends on all probabilities, or on a draw.
    Other,
}

fn acts(args: &Args) -> Acts {
    match args.spec.id {
        "logit_bias" | "sequence_bias" | "presence_penalty" | "frequency_penalty" | "dry" => Acts::Adds,
        "repetition_penalty" | "length_decay" => Acts::Stretches,
        "suppress" | "bad_words" | "min_new_tokens" | "no_repeat_ngram" => Acts::Forbids,
        "temperature" => Acts::Scales,
        "quadratic" if args.number("curve").is_ok_and(|curve| (1.0..=3.0).contains(&curve)) => Acts::Bends,
        "top_k" => Acts::Counts,
        "min_p" => Acts::Compares,
        "top_n_sigma" => Acts::Measures,
        _ => Acts::Other,
    }
}

/// Pairs that commute.
const COMMUTING: &[(Acts, Acts)] = &[
    (Acts::Adds, Acts::Adds),
    (Acts::Adds, Acts::Forbids),
    (Acts::Stretches, Acts::Forbids),
    (Acts::Stretches, Acts::Scales),
    (Acts::Forbids, Acts::Forbids),
    (Acts::Forbids, Acts::Scales),
    (Acts::Scales, Acts::Scales),
    (Acts::Counts, Acts::Scales),
    (Acts::Counts, Acts::Bends),
    (Acts::Counts, Acts::Counts),
    // The likeliest token stays, and a ratio to it does not depend on what else does.
    (Acts::Counts, Acts::Compares),
    (Acts::Compares, Acts::Compares),
    (Acts::Measures, Acts::Scales),
];

/// Whether a truncation keeps the same tokens before this change of all scores as after it.
fn cuts_alike(cut: &Args, reshape: &Args) -> bool {
    match acts(cut) {
        Acts::Counts => reshape.spec.id != "quadratic" || acts(reshape) == Acts::Bends,
        Acts::Measures => matches!(reshape.spec.id, "temperature" | "dynamic_temperature"),
        _ => false,
    }
}

/// Stages by their text: "a, b and c".
fn listed(stages: &[&Args]) -> String {
    let mut texts: Vec<String> = stages.iter().map(|args| args.brief()).collect();
    match texts.pop() {
        Some(last) if !texts.is_empty() => format!("{} and {last}", texts.join(", ")),
        last => last.unwrap_or_default(),
    }
}

fn before_grammar(cut: &Args) -> Note {
    Note {
        code: "truncation_before_grammar",
        stage: cut.spec.id.to_owned(),
        message: format!(
            "{} cuts before the grammar masks: if the grammar allows none of the tokens it keeps, nothing is \
             left, and otherwise the survivors were chosen among forbidden ones",
            cut.brief()
        ),
    }
}

fn edit_after(args: &Args, cuts: &[&Args]) -> Note {
    let (edit, cuts) = (args.brief(), listed(cuts));
    let (code, message) = if acts(args) == Acts::Forbids || args.spec.id == "forced_tokens" {
        (
            "mask_after_truncation",
            format!(
                "{edit} forbids tokens after the cut of {cuts}: if it forbids all that stayed, nothing is left"
            ),
        )
    } else {
        (
            "penalty_after_truncation",
            format!(
                "{edit} changes scores after the cut of {cuts}: it can revive nothing, and the cut was made on \
                 the scores before it"
            ),
        )
    };
    Note { code, stage: args.spec.id.to_owned(), message }
}

fn draws_from_everything(spec: &StageSpec) -> bool {
    matches!(spec.id, "categorical" | "gumbel_max")
}

/// Whether every parameter that can be neutral is, so that the stage changes nothing.
pub(crate) fn does_nothing(args: &Args) -> bool {
    let mut strengths = args.spec.params.iter().filter(|param| param.neutral.is_some()).peekable();
    strengths.peek().is_some()
        && strengths.all(|param| {
            let neutral = param.neutral.and_then(|text| crate::config::parse_value(text).ok());
            let neutral = neutral.and_then(|value| param.check(args.spec.id, &value).ok());
            neutral.is_some() && args.get(param.name).ok().flatten() == neutral.as_ref()
        })
}
