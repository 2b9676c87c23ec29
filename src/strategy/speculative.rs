//! Speculative decoding: a cheap draft proposes several tokens, one pass of the target judges
//! them all.
//!
//! The draft is a smaller model with the same tokenizer, or the text so far: prompt lookup
//! continues the latest n-gram the way it was continued before. Two rules judge a drafted
//! token, and both leave the target's own distribution:
//!
//! - **rejection** (Leviathan et al. 2023, <https://arxiv.org/abs/2211.17192>): accept with
//!   probability `min(1, p / q)`; after a rejection draw from what `p` has beyond `q`.
//! - **match**: draw from the target as if there were no draft, and accept if it is the same
//!   token. With the same seed the text is that of plain sampling.
//!
//! `p` and `q` are distributions after the whole pipeline. Whoever takes them before it, or
//! drafts other than `q` says, gets another distribution: [`Fault`] and
//! [`laboratory`](super::laboratory) show it.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    TokenId,
    call::Arguments,
    constraint::Constraint,
    error::{Error, ErrorCode, Result},
    logits::Logits,
    model::{LanguageModel, ModelState, row::Row},
    random::{Purpose, Randomness, from_unit, unit},
    sampler::{Draw, Sampler},
    stop::{Finish, StopState},
    strategy::{placed, sample::Request},
    trace::{Observer, Off},
};
#[cfg(feature = "gpu")]
use crate::{
    gpu::{Drawn, Engine, Job, Placement, Reached},
    sampler::Pick,
};

/// An error that the draft's logits led to.
fn of_the_draft(mut error: Error) -> Error {
    error.message = format!("in the draft, {}", error.message);
    error
}

/// Why the stages are the CPU's, in a reader's words.
#[cfg(feature = "gpu")]
const MASKED_ON_THE_CPU: &str = "the constraint before it runs on the CPU";
#[cfg(feature = "gpu")]
const DRAFTS_ON_THE_CPU: &str = "the draft model computes on the CPU";
#[cfg(feature = "gpu")]
const NEEDS_OTHER_TOKENS: &str = "the rejection rule needs probabilities of tokens that were not drawn, and the GPU \
     returns only the token that it drew";

/// How a drafted token is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Accepted with probability `min(1, p / q)`.
    #[default]
    Rejection,
    /// Accepted if the target draws the same token.
    Match,
}

impl std::str::FromStr for Rule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "rejection" => Ok(Self::Rejection),
            "match" => Ok(Self::Match),
            _ => Err(Error::new(ErrorCode::BadInput, format!("rule is {text:?}, not rejection or match"))
                .param("rule")),
        }
    }
}

/// Who drafts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Drafter {
    /// A model of this name.
    Model(String),
    /// The text so far: what followed the latest n-gram of at most this length before.
    Lookup(usize),
}

/// The parameters of `speculative` and `prompt_lookup`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Options {
    /// Who drafts.
    pub drafter: Drafter,
    /// How many tokens are drafted at most before the target judges them.
    pub tokens: usize,
    /// How they are judged.
    pub rule: Rule,
}

impl Options {
    /// Takes the parameters out of a call of `speculative` or `prompt_lookup`.
    ///
    /// # Errors
    /// `missing_param`, `wrong_type` or `out_of_range`.
    pub fn read(call: &mut Arguments) -> Result<Self> {
        let (drafter, tokens) = if call.name() == "prompt_lookup" {
            // The defaults are those of transformers.
            (Drafter::Lookup(call.count("ngram", Some(2), 1)?), call.count("tokens", Some(10), 1)?)
        } else {
            let draft = call.text("draft")?.ok_or_else(|| {
                call.fault(ErrorCode::MissingParam, "speculative.draft must name a model").param("draft")
            })?;
            (Drafter::Model(draft), call.count("tokens", Some(4), 1)?)
        };
        let rule = call.word("rule", &["rejection", "match"])?.parse()?;
        Ok(Self { drafter, tokens, rule })
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = if self.rule == Rule::Match { "match" } else { "rejection" };
        match &self.drafter {
            Drafter::Model(draft) => {
                let draft = serde_json::Value::from(draft.as_str());
                write!(f, "speculative(draft={draft}, tokens={}, rule={rule})", self.tokens)
            }
            Drafter::Lookup(ngram) => {
                write!(f, "prompt_lookup(ngram={ngram}, tokens={}, rule={rule})", self.tokens)
            }
        }
    }
}

/// A mistake to make on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// None.
    #[default]
    None,
    /// The draft proposes its likeliest token, though `q` says it draws.
    LikeliestDraft,
    /// `q` is read at twice the temperature that the draft is drawn at.
    MismatchedTemperature,
    /// After a rejection the token is drawn from `p`, not from what `p` has beyond `q`.
    NoResidual,
}

