//! The twin suite: whatever a device returns must equal the CPU's integers, with `==`.
//!
//! A design in which every pair of values meets: sizes, batches, shapes, both ways to resolve,
//! made-up rows and pipelines. Then mutants: kernels with one deliberate fault each, which the
//! suite must reject, or it would prove nothing. It runs natively, in a browser's test and on
//! the page for a reader's own device, and ends in one hash that all of them share.

pub(super) mod head;

use std::collections::HashSet;

use crate::{
    Error, Logits, Pipeline, StepContext, TokenId,
    gpu::{
        device::{Cost, Device, Failure, PATIENCE_MS, Rows, pipeline},
        kernels::{self, ROUND, Shape},
        layout::{RowResult, SORTED},
        program::Program,
    },
    random::{Randomness, splitmix},
    testing,
    weights::{self, Scale},
};

/// Sizes of the vocabulary.
pub const VOCABULARIES: [usize; 10] = [1, 2, 255, 256, 257, 32_768, 50_257, 128_256, 151_936, 262_144];
/// Rows of a launch.
pub const BATCHES: [usize; 3] = [1, 3, 32];
/// Draws, beside random ones: both ends.
const DRAWS: [u64; 3] = [0, u64::MAX, 1 << 63];

/// The hash of a full run on every device; a change of the numerics changes it.
pub const PUBLISHED: &str = "219b5ba15f50799d";

/// Pipelines that between them reach every kernel and every flag.
pub const PIPELINES: &[&str] = &[
    "repetition_penalty(r=1.3) | presence_penalty(s=0.4) | frequency_penalty(f=0.3) | \
     logit_bias(bias={\"0\": 1.5, \"5\": -3.25, \"11\": \"-inf\"}) | temperature(t=0.7) | top_k(k=40) | top_p(p=0.9) | \
     min_p(m=0.05) | categorical()",
    "temperature(t=1.3) | top_p(p=0.95) | categorical()",
    "top_k(k=50, ties=keep) | temperature(t=0.8) | top_p(p=0.8, mass=original) | categorical()",
    "temperature(t=0.01) | min_p(m=0.5, boundary=exclusive) | categorical()",
    "temperature(t=100) | top_p(p=0.999999) | categorical()",
    "top_p(p=0) | categorical()",
    "top_p(p=0.5, boundary=exceed, min_keep=5) | top_k(k=3) | categorical()",
    // Half an f32 step below this p is 7/8 exactly, which rows of powers of two reach exactly.
    "temperature(t=1.4426950408889634) | top_p(p=0.8750000521540671) | categorical()",
    // Half an f32 step takes both shares to powers of two: of these rows every boundary is reached exactly.
    "temperature(t=1.4426950408889634) | epsilon(e=0.0039062502328306575) | min_p(m=0.015625) | \
     top_p(p=0.8749999478459389, boundary=exceed, mass=original) | categorical()",
    "length_decay(start=3, factor=1.1, eos=[1,2,3]) | sequence_bias(bias=[[[4],0.7]]) | min_new_tokens(n=50, eos=[5]) | \
     suppress(ids=[0,1]) | bad_words(sequences=[[2]]) | forced_tokens(at={\"3\": 0}) | greedy()",
    "min_p(m=0.0000001, min_keep=20) | top_k(k=1000000) | categorical()",
    "repetition_penalty(r=0.5, negative=divide, power=count) | top_k(k=7) | presence_penalty(s=-1.5) | \
     top_p(p=0.6, mass=original) | categorical()",
    "top_k(k=20) | presence_penalty(s=0.1) | top_p(p=0.9, mass=original) | categorical()",
    "top_k(k=2000) | top_p(p=0.99) | min_p(m=0.001) | temperature(t=0.5) | min_p(m=0.02) | categorical()",
    "epsilon(e=0.001, min_keep=4) | top_p(p=0.9) | eta(e=0.002) | categorical()",
    "temperature(t=1.1) | eta(e=0.0009, min_keep=3) | min_p(m=0.02) | categorical()",
    "typical(p=0.9) | temperature(t=0.8) | top_k(k=100) | categorical()",
    "top_k(k=300) | temperature(t=0.9) | typical(p=0.5, min_keep=6, ties=cut) | top_p(p=0.95, mass=original) | categorical()",
    "temperature(t=0.5) | xtc(threshold=0.01, probability=1) | top_p(p=0.95, mass=original) | categorical()",
    "typical(p=0.9999999999, boundary=exceed) | top_k(k=4) | xtc(threshold=0.001, probability=1) | categorical()",
    "top_k(k=20) | xtc(threshold=0.01, probability=1, min_keep=2) | top_p(p=0.9, mass=original) | greedy()",
    "repetition_penalty(r=1.1) | xtc(threshold=0.01, probability=1, protect=[0]) | \
     frequency_penalty(f=0.2) | top_p(p=0.8) | categorical()",
    "no_repeat_ngram(n=1) | dry(multiplier=0.8, breakers=[]) | epsilon(e=0.3) | categorical()",
    "top_k(k=3) | top_p(p=0.3, mass=original, min_keep=2) | categorical()",
    "temperature(t=0.7) | top_n_sigma(n=1) | top_p(p=0.95) | categorical()",
    "no_repeat_ngram(n=1) | top_n_sigma(n=0.3, deviation=sample) | top_k(k=10) | categorical()",
    "top_k(k=50) | top_n_sigma(n=1.5, deviation=sample) | temperature(t=1.2) | top_n_sigma(n=2) | categorical()",
    "categorical()",
];

