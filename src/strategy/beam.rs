//! Beam search: several sequences side by side, the likeliest kept at every step.
//!
//! [`BeamSearch`] reproduces transformers: stages work on log-probabilities, not on raw
//! logits, and are not renormalised; `max(2, 1 + #eos) · width` candidates are looked at; one
//! that ends becomes a hypothesis only if it ranks below `width`; the score of a hypothesis is
//! the sum of its log-probabilities divided by `length ^ length_penalty`. With one group the
//! rules are those of version 5.24, with several those of 4.49, the last that has them.
//!
//! Everything that was looked at is recorded as a tree of [`Node`]s, pruned branches
//! included.

use std::{fmt, ops::Range, sync::Arc};

use serde::Serialize;

#[cfg(feature = "gpu")]
use crate::gpu::{Engine, Reached};
use crate::{
    TokenId,
    call::Arguments,
    constraint::Constraint,
    error::{Error, ErrorCode, Result},
    logits::Logits,
    model::{LanguageModel, ModelState, row::Row},
    pipeline::Note,
    random::{Purpose, unit},
    stop::{Finish, FinishReason, StopState},
    strategy::{placed, sample::Request},
    trace::{Observer, Off},
};

/// Why the stages are the CPU's, in a reader's words.
#[cfg(feature = "gpu")]
const NEEDS_EVERY_SCORE: &str =
    "a beam search needs the score of every token, and the GPU returns only the token that it drew";

/// The widest search: each beam holds a context of its own.
pub const MOST_BEAMS: usize = 1024;

/// When a search that has `width` hypotheses ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlyStopping {
    /// When no running beam of the present length could still beat the worst hypothesis.
    #[default]
    False,
    /// At once.
    True,
    /// When none could at any length up to the longest.
    Never,
}

/// What the length in the score of a hypothesis counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthCounts {
    /// Generated tokens, the ending one included: transformers.
    #[default]
    Generated,
    /// All tokens, the prompt included and the ending one excluded: vLLM.
    All,
}

/// The parameters of `beam` and `diverse_beam`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Options {
    /// How many beams run, and how many hypotheses are kept.
    pub width: usize,
    /// Into how many groups the beams are divided; 1 is ordinary beam search.
    pub groups: usize,
    /// Taken from a token's score for each time an earlier group chose it at this step, in
    /// nats.
    pub diversity_penalty: f64,
    /// The power of the length that a hypothesis' sum is divided by.
    pub length_penalty: f64,
    /// When the search ends.
    pub early_stopping: EarlyStopping,
    /// What the length counts.
    pub length_counts: LengthCounts,
}

impl Options {
    /// Takes the parameters out of a call of `beam` or `diverse_beam`.
    ///
    /// # Errors
    /// `missing_param`, `wrong_type` or `out_of_range`.
    pub fn read(call: &mut Arguments) -> Result<Self> {
        let diverse = call.name() == "diverse_beam";
        let width = call.count("width", None, 1)?;
        if width > MOST_BEAMS {
            let message = format!("width is {width}, but must be in 1..={MOST_BEAMS}");
            return Err(call.fault(ErrorCode::OutOfRange, message).param("width"));
        }
        let (groups, diversity_penalty) = if diverse {
            (call.count("groups", None, 1)?, call.number("diversity_penalty", Some(1.0))?)
        } else {
            (1, 0.0)
        };
        if !width.is_multiple_of(groups) {
            let message = format!("width {width} cannot be divided into {groups} equal groups");
            return Err(call.fault(ErrorCode::OutOfRange, message).param("groups"));
        }
        Ok(Self {
            width,
            groups,
            diversity_penalty,
            length_penalty: call.number("length_penalty", Some(1.0))?,
            early_stopping: match call.word("early_stopping", &["false", "true", "never"])? {
                "true" => EarlyStopping::True,
                "never" => EarlyStopping::Never,
                _ => EarlyStopping::False,
            },
            length_counts: match call.word("length_counts", &["generated", "all"])? {
                "all" => LengthCounts::All,
                _ => LengthCounts::Generated,
            },
        })
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, groups, diversity_penalty, length_penalty, .. } = self;
        if self.groups > 1 {
            write!(
                f,
                "diverse_beam(width={width}, groups={groups}, diversity_penalty={diversity_penalty}, "
            )?;
        } else {
            write!(f, "beam(width={width}, ")?;
        }
        let early = match self.early_stopping {
            EarlyStopping::False => "false",
            EarlyStopping::True => "true",
            EarlyStopping::Never => "never",
        };
        let counts = match self.length_counts {
            LengthCounts::Generated => "generated",
            LengthCounts::All => "all",
        };
        write!(f, "length_penalty={length_penalty}, early_stopping={early}, length_counts={counts})")
    }
}