/// One drafted token and its judgement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drafted {
    /// The token.
    pub token: TokenId,
    /// Its probability under the target, after the pipeline.
    pub p: f64,
    /// Its probability under the draft, after the pipeline.
    pub q: f64,
    /// `p / q`; at least 1 is accepted for certain.
    pub ratio: f64,
    /// The uniform draw that decided.
    pub uniform: f64,
    /// Whether it was accepted; `None` if it was not judged, since one before it failed.
    pub accepted: Option<bool>,
}

/// Where the token after the drafted ones came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// What the target has beyond the draft, after a rejection.
    Residual,
    /// The target, since every drafted token was accepted.
    Bonus,
    /// The target's own draw, which was not the drafted token.
    Target,
}

/// A probability in view.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// The token.
    pub token: TokenId,
    /// Its probability.
    pub probability: f64,
}

/// The token after the accepted ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Next {
    /// The token.
    pub token: TokenId,
    /// What it was drawn from.
    pub source: Source,
    /// The uniform draw.
    pub uniform: f64,
    /// Its probability there.
    pub probability: f64,
    /// The likeliest tokens there, likeliest first.
    pub distribution: Vec<Share>,
}

/// One pass of the target: what was drafted, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Block {
    /// How many tokens had been generated before it.
    pub start: usize,
    /// What was drafted.
    pub drafted: Vec<Drafted>,
    /// How many drafted tokens were accepted.
    pub accepted: usize,
    /// The token after them; `None` if the sequence ended with an accepted one.
    pub next: Option<Next>,
    /// Where in the text the continued n-gram stood before, under prompt lookup.
    pub copied_from: Option<usize>,
    /// Passes of the draft model.
    pub draft_passes: usize,
}

/// What speculation saved or cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Tokens generated.
    pub tokens: usize,
    /// Passes of the target; without speculation there are as many as tokens.
    pub target_passes: usize,
    /// Passes of the draft model.
    pub draft_passes: usize,
    /// Tokens drafted.
    pub drafted: usize,
    /// Tokens judged, the first rejected one of each block included.
    pub judged: usize,
    /// Tokens accepted.
    pub accepted: usize,
    /// Accepted of judged.
    pub acceptance_rate: f64,
    /// Tokens for each pass of the target.
    pub tokens_per_pass: f64,
    /// Parameters of the draft for each of the target.
    pub draft_size: f64,
    /// Passes that plain sampling needs, for each that this one needs when a pass of the draft
    /// counts as much as its size says. Below 1 speculation costs more than it saves.
    pub speedup: f64,
}

/// One drafted token before judgement.
#[derive(Debug)]
struct Proposal {
    token: TokenId,
    /// The draft's distribution; `None` if it is certain of the token.
    q: Option<Vec<f64>>,
}

/// A block before judgement.
#[derive(Debug)]
struct Attempt {
    proposals: Vec<Proposal>,
    /// The target's rows after the present text and after each drafted token.
    rows: Vec<Row>,
    /// What is known of it so far.
    block: Block,
}

/// A sequence in the making.
///
/// # Examples
/// With the match rule and the same seed the text is that of plain sampling.
/// ```
/// use std::sync::Arc;
/// use logitscope::{Pipeline, TokenId, model::{LanguageModel, table::TableModel}, stop::StopRules};
/// use logitscope::strategy::{sample::{Generation, Request}, speculative::Speculation};
///
/// let table = |seed| TableModel::from_json(&format!(r#"{{"vocab": 5, "seed": {seed}, "scale": 1}}"#));
/// let (target, draft): (Arc<dyn LanguageModel>, Arc<dyn LanguageModel>) =
///     (Arc::new(table(1)?), Arc::new(table(2)?));
/// let request = Request {
///     prompt: vec![TokenId(0)],
///     pipeline: Pipeline::parse("top_p(p=0.9) | categorical(seed=7)")?,
///     sample: 0,
///     seed: None,
///     stop: StopRules::of_vocab(target.vocab(), 20),
/// };
/// let mut plain = Generation::new(Arc::clone(&target), request.clone())?;
/// while plain.finish().is_none() {
///     plain.step()?;
/// }
/// let call = r#"speculative(draft="other", tokens=3, rule=match)"#;
/// let mut speculation = Speculation::new(target, Some(draft), request, call.parse()?)?;
/// speculation.run()?;
/// assert_eq!(speculation.tokens(), plain.tokens());
/// assert!(speculation.summary().target_passes < 20);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug)]
pub struct Speculation {
    model: Arc<dyn LanguageModel>,
    state: Box<dyn ModelState>,
    draft: Option<Box<dyn ModelState>>,
    draft_size: f64,
    request: Request,
    options: Options,
    fault: Fault,
    seed: u64,
    sampler: Box<dyn Sampler>,
    tokens: Vec<TokenId>,
    stop: StopState,
    finish: Option<Finish>,
    blocks: Vec<Block>,
    logprob: f64,
    follower: Option<Follower>,
    logits: Logits,
}