/// Rows: those that all tests share, and some that only a device may get wrong.
fn distributions() -> Vec<testing::Distribution> {
    fn normal(n: usize, seed: u64) -> Vec<f32> {
        testing::DISTRIBUTIONS[1].1(n, seed)
    }
    fn alive_only(n: usize, seed: u64, alive: usize) -> Vec<f32> {
        let mut row = normal(n, seed);
        let mut state = seed;
        let keep: HashSet<usize> =
            (0..alive).map(|_| usize::try_from(splitmix(&mut state) % n as u64).unwrap_or(0)).collect();
        for (index, score) in row.iter_mut().enumerate() {
            if !keep.contains(&index) {
                *score = f32::NEG_INFINITY;
            }
        }
        row
    }
    fn with(n: usize, seed: u64, score: f32) -> Vec<f32> {
        let mut row = normal(n, seed);
        row[n / 3] = score;
        row
    }
    let mut all = testing::DISTRIBUTIONS.to_vec();
    all.extend_from_slice(&[
        ("three hundred alive", |n, seed| alive_only(n, seed, 300)),
        ("one alive", |n, seed| alive_only(n, seed, 1)),
        ("none alive", |n, _| vec![f32::NEG_INFINITY; n]),
        ("a NaN", |n, seed| with(n, seed, f32::NAN)),
        ("an infinity", |n, seed| with(n, seed, f32::INFINITY)),
        ("lowest float as mask", |n, seed| {
            normal(n, seed)
                .into_iter()
                .enumerate()
                .map(|(i, x)| if i % 3 == 0 { x } else { f32::MIN })
                .collect()
        }),
        ("a bias of a billion", |n, seed| {
            let mut row = with(n, seed, 1e9);
            row[n - 1] = 9e8;
            row
        }),
        ("powers of two", |n, seed| {
            // The mass is a power of two, so that shares of it fall exactly on boundaries.
            let mut row = vec![f32::NEG_INFINITY; n];
            let mut state = seed;
            for rank in 0..n.min(16) {
                row[(rank * 37 + (splitmix(&mut state) % 5) as usize) % n] = -(rank as f32);
            }
            row[n - 1] = -(n.min(16) as f32 - 1.0);
            row
        }),
        ("wild bits", |n, seed| {
            let mut state = seed;
            (0..n)
                .map(|_| f32::from_bits((splitmix(&mut state) >> 32) as u32))
                .map(|x| if x.is_finite() { x } else { -1.0 })
                .collect()
        }),
    ]);
    all
}

/// What the suite found.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Report {
    /// The adapter it ran on.
    pub adapter: String,
    /// Integers that came from the device and were compared.
    pub comparisons: u64,
    /// Launches.
    pub launches: u64,
    /// Rows whose last round was resolved by sorting, and by radix.
    pub sorted: u64,
    /// See [`sorted`](Self::sorted).
    pub by_radix: u64,
    /// Differences, the first few of them.
    pub differences: Vec<String>,
    /// How many there were.
    pub different: u64,
    /// The mutants that were rejected.
    pub rejected: Vec<String>,
    /// The mutants that survived.
    pub survived: Vec<String>,
    /// A hash over every integer that came back.
    pub hash: String,
    /// The hash that every device gives; empty if only a part of the suite ran.
    pub published: String,
    /// What a launch of one row costs, by pipeline.
    pub costs: Vec<Price>,
}

/// What one row of a pipeline costs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Price {
    /// The pipeline.
    pub pipeline: String,
    /// Its launch.
    pub cost: Cost,
    /// Traffic for each token of the vocabulary, in bytes.
    pub bytes_a_token: u64,
}

impl std::fmt::Display for Price {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Cost { dispatches, submissions, maps, read_back, .. } = self.cost;
        write!(
            f,
            "{dispatches} dispatches, {submissions} submission, {maps} map, {read_back} bytes back, \
             {} bytes a token: {}",
            self.bytes_a_token, self.pipeline
        )
    }
}

impl Report {
    /// Whether everything was as it must be.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.different == 0
            && self.comparisons > 0
            && self.survived.is_empty()
            && self.sorted > 0
            && self.by_radix > 0
            && (self.published.is_empty() || self.hash == self.published)
    }

    /// The line that ends the suite.
    #[must_use]
    pub fn line(&self) -> String {
        let rejected = self.rejected.len();
        format!("{} comparisons on {}, {rejected} mutants rejected", self.comparisons, self.adapter)
    }
}

/// One launch of the suite.
#[derive(Debug, Clone, Copy)]
struct Case {
    vocabulary: usize,
    rows: usize,
    shape: Shape,
    sorted: u32,
    distribution: testing::Distribution,
    pipeline: usize,
    seed: u64,
}

/// Two values that meet: a factor, its value, a later factor, its value.
type Pair = [usize; 4];

/// Every two values of two factors.
fn pairs(sizes: &[usize]) -> Vec<Pair> {
    let mut all = Vec::new();
    for a in 0..sizes.len() {
        for b in a + 1..sizes.len() {
            for x in 0..sizes[a] {
                all.extend((0..sizes[b]).map(|y| [a, x, b, y]));
            }
        }
    }
    all
}

/// The pairs that meet in a row of these values.
fn pairs_of(values: &[usize]) -> impl Iterator<Item = Pair> {
    let factors = 0..values.len();
    factors.clone().flat_map(move |a| factors.clone().skip(a + 1).map(move |b| [a, values[a], b, values[b]]))
}

