//! Several pipelines on the same row and the same uniform number, side by side.
//!
//! What each keeps and would draw, the first stage at which two of them part, and what each
//! truncation keeps when it stands alone.

use serde::Serialize;

use crate::{
    TokenId, Vocab,
    config::Args,
    error::{Error, Result},
    logits::{Logits, TokenMask},
    pipeline::Pipeline,
    random,
    sampler::{Draw, Pick},
    spec::Kind,
    step::StepContext,
    trace::{Judge, Observer, Recorder, StepTrace},
    transform::Outcome,
};

/// The token that a side takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Taken {
    /// The token.
    pub token: TokenId,
    /// The uniform number, the same for all sides.
    pub u: f64,
    /// Where the token's part of [0, 1) begins.
    pub low: f64,
    /// Where it ends; excluded.
    pub high: f64,
}

/// What a truncation keeps when no other truncates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alone {
    /// The stage with every parameter.
    pub stage: String,
    /// How many tokens it keeps.
    pub kept: usize,
    /// The least likely of them.
    pub least: Option<TokenId>,
    /// The first of them, by ascending id.
    pub ids: Vec<TokenId>,
}

/// One pipeline's side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// The pipeline, with every parameter.
    pub pipeline: String,
    /// What each stage did, with every token of the [comparison](Comparison::tokens) in view;
    /// up to the stage that refused the row, if one did.
    pub trace: StepTrace,
    /// How many tokens can be drawn.
    pub kept: usize,
    /// The token taken.
    pub taken: Option<Taken>,
    /// What each truncation keeps alone: after the same edits and temperatures, without the
    /// other truncations.
    pub alone: Vec<Alone>,
    /// How many tokens all of them keep; all that are left where nothing truncates.
    pub intersection: usize,
    /// Why the pipeline refused the row, if it did.
    pub error: Option<Error>,
}

/// One token's probability on every side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// The token.
    pub token: TokenId,
    /// Its probability in the raw row.
    pub raw: f64,
    /// Its probability on each side; `None` where it is dead.
    pub sides: Vec<Option<f64>>,
}

/// Where a side parts from the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parting {
    /// The side, counted from 0; never 0.
    pub side: usize,
    /// The first place at which the rows differ, counted from 0; `None` if they never do.
    pub place: Option<usize>,
    /// The stage of the first side there.
    pub here: Option<String>,
    /// The stage of the other side there.
    pub there: Option<String>,
    /// The truncation that both have and that keeps other tokens on each side.
    pub cuts_otherwise: Option<String>,
    /// Tokens that only the first side can draw: how many, and the likeliest raw one.
    pub only_here: (usize, Option<TokenId>),
    /// Tokens that only the other side can draw.
    pub only_there: (usize, Option<TokenId>),
    /// All of it in words.
    pub words: String,
}

/// Several pipelines on one row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// In the order given.
    pub sides: Vec<Side>,
    /// The likeliest tokens of the raw row and of every side.
    pub tokens: Vec<Compared>,
    /// Where each further side parts from the first.
    pub partings: Vec<Parting>,
}

/// How many ids of a truncation's own set are listed.
const LISTED: usize = 200;

