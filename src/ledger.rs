//! The ledger of one token: how it fared at every stage, and by what margin.
//!
//! "Why was ` the` removed?" is answered by the first entry in which it is dead, whose verdict
//! says what was held against what.

use serde::Serialize;

use crate::{
    TokenId,
    config::Args,
    error::{Error, ErrorCode, Result},
    logits::{Logits, Standing},
    pipeline::Pipeline,
    sampler::{Draw, Pick},
    step::StepContext,
    trace::{Judge, Observer},
    transform::{Facts, Outcome, Verdict},
};

/// A token after one stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The stage with every parameter, or `raw`.
    pub stage: String,
    /// Whether the token is alive after it.
    pub alive: bool,
    /// How many tokens are.
    pub survivors: usize,
    /// Its place in the order, from 0, after the stage; before it, if it died.
    pub rank: Option<usize>,
    /// Its score divided by the temperatures so far, in nats; before the stage, if it died.
    pub score: Option<f64>,
    /// Its probability after the stage; 0 if it is dead.
    pub probability: f64,
    /// The probability of all tokens before it in the order.
    pub mass_before: Option<f64>,
    /// Why it lives or died, with the margin. Only from the stage that decided.
    pub verdict: Option<Verdict>,
    /// What the stage did to its score, if it edits single tokens.
    pub edit: Option<String>,
}

/// A token through all stages.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ledger {
    /// The token.
    pub token: TokenId,
    /// The raw row first, the sampler last.
    pub entries: Vec<Entry>,
    /// The stage that removed it, if one did.
    pub removed_by: Option<String>,
    /// Whether it was drawn.
    pub drawn: bool,
}

/// Follows a token through a pipeline on a row.
///
/// # Errors
/// `token_out_of_vocabulary`; what the pipeline refuses.
///
/// # Examples
/// ```
/// use logitscope::{Pipeline, TokenId, ledger::ledger, sampler::Pick};
///
/// let pipeline = Pipeline::parse("temperature(t=0.5) | top_p(p=0.8) | categorical(seed=7)")?;
/// let found = ledger(&pipeline, &[3.0, 2.0, 1.0], &Default::default(), Pick::Seeded, TokenId(1))?;
/// assert!(found.removed_by.as_deref().is_some_and(|stage| stage.starts_with("top_p")));
/// let verdict = found.entries[2].verdict.as_ref().unwrap();
/// assert_eq!(verdict.reason, "the mass before it was 0.8668 ≥ 0.8");
/// # Ok::<(), logitscope::Error>(())
/// ```
pub fn ledger(
    pipeline: &Pipeline,
    row: &[f32],
    context: &StepContext,
    pick: Pick,
    token: TokenId,
) -> Result<Ledger> {
    if token.index() >= row.len() {
        let message = format!("token {token} is not in a vocabulary of {}", row.len());
        return Err(Error::new(ErrorCode::TokenOutOfVocabulary, message).param("token"));
    }
    let mut watch = Watch { token, entries: Vec::new(), before: None };
    let mut logits = Logits::unfilled();
    let draw = pipeline.decode(row, &mut logits, context, &mut *pipeline.sampler(), pick, &mut watch)?;
    let removed_by = watch.entries.iter().find(|entry| !entry.alive).map(|entry| entry.stage.clone());
    Ok(Ledger { token, entries: watch.entries, removed_by, drawn: draw.token == token })
}

struct Watch {
    token: TokenId,
    entries: Vec<Entry>,
    before: Option<(Facts, Option<Standing>)>,
}

impl Watch {
    fn entry(
        stage: String,
        logits: &mut Logits,
        standing: Option<Standing>,
        earlier: Option<Standing>,
    ) -> Entry {
        let shown = standing.or(earlier);
        Entry {
            stage,
            alive: standing.is_some(),
            survivors: logits.alive().count(),
            rank: shown.map(|standing| standing.rank),
            score: shown.map(|standing| standing.score),
            probability: standing.map_or(0.0, |standing| standing.probability),
            mass_before: shown.map(|standing| standing.mass_before),
            verdict: None,
            edit: None,
        }
    }
}

impl Observer for Watch {
    const ENABLED: bool = true;

    fn raw(&mut self, logits: &mut Logits) -> Result<()> {
        let standing = logits.standing(self.token)?;
        self.entries.push(Self::entry("raw".to_owned(), logits, standing, None));
        Ok(())
    }

    fn before(&mut self, logits: &mut Logits) -> Result<()> {
        self.before = Some((Facts::of(logits)?, logits.standing(self.token)?));
        Ok(())
    }

    fn after(
        &mut self,
        _: usize,
        args: &Args,
        judge: Judge,
        outcome: &Outcome,
        logits: &mut Logits,
    ) -> Result<()> {
        let Some((facts, earlier)) = self.before.take() else { return Ok(()) };
        let standing = logits.standing(self.token)?;
        let mut entry = Self::entry(args.to_string(), logits, standing, earlier);
        if let Some(earlier) = earlier {
            entry.verdict = judge.verdict(&facts, &earlier, outcome);
            if let Judge::Transform(transform, context) = judge {
                let edits = transform.edits(context)?;
                entry.edit = edits.into_iter().find(|edit| edit.token == self.token).map(|edit| edit.why);
            }
        }
        self.entries.push(entry);
        Ok(())
    }

    fn drawn(&mut self, _: &[f32], _: &mut Logits, _: &Draw, _: Pick) -> Result<()> {
        Ok(())
    }
}
