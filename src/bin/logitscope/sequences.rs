//! From a request to finished sequences, whatever the strategy: what `generate` answers with.

use std::{ops::Range, sync::Arc};

use logitscope::{
    Error, Pipeline, TokenId,
    constraint::{self, Constraint, Standing},
    model::{LanguageModel, Precision},
    pipeline::Note,
    session::{Options, Session},
    stop::{Finish, StopRules},
    strategy::{
        Strategy,
        beam::{self, BeamSearch},
        sample::Request,
        speculative::{self, Drafter, Speculation},
    },
};
use serde_json::{Value, json};

use super::{
    decoder::{Account, Decoder},
    models,
};

/// What is asked for.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) model: Arc<dyn LanguageModel>,
    /// How a draft model multiplies.
    pub(super) precision: Precision,
    pub(super) prompt: Vec<TokenId>,
    pub(super) pipeline: String,
    pub(super) seed: Option<u64>,
    pub(super) strategy: Strategy,
    pub(super) constraint: Option<String>,
    /// What the finished text is held to, besides: a constraint's text form.
    pub(super) check: Option<String>,
    pub(super) stop: StopRules,
    pub(super) samples: u32,
}

/// One finished sequence.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) tokens: Vec<TokenId>,
    pub(super) text: String,
    pub(super) score: f64,
    pub(super) finish: Option<Finish>,
    /// Where the constraint's parser ended, if there was one.
    pub(super) standing: Option<Standing>,
    /// Whether the content check passed, if there was one.
    pub(super) check: Option<bool>,
}

/// What came of a job.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) sequences: Vec<Sequence>,
    pub(super) seed: u64,
    pub(super) pipeline: String,
    pub(super) notes: Vec<Note>,
    /// The search, under beams.
    pub(super) beam: Option<beam::Record>,
    /// The blocks and their summary, one of each for a sample, under speculation.
    pub(super) speculation: Vec<(speculative::Summary, Vec<speculative::Block>)>,
    /// Where rows were computed, if a device was wanted.
    pub(super) device: Option<Account>,
}

/// The constraints of a job, compiled.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) constraint: Option<Box<dyn Constraint>>,
    pub(super) check: Option<Box<dyn Constraint>>,
}

impl Job {
    /// Compiles the constraint and the check.
    pub(super) fn compile(&self) -> Result<Compiled, Error> {
        let open = |text: &Option<String>| {
            let open = |text: &String| constraint::open(&self.model, text, &models::read_text);
            text.as_ref().map(open).transpose()
        };
        Ok(Compiled { constraint: open(&self.constraint)?, check: open(&self.check)? })
    }

    /// Runs to the end.
    pub(super) fn run(&self, decoder: &mut Decoder) -> Result<Found, Error> {
        let compiled = self.compile()?;
        let pipeline = Pipeline::parse(&self.pipeline)?;
        pipeline.require_vocabulary(self.model.vocab().len())?;
        // What an earlier job left that failed.
        decoder.account();
        let mut found = match &self.strategy {
            Strategy::Sample => self.sample(pipeline, &compiled, decoder)?,
            Strategy::Beam(options) => self.beam(pipeline, *options, &compiled, decoder)?,
            Strategy::Speculative(options) => self.speculate(pipeline, options, &compiled, decoder)?,
        };
        found.device = decoder.account();
        for sequence in &mut found.sequences {
            self.judge(sequence, &compiled)?;
        }
        Ok(found)
    }

    fn request(&self, pipeline: Pipeline, sample: u32) -> Request {
        Request { prompt: self.prompt.clone(), pipeline, sample, seed: self.seed, stop: self.stop.clone() }
    }

    /// Samples that are taken further together.
    pub(super) fn batches(&self, decoder: &Decoder) -> impl Iterator<Item = Range<u32>> + use<> {
        // A session remembers the logits of every step.
        let logits = self.stop.max_tokens.saturating_mul(4 * self.model.vocab().len());
        let (size, samples) = (decoder.batch(logits), self.samples);
        (0..samples).step_by(size as usize).map(move |first| first..samples.min(first.saturating_add(size)))
    }

