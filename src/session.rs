//! A generation with its traces, as the page and the command line show it.
//!
//! [`Session`] puts texts around a [`Generation`]: a prompt in, pieces and traces out. It is
//! what `logitscope generate` prints and what the wasm surface hands to JavaScript.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::json;

#[cfg(feature = "gpu")]
use crate::gpu::{Engine, Placement};
use crate::{
    TokenId,
    compare::{Comparison, compare},
    constraint::{self, Allowed, Constraint},
    error::{Error, ErrorCode, Result},
    family::{Kinship, Relative, family},
    logits::Logits,
    model::{LanguageModel, fnv::fnv_1a, sliding::slide},
    penalties::{self, PenaltyView},
    pipeline::Pipeline,
    random::Purpose,
    sampler::{Pick, Sampler},
    stop::{Finish, StopRules},
    strategy::{
        sample::{Generation, Request},
        tree::Taken,
    },
    trace::{Judge, Observer, Off, Recorder, StageTrace, StepTrace},
    transform::Outcome,
};

/// The version of the trace file.
pub const TRACE_VERSION: u32 = 1;

/// What a session starts from, in texts.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Options {
    /// The text to continue; special tokens in it are parsed.
    #[serde(default)]
    pub prompt: String,
    /// The prompt as token ids, in place of the text.
    #[serde(default)]
    pub prompt_ids: Option<Vec<TokenId>>,
    /// The pipeline text.
    #[serde(default)]
    pub pipeline: String,
    /// A seed in decimal, which overrides the pipeline's.
    #[serde(default)]
    pub seed: Option<String>,
    /// Which of several samples with the same seed.
    #[serde(default)]
    pub sample: u32,
    /// How many tokens may be generated; left out, as many as the context holds.
    #[serde(default)]
    pub max_tokens: Option<usize>,
    /// Texts that end the sequence.
    #[serde(default)]
    pub stop: Vec<String>,
    /// Whether a stop string is left out of the text; true if left out.
    #[serde(default)]
    pub trim: Option<bool>,
    /// Tokens that end the sequence; left out, the model's own.
    #[serde(default)]
    pub eos: Option<Vec<TokenId>>,
    /// The text form of a constraint that the text is held to.
    #[serde(default)]
    pub constraint: Option<String>,
    /// Tokens forced at a position.
    #[serde(default)]
    pub forced: BTreeMap<usize, TokenId>,
    /// How many tokens of each stage are in view; left out, 20.
    #[serde(default)]
    pub top: Option<usize>,
    /// Whether a full context forgets its oldest half in place of ending the generation.
    #[serde(default)]
    pub slide: bool,
}

impl Options {
    /// What a strategy starts from, read for a model.
    ///
    /// # Errors
    /// What the pipeline text or the tokenizer refuse; `bad_input` for a seed that is no 64-bit
    /// number.
    pub fn request(&self, model: &dyn LanguageModel) -> Result<Request> {
        let pipeline = Pipeline::parse(&self.pipeline)?;
        pipeline.require_vocabulary(model.vocab().len())?;
        let seed = match &self.seed {
            None => None,
            Some(text) => Some(text.parse().map_err(|_| {
                Error::new(
                    ErrorCode::BadInput,
                    format!("the seed is {text:?}, but must be a whole number below 2^64"),
                )
                .param("seed")
            })?),
        };
        let prompt = match &self.prompt_ids {
            Some(ids) => ids.clone(),
            None => model.tokenize(&self.prompt, true, true)?,
        };
        let context = model.context_length();
        if prompt.len() > context {
            let message = format!("the prompt has {} tokens, but the context holds {context}", prompt.len());
            return Err(Error::new(ErrorCode::ContextFull, message).param("prompt"));
        }
        let room = context - prompt.len();
        let stop = StopRules {
            eos: self.eos.clone().unwrap_or_else(|| model.vocab().eos.clone()),
            strings: self.stop.clone(),
            trim: self.trim.unwrap_or(true),
            max_tokens: self.max_tokens.unwrap_or(room),
        };
        Ok(Request { prompt, pipeline, sample: self.sample, seed, stop })
    }
}

/// One token taken, as shown.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// Its place among the generated tokens.
    pub index: usize,
    /// The token.
    pub token: TokenId,
    /// What it stands for; see [`piece`].
    pub piece: String,
    /// All the text that may be shown so far.
    pub text: String,
    /// How it came about.
    pub trace: StepTrace,
    /// How the generation ended with it, if it did.
    pub finish: Option<Finish>,
    /// How many of the first tokens the model no longer saw when it chose this one.
    #[serde(skip_serializing_if = "is_zero")]
    pub forgotten: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Where a step is computed.