/// Runs pipelines on the same row with the same uniform draw; `top` tokens of each are listed.
///
/// A side that refuses the row has an error in place of its numbers.
///
/// # Errors
/// What is wrong with the row itself.
///
/// # Examples
/// ```
/// use logitscope::{Pipeline, compare::compare, random::from_unit};
///
/// let sides = [
///     Pipeline::parse("top_p(p=0.8) | temperature(t=0.5)")?,
///     Pipeline::parse("temperature(t=0.5) | top_p(p=0.8)")?,
/// ];
/// let found = compare(&sides, &[3.0, 2.0, 1.0], &Default::default(), from_unit(0.95), 3)?;
/// assert_eq!((found.sides[0].kept, found.sides[1].kept), (2, 1));
/// assert_eq!(found.partings[0].only_here.0, 1);
/// assert!(found.partings[0].words.starts_with("A and B part at stage 1: A has `top_p("));
/// # Ok::<(), logitscope::Error>(())
/// ```
pub fn compare(
    pipelines: &[Pipeline],
    row: &[f32],
    context: &StepContext,
    u: u64,
    top: usize,
) -> Result<Comparison> {
    let mut raw = Logits::new(row)?;
    let mut listed: Vec<TokenId> = raw.top(top)?.iter().map(|standing| standing.token).collect();
    let raw_digest = digest(&raw);
    let mut runs = Vec::new();
    for pipeline in pipelines {
        let run = Run::of(pipeline, row, raw_digest, context, u, top);
        for &(token, _) in run.top.iter().filter(|(token, _)| !listed.contains(token)).collect::<Vec<_>>() {
            listed.push(token);
        }
        runs.push(run);
    }
    let mut tokens = Vec::new();
    for token in listed {
        let mut sides = Vec::new();
        for run in &mut runs {
            let alive = run.error.is_none() && run.last.alive().contains(token.index());
            sides.push(if alive { Some(run.last.probability(token)?) } else { None });
        }
        tokens.push(Compared { token, raw: raw.probability(token)?, sides });
    }
    let partings = match runs.split_first() {
        Some((first, others)) => {
            let others = others.iter().enumerate();
            others.map(|(place, other)| parting(first, other, place + 1, row, context.vocab)).collect()
        }
        None => Vec::new(),
    };
    let in_view: Vec<TokenId> = tokens.iter().map(|compared| compared.token).collect();
    let mut sides = Vec::new();
    for (pipeline, run) in pipelines.iter().zip(runs) {
        let (alone, intersection) = truncations_alone(pipeline, row, context).unwrap_or_default();
        sides.push(Side {
            pipeline: pipeline.to_string(),
            trace: traced(pipeline, row, context, u, Recorder::new(top).pinning(&in_view)),
            kept: if run.error.is_none() { run.last.alive().count() } else { 0 },
            taken: run.draw.map(|draw| {
                let (low, high, _) = draw.interval();
                Taken { token: draw.token, u: random::unit(draw.u), low, high }
            }),
            alone,
            intersection,
            error: run.error,
        });
    }
    Ok(Comparison { sides, tokens, partings })
}

/// The trace of a side; of a row that a stage refuses, as far as it came.
fn traced(
    pipeline: &Pipeline,
    row: &[f32],
    context: &StepContext,
    u: u64,
    mut recorder: Recorder,
) -> StepTrace {
    let mut logits = Logits::unfilled();
    let sampler = &mut *pipeline.sampler();
    let drawn = pipeline.decode(row, &mut logits, context, sampler, Pick::Uniform(u), &mut recorder);
    // Why it was refused, the side says.
    drop(drawn);
    recorder.finish()
}

/// The row after one stage: enough to tell two rows apart.
struct State {
    /// Its place in the pipeline.
    place: usize,
    stage: String,
    /// The same without defaults, for words.
    brief: String,
    truncates: bool,
    alive: TokenMask,
    /// A digest of ids, scores and temperature.
    digest: u64,
}

struct Run {
    /// Digest of the row before the first stage.
    raw: u64,
    states: Vec<State>,
    last: Logits,
    top: Vec<(TokenId, f64)>,
    draw: Option<Draw>,
    error: Option<Error>,
}

impl Run {
    fn of(pipeline: &Pipeline, row: &[f32], raw: u64, context: &StepContext, u: u64, top: usize) -> Self {
        let mut watch = Watch(Vec::new());
        let mut last = Logits::unfilled();
        let drawn =
            pipeline.decode(row, &mut last, context, &mut *pipeline.sampler(), Pick::Uniform(u), &mut watch);
        let (draw, error) = match drawn {
            Ok(draw) => (Some(draw), None),
            Err(error) => (None, Some(error)),
        };
        let listed = if error.is_none() { last.top(top).unwrap_or_default() } else { Vec::new() };
        let top = listed.iter().map(|standing| (standing.token, standing.probability)).collect();
        Self { raw, states: watch.0, last, top, draw, error }
    }

    /// The stages that changed the row: the others make no difference, wherever they stand.
    fn changes(&self) -> Vec<&State> {
        let before = std::iter::once(self.raw).chain(self.states.iter().map(|state| state.digest));
        self.states
            .iter()
            .zip(before)
            .filter(|(state, before)| state.digest != *before)
            .map(|(state, _)| state)
            .collect()
    }
}