    /// A session after the prompt; every sample is [another](Session::another_sample) of it.
    pub(super) fn session(
        &self,
        pipeline: &Pipeline,
        seed: u64,
        compiled: &Compiled,
        top: usize,
        slide: bool,
    ) -> Result<Session, Error> {
        let options = Options {
            prompt: String::new(),
            prompt_ids: Some(self.prompt.clone()),
            pipeline: pipeline.to_string(),
            seed: Some(seed.to_string()),
            sample: 0,
            max_tokens: Some(self.stop.max_tokens),
            stop: self.stop.strings.clone(),
            trim: Some(self.stop.trim),
            eos: Some(self.stop.eos.clone()),
            // Compiled here, because it may name files.
            constraint: None,
            forced: std::collections::BTreeMap::default(),
            top: Some(top),
            slide,
        };
        let mut first = Session::new(Arc::clone(&self.model), &options)?;
        if let Some(constraint) = &compiled.constraint {
            first = first.with_constraint(constraint.fork())?;
        }
        Ok(first)
    }

    fn sample(&self, pipeline: Pipeline, compiled: &Compiled, decoder: &mut Decoder) -> Result<Found, Error> {
        let mut notes = pipeline.notes().to_vec();
        let (pipeline, seed) = pipeline.settled(self.seed)?;
        let first = self.session(&pipeline, seed, compiled, 1, false)?;
        let mut sequences = Vec::new();
        for samples in self.batches(decoder) {
            let mut sessions: Vec<Session> = samples.map(|sample| first.another_sample(sample)).collect();
            while sessions.iter().any(|session| session.generation().finish().is_none()) {
                for step in decoder.step(&mut sessions) {
                    step?;
                }
            }
            for session in &sessions {
                let generation = session.generation();
                notes.extend_from_slice(generation.notes());
                sequences.push(Sequence {
                    tokens: generation.tokens(),
                    text: generation.text().to_owned(),
                    score: session.logprob().1,
                    finish: generation.finish().cloned(),
                    standing: None,
                    check: None,
                });
            }
        }
        notes.dedup();
        let pipeline = pipeline.to_string();
        Ok(Found { sequences, seed, pipeline, notes, beam: None, speculation: Vec::new(), device: None })
    }

    fn beam(
        &self,
        pipeline: Pipeline,
        options: beam::Options,
        compiled: &Compiled,
        decoder: &mut Decoder,
    ) -> Result<Found, Error> {
        let mut search = BeamSearch::new(Arc::clone(&self.model), self.request(pipeline, 0), options)?;
        if let Some(constraint) = &compiled.constraint {
            search = search.with_constraint(&**constraint);
        }
        decoder.search(&mut search)?;
        let record = search.record().clone();
        let wanted = usize::try_from(self.samples).unwrap_or(usize::MAX);
        let mut sequences: Vec<Sequence> = record
            .sequences
            .iter()
            .take(wanted)
            .map(|sequence| Sequence {
                tokens: sequence.tokens.clone(),
                text: sequence.text.clone(),
                score: sequence.score,
                finish: Some(sequence.finish.clone()),
                standing: None,
                check: None,
            })
            .collect();
        if sequences.is_empty() {
            // Nothing was found; the reason must not be lost.
            sequences.push(Sequence {
                tokens: Vec::new(),
                text: String::new(),
                score: 0.0,
                finish: search.finish().cloned(),
                standing: None,
                check: None,
            });
        }
        Ok(Found {
            sequences,
            seed: record.seed,
            pipeline: search.pipeline().to_string(),
            notes: record.notes.clone(),
            beam: Some(record),
            speculation: Vec::new(),
            device: None,
        })
    }