/// A constraint, and the tokens it has taken.
#[derive(Debug)]
struct Follower {
    constraint: Box<dyn Constraint>,
    tokens: Vec<TokenId>,
}

impl Follower {
    /// Brings the constraint to these tokens.
    fn follow(&mut self, tokens: &[TokenId]) -> Result<()> {
        let shared = self.tokens.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        self.constraint.rollback(self.tokens.len() - shared)?;
        self.tokens.truncate(shared);
        for &token in &tokens[shared..] {
            self.constraint.commit(token)?;
            self.tokens.push(token);
        }
        Ok(())
    }
}

impl std::str::FromStr for Options {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut call = Arguments::parse(text)?;
        if !matches!(call.name(), "speculative" | "prompt_lookup") {
            let message = format!("`{}` is not speculative or prompt_lookup", call.name());
            return Err(call.fault(ErrorCode::UnknownStage, message));
        }
        let options = Self::read(&mut call)?;
        call.finish()?;
        Ok(options)
    }
}

/// How many tokens of a distribution are in view.
const IN_VIEW: usize = 8;

impl Speculation {
    /// Prepares a generation; the models run with the first block.
    ///
    /// # Errors
    /// `bad_input` for an empty prompt, a sampler with a state, a missing draft model, or one
    /// whose tokens are not the target's; `io` when a seed is needed and cannot be drawn.
    pub fn new(
        model: Arc<dyn LanguageModel>,
        draft: Option<Arc<dyn LanguageModel>>,
        mut request: Request,
        options: Options,
    ) -> Result<Self> {
        let refuse = |message: String, param: &str| Error::new(ErrorCode::BadInput, message).param(param);
        let finish = request.begin(&*model)?;
        if !request.pipeline.sampler().state().is_empty() {
            let id = request.pipeline.sampler_args().spec.id;
            let message = format!("{id} keeps a state, which drafted tokens would have to undo");
            return Err(refuse(message, "pipeline").stage(id));
        }
        let draft = match (&options.drafter, draft) {
            (Drafter::Lookup(_), _) => None,
            (Drafter::Model(_), Some(draft)) => {
                same_tokens(&*model, &*draft)?;
                Some(draft)
            }
            (Drafter::Model(name), None) => {
                return Err(refuse(format!("the draft model {name:?} is not there"), "draft"));
            }
        };
        let (pipeline, seed) = request.pipeline.seeded(request.seed)?;
        request.pipeline = pipeline;
        let draft_size = draft
            .as_ref()
            .map_or(0.0, |draft| draft.info().parameters as f64 / model.info().parameters.max(1) as f64);
        Ok(Self {
            state: model.start(),
            model,
            draft: draft.map(|draft| draft.start()),
            draft_size,
            sampler: request.pipeline.sampler(),
            request,
            options,
            fault: Fault::None,
            seed,
            tokens: Vec::new(),
            stop: StopState::default(),
            finish,
            blocks: Vec::new(),
            logprob: 0.0,
            follower: None,
            logits: Logits::unfilled(),
        })
    }

    /// Holds the text to a constraint; for before the first block.
    #[must_use]
    pub fn with_constraint(mut self, constraint: Box<dyn Constraint>) -> Self {
        self.follower = Some(Follower { constraint, tokens: Vec::new() });
        self
    }

    /// Where the constraint's parser stands, if there is a constraint.
    ///
    /// # Errors
    /// As [`Constraint::standing`].
    pub fn standing(&mut self) -> Result<Option<crate::constraint::Standing>> {
        let ended_by_token = self.tokens.last().is_some_and(|token| self.request.stop.eos.contains(token));
        let text = &self.tokens[..self.tokens.len() - usize::from(ended_by_token)];
        match &mut self.follower {
            None => Ok(None),
            Some(follower) => {
                follower.follow(text)?;
                follower.constraint.standing().map(Some)
            }
        }
    }

    /// Makes a mistake on purpose from here on.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }

    /// Begins again after the prompt, as another sample of the same request. What the models
    /// have computed for the prompt is kept.
    pub(crate) fn restart(&mut self, sample: u32) {
        let prompt = self.request.prompt.len();
        self.state.truncate(prompt - 1);
        if let Some(draft) = &mut self.draft {
            draft.truncate(prompt - 1);
        }
        self.request.sample = sample;
        self.tokens.clear();
        self.stop = StopState::default();
        self.finish = None;
        self.blocks.clear();
        self.logprob = 0.0;
    }

    /// The generated tokens.
    #[must_use]
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The text so far.
    #[must_use]
    pub fn text(&self) -> &str {
        self.stop.text()
    }

    /// How the generation ended, if it has.
    #[must_use]
    pub fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// The seed in force.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The pipeline, its seed included.
    #[must_use]
    pub fn pipeline(&self) -> &crate::Pipeline {
        &self.request.pipeline
    }

    /// Every block so far.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The sum of the tokens' log-probabilities under the target after the pipeline, in nats.
    #[must_use]
    pub fn logprob(&self) -> f64 {
        self.logprob
    }