#[cfg(feature = "gpu")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Places {
    /// Its place among the generated tokens.
    pub step: usize,
    /// Where the model's last matrix makes the logits.
    pub logits: Placement,
    /// Where each stage runs, the sampler last.
    pub stages: Vec<Placement>,
}

/// A generation with its traces.
#[derive(Debug)]
pub struct Session {
    generation: Generation,
    top: usize,
    traces: Vec<StepTrace>,
}

impl Session {
    /// Reads the options and feeds the prompt.
    ///
    /// # Errors
    /// What the pipeline text, the tokenizer, or the model refuse; `bad_input` for a seed
    /// that is no 64-bit number.
    pub fn new(model: Arc<dyn LanguageModel>, options: &Options) -> Result<Self> {
        let model = if options.slide { slide(model) } else { model };
        let request = options.request(&*model)?;
        let mut generation = Generation::new(model, request)?;
        if let Some(text) = &options.constraint {
            let constraint = constraint::open(generation.model(), text, &constraint::no_files)?;
            generation = generation.with_constraint(constraint)?;
        }
        for (&position, &token) in &options.forced {
            generation.force_at(position, token);
        }
        Ok(Self { generation, top: options.top.unwrap_or(20), traces: Vec::new() })
    }

    /// Holds the text to a constraint that was compiled elsewhere, from the first token on.
    ///
    /// # Errors
    /// What the constraint's parser refuses.
    pub fn with_constraint(mut self, constraint: Box<dyn Constraint>) -> Result<Self> {
        self.generation = self.generation.with_constraint(constraint)?;
        self.traces.clear();
        Ok(self)
    }

    /// Another sample of the same request, after the prompt, which is not computed again.
    #[must_use]
    pub fn another_sample(&self, sample: u32) -> Self {
        Self { generation: self.generation.another_sample(sample), top: self.top, traces: Vec::new() }
    }

    /// Where the constraint's parser stands, if there is a constraint.
    ///
    /// # Errors
    /// As [`Constraint::standing`].
    pub fn standing(&mut self) -> Result<Option<constraint::Standing>> {
        self.generation.standing()
    }

    /// The generation inside.
    #[must_use]
    pub fn generation(&self) -> &Generation {
        &self.generation
    }

    /// Decodes one token; `None` when the generation has ended.
    ///
    /// # Errors
    /// As [`Generation::step_observed`].
    pub fn step(&mut self) -> Result<Option<Step>> {
        self.take(Pick::Seeded)
    }

    /// Takes this token in place of drawing one, even after the end.
    ///
    /// # Errors
    /// As [`Generation::step_observed`].
    pub fn force(&mut self, token: TokenId) -> Result<Option<Step>> {
        self.take(Pick::Forced(token))
    }

    fn take(&mut self, pick: Pick) -> Result<Option<Step>> {
        let mut recorder = Recorder::new(self.top);
        let Some(token) = self.generation.step_observed(pick, &mut recorder)? else { return Ok(None) };
        Ok(Some(self.taken(token, recorder.finish())))
    }

    /// Decodes one token on a device where that is worth it: the token of [`step`](Self::step).
    /// The account of it is the CPU's, because a device returns the draw alone.
    ///
    /// # Errors
    /// As [`Generation::step_observed`].
    #[cfg(feature = "gpu")]
    pub async fn step_on(&mut self, engine: &mut Engine) -> Result<Option<Step>> {
        Self::step_together(&mut [self], engine).await.pop().unwrap_or(Ok(None))
    }

    /// As [`step_on`](Self::step_on) for several sessions of one model, such as
    /// [samples](Self::another_sample) of one request, in one batch.
    ///
    /// # Errors
    /// For each session, as [`Generation::step_observed`].
    #[cfg(feature = "gpu")]
    pub async fn step_together(sessions: &mut [&mut Self], engine: &mut Engine) -> Vec<Result<Option<Step>>> {
        let mut generations: Vec<&mut Generation> =
            sessions.iter_mut().map(|session| &mut session.generation).collect();
        let tokens = Generation::step_together(&mut generations, engine, true).await;
        let steps = sessions.iter_mut().zip(tokens).map(|(session, token)| {
            let Some(token) = token? else { return Ok(None) };
            let trace = session.generation.trace(session.traces.len(), session.top)?;
            Ok(Some(session.taken(token, trace)))
        });
        steps.collect()
    }

