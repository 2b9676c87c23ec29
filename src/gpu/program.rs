//! From a pipeline at one step to the words that the kernels read.
//!
//! A row's program is a list of rounds. A round weighs the live tokens once and then cuts
//! their order as often as the pipeline says; a new round begins where the weights change: a
//! temperature or an edit after a cut, or a stage that removes the highest token. Most
//! pipelines are one round.

use crate::{
    Pipeline, StepContext, TokenId,
    error::Result,
    gpu::{
        account::Placement,
        layout::{REPORTS, RowParams, STAGES, StageParams, flag, op, phase, spread, stage},
        why,
    },
    transform::{
        Op,
        kernel::{Kernel, Search},
    },
    weights::{FARTHEST, Scale},
};

/// Rounds of a row, at most.
pub(crate) const ROUNDS: usize = 16;

/// One operation of an edit, as the device reads it: token, operation, operands.
pub(crate) type EditWords = [u32; 4];

/// What the device does for one row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    pub(crate) rounds: Vec<RowParams>,
    /// Sorted by token within each round; a round's offsets count from the row's first.
    pub(crate) edits: Vec<EditWords>,
    /// For each transform, the report that shows what it left; none where the weights change before
    /// that is counted.
    pub(crate) reports: Vec<Option<usize>>,
    /// The first transform that cuts; what lives before it is reported, too.
    pub(crate) first_cut: Option<usize>,
    /// The product of the temperatures.
    pub(crate) temperature: f64,
    /// Where each stage runs: all on the device, or none, and why.
    pub(crate) placements: Vec<Placement>,
    /// Whether the draw is on the device, too.
    pub(crate) complete: bool,
}

impl Program {
    /// The program of a pipeline at a step; `u` is the draw.
    ///
    /// # Errors
    /// What a stage refuses.
    pub(crate) fn of(pipeline: &Pipeline, context: &StepContext, vocabulary: u32, u: u64) -> Result<Self> {
        let mut builder = Builder::new(vocabulary);
        if context.allowed.is_some() {
            builder.stopped = Some(why::CONSTRAINT);
        }
        for stage in pipeline.stages() {
            let id = stage.args.spec.id;
            let kernel = stage.transform.kernel(context).map_err(|error| error.in_stage(id))?;
            let report = builder.place(id, kernel, u);
            if report.is_some() {
                builder.program.first_cut.get_or_insert(builder.program.reports.len());
            }
            builder.program.reports.push(report);
        }
        let id = pipeline.sampler_args().spec.id;
        let first = builder.program.placements.len();
        for kernel in pipeline.sampler().kernel() {
            builder.place(id, kernel, u);
        }
        // A sampler of several kernels is one stage, which stops where the first of them does.
        let own = builder.program.placements.split_off(first);
        let place = own.iter().position(|place| !place.device).unwrap_or_default();
        builder.program.placements.extend(own.into_iter().nth(place));
        Ok(builder.finish())
    }
}

struct Builder {
    vocabulary: u32,
    program: Program,
    round: RowParams,
    /// Edits of the present round, in the order of the pipeline.
    edits: Vec<(TokenId, Op)>,
    /// Tokens that the present round's last stage must not remove.
    protected: Vec<TokenId>,
    /// The stage that ended the round before, if it reports through this one.
    slots: usize,
    /// What the device cannot go on from.
    stopped: Option<&'static str>,
}

impl Builder {
    fn new(vocabulary: u32) -> Self {
        let mut builder = Self {
            vocabulary,
            program: Program { temperature: 1.0, ..Program::default() },
            round: RowParams::default(),
            edits: Vec::new(),
            protected: Vec::new(),
            slots: 0,
            stopped: None,
        };
        builder.begin();
        builder.round.source = 0;
        builder.round.fresh = 1;
        builder
    }

    /// Starts a round with the scale of the one before.
    fn begin(&mut self) {
        self.round = RowParams {
            vocabulary: self.vocabulary,
            phases: phase::PREPARE | phase::WEIGH | phase::PLAN,
            source: 1,
            edits_start: self.words(),
            edits_end: self.words(),
            ..RowParams::default()
        };
        self.scale();
    }

    fn words(&self) -> u32 {
        u32::try_from(self.program.edits.len()).unwrap_or(u32::MAX)
    }

    fn scale(&mut self) {
        let scale = Scale::from_temperature(self.program.temperature);
        (self.round.mantissa, self.round.exponent) = (scale.mantissa, scale.exponent);
    }

