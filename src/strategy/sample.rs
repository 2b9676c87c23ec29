//! The sampling loop: decode a token, append it, ask the model again.
//!
//! A [`Generation`] is a pure function of its model, prompt, pipeline, seed and forced
//! tokens. It remembers the raw logits of every step, so that looking back, changing the
//! pipeline, or going another way costs no pass of the model that was already made.

use std::{collections::BTreeMap, sync::Arc};

#[cfg(feature = "gpu")]
use crate::gpu::{Engine, Job, Placement};
use crate::{
    TokenId, Vocab,
    constraint::{Allowed, Constraint, Standing, mask_with_ends, standing_after},
    error::{Error, ErrorCode, Result},
    logits::{Logits, TokenMask},
    model::{LanguageModel, ModelState, row::Row},
    pipeline::{Note, Pipeline},
    random::Randomness,
    sampler::{Pick, Sampler},
    step::StepContext,
    stop::{Finish, FinishReason, StopRules, StopState, text::TextStream},
    strategy::placed,
    trace::{Judge, Observer, Off, Recorder, StepTrace},
};

/// What a generation starts from.
#[derive(Debug, Clone)]
pub struct Request {
    /// The tokens before the first generated one; at least one.
    pub prompt: Vec<TokenId>,
    /// What is done at each step; its seed is [settled](Pipeline::settled) first.
    pub pipeline: Pipeline,
    /// Which of several samples with the same seed this is.
    pub sample: u32,
    /// The requested seed, which overrides the pipeline's.
    pub seed: Option<u64>,
    /// When to stop.
    pub stop: StopRules,
}

impl Request {
    /// Refuses a prompt without tokens, and says whether the sequence ends before it begins:
    /// no budget, or a prompt that fills the context.
    pub(crate) fn begin(&self, model: &dyn LanguageModel) -> Result<Option<Finish>> {
        if self.prompt.is_empty() {
            let message = "the prompt has no tokens, so there is nothing to continue";
            return Err(Error::new(ErrorCode::BadInput, message).param("prompt"));
        }
        if self.stop.max_tokens == 0 {
            return Ok(Some(Finish::because(FinishReason::MaxTokens)));
        }
        let full = self.prompt.len() >= model.context_length();
        Ok(full.then(|| Finish::because(FinishReason::ContextFull)))
    }

    /// What the draws at a position are keyed by.
    pub(crate) fn randomness(&self, seed: u64, position: usize) -> Randomness {
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        Randomness { seed, sample: self.sample, position }
    }

    /// What the step after these generated tokens may know; the constraint stands where they end.
    ///
    /// # Errors
    /// As [`mask_with_ends`].
    pub(crate) fn surroundings(
        &self,
        seed: u64,
        generated: &[TokenId],
        constraint: Option<&mut Box<dyn Constraint>>,
    ) -> Result<Surroundings> {
        let masked =
            constraint.map(|constraint| mask_with_ends(&mut **constraint, &self.stop.eos)).transpose()?;
        Ok(Surroundings {
            history: [&self.prompt[..], generated].concat(),
            prompt: self.prompt.len(),
            masked,
            randomness: self.randomness(seed, generated.len()),
        })
    }
}

/// One token taken.
#[derive(Debug)]
struct Taken {
    token: TokenId,
    /// The sampler before the token was drawn, for going back.
    sampler: Box<dyn Sampler>,
    stop: StopState,
}

impl Clone for Taken {
    fn clone(&self) -> Self {
        Self { token: self.token, sampler: self.sampler.fork(), stop: self.stop.clone() }
    }
}

/// What a step may know besides its row.
#[derive(Debug)]
pub(crate) struct Surroundings {
    history: Vec<TokenId>,
    prompt: usize,
    masked: Option<(TokenMask, Standing)>,
    pub(crate) randomness: Randomness,
}

impl Surroundings {
    pub(crate) fn context<'a>(&'a self, vocab: &'a Vocab) -> StepContext<'a> {
        StepContext {
            vocab: Some(vocab),
            allowed: self.masked.as_ref().map(|(mask, standing)| Allowed { mask, standing }),
            ..StepContext::new(&self.history, self.prompt, self.randomness)
        }
    }
}

/// A step that is about to be decoded.
#[derive(Debug)]
struct Due {
    row: Row,
    pick: Pick,
    /// The sampler before it.
    before: Box<dyn Sampler>,
    surroundings: Surroundings,
}

