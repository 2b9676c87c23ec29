//! What happened at a step, stage by stage.
//!
//! [`Pipeline::decode`](crate::Pipeline::decode) is generic over an [`Observer`]. With
//! [`Off`] it compiles to the bare decoding; with a [`Recorder`] it leaves a [`StepTrace`],
//! which is what the page draws and what a trace file holds. Every number in a trace belongs
//! to a stage: raw, or after a named one.

use serde::Serialize;

use crate::{
    TokenId,
    config::Args,
    error::Result,
    logits::{Logits, Standing, TokenMask},
    random,
    sampler::{Draw, Pick, Sampler},
    step::{Allowed, Standing as ParserStanding, StepContext},
    transform::{Edit, Facts, Outcome, Transform, Verdict},
    weights::WEIGHT_BITS,
};

/// Who can say why a token lives or dies.
#[derive(Debug, Clone, Copy)]
pub enum Judge<'a> {
    /// A transform, at this step.
    Transform(&'a dyn Transform, &'a StepContext<'a>),
    /// A sampler.
    Sampler(&'a dyn Sampler),
}

impl Judge<'_> {
    /// See [`Transform::verdict`].
    #[must_use]
    pub fn verdict(&self, before: &Facts, standing: &Standing, outcome: &Outcome) -> Option<Verdict> {
        match self {
            Self::Transform(transform, _) => transform.verdict(before, standing, outcome),
            Self::Sampler(sampler) => sampler.verdict(before, standing, outcome),
        }
    }
}

/// Watches a step. Every method does nothing unless overridden, and a caller checks
/// [`ENABLED`](Self::ENABLED) where preparing the arguments would cost something.
pub trait Observer {
    /// Whether anything is recorded.
    const ENABLED: bool;

    /// Called once with the row as the model gave it.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    fn raw(&mut self, _logits: &mut Logits) -> Result<()> {
        Ok(())
    }

    /// Called before a constraint's mask is applied to the raw row, if there is one.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    fn constraining(&mut self, _logits: &mut Logits, _allowed: &Allowed) -> Result<()> {
        Ok(())
    }

    /// Called after it was applied.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    fn constrained(&mut self, _logits: &mut Logits) -> Result<()> {
        Ok(())
    }

    /// Called before each stage.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    fn before(&mut self, _logits: &mut Logits) -> Result<()> {
        Ok(())
    }

    /// Called after each stage, the sampler's own included.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    fn after(
        &mut self,
        _index: usize,
        _args: &Args,
        _judge: Judge,
        _outcome: &Outcome,
        _logits: &mut Logits,
    ) -> Result<()> {
        Ok(())
    }

    /// Called when a token has been taken.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    fn drawn(&mut self, _row: &[f32], _logits: &mut Logits, _draw: &Draw, _pick: Pick) -> Result<()> {
        Ok(())
    }
}

/// Records nothing and costs nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Off;

impl Observer for Off {
    const ENABLED: bool = false;
}

/// One token in a [`StageTrace`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The token.
    pub token: TokenId,
    /// Its place in the order after the stage, from 0; before it, if it died.
    pub rank: usize,
    /// Its score divided by the temperatures so far, in nats.
    pub score: f64,
    /// Its probability after the stage; 0 if it died.
    pub probability: f64,
    /// Its probability before the stage; `None` in the raw row and when it was not in view.
    pub probability_before: Option<f64>,
    /// The probability of all tokens before it in the order.
    pub mass_before: f64,
    /// Whether it is still alive.
    pub alive: bool,
    /// Why it lives or died.
    pub verdict: Option<Verdict>,
}

/// Where a stage cut the order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CutTrace {
    /// The last token kept.
    pub token: TokenId,
    /// How many tokens stand at or before it.
    pub count: usize,
    /// Their mass without it, as a share of the mass before the stage.
    pub mass_before: f64,
    /// Their mass with it.
    pub mass: f64,
}

/// What a stage did to one token's score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EditTrace {
    /// The token.
    pub token: TokenId,
    /// Its score after; `None` if it is dead.
    pub score: Option<f64>,
    /// Why.
    pub why: String,
}