    /// What speculation saved or cost so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let blocks = &self.blocks;
        let judged =
            |block: &Block| block.drafted.iter().filter(|drafted| drafted.accepted.is_some()).count();
        let (target_passes, judged) = (blocks.len(), blocks.iter().map(judged).sum::<usize>());
        let draft_passes = blocks.iter().map(|block| block.draft_passes).sum::<usize>();
        let accepted = blocks.iter().map(|block| block.accepted).sum::<usize>();
        let share = |part: usize, whole: usize| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let cost = target_passes as f64 + draft_passes as f64 * self.draft_size;
        Summary {
            tokens: self.tokens.len(),
            target_passes,
            draft_passes,
            drafted: blocks.iter().map(|block| block.drafted.len()).sum(),
            judged,
            accepted,
            acceptance_rate: share(accepted, judged),
            tokens_per_pass: share(self.tokens.len(), target_passes),
            draft_size: self.draft_size,
            speedup: if cost == 0.0 { 0.0 } else { self.tokens.len() as f64 / cost },
        }
    }

    /// Drafts and judges until the sequence ends.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn run(&mut self) -> Result<()> {
        while self.step()? {}
        Ok(())
    }

    /// Drafts a block and has the target judge it. False when the sequence has ended, before
    /// or by this call.
    ///
    /// # Errors
    /// What a model or a stage refuses.
    pub fn step(&mut self) -> Result<bool> {
        let Some(attempt) = self.attempt(&mut Off)? else { return Ok(false) };
        Row::fill(&attempt.rows.iter().collect::<Vec<_>>());
        self.verify(&attempt, &[], &mut Off)
    }

    /// As [`step`](Self::step), the target's logits of the whole block computed together on a
    /// device where that is faster. With [`Rule::Match`] the device draws at every position of
    /// the block in one launch, too; what it draws otherwise than drafted ends the block, and the
    /// CPU gives the account of that. The draft is the CPU's.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    #[cfg(feature = "gpu")]
    pub async fn step_on(&mut self, engine: &mut Engine) -> Result<bool> {
        let mut drafted = Reached::default();
        let Some(attempt) = self.attempt(&mut drafted)? else { return Ok(false) };
        engine.note_logits_on_the_cpu(DRAFTS_ON_THE_CPU, attempt.block.draft_passes);
        engine.note_on_the_cpu(&self.request.pipeline, DRAFTS_ON_THE_CPU, &drafted);
        let drawn = if self.draws_alone() {
            self.draw_on(engine, &attempt).await?
        } else {
            engine.fetch(&attempt.rows.iter().collect::<Vec<_>>()).await;
            let why = match self.options.rule {
                Rule::Match => MASKED_ON_THE_CPU,
                Rule::Rejection => NEEDS_OTHER_TOKENS,
            };
            let places = Placement::all_on_the_cpu(&self.request.pipeline, why);
            attempt.rows.iter().map(|_| Err(places.clone())).collect()
        };
        // Where the draw is the token that was drafted, its probability.
        let vouched = drawn.iter().zip(&attempt.proposals).map(|(drawn, proposal)| {
            let drawn = drawn.as_ref().ok().filter(|drawn| drawn.draw.token == proposal.token);
            drawn.map(|drawn| drawn.probability)
        });
        let vouched: Vec<Option<f64>> = vouched.collect();
        let mut judged = Reached::default();
        let goes_on = self.verify(&attempt, &vouched, &mut judged);
        // Rows after the end of a block came to no stage of the CPU's.
        let left = (0..).zip(drawn).filter(|(index, _)| vouched.get(*index).is_none_or(Option::is_none));
        for ((_, drawn), reached) in left.zip(judged.0) {
            if let Err(places) = drawn {
                engine.note_stages(places, reached);
            }
        }
        goes_on
    }

    /// Whether the target's own draws judge a block: one by one they need nothing of each other,
    /// and of no constraint.
    #[cfg(feature = "gpu")]
    fn draws_alone(&self) -> bool {
        self.options.rule == Rule::Match && self.follower.is_none()
    }

    /// Has a device draw after the text and after each drafted token; see [`Engine::draw`].
    #[cfg(feature = "gpu")]
    async fn draw_on(
        &self,
        engine: &mut Engine,
        attempt: &Attempt,
    ) -> Result<Vec<Result<Drawn, Vec<Placement>>>> {
        let mut generated = self.tokens.clone();
        let mut surroundings = vec![self.request.surroundings(self.seed, &generated, None)?];
        for proposal in &attempt.proposals {
            generated.push(proposal.token);
            surroundings.push(self.request.surroundings(self.seed, &generated, None)?);
        }
        let mut samplers: Vec<_> = attempt.rows.iter().map(|_| self.sampler.fork()).collect();
        let jobs = attempt.rows.iter().zip(&surroundings).zip(&mut samplers);
        let jobs: Vec<Job> = jobs
            .map(|((row, surroundings), sampler)| Job {
                row,
                pipeline: &self.request.pipeline,
                context: surroundings.context(self.model.vocab()),
                sampler: &mut **sampler,
                pick: Pick::Seeded,
            })
            .collect();
        Ok(engine.draw(&jobs, true).await)
    }

    /// Drafts a block, watched, and has the target read it; nothing if the sequence has ended.
    fn attempt(&mut self, observer: &mut impl Observer) -> Result<Option<Attempt>> {
        if self.finish.is_some() {
            return Ok(None);
        }
        let start = self.tokens.len();
        let context = self.history().len();
        // The last token of the budget cannot be drafted: the target adds one to every block.
        let budget = self.request.stop.max_tokens.saturating_sub(start + 1);
        let room = self.model.context_length().saturating_sub(context + 1);
        let wanted = self.options.tokens.min(budget).min(room);
        let (proposals, copied_from, draft_passes) = self.propose(wanted, observer)?;
        let rows = self.target_rows(&proposals)?;
        let block = Block { start, drafted: Vec::new(), accepted: 0, next: None, copied_from, draft_passes };
        Ok(Some(Attempt { proposals, rows, block }))
    }

    /// Judges what was drafted. Whoever has drawn a drafted token from the target already vouches
    /// for it with its probability; the rows of all others that are judged are watched. False when
    /// the sequence ends.
    fn verify(
        &mut self,
        attempt: &Attempt,
        vouched: &[Option<f64>],
        observer: &mut impl Observer,
    ) -> Result<bool> {
        let context = self.history().len();
        let mut block = attempt.block.clone();
        let outcome = self.judge(attempt, vouched, &mut block, observer);
        // What was drafted and not taken is forgotten.
        let known = self.request.prompt.len() + self.tokens.len();
        self.state.truncate(known.min(context + block.accepted));
        if let Some(draft) = &mut self.draft {
            let kept = draft.tokens().len().min(context + block.accepted);
            draft.truncate(kept);
        }
        self.blocks.push(block);
        match outcome {
            Err(error) if error.code == ErrorCode::EmptySupport => {
                self.stop.flush(&self.request.stop);
                self.finish = Some(Finish::emptied(error));
            }
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        Ok(self.finish.is_none())
    }

    fn history(&self) -> Vec<TokenId> {
        [&self.request.prompt[..], &self.tokens[..]].concat()
    }

    fn randomness(&self, position: usize) -> Randomness {
        self.request.randomness(self.seed, position)
    }

    /// Fills the row and brings it to what a token would be drawn from.
    fn prepare(&mut self, row: &[f32], history: &[TokenId], observer: &mut impl Observer) -> Result<()> {
        let generated = &history[self.request.prompt.len()..];
        let constraint = match &mut self.follower {
            None => None,
            Some(follower) => {
                follower.follow(generated)?;
                Some(&mut follower.constraint)
            }
        };
        let surroundings = self.request.surroundings(self.seed, generated, constraint)?;
        let context = surroundings.context(self.model.vocab());
        let mut prepare = || {
            self.logits.refill(row)?;
            self.request.pipeline.reshape_observed(&mut self.logits, &context, observer)?;
            observer.before(&mut self.logits)?;
            self.sampler.prepare(&mut self.logits, &context).map(|_| ())
        };
        prepare().map_err(|error| placed(error, generated.len()))
    }

    /// Up to `wanted` tokens from the draft, where they were copied from, and how many passes
    /// they cost.
    fn propose(
        &mut self,
        wanted: usize,
        observer: &mut impl Observer,
    ) -> Result<(Vec<Proposal>, Option<usize>, usize)> {
        let mut history = self.history();
        if let Drafter::Lookup(ngram) = self.options.drafter {
            let found = lookup(&history, ngram, wanted);
            let (from, tokens) = found.unwrap_or((0, &[]));
            let copied = (!tokens.is_empty()).then_some(from);
            let ending = tokens.iter().position(|token| self.request.stop.eos.contains(token));
            let tokens = &tokens[..ending.map_or(tokens.len(), |at| at + 1)];
            let proposals = tokens.iter().map(|&token| Proposal { token, q: None }).collect();
            return Ok((proposals, copied, 0));
        }
        let Some(mut draft) = self.draft.take() else { return Ok((Vec::new(), None, 0)) };
        let mut proposals = Vec::new();
        let drafted = self.draft_tokens(&mut *draft, wanted, &mut history, &mut proposals, observer);
        self.draft = Some(draft);
        let passes = drafted?;
        Ok((proposals, None, passes))
    }

    fn draft_tokens(
        &mut self,
        draft: &mut dyn ModelState,
        wanted: usize,
        history: &mut Vec<TokenId>,
        proposals: &mut Vec<Proposal>,
        observer: &mut impl Observer,
    ) -> Result<usize> {
        let mut passes = 0;
        for _ in 0..wanted {
            let unseen = &history[draft.tokens().len()..];
            let row = draft.advance(unseen, 1)?.pop().unwrap_or_default();
            passes += 1;
            match self.prepare(&row, history, observer) {
                // The draft has no proposal here; the target will say what is right.
                Err(error) if error.code == ErrorCode::EmptySupport => break,
                other => other.map_err(of_the_draft)?,
            }
            let randomness = self.randomness(history.len() - self.request.prompt.len());
            let token = if self.fault == Fault::LikeliestDraft {
                self.logits.highest()?
            } else {
                Draw::by_mass(&mut self.logits, randomness.draw(Purpose::Draft))?.token
            };
            if self.fault == Fault::MismatchedTemperature {
                self.logits.scale_temperature(2.0)?;
            }
            proposals.push(Proposal { token, q: Some(self.logits.probabilities()?) });
            history.push(token);
            if self.request.stop.eos.contains(&token) {
                break;
            }
        }
        Ok(passes)
    }

    /// The target's rows after the present text and after each drafted token, in one pass.
    fn target_rows(&mut self, proposals: &[Proposal]) -> Result<Vec<Row>> {
        let mut tokens = self.history().split_off(self.state.tokens().len());
        tokens.extend(proposals.iter().map(|proposal| proposal.token));
        let hidden = self.state.advance_hidden(&tokens, proposals.len() + 1)?;
        Ok(hidden.into_iter().map(|hidden| Row::of(&self.model, hidden)).collect())
    }

    /// Takes drafted tokens until one is rejected or the sequence ends, then one more.
    fn judge(
        &mut self,
        attempt: &Attempt,
        vouched: &[Option<f64>],
        block: &mut Block,
        observer: &mut impl Observer,
    ) -> Result<()> {
        let Attempt { proposals, rows, .. } = attempt;
        let mut history = self.history();
        for (index, (proposal, row)) in proposals.iter().zip(rows).enumerate() {
            let randomness = self.randomness(self.tokens.len());
            let q = proposal.q.as_ref().map_or(1.0, |q| q[proposal.token.index()]);
            let vouched = vouched.get(index).copied().flatten();
            if vouched.is_none() {
                self.prepare(row.logits(), &history, observer)?;
            }
            let p = vouched.map_or_else(|| self.logits.probability(proposal.token), Ok)?;
            let (uniform, accepted, own) = match self.options.rule {
                Rule::Rejection => {
                    let uniform = unit(randomness.draw(Purpose::Accept));
                    (uniform, accepts(p, q, uniform), None)
                }
                Rule::Match => {
                    let u = randomness.draw(Purpose::Token);
                    let own = match vouched {
                        Some(_) => proposal.token,
                        None => Draw::by_mass(&mut self.logits, u)?.token,
                    };
                    (unit(u), own == proposal.token, Some((own, u)))
                }
            };
            block.drafted.push(Drafted {
                token: proposal.token,
                p,
                q,
                ratio: p / q,
                uniform,
                accepted: Some(accepted),
            });
            if !accepted {
                let q = proposal.q.clone();
                let q = q.unwrap_or_else(|| one_hot(self.model.vocab().len(), proposal.token));
                note_unjudged(block, &proposals[block.drafted.len()..]);
                return self.replace(block, &q, own);
            }
            block.accepted += 1;
            history.push(proposal.token);
            self.take(proposal.token, p)?;
            if self.finish.is_some() {
                note_unjudged(block, &proposals[block.drafted.len()..]);
                return Ok(());
            }
        }
        let Some(row) = rows.get(proposals.len()) else { return Ok(()) };
        self.prepare(row.logits(), &history, observer)?;
        let randomness = self.randomness(self.tokens.len());
        let draw = Draw::by_mass(&mut self.logits, randomness.draw(Purpose::Token))?;
        self.conclude(block, draw.token, draw.u, Source::Bonus, None)
    }

    /// The token in place of a rejected one.
    fn replace(&mut self, block: &mut Block, q: &[f64], own: Option<(TokenId, u64)>) -> Result<()> {
        if let Some((token, u)) = own {
            return self.conclude(block, token, u, Source::Target, None);
        }
        let p = self.logits.probabilities()?;
        let u = self.randomness(self.tokens.len()).draw(Purpose::Residual);
        let from = if self.fault == Fault::NoResidual { p.clone() } else { residual(&p, q) };
        let token = draw_from(&from, u);
        self.conclude(block, token, u, Source::Residual, Some(from))
    }

    fn conclude(
        &mut self,
        block: &mut Block,
        token: TokenId,
        u: u64,
        source: Source,
        from: Option<Vec<f64>>,
    ) -> Result<()> {
        let p = self.logits.probability(token)?;
        let (probability, distribution) = if let Some(from) = from {
            (from[token.index()], likeliest(&from))
        } else {
            let top = self.logits.top(IN_VIEW)?;
            let shares = top.iter().map(|row| Share { token: row.token, probability: row.probability });
            (p, shares.collect())
        };
        block.next = Some(Next { token, source, uniform: unit(u), probability, distribution });
        self.take(token, p)
    }

    fn take(&mut self, token: TokenId, p: f64) -> Result<()> {
        self.logprob += libm::log(p);
        self.tokens.push(token);
        self.stop.push(&self.request.stop, self.model.vocab(), token);
        let context = self.request.prompt.len() + self.tokens.len();
        let only_the_end = self.standing()?.is_some_and(|standing| standing.ended);
        let context_full = context >= self.model.context_length();
        self.finish = self.stop.finish_with(&self.request.stop, only_the_end, context_full);
        Ok(())
    }
}