/// A sequence in the making.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use logitscope::{Pipeline, TokenId, model::{LanguageModel, table::TableModel}, stop::StopRules};
/// use logitscope::strategy::sample::{Generation, Request};
///
/// // Token 1 follows 0, token 2 follows 1, and 2 ends.
/// let json = r#"{"vocab": 3, "eos": 2, "table": [0,9,0, 0,0,9, 0,0,9, 0,9,0, 0,0,9, 0,0,9, 0,9,0, 0,0,9, 0,0,9]}"#;
/// let model = Arc::new(TableModel::from_json(json)?);
/// let request = Request {
///     prompt: vec![TokenId(0)],
///     pipeline: Pipeline::parse("greedy()")?,
///     sample: 0,
///     seed: None,
///     stop: StopRules::of_vocab(model.vocab(), 8),
/// };
/// let mut generation = Generation::new(model, request)?;
/// while generation.finish().is_none() {
///     generation.step()?;
/// }
/// assert_eq!(generation.tokens(), [TokenId(1), TokenId(2)]);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug)]
pub struct Generation {
    model: Arc<dyn LanguageModel>,
    state: Box<dyn ModelState>,
    request: Request,
    seed: u64,
    /// What followed the prompt and `i` tokens, for every `i` reached so far.
    rows: Vec<Row>,
    /// The tokens that led to those rows; a prefix of them is the present sequence.
    path: Vec<TokenId>,
    taken: Vec<Taken>,
    forced: BTreeMap<usize, TokenId>,
    sampler: Box<dyn Sampler>,
    stop: StopState,
    finish: Option<Finish>,
    constraint: Option<Box<dyn Constraint>>,
    notes: Vec<Note>,
    logits: Logits,
}

impl Generation {
    /// Feeds the prompt.
    ///
    /// # Errors
    /// `bad_input` for an empty prompt, `context_full` when it does not fit; `io` when a seed
    /// is needed and cannot be drawn.
    pub fn new(model: Arc<dyn LanguageModel>, mut request: Request) -> Result<Self> {
        let finish = request.begin(&*model)?;
        let (pipeline, seed) = request.pipeline.settled(request.seed)?;
        request.pipeline = pipeline;
        let mut state = model.start();
        let hidden = state.advance_hidden(&request.prompt, 1)?.pop().unwrap_or_default();
        let row = Row::of(&model, hidden);
        let sampler = request.pipeline.sampler();
        let notes = end_notes(&request.stop, model.vocab());
        Ok(Self {
            model,
            state,
            seed,
            rows: vec![row],
            path: Vec::new(),
            taken: Vec::new(),
            forced: BTreeMap::new(),
            sampler,
            stop: StopState::default(),
            finish,
            constraint: None,
            notes,
            logits: Logits::unfilled(),
            request,
        })
    }

    /// Holds the text to a constraint from the first token on.
    ///
    /// # Errors
    /// What the constraint's parser refuses.
    pub fn with_constraint(mut self, constraint: Box<dyn Constraint>) -> Result<Self> {
        self.rewind(0);
        let mut constraint = constraint;
        let standing = constraint.standing()?;
        if standing.ended {
            let weaker = self.finish.take().map(|finish| finish.reason);
            let also = weaker.into_iter().collect();
            self.finish = Some(Finish { also, ..Finish::because(FinishReason::Grammar) });
        }
        self.constraint = Some(constraint);
        Ok(self)
    }

    /// The constraint's text form, if there is one.
    #[must_use]
    pub fn constraint(&self) -> Option<&str> {
        self.constraint.as_deref().map(Constraint::text)
    }

    /// Where the constraint's parser stands after the text so far: without the stop string, if
    /// that was left out.
    ///
    /// # Errors
    /// As [`Constraint::standing`].
    pub fn standing(&mut self) -> Result<Option<Standing>> {
        let Some(constraint) = &mut self.constraint else { return Ok(None) };
        if self.request.stop.trim && self.stop.stream().matched().is_some() {
            return standing_after(&*self.model, &**constraint, self.stop.text()).map(Some);
        }
        constraint.standing().map(Some)
    }