/// What became of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It runs on as a beam.
    Runs,
    /// It became a hypothesis.
    Hypothesis,
    /// It was a hypothesis until better ones took its place.
    Displaced,
    /// It ended, but ranked too low to become a hypothesis.
    EndedTooLow,
    /// It ranked too low to run on.
    Pruned,
}

/// One candidate that was looked at: a token after a beam.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Node {
    /// The node it continues; `None` right after the prompt.
    pub parent: Option<usize>,
    /// The token.
    pub token: TokenId,
    /// How many tokens were generated, this one included.
    pub length: usize,
    /// The group it belongs to.
    pub group: usize,
    /// Its place among the candidates of its group and step.
    pub rank: usize,
    /// The token's log-probability after the stages, in nats.
    pub logprob: f64,
    /// The sum of the log-probabilities so far, in nats.
    pub sum: f64,
    /// The sum divided by the power of the length.
    pub score: f64,
    /// What became of it.
    pub fate: Fate,
}

/// One step of the search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The nodes looked at, as a range of their indices.
    pub nodes: Range<usize>,
    /// The nodes that run on, best first within each group.
    pub beams: Vec<usize>,
    /// Hypotheses so far.
    pub hypotheses: usize,
    /// How many leading generated tokens all running beams share.
    pub shared_prefix: usize,
    /// How many different beams of the step before they continue.
    pub parents: usize,
    /// Bytes of memory for the context of every beam, were nothing shared.
    pub cache_bytes: u64,
    /// Bytes when what beams have in common is held once.
    pub cache_bytes_shared: u64,
}

/// A sequence that the search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sequence {
    /// Its last node.
    pub node: usize,
    /// The generated tokens, an ending one included.
    pub tokens: Vec<TokenId>,
    /// Its text.
    pub text: String,
    /// The sum of its log-probabilities, in nats.
    pub sum: f64,
    /// The length that the sum is divided by.
    pub length: usize,
    /// What it is ranked by.
    pub score: f64,
    /// Why it ended.
    pub finish: Finish,
}

/// Everything a search did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// The strategy's parameters.
    pub options: Options,
    /// Whether candidates are drawn rather than the likeliest taken.
    pub sampled: bool,
    /// The seed of those draws; as JSON a text, since it has 64 bits.
    #[serde(serialize_with = "as_text")]
    pub seed: u64,
    /// Tokens in the prompt.
    pub prompt_length: usize,
    /// Every candidate looked at, oldest first.
    pub nodes: Vec<Node>,
    /// The steps.
    pub steps: Vec<Step>,
    /// The sequences found so far, best first.
    pub sequences: Vec<Sequence>,
    /// Passes of the model, each over all running beams at once.
    pub passes: usize,
    /// Sequences that went through the model in all passes together.
    pub rows: usize,
    /// The most bytes that the contexts of all beams took, were nothing shared.
    pub peak_cache_bytes: u64,
    /// The most bytes when common beginnings are held once.
    pub peak_cache_bytes_shared: u64,
    /// What the reader should know.
    pub notes: Vec<Note>,
}

impl Record {
    /// The generated tokens up to a node.
    #[must_use]
    pub fn path(&self, node: usize) -> Vec<TokenId> {
        let mut tokens: Vec<TokenId> =
            self.ancestors(Some(node)).map(|index| self.nodes[index].token).collect();
        tokens.reverse();
        tokens
    }

    /// A node and those it continues, the newest first.
    fn ancestors(&self, node: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(node, |&index| self.nodes[index].parent)
    }
}

/// A sequence that runs on.
#[derive(Debug)]
struct Beam {
    node: Option<usize>,
    state: Box<dyn ModelState>,
    stop: StopState,
    constraint: Option<Box<dyn Constraint>>,
    sum: f64,
}