    /// As [`trace`](Self::trace), the logits computed on a device where that is faster.
    ///
    /// # Errors
    /// As [`Generation::trace`].
    #[cfg(feature = "gpu")]
    pub async fn trace_on(&mut self, engine: &mut Engine, step: usize) -> Result<StepTrace> {
        if step >= self.traces.len() {
            self.generation.fetch_on(engine, step).await?;
        }
        self.trace(step)
    }

    /// Where the logits and each stage of the next step would be computed, and why; of the last
    /// step after the end.
    ///
    /// # Errors
    /// What the model refuses.
    #[cfg(feature = "gpu")]
    pub async fn places(&mut self, engine: &mut Engine) -> Result<Places> {
        let ended = usize::from(self.generation.finish().is_some());
        let step = self.generation.len().saturating_sub(ended);
        let mut stages = self.generation.plan_on(engine, step).await?;
        Ok(Places { step, logits: stages.remove(0), stages })
    }

    fn taken(&mut self, token: TokenId, trace: StepTrace) -> Step {
        self.traces.push(trace.clone());
        let before = self.generation.prompt().len() + self.generation.len() - 1;
        Step {
            forgotten: self.generation.model().forgotten(before),
            index: self.generation.len() - 1,
            token,
            piece: piece(&**self.generation.model(), token),
            text: self.generation.text().to_owned(),
            trace,
            finish: self.generation.finish().cloned(),
        }
    }

    /// Forgets every token after the first `length`.
    pub fn rewind(&mut self, length: usize) {
        self.generation.rewind(length);
        self.traces.truncate(length);
    }

    /// Changes the pipeline, keeping prompt, seed and forced tokens, and begins again. A seed
    /// written in the new text wins over the old one.
    ///
    /// # Errors
    /// What the pipeline text is refused for; the session is as before then.
    pub fn set_pipeline(&mut self, text: &str) -> Result<()> {
        let pipeline = Pipeline::parse(text)?;
        pipeline.require_vocabulary(self.generation.model().vocab().len())?;
        let seed = pipeline.seed().unwrap_or(self.generation.seed());
        self.generation.set_pipeline(pipeline, seed)?;
        self.traces.clear();
        Ok(())
    }

    /// The trace of a token already taken, or of the next one without taking it.
    ///
    /// # Errors
    /// As [`Generation::trace`].
    pub fn trace(&mut self, step: usize) -> Result<StepTrace> {
        match self.traces.get(step) {
            Some(trace) => Ok(trace.clone()),
            None => self.generation.trace(step, self.top),
        }
    }

    /// The way of single tokens through a step, wherever they stand: a trace with no other
    /// tokens in view.
    ///
    /// # Errors
    /// `token_out_of_vocabulary`; else as [`Generation::trace`].
    pub fn ledger(&mut self, step: usize, tokens: &[TokenId]) -> Result<StepTrace> {
        let vocabulary = self.generation.model().vocab().len();
        if let Some(token) = tokens.iter().find(|token| token.index() >= vocabulary) {
            let message = format!("token {token} is not in a vocabulary of {vocabulary}");
            return Err(Error::new(ErrorCode::TokenOutOfVocabulary, message).param("tokens"));
        }
        let mut recorder = Recorder::new(0).pinning(tokens);
        match self.generation.observe(step, &mut recorder) {
            Err(error) if error.code != ErrorCode::EmptySupport => Err(error),
            _ => Ok(recorder.finish()),
        }
    }

    /// The raw probabilities of a step in descending order, and which of the tokens are still
    /// alive after one of its stages (0 is the raw row).
    ///
    /// # Errors
    /// `bad_input` for a step not reached yet.
    pub fn ranks(&mut self, step: usize, stage: usize) -> Result<Ranks> {
        let mut watch = AliveAfter { stage, first: 0, order: Vec::new(), ranks: Ranks::default() };
        match self.generation.observe(step, &mut watch) {
            Err(error) if error.code != ErrorCode::EmptySupport => Err(error),
            _ => Ok(watch.ranks),
        }
    }

    /// What every penalty of the pipeline looks at and does at a step.
    ///
    /// # Errors
    /// `bad_input` for a step not reached yet; what a stage refuses.
    pub fn penalties(&mut self, step: usize) -> Result<Vec<PenaltyView>> {
        let pipeline = self.generation.pipeline().clone();
        self.generation.look_at(step, |row, context| penalties::views(&pipeline, row, context))
    }