    /// What the reader should know, such as an end of sequence that a stage removed.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Arc<dyn LanguageModel> {
        &self.model
    }

    /// The prompt.
    #[must_use]
    pub fn prompt(&self) -> &[TokenId] {
        &self.request.prompt
    }

    /// The pipeline, its seed included.
    #[must_use]
    pub fn pipeline(&self) -> &Pipeline {
        &self.request.pipeline
    }

    /// What ends the sequence.
    #[must_use]
    pub fn stop_rules(&self) -> &StopRules {
        &self.request.stop
    }

    /// The seed in force.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The generated tokens.
    #[must_use]
    pub fn tokens(&self) -> Vec<TokenId> {
        self.taken.iter().map(|taken| taken.token).collect()
    }

    /// How many tokens have been generated.
    #[must_use]
    pub fn len(&self) -> usize {
        self.taken.len()
    }

    /// Whether none has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// The tokens that were forced, by position.
    #[must_use]
    pub fn forced(&self) -> &BTreeMap<usize, TokenId> {
        &self.forced
    }

    /// How the generation ended, if it has.
    #[must_use]
    pub fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// What may be shown of the text: everything but an incomplete character and what might
    /// yet become a stop string.
    #[must_use]
    pub fn text(&self) -> &str {
        self.stop.text()
    }

    /// The text as a stream, with what is held back of it.
    #[must_use]
    pub fn stream(&self) -> &TextStream {
        self.stop.stream()
    }

    /// The raw logits after the prompt and `step` tokens, if they were ever computed.
    #[must_use]
    pub fn row(&self, step: usize) -> Option<&[f32]> {
        let row = self.rows.get(step).filter(|_| step <= self.taken.len())?;
        Some(row.logits())
    }

    /// Decodes the next token and takes it, watched. `None` if the generation has ended,
    /// before or by this call.
    ///
    /// A set emptied by a stage ends the generation; nothing is appended then.
    ///
    /// # Errors
    /// What the model or a stage refuses; the generation is as before.
    pub fn step_observed<O: Observer>(&mut self, pick: Pick, observer: &mut O) -> Result<Option<TokenId>> {
        let Some(due) = self.due(pick)? else { return Ok(None) };
        let context = due.surroundings.context(self.model.vocab());
        let row = due.row.logits();
        let drawn = self.request.pipeline.decode(
            row,
            &mut self.logits,
            &context,
            &mut *self.sampler,
            due.pick,
            observer,
        );
        let row = due.row.clone();
        self.settle(Some(row.logits()), due, drawn.map(|draw| draw.token))
    }

    /// What the next step decodes, and how; nothing if the generation has ended.
    fn due(&mut self, pick: Pick) -> Result<Option<Due>> {
        if self.finish.is_some() && !matches!(pick, Pick::Forced(_)) {
            return Ok(None);
        }
        let position = self.taken.len();
        let pick = match self.forced.get(&position) {
            Some(&token) if pick == Pick::Seeded => Pick::Forced(token),
            _ => pick,
        };
        let row = self.reach(position)?;
        let surroundings = self.surroundings(position)?;
        Ok(Some(Due { row, pick, before: self.sampler.fork(), surroundings }))
    }

    /// Decodes the next token on a device where that is worth it, and takes it: the same token
    /// as [`step`](Self::step), whoever computed it. With `keep` the logits are on the CPU
    /// afterwards, for an account of the step; without, a device may keep them to itself.
    ///
    /// A note about the end of sequence comes with the account, because it needs the logits.
    ///
    /// # Errors
    /// As [`step_observed`](Self::step_observed).
    #[cfg(feature = "gpu")]
    pub async fn step_on(&mut self, engine: &mut Engine, keep: bool) -> Result<Option<TokenId>> {
        Self::step_together(&mut [self], engine, keep).await.pop().unwrap_or(Ok(None))
    }

    /// As [`step_on`](Self::step_on) for several generations of one model, such as
    /// [samples](Self::another_sample) of one request: their rows are one batch, and each gets
    /// what it would get alone.
    ///
    /// # Errors
    /// For each generation, as [`step_observed`](Self::step_observed).
    #[cfg(feature = "gpu")]
    pub async fn step_together(
        generations: &mut [&mut Self],
        engine: &mut Engine,
        keep: bool,
    ) -> Vec<Result<Option<TokenId>>> {
        let mut dues: Vec<Result<Option<Due>>> =
            generations.iter_mut().map(|generation| generation.due(Pick::Seeded)).collect();
        let mut jobs = Vec::with_capacity(dues.len());
        for (generation, due) in generations.iter_mut().zip(&dues) {
            let Ok(Some(Due { row, pick, surroundings, .. })) = due else { continue };
            jobs.push(Job {
                row,
                pipeline: &generation.request.pipeline,
                context: surroundings.context(generation.model.vocab()),
                sampler: &mut *generation.sampler,
                pick: *pick,
            });
        }
        let mut decoded = engine.decode(&mut jobs, keep).await.into_iter();
        let steps = generations.iter_mut().zip(dues.drain(..)).map(|(generation, due)| {
            let Some(due) = due? else { return Ok(None) };
            let Some(decoded) = decoded.next() else { return Ok(None) };
            generation.settle(None, due, decoded.map(|decoded| decoded.draw.token))
        });
        steps.collect()
    }

    /// Computes the logits of a step on a device where that is faster, for whoever looks at it
    /// next: the same bits.
    ///
    /// # Errors
    /// `bad_input` for a step not reached yet.
    #[cfg(feature = "gpu")]
    pub async fn fetch_on(&mut self, engine: &mut Engine, step: usize) -> Result<()> {
        let row = self.reach(step)?;
        engine.fetch(&[&row]).await;
        Ok(())
    }

    /// Takes a decoded token, or ends the generation where a stage left none. The row is that
    /// which was decoded last, or none if a device decoded it.
    fn settle(
        &mut self,
        row: Option<&[f32]>,
        Due { pick, before, .. }: Due,
        decoded: Result<TokenId>,
    ) -> Result<Option<TokenId>> {
        let position = self.taken.len();
        let token = match decoded {
            Ok(token) => token,
            Err(error) => {
                self.sampler = before;
                if error.code == ErrorCode::EmptySupport {
                    self.stop.flush(&self.request.stop);
                    self.finish = Some(Finish::emptied(error));
                    return Ok(None);
                }
                return Err(placed(error, position));
            }
        };
        if let Pick::Forced(token) = pick {
            self.forced.insert(position, token);
        }
        if let Some(row) = row {
            self.watch_for_the_end(position, row)?;
        }
        self.taken.push(Taken { token, sampler: before, stop: self.stop.clone() });
        let vocab = self.model.vocab();
        self.stop.push(&self.request.stop, vocab, token);
        let mut only_the_end = false;
        if let Some(constraint) = &mut self.constraint
            && !self.request.stop.eos.contains(&token)
        {
            constraint.commit(token)?;
            only_the_end = constraint.standing()?.ended;
        }
        let context_full = self.request.prompt.len() + self.taken.len() >= self.model.context_length();
        self.finish = self.stop.finish_with(&self.request.stop, only_the_end, context_full);
        Ok(Some(token))
    }

    /// What the step after `position` tokens may know.
    fn surroundings(&mut self, position: usize) -> Result<Surroundings> {
        let generated: Vec<TokenId> = self.taken[..position].iter().map(|taken| taken.token).collect();
        let back = self.taken.len() - position;
        match &mut self.constraint {
            // Looking back: a copy goes there, and the constraint stays where it is.
            Some(constraint) if back > 0 => {
                let mut earlier = constraint.fork();
                earlier.rollback(earlier.len().saturating_sub(position))?;
                self.request.surroundings(self.seed, &generated, Some(&mut earlier))
            }
            Some(constraint) => self.request.surroundings(self.seed, &generated, Some(constraint)),
            None => self.request.surroundings(self.seed, &generated, None),
        }
    }

    /// Notes once if the row, as decoded last, wanted the end and a stage had removed it.
    fn watch_for_the_end(&mut self, position: usize, row: &[f32]) -> Result<()> {
        let eos = &self.request.stop.eos;
        let likeliest =
            (0..).map(TokenId).zip(row).fold(None, |best: Option<(TokenId, f32)>, (token, &score)| {
                best.filter(|(_, highest)| *highest >= score).or(Some((token, score)))
            });
        let Some((wanted, _)) = likeliest.filter(|(token, _)| eos.contains(token)) else { return Ok(()) };
        if self.constraint.is_some()
            || self.logits.alive().contains(wanted.index())
            || self.notes.iter().any(|note| note.code == "eos_removed")
        {
            return Ok(());
        }
        let surroundings = self.surroundings(position)?;
        let context = surroundings.context(self.model.vocab());
        let mut watch = RemovalOf { token: wanted, stage: None };
        let mut logits = Logits::new(row)?;
        self.request.pipeline.reshape_observed(&mut logits, &context, &mut watch)?;
        let stage = watch.stage.unwrap_or_else(|| self.request.pipeline.sampler_args().to_string());
        self.notes.push(Note {
            code: "eos_removed",
            message: format!(
                "at step {position} the end of sequence {wanted} was the likeliest token, and {stage} \
                 removed it"
            ),
            stage,
        });
        Ok(())
    }

    /// As [`step_observed`](Self::step_observed), unwatched.
    ///
    /// # Errors
    /// As [`step_observed`](Self::step_observed).
    pub fn step(&mut self) -> Result<Option<TokenId>> {
        self.step_observed(Pick::Seeded, &mut Off)
    }

    /// Brings the model to a position, and returns what it left there.
    fn reach(&mut self, position: usize) -> Result<Row> {
        // How far the present sequence follows the path that the rows belong to.
        let shared =
            self.taken.iter().zip(&self.path).take_while(|(taken, known)| taken.token == **known).count();
        if shared < position {
            self.path.truncate(shared);
            self.rows.truncate(shared + 1);
            let prompt = self.request.prompt.len();
            self.state.truncate(prompt + shared);
            let new: Vec<TokenId> = self.taken[shared..position].iter().map(|taken| taken.token).collect();
            let hidden = self.state.advance_hidden(&new, new.len())?;
            self.rows.extend(hidden.into_iter().map(|hidden| Row::of(&self.model, hidden)));
            self.path.extend(new);
        }
        let missing = || Error::new(ErrorCode::BadInput, format!("there is no step {position} yet"));
        self.rows.get(position).cloned().ok_or_else(missing)
    }

    /// The trace of a step: of a token already taken, or of the next one without taking it.
    ///
    /// # Errors
    /// `bad_input` for a step not reached yet; else as [`step_observed`](Self::step_observed).
    pub fn trace(&mut self, step: usize, top: usize) -> Result<StepTrace> {
        let mut recorder = Recorder::new(top);
        match self.observe(step, &mut recorder) {
            // What led to the empty set is worth seeing; there is only no draw.
            Err(error) if error.code != ErrorCode::EmptySupport => Err(error),
            _ => Ok(recorder.finish()),
        }
    }

    /// Decodes a step once more for an observer, changing nothing.
    ///
    /// # Errors
    /// As [`trace`](Self::trace).
    pub fn observe<O: Observer>(&mut self, step: usize, observer: &mut O) -> Result<()> {
        self.require_step(step)?;
        let row = self.reach(step)?;
        let surroundings = self.surroundings(step)?;
        let context = surroundings.context(self.model.vocab());
        let mut sampler = self.taken.get(step).map_or(&self.sampler, |taken| &taken.sampler).fork();
        let pick = self.forced.get(&step).map_or(Pick::Seeded, |&token| Pick::Forced(token));
        let raw = row.logits();
        let decoded =
            self.request.pipeline.decode(raw, &mut self.logits, &context, &mut *sampler, pick, observer);
        decoded.map_err(|error| placed(error, step))?;
        // A device that took the token left this to its account.
        if step < self.taken.len() { self.watch_for_the_end(step, raw) } else { Ok(()) }
    }

    /// Shows the raw row of a step and what surrounds it, changing nothing.
    ///
    /// # Errors
    /// `bad_input` for a step not reached yet; what the model or `look` refuse.
    pub fn look_at<T>(
        &mut self,
        step: usize,
        look: impl FnOnce(&[f32], &StepContext) -> Result<T>,
    ) -> Result<T> {
        self.require_step(step)?;
        let row = self.reach(step)?;
        let surroundings = self.surroundings(step)?;
        look(row.logits(), &surroundings.context(self.model.vocab())).map_err(|error| placed(error, step))
    }

    /// Where the logits and each stage of a step would be computed, were it taken now and alone,
    /// and why. The logits come first.
    ///
    /// # Errors
    /// `bad_input` for a step not reached yet; what the model refuses.
    #[cfg(feature = "gpu")]
    pub async fn plan_on(&mut self, engine: &mut Engine, step: usize) -> Result<Vec<Placement>> {
        self.require_step(step)?;
        let row = self.reach(step)?;
        let surroundings = self.surroundings(step)?;
        engine.look_at_head(&*self.model).await;
        let mut sampler = self.sampler.fork();
        let job = Job {
            row: &row,
            pipeline: &self.request.pipeline,
            context: surroundings.context(self.model.vocab()),
            sampler: &mut *sampler,
            pick: self.forced.get(&step).map_or(Pick::Seeded, |&token| Pick::Forced(token)),
        };
        Ok(engine.plan(&job).await)
    }

    fn require_step(&self, step: usize) -> Result<()> {
        if step > self.taken.len() {
            return Err(Error::new(ErrorCode::BadInput, format!("there is no step {step} yet")).param("step"));
        }
        Ok(())
    }

    /// Forgets every token after the first `length`, and what was forced there.
    pub fn rewind(&mut self, length: usize) {
        let mut parser_fault = None;
        if length < self.taken.len() {
            let first = self.taken[length].clone();
            (self.sampler, self.stop) = (first.sampler, first.stop);
            self.taken.truncate(length);
        }
        if let Some(constraint) = &mut self.constraint {
            let back = constraint.len().saturating_sub(length);
            parser_fault = constraint.rollback(back).err();
        }
        self.forced.retain(|&position, _| position < length);
        self.finish = match parser_fault {
            // Taking back what was taken does not fail, but if it did the reader must know.
            Some(error) => {
                Some(Finish { message: Some(error.message), ..Finish::because(FinishReason::Error) })
            }
            // The prompt was accepted when the generation began.
            None => self.request.begin(&*self.model).unwrap_or_default(),
        };
    }

    /// Changes pipeline and seed, and begins again after the prompt. Forced tokens stay
    /// forced, and steps whose tokens turn out the same cost no pass of the model.
    ///
    /// # Errors
    /// Never for a registered sampler.
    pub fn set_pipeline(&mut self, pipeline: Pipeline, seed: u64) -> Result<()> {
        let (pipeline, seed) = pipeline.seeded(Some(seed))?;
        let forced = std::mem::take(&mut self.forced);
        self.rewind(0);
        self.forced = forced;
        self.seed = seed;
        self.notes = end_notes(&self.request.stop, self.model.vocab());
        self.sampler = pipeline.sampler();
        self.request.pipeline = pipeline;
        Ok(())
    }

    /// Forces a token at a position that will be reached.
    pub fn force_at(&mut self, position: usize, token: TokenId) {
        self.forced.insert(position, token);
    }

    /// Another sample of the same request, after the prompt, which is not computed again. Forced
    /// tokens stay forced.
    #[must_use]
    pub fn another_sample(&self, sample: u32) -> Self {
        let mut other = self.fork();
        if !other.is_empty() {
            let forced = std::mem::take(&mut other.forced);
            other.rewind(0);
            other.forced = forced;
        }
        other.notes = end_notes(&other.request.stop, other.model.vocab());
        other.request.sample = sample;
        other
    }

    /// An independent copy that shares what has been computed.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            model: Arc::clone(&self.model),
            state: self.state.fork(),
            request: self.request.clone(),
            seed: self.seed,
            rows: self.rows.clone(),
            path: self.path.clone(),
            taken: self.taken.clone(),
            forced: self.forced.clone(),
            sampler: self.sampler.fork(),
            stop: self.stop.clone(),
            finish: self.finish.clone(),
            constraint: self.constraint.clone(),
            notes: self.notes.clone(),
            logits: Logits::unfilled(),
        }
    }
}