/// A digest of ids, scores and temperature.
fn digest(logits: &Logits) -> u64 {
    let mut digest = 0xcbf2_9ce4_8422_2325u64;
    let mut eat = |value: u64| digest = (digest ^ value).wrapping_mul(0x0000_0100_0000_01b3);
    let temperature = logits.temperature();
    for index in logits.alive().iter() {
        eat(index as u64);
        // 0 and -0 are the same score.
        eat((f64::from(logits.stored_scores()[index]) / temperature + 0.0).to_bits());
    }
    digest
}

struct Watch(Vec<State>);

impl Observer for Watch {
    const ENABLED: bool = true;

    fn after(&mut self, _: usize, args: &Args, _: Judge, _: &Outcome, logits: &mut Logits) -> Result<()> {
        self.0.push(State {
            stage: args.to_string(),
            brief: args.brief(),
            truncates: args.spec.kind == Kind::Truncate,
            alive: logits.alive().clone(),
            digest: digest(logits),
            place: self.0.len(),
        });
        Ok(())
    }
}

fn parting(first: &Run, other: &Run, side: usize, row: &[f32], vocab: Option<&Vocab>) -> Parting {
    let (own, others) = (first.changes(), other.changes());
    let after = |run: &Run, changes: &[&State], place: usize| {
        // A side that has no more stages stays as it was.
        changes.get(place).or(changes.last()).map_or(run.raw, |state| state.digest)
    };
    let apart = (0..own.len().max(others.len()))
        .find(|&place| after(first, &own, place) != after(other, &others, place));
    let stages = apart.map_or((None, None), |place| (own.get(place).copied(), others.get(place).copied()));
    let place = stages.0.or(stages.1).map(|state| state.place);
    let (here, there) =
        (stages.0.map(|state| state.stage.clone()), stages.1.map(|state| state.stage.clone()));
    let mut cuts_otherwise = None;
    for own in first.states.iter().filter(|state| state.truncates) {
        let twin = other.states.iter().find(|state| state.stage == own.stage);
        if let Some(twin) = twin.filter(|twin| twin.alive != own.alive) {
            cuts_otherwise = Some((own, twin));
            break;
        }
    }
    let only = |a: &Run, b: &Run| -> (usize, Option<TokenId>) {
        if a.error.is_some() || b.error.is_some() {
            return (0, None);
        }
        let mut alone: Vec<usize> =
            a.last.alive().iter().filter(|&index| !b.last.alive().contains(index)).collect();
        alone.sort_by(|&x, &y| row[y].total_cmp(&row[x]).then(x.cmp(&y)));
        let best = alone.first().and_then(|&index| u32::try_from(index).ok()).map(TokenId);
        (alone.len(), best)
    };
    let (only_here, only_there) = (only(first, other), only(other, first));
    let mut parting = Parting {
        side,
        place,
        here,
        there,
        cuts_otherwise: cuts_otherwise.map(|(own, _)| own.stage.clone()),
        only_here,
        only_there,
        words: String::new(),
    };
    parting.words = Words { first, other, vocab }.of(&parting, stages, cuts_otherwise);
    parting
}

/// The name of a side: A, B, C and so on.
///
/// # Examples
/// ```
/// use logitscope::compare::side_name;
///
/// assert_eq!((side_name(0).as_str(), side_name(3).as_str()), ("A", "D"));
/// ```
#[must_use]
pub fn side_name(side: usize) -> String {
    u8::try_from(side)
        .ok()
        .filter(|&side| side < 26)
        .map_or_else(|| format!("pipeline {}", side + 1), |side| char::from(b'A' + side).to_string())
}

/// What puts a parting into words.
struct Words<'a> {
    first: &'a Run,
    other: &'a Run,
    vocab: Option<&'a Vocab>,
}