/// Values of each factor such that every two values of two factors meet in some case, where they
/// `fit`.
///
/// Greedy: take a pair that has not met, then give each other factor the value that makes the
/// most new pairs meet. A case may have several values of one factor: `has(case, factor, value)`.
fn pairwise(
    sizes: &[usize],
    has: impl Fn(&[usize], usize, usize) -> bool,
    fits: impl Fn(Pair) -> bool,
) -> Vec<Vec<usize>> {
    let mut left: Vec<Pair> = pairs(sizes).into_iter().filter(|&pair| fits(pair)).collect();
    let mut cases = Vec::new();
    while let Some(&[a, x, b, y]) = left.first() {
        let mut case: Vec<Option<usize>> = vec![None; sizes.len()];
        (case[a], case[b]) = (Some(x), Some(y));
        for factor in 0..sizes.len() {
            if case[factor].is_none() {
                let gain = |value: usize| {
                    let meets = |&&[a, x, b, y]: &&Pair| {
                        (a == factor && x == value && case[b] == Some(y))
                            || (b == factor && y == value && case[a] == Some(x))
                    };
                    left.iter().filter(meets).count()
                };
                let fits = |&value: &usize| {
                    let known = (0..sizes.len()).filter_map(|other| Some((other, case[other]?)));
                    let mut pairs = known.map(|(other, at)| {
                        if other < factor { [other, at, factor, value] } else { [factor, value, other, at] }
                    });
                    pairs.all(&fits)
                };
                // Rotating the start spreads the values where nothing is gained.
                let start = cases.len() % sizes[factor];
                let order = (0..sizes[factor]).map(|i| (start + i) % sizes[factor]);
                let best = order.rev().filter(fits).max_by_key(|&value| gain(value));
                // Where nothing is gained, small batches do.
                case[factor] = best.map(|best| if factor == 1 && gain(best) == 0 { 0 } else { best });
            }
        }
        let case: Vec<usize> = case.into_iter().flatten().collect();
        left.retain(|&[a, x, b, y]| !has(&case, a, x) || !has(&case, b, y));
        cases.push(case);
    }
    cases
}

fn pipelines() -> Result<Vec<Pipeline>, Failure> {
    let parsed = PIPELINES.iter().map(|text| Pipeline::parse(text));
    parsed.collect::<Result<_, Error>>().map_err(|error| Failure::Invalid(error.to_string()))
}

/// The suite's factors: sizes of the vocabulary, batches, shapes, ways to resolve, rows, pipelines.
struct Design {
    vocabularies: &'static [usize],
    distributions: Vec<testing::Distribution>,
    pipelines: Vec<Pipeline>,
}

/// Most candidates that are sorted; none, so that every search is by radix.
const WAYS: [u32; 2] = [SORTED, 0];
/// Where the pipeline stands among the factors.
const PIPELINE: usize = 5;

impl Design {
    fn new(vocabularies: &'static [usize]) -> Result<Self, Failure> {
        Ok(Self { vocabularies, distributions: distributions(), pipelines: pipelines()? })
    }

    fn sizes(&self) -> [usize; 6] {
        let [rows, pipelines] = [self.distributions.len(), self.pipelines.len()];
        [self.vocabularies.len(), BATCHES.len(), Shape::ALL.len(), WAYS.len(), rows, pipelines]
    }

    /// Whether two values can meet: a pipeline may name tokens that a small vocabulary lacks.
    fn fits(&self, [a, x, b, y]: Pair) -> bool {
        (a, b) != (0, PIPELINE) || self.pipelines[y].require_vocabulary(self.vocabularies[x]).is_ok()
    }

    /// Whether a case has a value: its rows take the pipelines one after the other.
    fn has(&self, case: &[usize], factor: usize, value: usize) -> bool {
        if factor == PIPELINE {
            let pipelines = self.pipelines.len();
            return (value + pipelines - case[PIPELINE]) % pipelines < BATCHES[case[1]]
                && self.fits([0, case[0], PIPELINE, value]);
        }
        case[factor] == value
    }

    /// The values of each launch.
    fn cases(&self) -> Vec<Vec<usize>> {
        let has = |case: &[usize], factor, value| self.has(case, factor, value);
        let mut cases = pairwise(&self.sizes(), has, |pair| self.fits(pair));
        // Buffers are made for one vocabulary at a time.
        cases.sort_by_key(|at| (self.vocabularies[at[0]], std::cmp::Reverse(BATCHES[at[1]])));
        cases
    }

    fn case(&self, at: &[usize], seed: u64) -> Case {
        Case {
            vocabulary: self.vocabularies[at[0]],
            rows: BATCHES[at[1]],
            shape: Shape::ALL[at[2]],
            sorted: WAYS[at[3]],
            distribution: self.distributions[at[4]],
            pipeline: at[PIPELINE],
            seed,
        }
    }
}

/// What the CPU says about a row.
struct Expected {
    /// Live tokens, mass and moment before the first cut.
    start: [u64; 3],
    /// Live tokens, mass and last token after each transform.
    stages: Vec<(usize, u64, TokenId)>,
    draw: crate::sampler::Draw,
    /// Keys of the highest live token and of the drawn one, and the rank of that.
    keys: [u32; 2],
    rank: usize,
}