/// Drafted tokens after a rejected one are shown, but nothing is said of them.
fn note_unjudged(block: &mut Block, rest: &[Proposal]) {
    block.drafted.extend(rest.iter().map(|proposal| Drafted {
        token: proposal.token,
        p: 0.0,
        q: proposal.q.as_ref().map_or(1.0, |q| q[proposal.token.index()]),
        ratio: 0.0,
        uniform: 0.0,
        accepted: None,
    }));
}

fn same_tokens(target: &dyn LanguageModel, draft: &dyn LanguageModel) -> Result<()> {
    let (a, b) = (target.vocab(), draft.vocab());
    let message = if a.len() == b.len() {
        let ids = (0..).take(a.len()).map(TokenId);
        let Some(id) = ids.into_iter().find(|&id| a.bytes(id) != b.bytes(id)) else { return Ok(()) };
        format!("token {id} is not the same text in the draft model and in the target")
    } else {
        format!("the draft model has {} tokens and the target {}", b.len(), a.len())
    };
    Err(Error::new(ErrorCode::BadInput, message).param("draft"))
}

/// Whether a token with these probabilities is accepted at this draw.
fn accepts(p: f64, q: f64, uniform: f64) -> bool {
    p > 0.0 && uniform * q <= p
}

/// What `p` has beyond `q`, as a distribution; `p` itself if that is nothing.
///
/// # Examples
/// ```
/// use logitscope::strategy::speculative::residual;
///
/// assert_eq!(residual(&[0.6, 0.3, 0.1], &[0.3, 0.5, 0.2]), [1.0, 0.0, 0.0]);
/// ```
#[must_use]
pub fn residual(p: &[f64], q: &[f64]) -> Vec<f64> {
    let beyond: Vec<f64> = p.iter().zip(q).map(|(p, q)| (p - q).max(0.0)).collect();
    let total: f64 = beyond.iter().sum();
    if total > 0.0 { beyond.iter().map(|share| share / total).collect() } else { p.to_vec() }
}