impl Words<'_> {
    fn of(
        &self,
        parting: &Parting,
        stages: (Option<&State>, Option<&State>),
        cuts_otherwise: Option<(&State, &State)>,
    ) -> String {
        let Self { first, other, .. } = self;
        let (a, b) = (side_name(0), side_name(parting.side));
        if let Some(error) = first.error.as_ref().or(other.error.as_ref()) {
            let whose = if first.error.is_some() { &a } else { &b };
            return format!("{whose} refuses the row: {}.", error.message);
        }
        let Some(place) = parting.place else {
            let same = format!("{a} and {b} keep the same tokens with the same probabilities.");
            return [Some(same), self.draws(&a, &b, true)]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" ");
        };
        let name = |state: Option<&State>| {
            state.map_or("no further stage".to_owned(), |state| format!("`{}`", state.brief))
        };
        let (here, there) = (name(stages.0), name(stages.1));
        let mut words = vec![if here == there {
            format!("{a} and {b} part at stage {}, which is {here} in both.", place + 1)
        } else {
            format!("{a} and {b} part at stage {}: {a} has {here}, {b} has {there}.", place + 1)
        }];
        if let Some((own, twin)) = cuts_otherwise {
            let (kept, kept_there) = (tokens(own.alive.count()), twin.alive.count());
            words.push(format!("`{}` keeps {kept} in {a} and {kept_there} in {b}.", own.brief));
        }
        let (kept, kept_there) = (first.last.alive(), other.last.alive());
        if kept == kept_there {
            let digest = |run: &Run| run.states.last().map(|state| state.digest);
            let probabilities = if digest(first) == digest(other) { "the same" } else { "other" };
            let count = tokens(kept.count());
            words.push(format!("In the end both keep the same {count}, with {probabilities} probabilities."));
        } else {
            let (count, count_there) = (tokens(kept.count()), kept_there.count());
            words.push(format!("In the end {a} can draw {count}, {b} {count_there}."));
            for (side, (count, likeliest)) in [(&a, parting.only_here), (&b, parting.only_there)] {
                if let Some(likeliest) = likeliest {
                    let likeliest = self.token(likeliest);
                    words.push(if count == 1 {
                        format!("Only {side} can draw {likeliest}.")
                    } else {
                        format!("Only {side} can draw {}, {likeliest} the likeliest.", tokens(count))
                    });
                }
            }
        }
        words.extend(self.draws(&a, &b, false));
        words.join(" ")
    }

    /// What both draw; or only that they draw different tokens.
    fn draws(&self, a: &str, b: &str, only_apart: bool) -> Option<String> {
        let (one, two) = (self.first.draw?.token, self.other.draw?.token);
        if one != two {
            return Some(format!("{a} draws {}, {b} draws {}.", self.token(one), self.token(two)));
        }
        (!only_apart).then(|| format!("Both draw {}.", self.token(one)))
    }

    /// The text of a token where it is known, else its id.
    fn token(&self, token: TokenId) -> String {
        let text = self.vocab.map(|vocab| String::from_utf8_lossy(vocab.bytes(token)));
        match text.filter(|text| !text.is_empty()) {
            Some(text) => format!("“{text}”"),
            None => format!("token {token}"),
        }
    }
}

fn tokens(count: usize) -> String {
    if count == 1 { "1 token".to_owned() } else { format!("{count} tokens") }
}

/// What each truncation keeps after the edits and temperatures before it, without the other
/// truncations, and how many tokens all of them keep.
///
/// # Errors
/// What a stage refuses.
pub fn truncations_alone(
    pipeline: &Pipeline,
    row: &[f32],
    context: &StepContext,
) -> Result<(Vec<Alone>, usize)> {
    let mut base = Logits::new(row)?;
    if let Some(allowed) = &context.allowed {
        base.retain(|token| allowed.mask.contains(token.index()));
    }
    let mut all: Option<TokenMask> = None;
    let mut found = Vec::new();
    for stage in pipeline.stages() {
        if stage.args.spec.kind != Kind::Truncate {
            stage.transform.apply(&mut base, context)?;
            continue;
        }
        let mut logits = base.clone();
        stage.transform.apply(&mut logits, context)?;
        let kept = logits.alive().clone();
        found.push(Alone {
            stage: stage.args.to_string(),
            kept: kept.count(),
            least: least(&logits),
            ids: logits.support().into_iter().take(LISTED).collect(),
        });
        all = Some(match all {
            None => kept,
            Some(mut both) => {
                for index in 0..both.len() {
                    if !kept.contains(index) {
                        both.remove(index);
                    }
                }
                both
            }
        });
    }
    let intersection = all.map_or(base.alive().count(), |all| all.count());
    Ok((found, intersection))
}