fn expected(
    row: &[f32],
    pipeline: &Pipeline,
    program: &Program,
    context: &StepContext,
    u: u64,
) -> Result<Expected, Error> {
    let mut logits = Logits::new(row)?;
    let mut start = None;
    let mut stages = Vec::new();
    let begin = |logits: &mut Logits| {
        Ok::<_, Error>([logits.alive().count() as u64, logits.mass()?, logits.moment()?])
    };
    for (index, (stage, report)) in pipeline.stages().iter().zip(&program.reports).enumerate() {
        if program.first_cut == Some(index) {
            start = Some(begin(&mut logits)?);
        }
        stage.transform.apply(&mut logits, context)?;
        if report.is_some() {
            let last = last_of(&logits);
            stages.push((logits.alive().count(), logits.mass()?, last));
        } else {
            stages.push((0, 0, TokenId(0)));
        }
    }
    let start = match start {
        Some(start) => start,
        None => begin(&mut logits)?,
    };
    let mut sampler = pipeline.sampler();
    sampler.prepare(&mut logits, context)?;
    let draw = sampler.pick(&mut logits, u, context)?;
    let keys =
        [logits.highest()?, draw.token].map(|token| weights::key(logits.stored_scores()[token.index()]));
    let rank = logits.standing(draw.token)?.map_or(usize::MAX, |standing| standing.rank);
    Ok(Expected { start, stages, draw, keys, rank })
}

/// The last live token in order.
fn last_of(logits: &Logits) -> TokenId {
    let mut last = (f64::INFINITY, TokenId(0));
    for token in logits.alive().iter().filter_map(|index| u32::try_from(index).ok()).map(TokenId) {
        let score = logits.score(token).unwrap_or_default();
        if score <= last.0 {
            last = (score, token);
        }
    }
    last.1
}

fn wide(halves: [u32; 2]) -> u64 {
    u64::from(halves[0]) | u64::from(halves[1]) << 32
}

/// What the device says, in the order in which it is compared.
fn integers(result: &RowResult, program: &Program) -> Vec<(String, u64)> {
    let mut all = vec![
        ("live tokens".to_owned(), u64::from(result.live)),
        ("mass".to_owned(), wide(result.mass)),
        ("moment".to_owned(), wide(result.moment)),
    ];
    for (index, report) in program.reports.iter().enumerate() {
        let Some(stage) = report.and_then(|slot| result.stages.get(slot)) else { continue };
        all.push((format!("kept by stage {index}"), u64::from(stage.kept)));
        all.push((format!("mass of stage {index}"), wide(stage.mass)));
    }
    all.push(("highest key".to_owned(), u64::from(result.anchor)));
    all.push(("token".to_owned(), u64::from(result.token)));
    all.push(("key".to_owned(), u64::from(result.key)));
    all.push(("rank".to_owned(), u64::from(result.rank)));
    all.push(("low".to_owned(), wide(result.low)));
    all.push(("high".to_owned(), wide(result.high)));
    all.push(("total".to_owned(), wide(result.total)));
    all
}

fn expected_integers(expected: &Expected, program: &Program) -> Vec<u64> {
    let mut all = expected.start.to_vec();
    for (stage, _) in expected.stages.iter().zip(&program.reports).filter(|(_, report)| report.is_some()) {
        all.extend([stage.0 as u64, stage.1]);
    }
    let Expected { draw, keys: [highest, key], rank, .. } = expected;
    all.extend([u64::from(*highest), u64::from(draw.token.0), u64::from(*key), *rank as u64]);
    all.extend([draw.low, draw.high, draw.total]);
    all
}

/// FNV-1a over words.
struct Hash(u64);

impl Hash {
    fn add(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// The suite's running state.
struct Suite<'a> {
    device: &'a mut Device,
    report: Report,
    hash: Hash,
    pipelines: Vec<Pipeline>,
}

impl<'a> Suite<'a> {
    fn new(device: &'a mut Device) -> Result<Self, Failure> {
        let report = Report { adapter: device.adapter().to_string(), ..Report::default() };
        Ok(Self { device, report, hash: Hash(0xcbf2_9ce4_8422_2325), pipelines: pipelines()? })
    }

    fn differ(&mut self, what: impl FnOnce() -> String) {
        self.report.different += 1;
        if self.report.differences.len() < 20 {
            self.report.differences.push(what());
        }
    }

    /// Launches a case and compares its rows; the pipelines that really ran, by their index.
    async fn case(&mut self, case: &Case) -> Result<Vec<usize>, Failure> {
        let n = case.vocabulary;
        let mut state = case.seed;
        // A few rows are enough: what differs between the rows of a launch is the pipeline.
        let rows: Vec<Vec<f32>> =
            (0..case.rows.min(3)).map(|row| case.distribution.1(n, case.seed + row as u64)).collect();
        #[expect(clippy::cast_possible_truncation, reason = "below the vocabulary")]
        let history: Vec<TokenId> = (0..60)
            .map(|i| {
                TokenId(
                    (splitmix(&mut state) % (n as u64).min(if i % 2 == 0 { 17 } else { u64::MAX })) as u32,
                )
            })
            .collect();
        let context = StepContext::new(&history, 20, Randomness::default());
        let mut jobs = Vec::new();
        for row in 0..case.rows {
            let index = (case.pipeline + row) % self.pipelines.len();
            let pipeline = &self.pipelines[index];
            let draw = splitmix(&mut state);
            let u = DRAWS.get((draw % 8) as usize).copied().unwrap_or(draw);
            #[expect(clippy::cast_possible_truncation, reason = "at most 2^18")]
            let program = Program::of(pipeline, &context, n as u32, u)
                .map_err(|error| Failure::Invalid(error.to_string()))?;
            // A stage may refuse what another size of vocabulary allows.
            if program.complete {
                jobs.push((row % rows.len(), index, program, u));
            }
        }
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let slices: Vec<&[f32]> = jobs.iter().map(|(row, ..)| &rows[*row][..]).collect();
        let programs: Vec<Program> = jobs.iter().map(|(_, _, program, _)| program.clone()).collect();
        self.device.set_shape(case.shape);
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^18")]
        let results = self.device.launch(Rows::Host(&slices), n as u32, &programs, case.sorted).await?;
        self.report.launches += 1;
        for ((row, index, program, u), result) in jobs.iter().zip(&results) {
            let pipeline = self.pipelines[*index].clone();
            self.compare(case, &rows[*row], &pipeline, program, &context, *u, result);
        }
        Ok(jobs.into_iter().map(|(_, index, ..)| index).collect())
    }