    /// Several pipelines on the row of a step, all with the step's own draw. A sampler with a
    /// state has seen the tokens before the step.
    ///
    /// # Errors
    /// What a pipeline text is refused for; `bad_input` for a step not reached yet.
    pub fn compare(&mut self, step: usize, texts: &[String], top: usize) -> Result<Comparison> {
        let mut pipelines = Vec::new();
        for text in texts {
            let pipeline = Pipeline::parse(text)?;
            let sampler = self.sampler_at(step, &pipeline)?;
            pipelines.push(pipeline.continuing(sampler));
        }
        self.generation.look_at(step, |row, context| {
            compare(&pipelines, row, context, context.draw(Purpose::Token), top)
        })
    }

    /// A pipeline's sampler as it is after the tokens before a step.
    fn sampler_at(&mut self, step: usize, pipeline: &Pipeline) -> Result<Box<dyn Sampler>> {
        let mut sampler = pipeline.sampler();
        if sampler.state().is_empty() {
            return Ok(sampler);
        }
        let tokens = self.generation.tokens();
        let mut logits = Logits::unfilled();
        for (earlier, &token) in tokens.iter().enumerate().take(step) {
            let pick = Pick::Forced(token);
            self.generation.look_at(earlier, |row, context| {
                // A step that the pipeline refuses teaches its sampler nothing.
                let _ = pipeline.decode(row, &mut logits, context, &mut *sampler, pick, &mut Off);
                Ok(())
            })?;
        }
        Ok(sampler)
    }

    /// The relatives of a token at a step, and the way of each through it.
    ///
    /// # Errors
    /// As [`ledger`](Self::ledger).
    pub fn family(&mut self, step: usize, token: TokenId) -> Result<FamilyAt> {
        let model = Arc::clone(self.generation.model());
        // A token outside the vocabulary has no relatives; the ledger says so.
        self.ledger(step, &[token])?;
        let mut relatives = family(model.vocab(), token);
        let left_out = relatives.len().saturating_sub(RELATIVES);
        relatives.truncate(RELATIVES);
        let ids: Vec<TokenId> = relatives.iter().map(|relative| relative.token).collect();
        let trace = self.ledger(step, &ids)?;
        let word: Vec<TokenId> = relatives
            .iter()
            .filter(|relative| relative.kinship != Kinship::Fragment)
            .map(|relative| relative.token)
            .collect();
        let mass = |stage: Option<&StageTrace>| {
            let rows = stage.into_iter().flat_map(|stage| &stage.rows);
            rows.filter(|row| word.contains(&row.token)).map(|row| row.probability).sum()
        };
        let (raw_mass, final_mass) = (mass(trace.stages.first()), mass(trace.stages.last()));
        let relatives = relatives
            .into_iter()
            .map(|Relative { token, kinship }| Kin { token, kinship, piece: piece(&*model, token) })
            .collect();
        Ok(FamilyAt { relatives, left_out, raw_mass, final_mass, trace })
    }

    /// Sum over the generated tokens of ln of the probability, raw and as drawn.
    #[must_use]
    pub fn logprob(&self) -> (f64, f64) {
        let draws = self.traces.iter().filter_map(|trace| trace.draw.as_ref());
        draws.fold((0.0, 0.0), |(raw, last), draw| {
            (raw + draw.raw_logprob, last + draw.final_logprob.unwrap_or(f64::MIN))
        })
    }

    /// The tokens so far with what each cost, for a [`BranchTree`](crate::strategy::tree::BranchTree).
    #[must_use]
    pub fn branch(&self) -> Vec<Taken> {
        let draws = self.traces.iter().filter_map(|trace| trace.draw.as_ref());
        let taken = |draw: &crate::trace::DrawTrace| Taken {
            token: draw.token,
            raw_logprob: draw.raw_logprob,
            final_logprob: draw.final_logprob,
        };
        draws.map(taken).collect()
    }