/// The row after one stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageTrace {
    /// The stage with every parameter, or `raw`.
    pub stage: String,
    /// The stage's name, or `raw`.
    pub id: String,
    /// The stage's name for people.
    pub label: String,
    /// Live tokens before the stage.
    pub alive_before: usize,
    /// Live tokens after it.
    pub alive: usize,
    /// The share of the mass that the stage removed.
    pub removed_mass: f64,
    /// Entropy after the stage, in nats.
    pub entropy: f64,
    /// The product of the temperatures so far.
    pub temperature: f64,
    /// Tokens in view: the highest after the stage, then those it removed from view.
    pub rows: Vec<Row>,
    /// The probability of all live tokens not among the rows.
    pub rest_mass: f64,
    /// Where the stage cut, if it did.
    pub cut: Option<CutTrace>,
    /// The limit it computed from the row, if it did.
    pub limit: Option<f64>,
    /// What it did to single tokens.
    pub edits: Vec<EditTrace>,
}

/// One token's part of the interval [0, 1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Slice {
    /// The token.
    pub token: TokenId,
    /// Where its part begins.
    pub low: f64,
    /// Where it ends; excluded.
    pub high: f64,
}

/// The token taken, and how.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DrawTrace {
    /// The token.
    pub token: TokenId,
    /// The uniform draw in [0, 1).
    pub u: f64,
    /// Whether `u` decided.
    pub random: bool,
    /// Whether it did so by noise on every score, so that it need not lie in the token's part.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub noise: bool,
    /// Whether the token was forced, whatever was drawn.
    pub forced: bool,
    /// Where the token's part of [0, 1) begins.
    pub low: f64,
    /// Where it ends; excluded.
    pub high: f64,
    /// How far `u` lies inside it; negative if it lies outside, because the token was forced
    /// against the draw or noise decided.
    pub margin: f64,
    /// The probability the token was drawn with.
    pub probability: f64,
    /// ln of its probability in the raw row.
    pub raw_logprob: f64,
    /// ln of the probability it was drawn with; `None` if that is 0.
    pub final_logprob: Option<f64>,
    /// [0, 1) cut into the likeliest survivors; what is left belongs to the others.
    pub slices: Vec<Slice>,
}

/// Less than this share of the probability left, the model wants something else than the
/// constraint: what it is made to write may make no sense.
pub const OFF_MANIFOLD: f64 = 0.01;

/// What a constraint did at one step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConstraintTrace {
    /// How many tokens it allowed.
    pub allowed: usize,
    /// The probability, in the raw row, of all that it allowed.
    pub feasible_mass: f64,
    /// The likeliest token that it forbade.
    pub top_forbidden: Option<TokenId>,
    /// That token's probability in the raw row.
    pub top_forbidden_probability: f64,
    /// Whether [hardly any](OFF_MANIFOLD) probability was left.
    pub off_manifold: bool,
    /// Where the parser stood before the step.
    pub standing: ParserStanding,
}

/// Everything that happened at a step.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct StepTrace {
    /// The raw row first, then each stage, the sampler last.
    pub stages: Vec<StageTrace>,
    /// What the constraint did, if there is one; it stands between the raw row and the first
    /// stage, and has an entry among the stages too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<ConstraintTrace>,
    /// The token taken; `None` if the step ended in an error before.
    pub draw: Option<DrawTrace>,
}

/// Records a [`StepTrace`] with a given number of tokens in view.
#[derive(Debug, Clone)]
pub struct Recorder {
    top: usize,
    pinned: Vec<TokenId>,
    trace: StepTrace,
    before: Option<Before>,
    /// The highest tokens of the row as it is now.
    latest: Vec<Standing>,
    raw: Option<Raw>,
    random: bool,
    noise: bool,
}

/// The row before the stage that is running.
#[derive(Debug, Clone)]
struct Before {
    facts: Facts,
    alive: TokenMask,
    mass: u64,
    revision: u64,
    top: Vec<Standing>,
}

/// How a stage is called: see the fields of [`StageTrace`].
struct Name {
    stage: String,
    id: String,
    label: String,
}

/// What turns a raw score into a log-probability.
#[derive(Debug, Clone, Copy)]
struct Raw {
    highest: f64,
    log_mass: f64,
}

impl Recorder {
    /// A recorder with the `top` likeliest tokens of every stage in view.
    #[must_use]
    pub fn new(top: usize) -> Self {
        Self {
            top,
            pinned: Vec::new(),
            trace: StepTrace::default(),
            before: None,
            latest: Vec::new(),
            raw: None,
            random: true,
            noise: false,
        }
    }