/// What is odd about the tokens that end a sequence.
pub(crate) fn end_notes(stop: &StopRules, vocab: &Vocab) -> Vec<Note> {
    let note = |code, message| Note { code, stage: String::new(), message };
    let mut notes = Vec::new();
    if stop.eos.is_empty() && !vocab.eos.is_empty() {
        notes.push(note(
            "eos_none",
            format!("no token ends the sequence, though the model's file names {:?}", plain(&vocab.eos)),
        ));
    }
    for &token in &stop.eos {
        if token.index() >= vocab.len() {
            notes.push(note(
                "eos_out_of_vocabulary",
                format!("{token} is to end the sequence, but the vocabulary has {} tokens", vocab.len()),
            ));
        } else if !vocab.eos.contains(&token) && !vocab.eos.is_empty() {
            notes.push(note(
                "eos_not_the_models",
                format!(
                    "{token} is to end the sequence, but the model's file names {:?}; the model may never \
                     end by itself",
                    plain(&vocab.eos)
                ),
            ));
        }
    }
    notes
}

fn plain(tokens: &[TokenId]) -> Vec<u32> {
    tokens.iter().map(|token| token.0).collect()
}

/// Watches for the stage that removes a token.
struct RemovalOf {
    token: TokenId,
    stage: Option<String>,
}

impl Observer for RemovalOf {
    const ENABLED: bool = true;

    fn after(
        &mut self,
        _: usize,
        args: &crate::config::Args,
        _: Judge,
        _: &crate::transform::Outcome,
        logits: &mut Logits,
    ) -> Result<()> {
        if self.stage.is_none() && !logits.alive().contains(self.token.index()) {
            self.stage = Some(args.to_string());
        }
        Ok(())
    }
}