/// The first token, by id, at which the cumulative probability exceeds the draw.
fn draw_from(probabilities: &[f64], u: u64) -> TokenId {
    let total: f64 = probabilities.iter().sum();
    let wanted = unit(u) * total;
    let mut sum = 0.0;
    let mut last = 0;
    for (id, &probability) in probabilities.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        sum += probability;
        last = id;
        if sum > wanted {
            break;
        }
    }
    #[expect(clippy::cast_possible_truncation, reason = "an index is a token id")]
    TokenId(last as u32)
}

fn one_hot(length: usize, token: TokenId) -> Vec<f64> {
    let mut all = vec![0.0; length];
    if let Some(one) = all.get_mut(token.index()) {
        *one = 1.0;
    }
    all
}

fn likeliest(probabilities: &[f64]) -> Vec<Share> {
    let mut shares: Vec<Share> = (0..)
        .map(TokenId)
        .zip(probabilities)
        .filter(|(_, probability)| **probability > 0.0)
        .map(|(token, &probability)| Share { token, probability })
        .collect();
    shares.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    shares.truncate(IN_VIEW);
    shares
}

/// The tokens that followed an earlier occurrence of the latest n-gram, and where they stand.
///
/// The longest n-gram that occurred before is used, and of its occurrences the first: the
/// habit of transformers.
fn lookup(history: &[TokenId], ngram: usize, wanted: usize) -> Option<(usize, &[TokenId])> {
    if wanted == 0 {
        return None;
    }
    (1..=ngram.min(history.len().saturating_sub(1))).rev().find_map(|length| {
        let latest = &history[history.len() - length..];
        let earlier = history[..history.len() - 1].windows(length).position(|window| window == latest)?;
        let from = earlier + length;
        Some((from, &history[from..history.len().min(from + wanted)]))
    })
}