    /// Ends the present round.
    fn end(&mut self) {
        // Stable, so that the edits of one token keep their order.
        self.edits.sort_by_key(|(token, _)| *token);
        self.program.edits.extend(self.edits.drain(..).map(|(token, op)| words_of(token, op)));
        self.round.edits_end = self.words();
        // Behind the edits, and named by the stage.
        let protected = self.protected.drain(..).map(|token| [token.0, 0, 0, 0]);
        self.program.edits.extend(protected);
        let last = (self.round.stages as usize).saturating_sub(1);
        if self.round.list[last].op == stage::EXCLUDE {
            self.round.list[last].second = [self.round.edits_end, self.words()];
        }
        if self.round.stages > 0 {
            self.round.phases |= phase::GATHER | phase::RESOLVE;
        }
        self.program.rounds.push(self.round);
        self.begin();
    }

    fn place(&mut self, id: &'static str, kernel: Kernel, u: u64) -> Option<usize> {
        let before = self.slots;
        let refused = match &self.stopped {
            Some(stage) => Err(why::stands_before(stage)),
            None => self.take(kernel, u).map_err(str::to_owned),
        };
        if refused.is_err() && self.stopped.is_none() {
            self.stopped = Some(id);
        }
        let device = refused.is_ok();
        let why = refused.err().unwrap_or_default();
        self.program.placements.push(Placement { stage: id, device, why });
        (self.slots > before).then_some(before)
    }