    #[expect(clippy::too_many_arguments, reason = "everything that a difference is reported with")]
    fn compare(
        &mut self,
        case: &Case,
        row: &[f32],
        pipeline: &Pipeline,
        program: &Program,
        context: &StepContext,
        u: u64,
        result: &RowResult,
    ) {
        let place = || {
            format!(
                "{} of {} tokens, {} rows, shape {}, sorted {}: {pipeline}",
                case.distribution.0, case.vocabulary, case.rows, case.shape, case.sorted
            )
        };
        let expected = match expected(row, pipeline, program, context, u) {
            Ok(expected) => expected,
            Err(error) => {
                // A refusal is the CPU's to word; the device must notice that there is one.
                self.report.comparisons += 1;
                self.hash.add(u64::MAX);
                if result.flags == 0 {
                    self.differ(|| format!("{}: no fault seen, but {error}", place()));
                }
                return;
            }
        };
        if result.sorted == 1 {
            self.report.sorted += 1;
        } else {
            self.report.by_radix += 1;
        }
        let mut all = vec![("flags".to_owned(), u64::from(result.flags))];
        all.extend(integers(result, program));
        let mut wanted = vec![0];
        wanted.extend(expected_integers(&expected, program));
        for (report, stage) in program.reports.iter().zip(&expected.stages) {
            let Some(seen) = report.and_then(|slot| result.stages.get(slot)) else { continue };
            if seen.last < u32::try_from(row.len()).unwrap_or(u32::MAX) {
                all.push(("last kept token".to_owned(), u64::from(seen.last)));
                wanted.push(u64::from(stage.2.0));
            }
        }
        for ((name, value), wanted) in all.iter().zip(&wanted) {
            self.report.comparisons += 1;
            self.hash.add(*value);
            if value != wanted {
                self.differ(|| format!("{}: {name} is {value}, not {wanted}", place()));
                return;
            }
        }
    }

    /// Launches one row of each pipeline, which must be one submission and one map.
    async fn costs(&mut self) -> Result<(), Failure> {
        const TOKENS: u32 = 32_768;
        let row = testing::DISTRIBUTIONS[0].1(TOKENS as usize, 1);
        let history = [1, 5, 1].map(TokenId);
        let context = StepContext::new(&history, 2, Randomness::default());
        for pipeline in self.pipelines.clone() {
            let program = Program::of(&pipeline, &context, TOKENS, 1 << 62)
                .map_err(|error| Failure::Invalid(error.to_string()))?;
            self.device.launch(Rows::Host(&[&row]), TOKENS, &[program], SORTED).await?;
            let cost = self.device.cost();
            if (cost.submissions, cost.maps) != (1, 1) {
                self.differ(|| format!("{pipeline}: not one submission and one map, but {cost:?}"));
            }
            let bytes_a_token = cost.traffic / u64::from(TOKENS);
            self.report.costs.push(Price { pipeline: pipeline.to_string(), cost, bytes_a_token });
        }
        Ok(())
    }