/// The judgement of drafted tokens whose distributions are given.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verification {
    /// How many drafted tokens are accepted.
    pub accepted: usize,
    /// What the next token is drawn from.
    pub next_token_probs: Vec<f64>,
    /// The judgement of each.
    pub drafted: Vec<Drafted>,
}

/// Judges drafted tokens. `draft` and `target` are distributions; the target has one more.
///
/// With [`Rule::Match`] a uniform is the target's own draw, in the order of probability and
/// then of ids; after a mismatch the next token is certain.
///
/// # Errors
/// `bad_input` when the lengths do not fit, `token_out_of_vocabulary` for a bad id,
/// `out_of_range` for a uniform outside [0, 1).
///
/// # Examples
/// ```
/// use logitscope::{TokenId, strategy::speculative::{Rule, verify}};
///
/// let (p, q) = (vec![0.6, 0.3, 0.1], vec![0.3, 0.5, 0.2]);
/// let judged = verify(&[q], &[p.clone(), p], &[TokenId(1)], &[0.7], Rule::Rejection)?;
/// assert_eq!(judged.accepted, 0); // 0.7 > 0.3 / 0.5
/// assert_eq!(judged.next_token_probs, [1.0, 0.0, 0.0]);
/// # Ok::<(), logitscope::Error>(())
/// ```
pub fn verify(
    draft: &[Vec<f64>],
    target: &[Vec<f64>],
    tokens: &[TokenId],
    uniforms: &[f64],
    rule: Rule,
) -> Result<Verification> {
    let refuse = |message: String, param: &str| Err(Error::new(ErrorCode::BadInput, message).param(param));
    let count = tokens.len();
    if draft.len() != count || uniforms.len() < count || target.len() != count + 1 {
        let message = format!(
            "{count} drafted tokens need as many draft rows and uniforms and one target row more, not {}, {} \
             and {}",
            draft.len(),
            uniforms.len(),
            target.len()
        );
        return refuse(message, "draft_tokens");
    }
    let width = target[0].len();
    if let Some(row) = draft.iter().chain(target).find(|row| row.len() != width) {
        return refuse(format!("rows have {width} and {} entries", row.len()), "target_logits");
    }
    let mut drafted = Vec::new();
    for (index, (&token, &uniform)) in tokens.iter().zip(uniforms).enumerate() {
        if token.index() >= width {
            let message = format!("token {token} is not in a vocabulary of {width}");
            return Err(Error::new(ErrorCode::TokenOutOfVocabulary, message).param("draft_tokens"));
        }
        if !(0.0..=1.0).contains(&uniform) {
            let message = format!("a uniform is {uniform}, but must be in [0, 1]");
            return Err(Error::new(ErrorCode::OutOfRange, message).param("uniforms"));
        }
        let (p, q) = (target[index][token.index()], draft[index][token.index()]);
        let own = in_order_of_probability(&target[index], uniform);
        let accepted = match rule {
            Rule::Rejection => accepts(p, q, uniform),
            Rule::Match => own == token,
        };
        drafted.push(Drafted { token, p, q, ratio: p / q, uniform, accepted: Some(accepted) });
        if !accepted {
            let next_token_probs = match rule {
                Rule::Rejection => residual(&target[index], &draft[index]),
                Rule::Match => one_hot(width, own),
            };
            return Ok(Verification { accepted: index, next_token_probs, drafted });
        }
    }
    Ok(Verification { accepted: count, next_token_probs: target[count].clone(), drafted })
}

