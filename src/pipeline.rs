//! The ordered stages of one step.
//!
//! A [`Pipeline`] is what its author wrote: transforms left to right, then a sampler. Nothing
//! reorders it. [`Pipeline::decode`] is the whole of decoding one token: reshape, then pick.

use std::{fmt, sync::Arc};

use serde_json::json;

use crate::{
    TokenId,
    config::{self, Args},
    error::{Error, ErrorCode, Result},
    logits::Logits,
    order,
    random::{self, Purpose, Randomness},
    registry,
    sampler::{Draw, Pick, Sampler, categorical, greedy},
    spec::{Build, Kind},
    step::StepContext,
    trace::{Judge, Observer, Off},
    transform::Transform,
};

pub use crate::order::Note;

/// One transform with the arguments it was built from.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Name and parameters.
    pub args: Args,
    /// What it does.
    pub transform: Arc<dyn Transform>,
}

/// Transforms left to right, then a sampler.
///
/// # Examples
/// ```
/// use logitscope::Pipeline;
///
/// let pipeline = Pipeline::parse("temperature(t=0.7) | top_p(p=0.9) | categorical(seed=7)")?;
/// assert_eq!(pipeline.stages().len(), 2);
/// assert_eq!(pipeline.seed(), Some(7));
/// assert_eq!(Pipeline::parse(&pipeline.to_string())?, pipeline);
///
/// // Temperature 0 is not a division but a habit of saying greedy.
/// let greedy = Pipeline::parse("temperature(t=0) | categorical(seed=7)")?;
/// assert_eq!(greedy.to_string(), "greedy()");
/// assert_eq!(greedy.notes()[0].code, "temperature_zero");
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug)]
pub struct Pipeline {
    stages: Vec<Stage>,
    sampler_args: Args,
    sampler: Box<dyn Sampler>,
    sampler_written: bool,
    notes: Vec<Note>,
}

impl Clone for Pipeline {
    fn clone(&self) -> Self {
        Self {
            stages: self.stages.clone(),
            sampler_args: self.sampler_args.clone(),
            sampler: self.sampler.fork(),
            sampler_written: self.sampler_written,
            notes: self.notes.clone(),
        }
    }
}

impl PartialEq for Pipeline {
    fn eq(&self, other: &Self) -> bool {
        self.sampler_args == other.sampler_args
            && self.stages.iter().map(|stage| &stage.args).eq(other.stages.iter().map(|stage| &stage.args))
    }
}

impl Pipeline {
    /// Reads the text form; see [`config`].
    ///
    /// # Errors
    /// What [`config::parse`] refuses, and `sampler_position` when a sampler is not last or
    /// there are two.
    pub fn parse(text: &str) -> Result<Self> {
        let text = TemperatureZero::take_out(text)?;
        let mut pipeline = Self::from_args(text.stages)?;
        if let Some(note) = text.note {
            pipeline.set_sampler(Args::defaults(&greedy::SPEC))?;
            pipeline.sampler_written = true;
            pipeline.notes.insert(0, note);
        }
        Ok(pipeline)
    }

    /// Builds the stages of parsed arguments, each with the position it came from.
    fn from_args(stages: Vec<(usize, Args)>) -> Result<Self> {
        let mut transforms = Vec::new();
        let mut sampler: Option<(Args, Box<dyn Sampler>)> = None;
        for (position, args) in stages {
            if let Some((before, _)) = &sampler {
                let message = if args.spec.kind == Kind::Sampler {
                    format!("{} is a second sampler after {}; there can be one", args.spec.id, before.spec.id)
                } else {
                    format!(
                        "{} stands after the sampler {}, which must be last",
                        args.spec.id, before.spec.id
                    )
                };
                return Err(Error::new(ErrorCode::SamplerPosition, message)
                    .stage(args.spec.id)
                    .position(position));
            }
            match args.spec.build {
                Build::Transform(build) => {
                    let transform = build(&args).map_err(|error| error.position(position))?;
                    transforms.push(Stage { args, transform: transform.into() });
                }
                Build::Sampler(build) => {
                    let drawer = build(&args).map_err(|error| error.position(position))?;
                    sampler = Some((args, drawer));
                }
            }
        }
        let sampler_written = sampler.is_some();
        let (sampler_args, sampler) = match sampler {
            Some(sampler) => sampler,
            None => {
                (Args::defaults(&categorical::SPEC), Box::new(categorical::Categorical) as Box<dyn Sampler>)
            }
        };
        let written = transforms.iter().map(|stage| &stage.args).chain([&sampler_args]);
        let notes = order::warnings(&written.collect::<Vec<_>>());
        Ok(Self { stages: transforms, sampler_args, sampler, sampler_written, notes })
    }

    fn set_sampler(&mut self, args: Args) -> Result<()> {
        if let Build::Sampler(build) = args.spec.build {
            self.sampler = build(&args)?;
            self.sampler_args = args;
        }
        Ok(())
    }