    /// Takes one stage, or says why not.
    fn take(&mut self, kernel: Kernel, u: u64) -> Result<(), &'static str> {
        // A stage ends at most three rounds.
        if self.program.rounds.len() + 4 > ROUNDS {
            return Err(why::MANY_ROUNDS);
        }
        match kernel {
            Kernel::Missing(why) => return Err(why),
            Kernel::Nothing => {}
            Kernel::Edits { edits, named } => {
                let mut tokens = named.iter().chain(edits.iter().map(|(token, _)| token));
                if tokens.any(|token| token.0 >= self.vocabulary) {
                    return Err(why::STRANGER);
                }
                if edits.is_empty() {
                    return Ok(());
                }
                if self.program.temperature != 1.0 {
                    return Err(why::AFTER_TEMPERATURE);
                }
                if !edits.iter().all(|(_, op)| is_plain(*op)) {
                    return Err(why::NOT_FINITE);
                }
                self.change_weights();
                self.edits.extend(edits);
            }
            Kernel::Temperature(t) => {
                let product = self.program.temperature * t;
                if !(t > 0.0 && product > 0.0 && product.is_finite()) {
                    return Err(why::EXTREME_TEMPERATURE);
                }
                if t != 1.0 {
                    self.change_weights();
                    self.program.temperature = product;
                    self.round.fresh = 1;
                    self.scale();
                }
            }
            Kernel::Cut(search) => {
                if self.slots == REPORTS || self.round.stages as usize + 2 > STAGES {
                    return Err(why::MANY_CUTS);
                }
                self.cut(search);
            }
            Kernel::Exclude { share, min_keep, protect } => {
                if self.slots == REPORTS || self.round.stages as usize + 2 > STAGES {
                    return Err(why::MANY_CUTS);
                }
                if protect.iter().any(|token| token.0 >= self.vocabulary) {
                    return Err(why::STRANGER);
                }
                self.exclude(share, min_keep, protect);
            }
            Kernel::Draw => {
                self.push(StageParams { op: stage::DRAW, operand: halves(u), ..StageParams::default() });
                self.program.complete = true;
            }
        }
        Ok(())
    }

    /// Begins a round in which tokens weigh otherwise, if the present one has cut. Else it counts
    /// after the change, and what the stage before it left is not known.
    fn change_weights(&mut self) {
        if self.round.stages > 0 {
            self.end();
        } else if self.round.report > 0 {
            let slot = std::mem::take(&mut self.round.report) as usize - 1;
            self.program
                .reports
                .iter_mut()
                .filter(|report| **report == Some(slot))
                .for_each(|report| *report = None);
        }
    }

    fn push(&mut self, params: StageParams) {
        self.round.list[self.round.stages as usize] = params;
        self.round.stages += 1;
    }

    fn exclude(&mut self, share: u64, min_keep: usize, protect: Vec<TokenId>) {
        let slot = u32::try_from(self.slots).unwrap_or(u32::MAX);
        self.slots += 1;
        self.push(StageParams {
            op: stage::EXCLUDE,
            operand: halves(share),
            min_keep: saturated(min_keep),
            slot,
            ..StageParams::default()
        });
        self.protected = protect;
        // The highest token dies, so everything is weighed anew.
        self.end();
        self.round.report = slot + 1;
    }

    fn cut(&mut self, search: Search) {
        let slot = u32::try_from(self.slots).unwrap_or(u32::MAX);
        self.slots += 1;
        let none = StageParams { slot, min_keep: 1, ..StageParams::default() };
        let params = match search {
            Search::Count { count, ties } => StageParams {
                op: stage::COUNT,
                operand: [saturated(count), 0],
                flags: if ties { flag::TIES } else { 0 },
                ..none
            },
            Search::Mass { share, above, original, min_keep } => StageParams {
                op: stage::MASS,
                operand: halves(share),
                flags: if above { flag::ABOVE } else { 0 } | if original { flag::ORIGINAL } else { 0 },
                min_keep: saturated(min_keep),
                ..none
            },
            Search::Distance { farthest, min_keep } => StageParams {
                op: stage::DISTANCE,
                operand: halves(farthest.min(FARTHEST)),
                min_keep: saturated(min_keep),
                ..none
            },
            Search::Weight { share, min_keep } => StageParams {
                op: stage::WEIGHT,
                operand: halves(share),
                flags: flag::TIES,
                min_keep: saturated(min_keep),
                ..none
            },
            Search::Mean { share, beyond, min_keep } => {
                self.with_mean();
                StageParams {
                    op: stage::MEAN,
                    operand: halves(share),
                    second: halves(beyond.min(FARTHEST)),
                    flags: flag::TIES,
                    min_keep: saturated(min_keep),
                    ..none
                }
            }
            Search::Deviations { steps, sample } => {
                self.afresh();
                self.round.spread = if sample { spread::OF_A_SAMPLE } else { spread::OF_THE_LIVE };
                StageParams { op: stage::DEVIATIONS, operand: halves(steps), ..none }
            }
            Search::Typical { share, above, ties, min_keep } => {
                self.with_mean();
                self.end();
                let params = StageParams {
                    op: stage::MASS,
                    operand: halves(share),
                    flags: if above { flag::ABOVE } else { 0 } | if ties { flag::TIES } else { 0 },
                    min_keep: saturated(min_keep),
                    ..none
                };
                self.push(params);
                self.round.odd = 1;
                self.round.phases = phase::WEIGH | phase::PLAN;
                self.end();
                self.round.report = slot + 1;
                return;
            }
        };
        self.push(params);
    }

    /// What is known of a whole row is known of the tokens alive when a round begins.
    fn afresh(&mut self) {
        if self.round.stages > 0 {
            self.end();
        }
    }

    fn with_mean(&mut self) {
        self.afresh();
        self.round.mean = 1;
    }

    fn finish(mut self) -> Program {
        self.end();
        if let Some(stage) = self.stopped {
            for place in self.program.placements.iter_mut().filter(|place| place.device) {
                (place.device, place.why) = (false, why::stands_after(stage));
            }
        }
        self.program
    }
}