/// The live token with the lowest score, the last of equals.
fn least(logits: &Logits) -> Option<TokenId> {
    let scores = logits.stored_scores();
    let live = logits.support().into_iter();
    live.reduce(|lowest, token| if scores[token.index()] <= scores[lowest.index()] { token } else { lowest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::from_unit;

    fn run(texts: &[&str], row: &[f32], u: f64) -> Comparison {
        let pipelines: Vec<Pipeline> = texts
            .iter()
            .map(|text| Pipeline::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")))
            .collect();
        compare(&pipelines, row, &StepContext::default(), from_unit(u), 4).expect("a row")
    }

    #[test]
    fn the_same_pipeline_never_parts() {
        let found = run(&["top_k(k=2)", "top_k(k=2)", "top_k(k=2) | top_p(p=1)"], &[3.0, 2.0, 1.0], 0.1);
        assert_eq!(found.partings[0].place, None);
        assert_eq!(found.partings[1].place, None);
        assert_eq!(found.partings[0].words, "A and B keep the same tokens with the same probabilities.");
        assert_eq!(found.sides[0].taken, found.sides[1].taken);
    }

    #[test]
    fn two_orders_of_temperature_part_and_say_which_truncation_keeps_what() {
        let found = run(
            &["top_p(p=0.8) | temperature(t=0.5)", "temperature(t=0.5) | top_p(p=0.8)"],
            &[3.0, 2.0, 1.0],
            0.95,
        );
        let parting = &found.partings[0];
        assert_eq!(parting.place, Some(0));
        assert!(parting.cuts_otherwise.as_deref().is_some_and(|stage| stage.starts_with("top_p(p=0.8")));
        assert!(parting.words.contains("keeps 2 tokens in A and 1 in B"), "{}", parting.words);
        assert!(parting.words.contains("A can draw 2 tokens, B 1"), "{}", parting.words);
        assert_eq!(parting.only_here, (1, Some(TokenId(1))));
        assert_eq!(found.sides[0].taken.expect("drawn").token, TokenId(1));
        assert_eq!(found.sides[1].taken.expect("drawn").token, TokenId(0));
        assert_eq!(found.tokens[1].sides[1], None);
        // Every token is in view in every trace, dead or alive.
        let cut = &found.sides[1].trace.stages[2].rows[1];
        assert_eq!((cut.token, cut.alive), (TokenId(1), false));
    }

    #[test]
    fn truncations_alone_and_together() {
        // Top-k keeps 3, min-p 2, top-p 1: alone. The last also sees the temperature.
        let found = run(
            &["top_k(k=3) | min_p(m=0.3) | temperature(t=0.5) | top_p(p=0.8)"],
            &[3.0, 2.0, 1.0, 0.0],
            0.5,
        );
        let kept: Vec<usize> = found.sides[0].alone.iter().map(|alone| alone.kept).collect();
        assert_eq!(kept, [3, 2, 1]);
        let least: Vec<_> = found.sides[0].alone.iter().filter_map(|alone| alone.least).collect();
        assert_eq!(least, [2, 1, 0].map(TokenId));
        assert_eq!(found.sides[0].intersection, 1);
    }

    #[test]
    fn a_side_that_refuses_the_row_says_why() {
        let found = run(&["top_k(k=1)", "suppress(ids=[0,1])"], &[1.0, 2.0], 0.5);
        assert!(found.sides[1].error.is_some());
        assert!(found.partings[0].words.starts_with("B refuses the row"), "{}", found.partings[0].words);
    }

    #[test]
    fn stages_that_change_nothing_part_nobody() {
        let words =
            |a: &str, b: &str| run(&[a, b], &[4.0, 3.0, 2.0, 1.0, 0.0], 0.0).partings[0].words.clone();
        let parted = words("temperature(t=1) | top_k(k=4) | top_p(p=0.9)", "top_k(k=4) | top_p(p=0.6)");
        assert!(parted.starts_with("A and B part at stage 3: A has `top_p(p=0.9)`"), "{parted}");
        let same = "A and B keep the same tokens with the same probabilities.";
        assert_eq!(words("temperature(t=1) | top_k(k=2)", "top_k(k=2)"), same);
        assert_eq!(words("top_k(k=2, ties=keep)", "top_k(k=2)"), same);
    }
}