    /// Everything needed to replay the generation, as JSON.
    #[must_use]
    pub fn trace_file(&self) -> serde_json::Value {
        let generation = &self.generation;
        let model = generation.model();
        let stop = generation.stop_rules();
        let mut file = json!({
            "format": "logitscope-trace",
            "version": TRACE_VERSION,
            "product": env!("CARGO_PKG_VERSION"),
            "model": { "name": model.info().name, "hash": format!("{:016x}", model.hash()) },
            "prompt": generation.prompt(),
            "pipeline": generation.pipeline().to_string(),
            "seed": generation.seed().to_string(),
            "stop": { "eos": stop.eos, "strings": stop.strings, "trim": stop.trim, "max_tokens": stop.max_tokens },
            "forced": generation.forced(),
            "tokens": generation.tokens(),
            "text": generation.text(),
            "finish": generation.finish(),
            "steps": self.traces.iter().enumerate().map(|(index, trace)| json!({
                "logits_digest": generation.row(index).map(digest),
                "trace": trace,
            })).collect::<Vec<_>>(),
        });
        // Left out where there is none, so that older files keep their digest.
        if let Some(constraint) = generation.constraint() {
            file["constraint"] = json!(constraint);
        }
        if model.context_length() == usize::MAX {
            file["slide"] = json!(true);
        }
        file
    }

    /// A hash of the trace file's bytes: equal digests, equal traces.
    #[must_use]
    pub fn digest(&self) -> String {
        format!("{:016x}", fnv_1a(self.trace_file().to_string().into_bytes()))
    }
}

/// A hash of a row of logits, bit by bit.
#[must_use]
pub fn digest(row: &[f32]) -> String {
    format!("{:016x}", fnv_1a(row.iter().flat_map(|score| score.to_bits().to_le_bytes())))
}

/// A token's text for people: bytes that are no whole character appear as `⟨e2⟩`.
///
/// # Examples
/// ```
/// use logitscope::session::readable_bytes;
///
/// assert_eq!(readable_bytes(" é".as_bytes()), " é");
/// assert_eq!(readable_bytes(b"a\xe2\x82"), "a⟨e2⟩⟨82⟩");
/// ```
#[must_use]
pub fn readable_bytes(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(out, "⟨{byte:02x}⟩");
        }
    }
    out
}

/// The [readable text](readable_bytes) of a token.
#[must_use]
pub fn piece(model: &dyn LanguageModel, token: TokenId) -> String {
    readable_bytes(model.vocab().bytes(token))
}

/// How many relatives of a token are shown.
const RELATIVES: usize = 24;

/// A relative with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kin {
    /// The token.
    pub token: TokenId,
    /// How it is related.
    pub kinship: Kinship,
    /// What it stands for.
    pub piece: String,
}

/// The family of a token at a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyAt {
    /// The relatives, the token itself first.
    pub relatives: Vec<Kin>,
    /// How many more there are.
    pub left_out: usize,
    /// The probability, in the raw row, of all relatives that spell the whole word.
    pub raw_mass: f64,
    /// The same in the row that is drawn from.
    pub final_mass: f64,
    /// The way of each relative through the step.
    pub trace: StepTrace,
}

/// The whole vocabulary of a step, by rank.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranks {
    /// The tokens, likeliest first in the raw row.
    pub token: Vec<TokenId>,
    /// Their probabilities in the raw row.
    pub probability: Vec<f64>,
    /// Whether each is alive after the stage asked for.
    pub alive: Vec<bool>,
}

/// Watches for the mask after one stage.
struct AliveAfter {
    stage: usize,
    /// The place of the first stage: 1 if a constraint stands before it, else 0.
    first: usize,
    order: Vec<TokenId>,
    ranks: Ranks,
}

impl AliveAfter {
    fn note(&mut self, logits: &Logits) {
        self.ranks.alive = self.order.iter().map(|token| logits.alive().contains(token.index())).collect();
    }
}

impl Observer for AliveAfter {
    const ENABLED: bool = true;

    fn raw(&mut self, logits: &mut Logits) -> Result<()> {
        // Here a sort of the vocabulary is what is asked for.
        let all = logits.top(logits.len())?;
        self.order = all.iter().map(|standing| standing.token).collect();
        self.ranks.probability = all.iter().map(|standing| standing.probability).collect();
        self.ranks.token.clone_from(&self.order);
        self.note(logits);
        Ok(())
    }

    fn constraining(&mut self, _: &mut Logits, _: &Allowed) -> Result<()> {
        self.first = 1;
        Ok(())
    }

    fn constrained(&mut self, logits: &mut Logits) -> Result<()> {
        if self.stage > 0 {
            self.note(logits);
        }
        Ok(())
    }

    fn after(
        &mut self,
        index: usize,
        _: &crate::config::Args,
        _: Judge,
        _: &Outcome,
        logits: &mut Logits,
    ) -> Result<()> {
        if self.first + index < self.stage {
            self.note(logits);
        }
        Ok(())
    }
}

/// A token found by [`search`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The token.
    pub id: TokenId,
    /// What it stands for.
    pub piece: String,
}