/// A candidate before it is decided what becomes of it.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    beam: usize,
    token: TokenId,
    logprob: f64,
    sum: f64,
    /// What candidates are chosen by: the sum, with noise when they are drawn.
    key: f64,
}

/// A sequence that has ended.
#[derive(Debug)]
struct Hypothesis {
    node: usize,
    score: f64,
    length: usize,
    text: String,
    finish: Finish,
}

/// Beams that compete with each other.
#[derive(Debug, Default)]
struct Group {
    beams: Vec<Beam>,
    /// Best first, at most as many as beams.
    hypotheses: Vec<Hypothesis>,
    done: bool,
}

impl Group {
    /// Whether a group with all its hypotheses has ended: none of its beams, the best of which
    /// has this sum, could still beat the worst of them. `length(true)` is the longest length,
    /// `length(false)` the present one.
    fn is_settled(
        &self,
        options: &Options,
        prompt: usize,
        best: f64,
        length: impl Fn(bool) -> usize,
    ) -> bool {
        if options.early_stopping == EarlyStopping::True {
            return true;
        }
        let optimist = options.early_stopping == EarlyStopping::Never && options.length_penalty > 0.0;
        let counted = match options.length_counts {
            LengthCounts::Generated => length(optimist),
            LengthCounts::All => prompt + length(optimist),
        };
        let worst = self.hypotheses.last().map_or(f64::NEG_INFINITY, |worst| worst.score);
        worst >= best / power(counted, options.length_penalty)
    }

    /// Drops all but the best hypotheses.
    fn keep_best(&mut self, width: usize, nodes: &mut [Node]) {
        // The stable sort keeps the earlier of two equals.
        self.hypotheses.sort_by(|a, b| b.score.total_cmp(&a.score));
        for displaced in self.hypotheses.drain(width.min(self.hypotheses.len())..) {
            nodes[displaced.node].fate = Fate::Displaced;
        }
    }
}

/// A search in the making.
///
/// # Examples
/// Greedy takes the likelier first token and regrets it: 0.6 · 0.5 < 0.4 · 0.9.
/// ```
/// use std::sync::Arc;
/// use logitscope::{Pipeline, TokenId, model::{LanguageModel, table::TableModel}, stop::StopRules};
/// use logitscope::strategy::{beam::BeamSearch, sample::{Generation, Request}};
///
/// // After token 0: 1 or 2. After 1: 0 or 1, evenly. After 2: 2, almost surely.
/// let json = r#"{"vocab": 3, "table": [
///     -99,-0.510826,-0.916291,  -0.693147,-0.693147,-99,  -2.302585,-99,-0.105361,
///     -99,-0.510826,-0.916291,  -0.693147,-0.693147,-99,  -2.302585,-99,-0.105361,
///     -99,-0.510826,-0.916291,  -0.693147,-0.693147,-99,  -2.302585,-99,-0.105361]}"#;
/// let model: Arc<dyn LanguageModel> = Arc::new(TableModel::from_json(json)?);
/// let request = Request {
///     prompt: vec![TokenId(0)],
///     pipeline: Pipeline::parse("greedy()")?,
///     sample: 0,
///     seed: None,
///     stop: StopRules::of_vocab(model.vocab(), 2),
/// };
/// let mut greedy = Generation::new(Arc::clone(&model), request.clone())?;
/// while greedy.finish().is_none() {
///     greedy.step()?;
/// }
/// assert_eq!(greedy.tokens(), [TokenId(1), TokenId(0)]); // 0.6 · 0.5 = 0.30
///
/// let mut search = BeamSearch::new(model, request, "beam(width=2)".parse()?)?;
/// search.run()?;
/// let best = &search.record().sequences[0];
/// assert_eq!(best.tokens, [TokenId(2), TokenId(2)]); // 0.4 · 0.9 = 0.36
/// assert!((best.sum.exp() - 0.36).abs() < 1e-6);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug)]
pub struct BeamSearch {
    model: Arc<dyn LanguageModel>,
    request: Request,
    groups: Vec<Group>,
    finish: Option<Finish>,
    record: Record,
}

impl std::str::FromStr for Options {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut call = Arguments::parse(text)?;
        if !matches!(call.name(), "beam" | "diverse_beam") {
            let message = format!("`{}` is not beam or diverse_beam", call.name());
            return Err(call.fault(ErrorCode::UnknownStage, message));
        }
        let options = Self::read(&mut call)?;
        call.finish()?;
        Ok(options)
    }
}