    /// The functions of the specification, one by one.
    async fn probe(&mut self, seed: u64) -> Result<(), Failure> {
        let cases = probe_cases(seed);
        let words = outcomes_of(self.device, &cases).await?;
        for (case, seen) in cases.iter().zip(words.chunks_exact(12)) {
            let wanted = probe_expected(case);
            for (index, (seen, wanted)) in seen.iter().zip(wanted).enumerate() {
                self.report.comparisons += 1;
                self.hash.add(u64::from(*seen));
                if *seen != wanted {
                    self.differ(|| format!("probe {case:?}: word {index} is {seen:#x}, not {wanted:#x}"));
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Operands of the probe: two scores, the higher first, a scale, and two 64-bit numbers.
fn probe_cases(seed: u64) -> Vec<[u32; 8]> {
    let edges = [
        0.0,
        -0.0,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        -f32::from_bits(1),
        1e9,
        9e8,
        -1e9,
        1.0,
        0.999_999_94,
        1.5,
        16_777_215.0,
        f32::from_bits(0x007f_ffff),
    ];
    let mut state = seed;
    let mut scores: Vec<f32> = edges.to_vec();
    while scores.len() < 128 {
        let random = splitmix(&mut state);
        let wild = f32::from_bits((random >> 32) as u32);
        scores.push(if random & 1 == 0 && wild.is_finite() {
            wild
        } else {
            ((random & 0xffff) as f32 - 32768.0) / 1500.0
        });
    }
    let scales: Vec<Scale> = [std::f64::consts::LOG2_E, 1.0, 0.7, 100.0, 0.01, 1e30, 1e-30, 5e-324, 1e300]
        .into_iter()
        .map(Scale::from_temperature)
        .collect();
    let mut cases = Vec::new();
    for (index, &a) in scores.iter().enumerate() {
        for &b in &scores[index..] {
            let (high, low) = if a >= b { (a, b) } else { (b, a) };
            let scale = scales[(splitmix(&mut state) & 0xffff) as usize % scales.len()];
            let (x, y) = (splitmix(&mut state), splitmix(&mut state));
            #[expect(clippy::cast_possible_truncation, reason = "halves of random numbers")]
            cases.push([
                high.to_bits(),
                low.to_bits(),
                scale.mantissa,
                scale.exponent.cast_unsigned(),
                x as u32,
                (x >> 32) as u32,
                y as u32,
                (y >> 32) as u32,
            ]);
        }
    }
    cases
}

#[expect(clippy::cast_possible_truncation, reason = "words of 64-bit numbers")]
fn probe_expected(case: &[u32; 8]) -> [u32; 12] {
    let &[a, b, mantissa, exponent, x0, x1, y0, y1] = case;
    let (high, low) = (f32::from_bits(a), f32::from_bits(b));
    let distance = weights::distance(high, low, Scale { mantissa, exponent: exponent.cast_signed() });
    let (weight, moment) = (weights::weight(distance), weights::moment(distance));
    let x = u64::from(x0) | u64::from(x1) << 32;
    let mass = u64::from(y0) | u64::from(y1 >> 1) << 32;
    let part = weights::share_of(u64::from(x0), mass);
    let above = weights::share_above(u64::from(x0), mass);
    let drawn = weights::drawn_mass(x, mass);
    let mean = (u128::from(x >> 2) << 32) / u128::from(mass.max(1 << 48));
    let add = high + low;
    // A zero divisor never reaches the device; what it would answer there is of no interest.
    let quotient = if low == 0.0 { 0 } else { (high / low).to_bits() };
    let mixed = above as u32
        ^ drawn as u32
        ^ (drawn >> 32) as u32
        ^ if high == f32::NEG_INFINITY { 0 } else { weights::key(high) }
        ^ mean as u32;
    [
        distance as u32,
        (distance >> 32) as u32,
        weight as u32,
        (weight >> 32) as u32,
        moment as u32,
        (moment >> 32) as u32,
        part as u32,
        (part >> 32) as u32,
        add.to_bits(),
        (high * low).to_bits(),
        quotient,
        mixed,
    ]
}

async fn outcomes_of(device: &Device, cases: &[[u32; 8]]) -> Result<Vec<u32>, Failure> {
    let shape = device.shape();
    let (gpu, queue) = device.raw();
    let bytes = (cases.len() * 48) as u64;
    let make = |size: u64, usage: wgpu::BufferUsages| {
        gpu.create_buffer(&wgpu::BufferDescriptor {
            label: Some("probe"),
            size,
            usage,
            mapped_at_creation: false,
        })
    };
    let operands =
        make((cases.len() * 32) as u64, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST);
    let outcomes = make(bytes, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
    let staging = make(bytes, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    queue.write_buffer(&operands, 0, bytemuck::cast_slice(cases));
    let probe = pipeline(gpu, kernels::PROBE.name, &kernels::PROBE.text(shape));
    let group = gpu.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some("probe"),
        layout: &probe.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: operands.as_entire_binding() },
            wgpu::BindGroupEntry { binding: 1, resource: outcomes.as_entire_binding() },
        ],
    });
    let mut encoder = gpu.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&probe);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(
            u32::try_from(cases.len()).unwrap_or(u32::MAX).div_ceil(shape.workgroup),
            1,
            1,
        );
    }
    encoder.copy_buffer_to_buffer(&outcomes, 0, &staging, 0, Some(bytes));
    queue.submit([encoder.finish()]);
    device.map(&staging, bytes).await?;
    let words = staging
        .get_mapped_range(..bytes)
        .map(|view| bytemuck::pod_collect_to_vec(&view))
        .map_err(|_| Failure::Lost)?;
    staging.unmap();
    Ok(words)
}

/// A kernel with one deliberate fault.
struct Mutant {
    name: &'static str,
    kernel: &'static str,
    from: &'static str,
    to: &'static str,
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the carry of a 64-bit sum is dropped",
        kernel: "weigh",
        from: "let carried = value.y + select(0u, 1u, old + value.x < old);\n    if carried != 0u { atomicAdd(&mass_high[bin], carried); }",
        to: "let carried = value.y;\n    if carried != 0u { atomicAdd(&mass_high[bin], carried); }",
    },
    Mutant {
        name: "ties go to the higher id",
        kernel: "resolve",
        from: "(key_a == key_b && id_a < id_b)",
        to: "(key_a == key_b && id_a > id_b)",
    },
    Mutant {
        name: "the device's own exp2",
        kernel: "weigh",
        from: "return 0x80000000u - (high(fraction, sum) >> 1u);",
        to: "return u32(exp2(-f32(fraction) * 2.3283064e-10) * 2147483648.0);",
    },
    Mutant {
        name: "minus zero is below plus zero",
        kernel: "prepare",
        from: "if (bits & 0x7fffffffu) == 0u { bits = 0u; }",
        to: "",
    },
    Mutant {
        name: "the plan forgets the draw",
        kernel: "plan",
        from: "mark(from_bin, min(max(from_bin, to_bin), BINS - 1u));",
        to: "",
    },
    Mutant {
        name: "a share must be exceeded",
        kernel: "resolve",
        from: "var share = share_of(operand, whole);",
        to: "var share = share_above(operand, whole);",
    },
    Mutant {
        name: "k is off by one",
        kernel: "resolve",
        from: "wanted = min(operand.x, before);",
        to: "wanted = min(operand.x + 1u, before);",
    },
    Mutant {
        name: "the last workgroup is dropped",
        kernel: "prepare",
        from: "let from_logits = params[p + PARAM_SOURCE] == 0u;",
        to: "let from_logits = params[p + PARAM_SOURCE] == 0u;\n    if (group.x + 1u) * TILE > vocabulary { return; }",
    },
    Mutant {
        name: "halves round up",
        kernel: "prepare",
        from: "(rest == half && (kept & 1u) == 1u)",
        to: "rest == half",
    },
    Mutant {
        name: "a penalty divides negative scores",
        kernel: "prepare",
        from: "(op == OP_PENALISE && above_zero)",
        to: "op == OP_PENALISE",
    },
    Mutant {
        name: "at least so many is forgotten",
        kernel: "resolve",
        from: "let least = min(min_keep, before);",
        to: "let least = 1u;",
    },
    Mutant {
        name: "the original mass is the present one",
        kernel: "resolve",
        from: "if (flags & FLAG_ORIGINAL) != 0u { whole = original; }",
        to: "",
    },
    Mutant {
        name: "the draw's interval is closed above",
        kernel: "resolve",
        from: "ask_mass = wide_add(wide_high(operand, before_mass), Wide(1u, 0u));",
        to: "ask_mass = wide_max(wide_high(operand, before_mass), Wide(1u, 0u));",
    },
    Mutant {
        name: "protected tokens are excluded",
        kernel: "resolve",
        from: "if own != 0u && !comes_first(key, id, own, token) { return true; }",
        to: "",
    },
    Mutant {
        name: "removed tokens are no zeros of a sample",
        kernel: "weigh",
        from: "if spread != SPREAD_NONE && (key != 0u || with_dead) {",
        to: "if spread != SPREAD_NONE && key != 0u {",
    },
    Mutant {
        name: "the spread is not about the mean",
        kernel: "plan",
        from: "quad_add(quad_times(share.xyz, degrees), squared)",
        to: "quad_times(share.xyz, degrees)",
    },
    Mutant {
        name: "a share that must be exceeded is reached",
        kernel: "resolve",
        from: "share = share_above(operand, whole); }",
        to: "share = share_of(operand, whole); }",
    },
    Mutant {
        name: "a distance at the limit is beyond it",
        kernel: "resolve",
        from: "passes = !wide_less(limit, distance);",
        to: "passes = wide_less(distance, limit);",
    },
    Mutant {
        name: "the plan forgets the last but one",
        kernel: "plan",
        from: "if low < BINS { mark(bin_back(low, 1u), high); }",
        to: "",
    },
    Mutant {
        name: "the original mass outlives an edit",
        kernel: "plan",
        from: "if fresh || touched || dropped ||",
        to: "if fresh || dropped ||",
    },
    Mutant {
        name: "removed tokens are counted as live",
        kernel: "prepare",
        from: "live = 0u;\n        for",
        to: "for",
    },
    Mutant {
        name: "a factor is the same for both signs",
        kernel: "prepare",
        from: "select(other, positive, above_zero)",
        to: "positive",
    },
    Mutant {
        name: "the scale is rounded to 24 bits",
        kernel: "weigh",
        from: "return wide_min(wide_right(product(difference.x, mantissa), u32(-shift)), FARTHEST);",
        to: "return wide_min(wide_right(product(difference.x, mantissa & 0xffffff00u), u32(-shift)), FARTHEST);",
    },
];

/// Few cases that between them see every mutant.
fn mutant_cases() -> Vec<Case> {
    let distributions = distributions();
    let named = |name: &str| distributions.iter().find(|(known, _)| *known == name).copied();
    let names = [
        "language model",
        "heavy ties",
        "signed zeros",
        "powers of two",
        "bfloat16",
        "dyadic",
        "normal",
        "highest last",
        "wild bits",
    ];
    names
        .into_iter()
        .filter_map(named)
        .enumerate()
        .map(|(index, distribution)| Case {
            vocabulary: 1_000,
            rows: 2 * PIPELINES.len(),
            shape: Shape::ALL[4],
            sorted: if index % 2 == 0 { SORTED } else { 0 },
            distribution,
            pipeline: 0,
            seed: index as u64 + 77,
        })
        .collect()
}

/// How much of the suite runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Everything.
    Full,
    /// Smaller vocabularies only: a first look.
    Quick,
}