/// Tokens whose id `text` is or whose text contains it: those that write it in the same case
/// before the others, and the shortest first.
#[must_use]
pub fn search(model: &dyn LanguageModel, text: &str, limit: usize) -> Vec<Found> {
    let own_id = text.trim().parse().ok().map(TokenId);
    let ids = (0..).take(model.vocab().len()).map(TokenId);
    let in_any_case = text.to_lowercase();
    let mut found: Vec<Found> = ids
        .map(|id| Found { id, piece: piece(model, id) })
        .filter(|found| {
            let contained = || found.piece.to_lowercase().contains(&in_any_case);
            own_id == Some(found.id) || (!text.is_empty() && contained())
        })
        .collect();
    found.sort_by_key(|found| {
        let other_case = !found.piece.contains(text);
        (own_id != Some(found.id), other_case, found.piece.chars().count(), found.id)
    });
    found.truncate(limit);
    found
}

#[cfg(all(test, feature = "gpu", not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::{
        gpu::{Choice, Disturbance, Policy, SystemClock, block_on},
        model::{self, Precision},
    };

    fn session() -> Session {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.gguf");
        let model = model::open(std::fs::read(file).expect("the model that ships"), Precision::Native);
        let options = Options {
            prompt: "The dog ran".to_owned(),
            pipeline: "repetition_penalty(r=1.2) | temperature(t=0.9) | top_p(p=0.9) | categorical(seed=5)"
                .to_owned(),
            ..serde_json::from_str("{}").expect("options")
        };
        Session::new(model.expect("a model"), &options).expect("a session")
    }

    #[test]
    fn a_session_steps_on_a_device_and_goes_on_without_it() {
        let opened = block_on(Engine::new(Policy::Require, Arc::new(SystemClock::default())));
        let Ok(mut engine) = opened else {
            assert_ne!(Policy::from_environment(), Ok(Policy::Require), "there must be a device");
            return;
        };
        engine.set_choice(Choice::Device);
        let (mut plain, mut on_device) = (session(), session());
        let Places { step, logits, stages } = block_on(on_device.places(&mut engine)).expect("places");
        assert_eq!(step, 0);
        assert!(logits.device && stages.iter().all(|place| place.device), "{stages:?}");
        for step in 0..6 {
            if step == 3 {
                engine.disturb(Disturbance::BeforeMap);
            }
            plain.step().expect("a step");
            block_on(on_device.step_on(&mut engine)).expect("a step");
        }
        // The accounts are equal too, draw and all.
        assert_eq!(on_device.digest(), plain.digest());
        assert!(engine.take_events().iter().any(|event| event.contains("the CPU goes on")));
    }

    #[test]
    fn an_end_that_a_stage_removed_is_noted_on_a_device_too() {
        let opened = block_on(Engine::new(Policy::Require, Arc::new(SystemClock::default())));
        let Ok(mut engine) = opened else {
            assert_ne!(Policy::from_environment(), Ok(Policy::Require), "there must be a device");
            return;
        };
        engine.set_choice(Choice::Device);
        // Token 2 ends, and is the likeliest after 1, but never after 0.
        let rows = [[3, 2, 0], [0, 2, 9], [3, 2, 0]];
        let table: Vec<i32> = rows.iter().cycle().take(9).flatten().copied().collect();
        let json = json!({ "vocab": 3, "eos": 2, "table": table }).to_string();
        let session = |pipeline: &str| {
            let options = Options {
                prompt_ids: Some(vec![TokenId(0)]),
                pipeline: pipeline.to_owned(),
                max_tokens: Some(8),
                ..serde_json::from_str("{}").expect("options")
            };
            let model = model::table::TableModel::from_json(&json).expect("a model");
            Session::new(Arc::new(model), &options).expect("a session")
        };
        for (pipeline, removed) in
            [("suppress(ids=[2]) | categorical(seed=3)", 1), ("top_k(k=1) | categorical(seed=3)", 0)]
        {
            let (mut plain, mut on_device) = (session(pipeline), session(pipeline));
            for _ in 0..8 {
                plain.step().expect("a step");
                block_on(on_device.step_on(&mut engine)).expect("a step");
            }
            assert_eq!(on_device.digest(), plain.digest(), "{pipeline}");
            let notes = plain.generation().notes();
            assert_eq!(notes.iter().filter(|note| note.code == "eos_removed").count(), removed, "{notes:?}");
            assert_eq!(on_device.generation().notes(), notes);
        }
    }
}