impl BeamSearch {
    /// Prepares a search; the model runs with the first step.
    ///
    /// The pipeline's sampler says how candidates are chosen: `greedy` takes the likeliest,
    /// and so does a pipeline without a sampler; `categorical` and `gumbel_max` draw them
    /// without replacement.
    ///
    /// # Errors
    /// `bad_input` for an empty prompt or a sampler that cannot choose several tokens at
    /// once; `io` when a seed is needed and cannot be drawn.
    pub fn new(model: Arc<dyn LanguageModel>, mut request: Request, options: Options) -> Result<Self> {
        let finish = request.begin(&*model)?;
        let sampler = request.pipeline.sampler_args().spec.id;
        let written = request.pipeline.sampler_written();
        let sampled = match sampler {
            "greedy" => false,
            "categorical" | "gumbel_max" => written,
            other => {
                let message = format!(
                    "{other} keeps a state for one sequence and cannot choose for several beams; use \
                     greedy() or categorical()"
                );
                return Err(Error::new(ErrorCode::BadInput, message).stage(other));
            }
        };
        let mut notes = request.pipeline.notes().to_vec();
        if !written {
            notes.push(Note {
                code: "beam_takes_the_likeliest",
                stage: "beam".to_owned(),
                message: "the pipeline names no sampler, so the likeliest candidates are taken; \
                          categorical() would draw them"
                    .to_owned(),
            });
        }
        let random = sampled || request.pipeline.needs_seed(true);
        let (pipeline, seed) = if random {
            request.pipeline.seeded(request.seed)?
        } else {
            let seed = request.seed.unwrap_or_default();
            (request.pipeline, seed)
        };
        request.pipeline = pipeline;
        let groups = (0..options.groups)
            .map(|_| Group {
                beams: vec![Beam {
                    node: None,
                    state: model.start(),
                    stop: StopState::default(),
                    constraint: None,
                    sum: 0.0,
                }],
                ..Group::default()
            })
            .collect();
        let record = Record {
            options,
            sampled,
            seed,
            prompt_length: request.prompt.len(),
            nodes: Vec::new(),
            steps: Vec::new(),
            sequences: Vec::new(),
            passes: 0,
            rows: 0,
            peak_cache_bytes: 0,
            peak_cache_bytes_shared: 0,
            notes,
        };
        Ok(Self { model, request, groups, finish, record })
    }

    /// Holds every beam to a constraint; for before the first step.
    #[must_use]
    pub fn with_constraint(mut self, constraint: &dyn Constraint) -> Self {
        for beam in self.groups.iter_mut().flat_map(|group| &mut group.beams) {
            beam.constraint = Some(constraint.fork());
        }
        self
    }

    /// What the search did so far.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The pipeline, its seed included.
    #[must_use]
    pub fn pipeline(&self) -> &crate::Pipeline {
        &self.request.pipeline
    }