/// Runs the suite on a device; `progress` is told what was done, in words.
///
/// # Errors
/// When the device fails; a difference is no error but stands in the report.
pub async fn run(
    device: &mut Device,
    extent: Extent,
    progress: &mut dyn FnMut(String),
) -> Result<Report, Failure> {
    let shape = device.shape();
    // A software adapter takes a minute for many rows of ties, on a busy machine several.
    device.patience = PATIENCE_MS * 400;
    let mut suite = Suite::new(device)?;
    for (seed, shape) in Shape::ALL.into_iter().enumerate() {
        suite.device.set_shape(shape);
        suite.probe(seed as u64).await?;
    }
    progress(format!(
        "functions: {} comparisons, {} differences",
        suite.report.comparisons, suite.report.different
    ));
    let vocabularies = match extent {
        Extent::Full => &VOCABULARIES[..],
        Extent::Quick => &VOCABULARIES[..6],
    };
    let design = Design::new(vocabularies)?;
    let (cases, mut met) = (design.cases(), HashSet::new());
    for (index, at) in cases.iter().enumerate() {
        let case = design.case(at, index as u64 * 7919 + 1);
        for pipeline in suite.case(&case).await? {
            let mut values = at.clone();
            values[PIPELINE] = pipeline;
            met.extend(pairs_of(&values));
        }
        let Report { comparisons, different, .. } = suite.report;
        progress(format!(
            "case {} of {}, {} tokens: {comparisons} comparisons, {different} differences",
            index + 1,
            cases.len(),
            case.vocabulary
        ));
    }
    let wanted: HashSet<Pair> =
        pairs(&design.sizes()).into_iter().filter(|&pair| design.fits(pair)).collect();
    progress(format!("{} of {} pairs of values met", met.len(), wanted.len()));
    if met != wanted {
        suite.differ(|| format!("only {} of {} pairs of values met", met.len(), wanted.len()));
    }
    suite.device.set_shape(shape);
    suite.costs().await?;
    suite.report.hash = format!("{:016x}", suite.hash.0);
    if extent == Extent::Full {
        PUBLISHED.clone_into(&mut suite.report.published);
    }
    let mut report = suite.report;
    head::run(device, &mut report, progress).await?;
    device.set_shape(shape);
    if report.different == 0 {
        mutants(device, &mut report, progress).await?;
    }
    device.patience = PATIENCE_MS;
    device.set_shape(shape);
    Ok(report)
}