    /// Reads what [`to_json`](Self::to_json) writes.
    ///
    /// # Errors
    /// `bad_input` when it is not such an object or of another version; else as
    /// [`parse`](Self::parse).
    pub fn from_json(json: &serde_json::Value) -> Result<Self> {
        if json["version"] != json!(config::VERSION) {
            let message = format!(
                "a pipeline of version {} cannot be read; this is {}",
                json["version"],
                config::VERSION
            );
            return Err(Error::new(ErrorCode::BadInput, message).param("version"));
        }
        let stages = json["stages"].as_array().ok_or_else(|| {
            Error::new(ErrorCode::BadInput, "a pipeline needs a list of stages").param("stages")
        })?;
        let stages: Result<Vec<_>> = stages.iter().map(|stage| Ok((0, Args::from_json(stage)?))).collect();
        Self::from_args(stages?)
    }

    /// The pipeline as JSON, every parameter included.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let stages = self.stages.iter().map(|stage| &stage.args).chain([&self.sampler_args]);
        json!({ "version": config::VERSION, "stages": stages.map(Args::to_json).collect::<Vec<_>>() })
    }

    /// The transforms, in order.
    #[must_use]
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Name and parameters of the sampler.
    #[must_use]
    pub fn sampler_args(&self) -> &Args {
        &self.sampler_args
    }

    /// Whether the sampler was written, rather than left to the default.
    #[must_use]
    pub fn sampler_written(&self) -> bool {
        self.sampler_written
    }

    /// The pipeline with a sampler that goes on from this state.
    #[must_use]
    pub(crate) fn continuing(self, sampler: Box<dyn Sampler>) -> Self {
        Self { sampler, ..self }
    }

    /// A sampler in its first state, or in the one that the pipeline goes on from.
    #[must_use]
    pub fn sampler(&self) -> Box<dyn Sampler> {
        self.sampler.fork()
    }

    /// What its author should know.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The seed, if the sampler has one and it was given.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.sampler_args.seed()
    }

    /// The pipeline with this seed; a sampler without randomness stays as it is.
    ///
    /// # Errors
    /// Never for a registered sampler.
    pub fn with_seed(mut self, seed: u64) -> Result<Self> {
        if self.sampler_args.has("seed") {
            let mut args = self.sampler_args.clone();
            args.set("seed", &json!(seed))?;
            self.set_sampler(args)?;
        }
        Ok(self)
    }

    /// The pipeline with a seed that is surely known: the requested one, else its own, else a
    /// fresh one.
    ///
    /// # Errors
    /// `io` when a fresh seed is needed and the platform has no randomness.
    pub fn seeded(self, requested: Option<u64>) -> Result<(Self, u64)> {
        let seed = match requested.or(self.seed()) {
            Some(seed) => seed,
            None => random::fresh_seed()?,
        };
        Ok((self.with_seed(seed)?, seed))
    }

    /// As [`seeded`](Self::seeded), but nothing is drawn where no seed decides anything: such
    /// a pipeline gets the seed 0.
    ///
    /// # Errors
    /// As [`seeded`](Self::seeded).
    pub fn settled(self, requested: Option<u64>) -> Result<(Self, u64)> {
        let requested = requested.or_else(|| (!self.needs_seed(false)).then(|| self.seed().unwrap_or(0)));
        self.seeded(requested)
    }

    /// Whether a seed decides anything; `drawn` says that the token's own draw is given.
    #[must_use]
    pub fn needs_seed(&self, drawn: bool) -> bool {
        (self.sampler.is_random() && !drawn) || self.stages.iter().any(|stage| stage.transform.is_random())
    }

    /// Refuses token ids in parameters that a vocabulary of this size does not have, before any
    /// step meets them.
    ///
    /// # Errors
    /// `token_out_of_vocabulary`, which names stage, parameter and id.
    ///
    /// # Examples
    /// ```
    /// use logitscope::{ErrorCode, Pipeline};
    ///
    /// let error = Pipeline::parse("suppress(ids=[1,9])")?.require_vocabulary(3).unwrap_err();
    /// assert_eq!(error.code, ErrorCode::TokenOutOfVocabulary);
    /// assert_eq!(error.message, "suppress.ids names token 9, which is not in a vocabulary of 3");
    /// # Ok::<(), logitscope::Error>(())
    /// ```
    pub fn require_vocabulary(&self, size: usize) -> Result<()> {
        self.stages.iter().try_for_each(|stage| stage.args.require_vocabulary(size))
    }

    /// Applies the transforms to a row, without a sampler.
    ///
    /// # Errors
    /// What a stage refuses, with its name.
    pub fn reshape(&self, logits: &mut Logits, context: &StepContext) -> Result<()> {
        self.reshape_observed(logits, context, &mut Off)
    }

    /// As [`reshape`](Self::reshape), watched.
    ///
    /// # Errors
    /// As [`reshape`](Self::reshape).
    pub fn reshape_observed<O: Observer>(
        &self,
        logits: &mut Logits,
        context: &StepContext,
        observer: &mut O,
    ) -> Result<()> {
        for &token in context.history {
            logits.require(token).map_err(|error| error.param("history"))?;
        }
        observer.raw(logits)?;
        if let Some(allowed) = &context.allowed {
            // The mask comes first: a stage must not spend its share on what is forbidden.
            observer.constraining(logits, allowed)?;
            logits.retain(|token| allowed.mask.contains(token.index()));
            if logits.alive().count() == 0 {
                return Err(emptied("constraint"));
            }
            observer.constrained(logits)?;
        }
        for (index, stage) in self.stages.iter().enumerate() {
            let at = |error: Error| error.in_stage(stage.args.spec.id);
            observer.before(logits).map_err(at)?;
            let outcome = stage.transform.apply(logits, context).map_err(at)?;
            if logits.alive().count() == 0 {
                return Err(emptied(stage.args.spec.id));
            }
            observer
                .after(index, &stage.args, Judge::Transform(&*stage.transform, context), &outcome, logits)
                .map_err(at)?;
        }
        Ok(())
    }

    /// Decodes one token: fills the row, reshapes it, picks, and tells the sampler.
    ///
    /// A forced token need not be alive; the draw's interval is then empty.
    ///
    /// # Errors
    /// What [`Logits::refill`] refuses; what a stage refuses, with its name; a forced token
    /// outside the vocabulary.
    pub fn decode<O: Observer>(
        &self,
        row: &[f32],
        logits: &mut Logits,
        context: &StepContext,
        sampler: &mut dyn Sampler,
        pick: Pick,
        observer: &mut O,
    ) -> Result<Draw> {
        logits.refill(row)?;
        self.reshape_observed(logits, context, observer)?;
        let at = |error: Error| error.in_stage(self.sampler_args.spec.id);
        observer.before(logits).map_err(at)?;
        let outcome = sampler.prepare(logits, context).map_err(at)?;
        if logits.alive().count() == 0 {
            return Err(emptied(self.sampler_args.spec.id));
        }
        observer
            .after(self.stages.len(), &self.sampler_args, Judge::Sampler(sampler), &outcome, logits)
            .map_err(at)?;
        let u = if let Pick::Uniform(u) = pick { u } else { context.draw(Purpose::Token) };
        let draw = match pick {
            Pick::Forced(token) if token.index() >= row.len() => {
                let message = format!("token {token} is not in a vocabulary of {}", row.len());
                return Err(Error::new(ErrorCode::TokenOutOfVocabulary, message).param("force"));
            }
            Pick::Forced(token) if logits.alive().contains(token.index()) => Draw::of_token(logits, token, u),
            Pick::Forced(token) => Ok(Draw { token, u, low: 0, high: 0, total: logits.mass()? }),
            Pick::Seeded | Pick::Uniform(_) => sampler.pick(logits, u, context),
        }
        .map_err(at)?;
        let probability = logits.probability(draw.token)?;
        sampler.accept(draw.token, probability);
        observer.drawn(row, logits, &draw, pick)?;
        Ok(draw)
    }

    /// The token for a row, with a sampler in its first state; for examples and tests.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn choose(&self, row: &[f32], context: &StepContext) -> Result<TokenId> {
        let randomness =
            Randomness { seed: self.seed().unwrap_or(context.randomness.seed), ..context.randomness };
        let context = StepContext { randomness, ..*context };
        let mut logits = Logits::unfilled();
        let draw = self.decode(row, &mut logits, &context, &mut *self.sampler(), Pick::Seeded, &mut Off)?;
        Ok(draw.token)
    }
}

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for stage in &self.stages {
            write!(f, "{} | ", stage.args)?;
        }
        self.sampler_args.fmt(f)
    }
}

fn emptied(stage: &str) -> Error {
    Error::new(
        ErrorCode::EmptySupport,
        format!("{stage} removed every token, so none is left to sample from"),
    )
    .stage(stage)
}

/// `temperature(t=0)` cannot be a division: it is taken out of the text before the rest is
/// read, and the sampler becomes greedy.
struct TemperatureZero {
    stages: Vec<(usize, Args)>,
    note: Option<Note>,
}

impl TemperatureZero {
    fn take_out(text: &str) -> Result<Self> {
        let mut note = None;
        let stages = config::parse_with(text, |spec, param, value| {
            let zero = spec.id == "temperature" && param == "t" && value.as_f64() == Some(0.0);
            if zero {
                note = Some(Note {
                    code: "temperature_zero",
                    stage: spec.id.to_owned(),
                    message: "temperature(t=0) is taken out, and the sampler becomes greedy()".to_owned(),
                });
            }
            zero
        })?;
        Ok(Self { stages, note })
    }
}

/// The text form of every stage there is, at its defaults; for documentation.
#[must_use]
pub fn catalogue_texts() -> Vec<String> {
    registry::ALL.iter().map(|spec| Args::defaults(spec).to_string()).collect()
}