    /// Why the search as a whole ended; each sequence has a reason of its own.
    #[must_use]
    pub fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// Steps until the search ends.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn run(&mut self) -> Result<()> {
        while self.step()? {}
        Ok(())
    }

    /// Lengthens every beam by one token. False when the search has ended, before or by this
    /// call.
    ///
    /// # Errors
    /// What the model or a stage refuses.
    pub fn step(&mut self) -> Result<bool> {
        if self.finish.is_some() {
            return Ok(false);
        }
        let rows = self.pass()?;
        Row::fill(&rows.iter().flatten().collect::<Vec<_>>());
        self.lengthen(&rows, &mut Off)
    }

    /// As [`step`](Self::step), the logits of all beams computed together on a device where that
    /// is faster. The stages are the CPU's: a search needs every score that they leave.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    #[cfg(feature = "gpu")]
    pub async fn step_on(&mut self, engine: &mut Engine) -> Result<bool> {
        if self.finish.is_some() {
            return Ok(false);
        }
        let rows = self.pass()?;
        let all: Vec<&Row> = rows.iter().flatten().collect();
        engine.fetch(&all).await;
        let mut reached = Reached::default();
        let goes_on = self.lengthen(&rows, &mut reached);
        engine.note_on_the_cpu(&self.request.pipeline, NEEDS_EVERY_SCORE, &reached);
        goes_on
    }

    /// Lengthens every beam, given the rows after each, which are watched.
    fn lengthen(&mut self, rows: &[Vec<Row>], observer: &mut impl Observer) -> Result<bool> {
        let first_node = self.record.nodes.len();
        let step = self.record.passes - 1;
        let mut chosen: Vec<TokenId> = Vec::new();
        let mut emptied: Option<Error> = None;
        for (index, rows) in rows.iter().enumerate() {
            let width = self.record.options.width / self.record.options.groups;
            if self.groups[index].done {
                // What the peer pads a finished group with counts as chosen there.
                chosen.extend(std::iter::repeat_n(TokenId(0), width));
                continue;
            }
            let candidates = self.candidates(index, rows, &chosen, &mut emptied, observer);
            let candidates = candidates.map_err(|error| placed(error, step))?;
            chosen.extend(self.settle(index, width, &candidates)?);
        }
        self.note_step(first_node);
        self.conclude(emptied);
        Ok(self.finish.is_none())
    }

    /// Feeds every running beam its last token, or the prompt; the rows by group and beam.
    fn pass(&mut self) -> Result<Vec<Vec<Row>>> {
        let mut rows = Vec::new();
        let mut prompt: Option<(Box<dyn ModelState>, Row)> = None;
        self.record.passes += 1;
        for group in &mut self.groups {
            let mut of_group = Vec::new();
            for beam in group.beams.iter_mut().filter(|_| !group.done) {
                self.record.rows += 1;
                let advance = |state: &mut dyn ModelState, tokens: &[TokenId]| -> Result<Row> {
                    let hidden = state.advance_hidden(tokens, 1)?.pop().unwrap_or_default();
                    Ok(Row::of(&self.model, hidden))
                };
                let row = match (beam.node, &prompt) {
                    (Some(node), _) => advance(&mut *beam.state, &[self.record.nodes[node].token])?,
                    // Every group begins after the same prompt.
                    (None, Some((state, row))) => {
                        beam.state = state.fork();
                        row.clone()
                    }
                    (None, None) => {
                        let row = advance(&mut *beam.state, &self.request.prompt)?;
                        prompt = Some((beam.state.fork(), row.clone()));
                        row
                    }
                };
                of_group.push(row);
            }
            rows.push(of_group);
        }
        Ok(rows)
    }

    /// The best continuations of a group's beams, best first.
    fn candidates(
        &mut self,
        group: usize,
        rows: &[Row],
        chosen: &[TokenId],
        emptied: &mut Option<Error>,
        observer: &mut impl Observer,
    ) -> Result<Vec<Candidate>> {
        let options = self.record.options;
        let wanted = (1 + self.request.stop.eos.len()).max(2) * (options.width / options.groups);
        let mut found: Vec<Candidate> = Vec::new();
        let mut logits = Logits::unfilled();
        for (index, (beam, row)) in self.groups[group].beams.iter_mut().zip(rows).enumerate() {
            let row = row.logits();
            // One that is no number would spread to the log-probabilities of all.
            logits.refill(row)?;
            let mut scores = log_softmax(row);
            for token in chosen {
                #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
                if let Some(score) = scores.get_mut(token.index()) {
                    *score -= options.diversity_penalty as f32;
                }
            }
            let generated = beam.node.map_or_else(Vec::new, |node| self.record.path(node));
            let constraint = beam.constraint.as_mut();
            let surroundings = self.request.surroundings(self.record.seed, &generated, constraint)?;
            let context = surroundings.context(self.model.vocab());
            logits.refill(&scores)?;
            match self.request.pipeline.reshape_observed(&mut logits, &context, observer) {
                Ok(()) => {}
                // This beam has no continuation; the others go on.
                Err(error) if error.code == ErrorCode::EmptySupport => {
                    emptied.get_or_insert(error);
                    continue;
                }
                Err(error) => return Err(error),
            }
            // A sampler that is left out chooses nothing: the likeliest are taken.
            if self.request.pipeline.sampler_written() {
                observer.before(&mut logits)?;
            }
            let noise_base = u32::try_from(index * row.len()).unwrap_or(u32::MAX);
            for id in logits.alive().iter() {
                #[expect(clippy::cast_possible_truncation, reason = "an index is a token id")]
                let token = TokenId(id as u32);
                let Some(logprob) = logits.score(token) else { continue };
                let sum = beam.sum + logprob;
                let key = if self.record.sampled {
                    let draw =
                        surroundings.randomness.draw_at(Purpose::Beam, noise_base.wrapping_add(token.0));
                    sum + gumbel(draw)
                } else {
                    sum
                };
                found.push(Candidate { beam: index, token, logprob, sum, key });
            }
        }
        let by_key = |a: &Candidate, b: &Candidate| {
            b.key.total_cmp(&a.key).then(a.beam.cmp(&b.beam)).then(a.token.cmp(&b.token))
        };
        if found.len() > wanted {
            found.select_nth_unstable_by(wanted - 1, by_key);
            found.truncate(wanted);
        }
        found.sort_unstable_by(|a, b| {
            b.sum.total_cmp(&a.sum).then(a.beam.cmp(&b.beam)).then(a.token.cmp(&b.token))
        });
        Ok(found)
    }

    /// Decides what becomes of each candidate of a group. Returns the tokens of those that run
    /// on, or would if this were not the last step.
    fn settle(&mut self, index: usize, width: usize, candidates: &[Candidate]) -> Result<Vec<TokenId>> {
        let options = self.record.options;
        let length = self.record.steps.len() + 1;
        let context_full = self.record.prompt_length + length >= self.model.context_length();
        let last = context_full || length >= self.request.stop.max_tokens;
        let group = &mut self.groups[index];
        let vocab = self.model.vocab();
        let (mut running, mut best_running) = (Vec::new(), f64::NEG_INFINITY);
        let before = std::mem::take(&mut group.beams);
        let (mut chosen, mut late) = (Vec::new(), Vec::new());
        // 4.49 compares with the best candidate, whether it ended or not.
        let best_candidate = candidates.first().map_or(f64::NEG_INFINITY, |best| best.sum);
        for (rank, candidate) in candidates.iter().enumerate() {
            let beam = &before[candidate.beam];
            let mut stop = beam.stop.clone();
            stop.push(&self.request.stop, vocab, candidate.token);
            let mut constraint = beam.constraint.clone();
            let mut only_the_end = false;
            if let Some(constraint) = &mut constraint
                && !self.request.stop.eos.contains(&candidate.token)
            {
                constraint.commit(candidate.token)?;
                only_the_end = constraint.standing()?.ended;
            }
            let finish = stop.finish_with(&self.request.stop, only_the_end, context_full);
            let ended = finish.as_ref().is_some_and(|finish| {
                use FinishReason::{Eos, Grammar, StopString};
                matches!(finish.reason, Grammar | Eos | StopString)
            });
            let counted = match options.length_counts {
                LengthCounts::Generated => length,
                LengthCounts::All => {
                    let by_token = self.request.stop.eos.contains(&candidate.token);
                    self.record.prompt_length + length - usize::from(by_token)
                }
            };
            if !ended && chosen.len() < width {
                chosen.push(candidate.token);
            }
            let score = candidate.sum / power(counted, options.length_penalty);
            let node = self.record.nodes.len();
            let fate = match finish {
                // With groups, running beams are turned into hypotheses last of all.
                Some(finish) if !ended && options.groups > 1 => {
                    let text = stop.text().to_owned();
                    late.push(Hypothesis { node, score, length: counted, text, finish });
                    Fate::Pruned
                }
                Some(finish) if rank < width => {
                    let text = stop.text().to_owned();
                    group.hypotheses.push(Hypothesis { node, score, length: counted, text, finish });
                    Fate::Hypothesis
                }
                Some(_) if ended => Fate::EndedTooLow,
                None if running.len() < width => {
                    best_running = best_running.max(candidate.sum);
                    running.push(Beam {
                        node: Some(node),
                        state: beam.state.fork(),
                        stop,
                        constraint,
                        sum: candidate.sum,
                    });
                    Fate::Runs
                }
                _ => Fate::Pruned,
            };
            self.record.nodes.push(Node {
                parent: beam.node,
                token: candidate.token,
                length,
                group: index,
                rank,
                logprob: candidate.logprob,
                sum: candidate.sum,
                score,
                fate,
            });
        }
        group.beams = running;
        group.keep_best(width, &mut self.record.nodes);
        let reference = if options.groups > 1 { best_candidate } else { best_running };
        let room = self.model.context_length() - self.record.prompt_length;
        let settled = group.hypotheses.len() >= width
            && group.is_settled(&options, self.record.prompt_length, reference, |never| {
                if never { self.request.stop.max_tokens.min(room) } else { length }
            });
        if !settled {
            for late in late.into_iter().take(width) {
                self.record.nodes[late.node].fate = Fate::Hypothesis;
                group.hypotheses.push(late);
            }
            group.keep_best(width, &mut self.record.nodes);
        }
        group.done = last || settled || group.beams.is_empty();
        Ok(chosen)
    }

    /// Records the step just made.
    fn note_step(&mut self, first_node: usize) {
        let beams: Vec<usize> =
            self.groups.iter().flat_map(|group| &group.beams).filter_map(|beam| beam.node).collect();
        let paths: Vec<Vec<TokenId>> = beams.iter().map(|&node| self.record.path(node)).collect();
        let shared_prefix = paths.first().map_or(0, |first| {
            (0..first.len()).take_while(|&at| paths.iter().all(|path| path[at] == first[at])).count()
        });
        let mut parents: Vec<Option<usize>> =
            beams.iter().map(|&node| self.record.nodes[node].parent).collect();
        parents.sort_unstable();
        parents.dedup();
        // A context holds the prompt and all generated tokens but the newest.
        let per_token = self.model.info().cache_bytes_per_token;
        let length = (self.record.steps.len() + self.record.prompt_length) as u64;
        let width = self.record.nodes[first_node..]
            .iter()
            .map(|node| node.parent)
            .collect::<std::collections::BTreeSet<_>>();
        let mut held: Vec<usize> = width.iter().flat_map(|&node| self.record.ancestors(node)).collect();
        held.sort_unstable();
        held.dedup();
        let cache_bytes = per_token * length * width.len() as u64;
        let cache_bytes_shared = per_token * (self.record.prompt_length + held.len()) as u64;
        self.record.peak_cache_bytes = self.record.peak_cache_bytes.max(cache_bytes);
        self.record.peak_cache_bytes_shared = self.record.peak_cache_bytes_shared.max(cache_bytes_shared);
        let step = Step {
            nodes: first_node..self.record.nodes.len(),
            hypotheses: self.groups.iter().map(|group| group.hypotheses.len()).sum(),
            shared_prefix,
            parents: parents.len(),
            cache_bytes,
            cache_bytes_shared,
            beams,
        };
        self.record.steps.push(step);
    }

    /// Ends the search if every group has ended, and lists the sequences found so far.
    fn conclude(&mut self, emptied: Option<Error>) {
        let mut found: Vec<&Hypothesis> = self.groups.iter().flat_map(|group| &group.hypotheses).collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        let sequences = found.iter().map(|found| Sequence {
            node: found.node,
            tokens: self.record.path(found.node),
            text: found.text.clone(),
            sum: self.record.nodes[found.node].sum,
            length: found.length,
            score: found.score,
            finish: found.finish.clone(),
        });
        self.record.sequences = sequences.collect();
        if self.groups.iter().all(|group| group.done) {
            self.finish = Some(match (self.record.sequences.first(), emptied) {
                (Some(best), _) => best.finish.clone(),
                (None, Some(error)) => Finish::emptied(error),
                (None, None) => Finish::because(FinishReason::ConstraintUnsatisfiable),
            });
        }
    }
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference; on wasm32 it is the smaller"
)]
fn as_text<S: serde::Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(seed)
}

/// `length ^ penalty`.
fn power(length: usize, penalty: f64) -> f64 {
    libm::pow(length as f64, penalty)
}

/// Log-probabilities of a row, in nats, rounded to f32. `-∞` stays.
#[must_use]
pub fn log_softmax(row: &[f32]) -> Vec<f32> {
    let highest = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = row.iter().map(|&logit| libm::exp(f64::from(logit) - highest)).sum();
    let offset = highest + libm::log(sum);
    #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is the last step")]
    row.iter().map(|&logit| (f64::from(logit) - offset) as f32).collect()
}

/// Noise with which the largest of several sums is a draw from their softmax.
fn gumbel(draw: u64) -> f64 {
    // Half a unit up, so that neither logarithm sees 0 or 1.
    let u = unit(draw) + f64::EPSILON / 4.0;
    -libm::log(-libm::log(u))
}