fn in_order_of_probability(probabilities: &[f64], uniform: f64) -> TokenId {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]).then(a.cmp(&b)));
    let sorted: Vec<f64> = order.iter().map(|&id| probabilities[id]).collect();
    let place = draw_from(&sorted, from_unit(uniform)).index();
    #[expect(clippy::cast_possible_truncation, reason = "an index is a token id")]
    TokenId(order[place] as u32)
}

/// Probabilities of a row of logits, in f64; `-∞` has none.
#[must_use]
pub fn softmax(row: &[f64]) -> Vec<f64> {
    let highest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = row.iter().map(|logit| libm::exp(logit - highest)).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(list: &[u32]) -> Vec<TokenId> {
        list.iter().copied().map(TokenId).collect()
    }

    #[test]
    fn lookup_takes_the_longest_and_first_match() {
        let history = ids(&[1, 2, 3, 9, 2, 4, 1, 2]);
        assert_eq!(lookup(&history, 2, 3), Some((2, &ids(&[3, 9, 2])[..])));
        assert_eq!(lookup(&history, 1, 2), Some((2, &ids(&[3, 9])[..])));
        assert_eq!(lookup(&ids(&[5, 6]), 2, 3), None);
        assert_eq!(lookup(&ids(&[5, 5]), 2, 3), Some((1, &ids(&[5])[..])));
    }

    #[test]
    fn worked_numbers() {
        // Row 9 of the worked numbers: acceptance is the sum of min(p, q).
        let (p, q) = ([0.6, 0.3, 0.1], [0.3, 0.5, 0.2]);
        let accepted: f64 = p.iter().zip(&q).map(|(p, q)| f64::min(*p, *q)).sum();
        assert!((accepted - 0.7_f64).abs() < 1e-12);
        assert!(!accepts(0.0, 0.0, 0.0), "what the target forbids is never accepted");
    }
}