async fn mutants(
    device: &mut Device,
    report: &mut Report,
    progress: &mut dyn FnMut(String),
) -> Result<(), Failure> {
    let cases = mutant_cases();
    device.set_shape(Shape::ALL[4]);
    let differences = |report: &Report| report.different;
    let mut honest = Suite::new(device)?;
    for case in &cases {
        honest.case(case).await?;
    }
    if differences(&honest.report) > 0 {
        report.survived.push(format!("the unmodified kernels differ: {:?}", honest.report.differences));
        return Ok(());
    }
    for mutant in MUTANTS {
        let Some(index) = ROUND.iter().position(|kernel| kernel.name == mutant.kernel) else { continue };
        let text = ROUND[index].text(device.shape());
        let faulty = (text.matches(mutant.from).count() == 1).then(|| text.replace(mutant.from, mutant.to));
        let Some(sound) = faulty.and_then(|faulty| device.plant(index, &faulty)) else {
            report.survived.push(format!("{}: the fault could not be planted", mutant.name));
            continue;
        };
        let mut suite = Suite::new(device)?;
        for case in &cases {
            suite.case(case).await?;
            if differences(&suite.report) > 0 {
                break;
            }
        }
        let found = differences(&suite.report) > 0;
        device.put_kernel(index, sound);
        progress(format!("mutant: {}: {}", mutant.name, if found { "rejected" } else { "SURVIVED" }));
        let list = if found { &mut report.rejected } else { &mut report.survived };
        list.push(mutant.name.to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        pipeline::catalogue_texts,
        transform::{
            Op,
            kernel::{Kernel, NOT_WRITTEN},
        },
    };

    #[test]
    fn every_pair_that_can_meet_meets_in_the_design() {
        for vocabularies in [&VOCABULARIES[..], &VOCABULARIES[..6]] {
            let design = Design::new(vocabularies).expect("pipelines");
            let cases = design.cases();
            let (mut met, mut impossible) = (0, Vec::new());
            for [a, x, b, y] in pairs(&design.sizes()) {
                if design.fits([a, x, b, y]) {
                    let meet = cases.iter().any(|case| design.has(case, a, x) && design.has(case, b, y));
                    assert!(meet, "{a}={x} and {b}={y}");
                    met += 1;
                } else {
                    impossible.push((vocabularies[x], y));
                }
            }
            // Pipelines that name tokens 11 and 5.
            assert_eq!(impossible, [(1, 0), (1, 9), (2, 0), (2, 9)]);
            assert!(met > 1_000, "{met} pairs");
            assert!(cases.len() < 300, "{} cases", cases.len());
        }
    }

    #[test]
    fn every_stage_that_has_a_kernel_is_in_the_suite() {
        let mut held = 0;
        for text in catalogue_texts() {
            let pipeline = Pipeline::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let context = StepContext::default();
            let kernels = match pipeline.stages() {
                [stage] => vec![stage.transform.kernel(&context).expect("nothing to refuse")],
                _ => pipeline.sampler().kernel(),
            };
            if kernels.contains(&Kernel::Missing(NOT_WRITTEN)) {
                continue;
            }
            let (id, _) = text.split_once('(').expect("arguments");
            assert!(PIPELINES.iter().any(|pipeline| pipeline.contains(&format!("{id}("))), "{id}");
            held += 1;
        }
        assert!(held > 20, "{held} stages");
    }

    #[test]
    fn every_mutant_can_be_planted() {
        for mutant in MUTANTS.iter().chain(head::MUTANTS) {
            let mut kernels = ROUND.iter().chain([&kernels::HEAD]);
            let kernel = kernels.find(|kernel| kernel.name == mutant.kernel).expect("a kernel");
            let text = kernel.text(Shape::default());
            assert_eq!(text.matches(mutant.from).count(), 1, "{}", mutant.name);
            let text = text.replace(mutant.from, mutant.to);
            naga::front::wgsl::parse_str(&text)
                .unwrap_or_else(|error| panic!("{}: {}", mutant.name, error.emit_to_string(&text)));
        }
    }

    /// Used by the probe as the twin of the device's soft-float arithmetic.
    #[test]
    fn operations_round_once() {
        assert_eq!(Op::Add(1.0).apply(16_777_216.0), Some(16_777_216.0));
        let op = Op::Penalise { divisor: 3.0, multiply_negative: true };
        assert_eq!(op.apply(1.0).map(f32::to_bits), Some(0x3eaa_aaab));
    }
}