    /// Keeps these tokens in view as well, wherever they stand.
    #[must_use]
    pub fn pinning(mut self, tokens: &[TokenId]) -> Self {
        self.pinned = tokens.to_vec();
        self
    }

    /// Where the tokens in view stand: the likeliest, then the pinned ones that are alive.
    fn in_view(&self, logits: &mut Logits) -> Result<Vec<Standing>> {
        let mut standings = logits.top(self.top)?;
        for &token in &self.pinned {
            if standings.iter().all(|standing| standing.token != token) {
                standings.extend(logits.standing(token)?);
            }
        }
        Ok(standings)
    }

    /// Adds what became of the row before a stage. `verdict` says why a token lives or dies.
    fn record(
        &mut self,
        name: Name,
        before: &Before,
        outcome: &Outcome,
        edits: &[Edit],
        logits: &mut Logits,
        verdict: impl Fn(&Standing, bool) -> Option<Verdict>,
    ) -> Result<()> {
        let removed_mass = logits.mass_lost_since(&before.alive) as f64 / before.mass as f64;
        let changed = logits.revision() != before.revision;
        self.latest = if changed { self.in_view(logits)? } else { before.top.clone() };
        let known = |token: TokenId| before.top.iter().find(|standing| standing.token == token);
        let alive = self.latest.iter().map(|standing| {
            let earlier = known(standing.token);
            let probability = earlier.map(|earlier| earlier.probability);
            live_row(standing, probability, earlier.and_then(|earlier| verdict(earlier, true)))
        });
        let mut rows: Vec<Row> = alive.collect();
        let rest_mass = rest_mass(&rows);
        let dead = before.top.iter().filter(|standing| !logits.alive().contains(standing.token.index()));
        rows.extend(dead.map(|standing| dead_row(standing, verdict(standing, false))));
        let share = |mass: u64| mass as f64 / before.mass as f64;
        let Name { stage, id, label } = name;
        self.trace.stages.push(StageTrace {
            stage,
            id,
            label,
            alive_before: before.facts.alive,
            alive: logits.alive().count(),
            removed_mass,
            entropy: logits.entropy()?,
            temperature: logits.temperature(),
            rows,
            rest_mass,
            cut: outcome.cut.map(|cut| CutTrace {
                token: cut.last,
                count: cut.count,
                mass_before: share(cut.mass_before),
                mass: share(cut.mass),
            }),
            limit: outcome.limit,
            edits: edits
                .iter()
                .map(|edit| EditTrace {
                    token: edit.token,
                    score: logits.score(edit.token),
                    why: edit.why.clone(),
                })
                .collect(),
        });
        Ok(())
    }

    /// The trace of the step just decoded; the recorder is ready for the next.
    pub fn finish(&mut self) -> StepTrace {
        std::mem::take(&mut self.trace)
    }
}

impl Observer for Recorder {
    const ENABLED: bool = true;

    fn raw(&mut self, logits: &mut Logits) -> Result<()> {
        let highest = logits.highest()?;
        let mass = logits.mass()? as f64 / (1u64 << WEIGHT_BITS) as f64;
        self.raw =
            Some(Raw { highest: logits.score(highest).unwrap_or_default(), log_mass: libm::log(mass) });
        self.latest = self.in_view(logits)?;
        let alive = logits.alive().count();
        let rows: Vec<Row> = self.latest.iter().map(|standing| live_row(standing, None, None)).collect();
        self.trace.stages.push(StageTrace {
            stage: "raw".to_owned(),
            id: "raw".to_owned(),
            label: "Raw".to_owned(),
            alive_before: alive,
            alive,
            removed_mass: 0.0,
            entropy: logits.entropy()?,
            temperature: 1.0,
            rest_mass: rest_mass(&rows),
            rows,
            cut: None,
            limit: None,
            edits: Vec::new(),
        });
        Ok(())
    }

    fn constraining(&mut self, logits: &mut Logits, allowed: &Allowed) -> Result<()> {
        self.before(logits)?;
        let mut feasible = 0;
        let mut forbidden: Option<(f64, TokenId)> = None;
        for token in logits.support() {
            if allowed.mask.contains(token.index()) {
                feasible += logits.weight(token)?;
            } else if let Some(score) = logits.score(token)
                && forbidden.is_none_or(|(highest, _)| score > highest)
            {
                forbidden = Some((score, token));
            }
        }
        let feasible_mass = feasible as f64 / logits.mass()? as f64;
        let top_forbidden = forbidden.map(|(_, token)| token);
        self.trace.constraint = Some(ConstraintTrace {
            allowed: allowed.mask.count(),
            feasible_mass,
            top_forbidden,
            top_forbidden_probability: top_forbidden.map_or(Ok(0.0), |token| logits.probability(token))?,
            off_manifold: feasible_mass < OFF_MANIFOLD,
            standing: allowed.standing.clone(),
        });
        Ok(())
    }