    fn speculate(
        &self,
        pipeline: Pipeline,
        options: &speculative::Options,
        compiled: &Compiled,
        decoder: &mut Decoder,
    ) -> Result<Found, Error> {
        let notes = pipeline.notes().to_vec();
        let (pipeline, seed) = pipeline.seeded(self.seed)?;
        let draft = match &options.drafter {
            Drafter::Model(name) => Some(models::open(name, self.precision)?),
            Drafter::Lookup(_) => None,
        };
        let (mut sequences, mut speculation) = (Vec::new(), Vec::new());
        for sample in 0..self.samples {
            let request = self.request(pipeline.clone(), sample);
            let mut run = Speculation::new(Arc::clone(&self.model), draft.clone(), request, options.clone())?;
            if let Some(constraint) = &compiled.constraint {
                run = run.with_constraint(constraint.fork());
            }
            decoder.speculate(&mut run)?;
            sequences.push(Sequence {
                tokens: run.tokens().to_vec(),
                text: run.text().to_owned(),
                score: run.logprob(),
                finish: run.finish().cloned(),
                standing: None,
                check: None,
            });
            speculation.push((run.summary(), run.blocks().to_vec()));
        }
        let pipeline = pipeline.to_string();
        Ok(Found { sequences, seed, pipeline, notes, beam: None, speculation, device: None })
    }

    /// Whether a sequence parsed, and whether the check passed.
    fn judge(&self, sequence: &mut Sequence, compiled: &Compiled) -> Result<(), Error> {
        if let Some(constraint) = &compiled.constraint {
            // A stop string that was left out is no part of what is judged.
            let trimmed = sequence.finish.as_ref().is_some_and(|finish| finish.stop_string.is_some());
            sequence.standing = Some(if self.stop.trim && trimmed {
                constraint::standing_after(&*self.model, &**constraint, &sequence.text)?
            } else {
                let mut constraint = constraint.fork();
                for &token in sequence.tokens.iter().filter(|token| !self.stop.eos.contains(token)) {
                    constraint.commit(token)?;
                }
                constraint.standing()?
            });
        }
        if let Some(check) = &compiled.check {
            sequence.check = Some(constraint::accepts(&*self.model, &**check, &sequence.text)?);
        }
        Ok(())
    }
}

impl Found {
    /// One answer of `--jsonl`.
    pub(super) fn answer(&self, strategy: &Strategy) -> Value {
        let list = |of: &dyn Fn(&Sequence) -> Value| self.sequences.iter().map(of).collect::<Value>();
        let mut answer = json!({
            "id": null,
            "sequences": list(&|sequence| json!(sequence.tokens)),
            "scores": list(&|sequence| json!(sequence.score)),
            "texts": list(&|sequence| json!(sequence.text)),
            "finish_reasons": list(&|sequence| json!(sequence.finish.as_ref().map(|finish| finish.reason))),
            "finishes": list(&|sequence| json!(sequence.finish)),
            "seed": self.seed,
            "pipeline": self.pipeline,
            "strategy": strategy.to_string(),
        });
        if self.sequences.iter().any(|sequence| sequence.standing.is_some()) {
            answer["parsed"] =
                list(&|sequence| json!(sequence.standing.as_ref().map(|standing| standing.accepting)));
            answer["constraint"] = list(&|sequence| json!(sequence.standing));
        }
        if self.sequences.iter().any(|sequence| sequence.check.is_some()) {
            answer["checks"] = list(&|sequence| json!(sequence.check));
        }
        if !self.notes.is_empty() {
            answer["notes"] = json!(self.notes);
        }
        if let Some(record) = &self.beam {
            answer["passes"] = json!(record.passes);
            answer["peak_cache_bytes"] = json!(record.peak_cache_bytes);
        }
        if !self.speculation.is_empty() {
            answer["speculation"] = self.speculation.iter().map(|(summary, _)| json!(summary)).collect();
        }
        if let Some(device) = &self.device {
            answer["device"] = device.json.clone();
        }
        answer
    }
}