fn saturated(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Low half, high half.
fn halves(value: u64) -> [u32; 2] {
    #[expect(clippy::cast_possible_truncation, reason = "the halves of a number")]
    [value as u32, (value >> 32) as u32]
}

/// Whether an operation is one that the soft-float arithmetic knows.
fn is_plain(op: Op) -> bool {
    match op {
        Op::Add(amount) => amount.is_finite(),
        Op::Penalise { divisor, .. } => divisor.is_finite() && divisor != 0.0,
        Op::Multiply { positive, other } => positive.is_finite() && other.is_finite(),
        Op::Remove => true,
    }
}

fn words_of(token: TokenId, op: Op) -> EditWords {
    let (code, positive, other) = match op {
        Op::Remove => (op::REMOVE, 0.0, 0.0),
        Op::Add(amount) => (op::ADD, amount, amount),
        Op::Multiply { positive, other } => (op::MULTIPLY, positive, other),
        Op::Penalise { divisor, multiply_negative: true } => (op::PENALISE, divisor, divisor),
        Op::Penalise { divisor, multiply_negative: false } => (op::DIVIDE, divisor, divisor),
    };
    [token.0, code, positive.to_bits(), other.to_bits()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str) -> Program {
        let pipeline = Pipeline::parse(text).expect("a pipeline");
        let history = [3, 5, 3].map(TokenId);
        let context = StepContext::new(&history, 0, crate::random::Randomness::default());
        Program::of(&pipeline, &context, 100, 7).expect("a program")
    }

    #[test]
    fn the_usual_pipeline_is_one_round() {
        let program = program(
            "repetition_penalty(r=1.2) | presence_penalty(s=0.5) | temperature(t=0.7) | top_k(k=40) | \
             top_p(p=0.9) | min_p(m=0.05) | categorical(seed=1)",
        );
        assert!(program.complete);
        assert_eq!(program.rounds.len(), 1);
        assert_eq!(program.rounds[0].stages, 4);
        assert_eq!(program.reports, [None, None, None, Some(0), Some(1), Some(2)]);
        // Both edits of token 3, then both of token 5.
        let tokens: Vec<u32> = program.edits.iter().map(|words| words[0]).collect();
        assert_eq!(tokens, [3, 3, 5, 5]);
        assert_eq!(program.edits[0][1], op::PENALISE);
        assert_eq!(program.edits[1][1], op::ADD);
    }

    #[test]
    fn a_temperature_after_a_cut_begins_a_round() {
        let program = program("top_k(k=40) | temperature(t=0.7) | categorical(seed=1)");
        assert_eq!(program.rounds.len(), 2);
        assert_eq!((program.rounds[1].source, program.rounds[1].fresh), (1, 1));
        let at_seven_tenths = Scale::from_temperature(0.7);
        assert_eq!(program.rounds[1].mantissa, at_seven_tenths.mantissa);
    }

    #[test]
    fn a_deviation_is_of_what_a_round_begins_with() {
        let program = program(
            "top_n_sigma(n=2) | top_k(k=40) | top_n_sigma(n=0.5, deviation=sample) | categorical(seed=1)",
        );
        assert!(program.complete);
        let spreads: Vec<u32> = program.rounds.iter().map(|round| round.spread).collect();
        assert_eq!(spreads, [spread::OF_THE_LIVE, spread::OF_A_SAMPLE]);
        assert_eq!(program.rounds[0].list[0].operand, [0, 2]);
        assert_eq!(program.rounds[1].list[0].operand, [1 << 31, 0]);
    }

    #[test]
    fn a_sequence_with_a_strange_id_is_left_to_the_cpu_before_it_is_due() {
        let text = |id: u32| format!("sequence_bias(bias=[[[9, {id}], 1.0]]) | categorical(seed=1)");
        assert!(program(&text(99)).complete);
        let program = program(&text(100));
        assert!(!program.complete);
        assert_eq!(program.placements[0].why, why::STRANGER);
    }

    #[test]
    fn what_a_stage_left_is_not_reported_after_a_change_of_weights() {
        for (text, reports) in [
            ("typical(p=0.9) | top_k(k=4)", [Some(0), Some(1)]),
            ("typical(p=0.9) | temperature(t=0.7)", [None, None]),
            ("xtc(threshold=0.01, probability=1) | presence_penalty(s=0.5)", [None, None]),
            ("top_k(k=4) | temperature(t=0.7)", [Some(0), None]),
        ] {
            let program = program(&format!("{text} | categorical(seed=1)"));
            assert!(program.complete);
            assert_eq!(program.reports, reports, "{text}");
        }
    }

    #[test]
    fn a_token_that_is_forced_at_other_steps_keeps_no_row_on_the_cpu() {
        // Three tokens have been generated.
        let at = |step: u32| {
            program(&format!(
                "temperature(t=0.7) | forced_tokens(at={{\"{step}\": 7}}) | categorical(seed=1)"
            ))
        };
        assert!(at(2).complete && at(4).complete);
        let due = at(3);
        assert!(!due.complete);
        assert_eq!(due.placements[1].why, crate::transform::kernel::ONE_TOKEN_IS_LEFT);
    }

    #[test]
    fn a_stage_that_the_device_cannot_do_keeps_the_row_on_the_cpu_and_says_why() {
        let program =
            program("temperature(t=0.7) | presence_penalty(s=0.5) | top_k(k=4) | categorical(seed=1)");
        assert!(!program.complete);
        let why: Vec<&str> = program.placements.iter().map(|placement| &*placement.why).collect();
        let [after, before] = [why::stands_after, why::stands_before].map(|why| why("presence_penalty"));
        assert_eq!(why, [&after, why::AFTER_TEMPERATURE, &before, &before]);
        assert!(program.placements.iter().all(|placement| !placement.device));
    }
}