    fn constrained(&mut self, logits: &mut Logits) -> Result<()> {
        let Some(before) = self.before.take() else { return Ok(()) };
        let name = || "constraint".to_owned();
        let stage = Name { stage: name(), id: name(), label: "Constraint".to_owned() };
        self.record(stage, &before, &Outcome::default(), &[], logits, |standing, alive| {
            (!alive).then(|| because("the constraint does not allow it", standing))
        })
    }

    fn before(&mut self, logits: &mut Logits) -> Result<()> {
        // The row before a stage is the row after the one before it, which was just read.
        self.before = Some(Before {
            facts: Facts::of(logits)?,
            mass: logits.mass()?,
            alive: logits.alive().clone(),
            revision: logits.revision(),
            top: std::mem::take(&mut self.latest),
        });
        Ok(())
    }

    fn after(
        &mut self,
        _index: usize,
        args: &Args,
        judge: Judge,
        outcome: &Outcome,
        logits: &mut Logits,
    ) -> Result<()> {
        let Some(before) = self.before.take() else { return Ok(()) };
        let edits = match judge {
            Judge::Transform(transform, context) => transform.edits(context)?,
            Judge::Sampler(sampler) => {
                self.random = sampler.is_random();
                self.noise = sampler.adds_noise();
                Vec::new()
            }
        };
        let spec = args.spec;
        let name = Name { stage: args.to_string(), id: spec.id.to_owned(), label: spec.label.to_owned() };
        self.record(name, &before, outcome, &edits, logits, |standing, alive| {
            judge.verdict(&before.facts, standing, outcome).or_else(|| {
                let edit = edits.iter().find(|edit| !alive && edit.token == standing.token)?;
                Some(because(&edit.why, standing))
            })
        })
    }

    fn drawn(&mut self, row: &[f32], logits: &mut Logits, draw: &Draw, pick: Pick) -> Result<()> {
        let share = |mass: u64| mass as f64 / draw.total as f64;
        let mut low = 0;
        let mut slices = Vec::new();
        // Pinned tokens come last, and only those that are not among the likeliest.
        for standing in self.latest.iter().take(self.top) {
            let high = low + logits.weight(standing.token)?;
            slices.push(Slice { token: standing.token, low: share(low), high: share(high) });
            low = high;
        }
        let (low, high, margin) = draw.interval();
        let probability = logits.probability(draw.token)?;
        let raw_logprob =
            self.raw.map_or(0.0, |raw| f64::from(row[draw.token.index()]) - raw.highest - raw.log_mass);
        self.trace.draw = Some(DrawTrace {
            token: draw.token,
            u: random::unit(draw.u),
            random: self.random,
            noise: self.noise,
            forced: matches!(pick, Pick::Forced(_)),
            low,
            high,
            margin,
            probability,
            raw_logprob,
            final_logprob: (probability > 0.0).then(|| libm::log(probability)),
            slices,
        });
        Ok(())
    }
}

/// A verdict that holds no quantity against a limit.
fn because(reason: &str, standing: &Standing) -> Verdict {
    let score = standing.score;
    Verdict { reason: reason.to_owned(), value: score, limit: score, margin: 0.0 }
}

fn live_row(standing: &Standing, probability_before: Option<f64>, verdict: Option<Verdict>) -> Row {
    Row {
        token: standing.token,
        rank: standing.rank,
        score: standing.score,
        probability: standing.probability,
        probability_before,
        mass_before: standing.mass_before,
        alive: true,
        verdict,
    }
}

fn dead_row(standing: &Standing, verdict: Option<Verdict>) -> Row {
    Row {
        token: standing.token,
        rank: standing.rank,
        score: standing.score,
        probability: 0.0,
        probability_before: Some(standing.probability),
        mass_before: standing.mass_before,
        alive: false,
        verdict,
    }
}

fn rest_mass(rows: &[Row]) -> f64 {
    (1.0 - rows.iter().map(|row| row.probability).sum::<f64>()).max(0.0)
}
