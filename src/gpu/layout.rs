//! Where each word lies in the buffers that host and device share.
//!
//! The offsets of these structs become the constants that every shader begins with, so there
//! is one place where a layout is written down.

use std::mem::offset_of;

/// Tokens that are sorted rather than searched by radix, at most.
pub(crate) const SORTED: u32 = 1024;
/// Bins of distance.
pub(crate) const BINS: u32 = 1024;
/// Bits of a token's id; the bin lies above them.
pub(crate) const ID_BITS: u32 = 18;
/// Stages of one round, at most.
pub(crate) const STAGES: usize = 18;
/// Stages that report what they kept, at most.
pub(crate) const REPORTS: usize = 16;

/// Parameters of one row in one round.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct RowParams {
    pub(crate) vocabulary: u32,
    /// Which kernels have something to do; see the phases.
    pub(crate) phases: u32,
    /// 0: the logits; 1: the keys that the round before left.
    pub(crate) source: u32,
    pub(crate) mantissa: u32,
    pub(crate) exponent: i32,
    /// Whether the scale is a new one.
    pub(crate) fresh: u32,
    /// Whether the mean distance is wanted.
    pub(crate) mean: u32,
    /// Whether the round orders by distance from the mean.
    pub(crate) odd: u32,
    pub(crate) edits_start: u32,
    pub(crate) edits_end: u32,
    /// Candidates that are sorted rather than searched by radix, at most.
    pub(crate) sorted: u32,
    /// One more than the report that this round's totals belong to; 0 for none.
    pub(crate) report: u32,
    pub(crate) stages: u32,
    /// Whose deviation is wanted, if any.
    pub(crate) spread: u32,
    pub(crate) unused: [u32; 2],
    pub(crate) list: [StageParams; STAGES],
}

/// Parameters of one stage.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct StageParams {
    pub(crate) op: u32,
    pub(crate) flags: u32,
    pub(crate) operand: [u32; 2],
    pub(crate) min_keep: u32,
    pub(crate) slot: u32,
    pub(crate) second: [u32; 2],
}

/// Sums of one row in one round; zero when the round begins.
#[repr(C)]
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct Work {
    highest: u32,
    /// The highest of the inverted keys.
    lowest: u32,
    live: u32,
    touched: u32,
    /// The highest of the inverted ids of tokens at fault.
    fault: u32,
    candidates: u32,
    moment: [u32; 2],
    /// Of a deviation: the sum of distances, and of the low and high halves of their squares.
    spread: [[u32; 2]; 3],
    unused: [u32; 50],
    count: [u32; BINS as usize],
    mass_low: [u32; BINS as usize],
    mass_high: [u32; BINS as usize],
}

/// What one row's plan kernel tells the kernels after it.
#[repr(C)]
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct Plan {
    shift: u32,
    live: u32,
    total: [u32; 2],
    original: [u32; 2],
    mean: [u32; 2],
    highest: u32,
    /// The least key that some deviations reach, and its distance.
    reach_key: u32,
    reach: [u32; 2],
    unused: [u32; 20],
    marks: [u32; 32],
    count: [u32; BINS as usize],
    mass_low: [u32; BINS as usize],
    mass_high: [u32; BINS as usize],
    skipped: [u32; BINS as usize],
    skipped_low: [u32; BINS as usize],
    skipped_high: [u32; BINS as usize],
}

/// What one round leaves to the next.
#[repr(C)]
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct Carry {
    flags: u32,
    last_key: u32,
    last_id: u32,
    first_key: u32,
    first_id: u32,
    odd_id: u32,
    odd: [u32; 2],
    mean: [u32; 2],
    original: [u32; 2],
    anchor: u32,
    lowest: u32,
    mantissa: u32,
    exponent: u32,
}

/// What comes back for one row.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct RowResult {
    pub(crate) flags: u32,
    /// Live tokens once the scores are edited and scaled, their mass and moment.
    pub(crate) live: u32,
    pub(crate) mass: [u32; 2],
    pub(crate) moment: [u32; 2],
    /// The highest key of the last round.
    pub(crate) anchor: u32,
    pub(crate) candidates: u32,
    /// Whether the candidates of the last round were sorted.
    pub(crate) sorted: u32,
    /// The drawn token, its key, its rank and its interval.
    pub(crate) token: u32,
    pub(crate) key: u32,
    pub(crate) rank: u32,
    pub(crate) low: [u32; 2],
    pub(crate) high: [u32; 2],
    pub(crate) total: [u32; 2],
    pub(crate) unused: [u32; 14],
    pub(crate) stages: [StageResult; REPORTS],
}

/// What a stage left.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct StageResult {
    pub(crate) kept: u32,
    pub(crate) mass: [u32; 2],
    /// The last kept token, where a cut of the same round fixed it.
    pub(crate) last: u32,
}

/// Phases of a round, one bit each.
pub(crate) mod phase {
    pub(crate) const PREPARE: u32 = 1;
    pub(crate) const WEIGH: u32 = 2;
    pub(crate) const PLAN: u32 = 4;
    pub(crate) const GATHER: u32 = 8;
    pub(crate) const RESOLVE: u32 = 16;
}

/// Operations on scores.
pub(crate) mod op {
    pub(crate) const REMOVE: u32 = 0;
    pub(crate) const ADD: u32 = 1;
    /// Divides a positive score, multiplies another.
    pub(crate) const PENALISE: u32 = 2;
    pub(crate) const DIVIDE: u32 = 3;
    pub(crate) const MULTIPLY: u32 = 4;
}

/// What a stage searches for.
pub(crate) mod stage {
    pub(crate) const COUNT: u32 = 0;
    pub(crate) const MASS: u32 = 1;
    pub(crate) const DISTANCE: u32 = 2;
    pub(crate) const WEIGHT: u32 = 3;
    pub(crate) const EXCLUDE: u32 = 4;
    pub(crate) const DRAW: u32 = 5;
    pub(crate) const MEAN: u32 = 6;
    pub(crate) const DEVIATIONS: u32 = 7;
}

/// Whose deviation.
pub(crate) mod spread {
    pub(crate) const NONE: u32 = 0;
    pub(crate) const OF_THE_LIVE: u32 = 1;
    pub(crate) const OF_A_SAMPLE: u32 = 2;
}

/// How it searches.
pub(crate) mod flag {
    pub(crate) const TIES: u32 = 1;
    pub(crate) const ABOVE: u32 = 2;
    pub(crate) const ORIGINAL: u32 = 4;
}

/// What came of a row.
pub(crate) mod result {
    /// A score is NaN or infinite.
    pub(crate) const FAULT: u32 = 1;
    /// No token was alive in some round.
    pub(crate) const EMPTY: u32 = 2;
}

/// Every word number that shaders use, by its name there.
#[expect(clippy::too_many_lines, reason = "a list")]
pub(crate) fn constants() -> Vec<(&'static str, usize)> {
    macro_rules! words {
        ($($name:literal $kind:ident.$field:ident;)*) => {
            [$(($name, offset_of!($kind, $field) / 4)),*]
        };
    }
    let offsets = words! {
        "PARAM_VOCABULARY" RowParams.vocabulary;
        "PARAM_PHASES" RowParams.phases;
        "PARAM_SOURCE" RowParams.source;
        "PARAM_MANTISSA" RowParams.mantissa;
        "PARAM_EXPONENT" RowParams.exponent;
        "PARAM_FRESH" RowParams.fresh;
        "PARAM_MEAN" RowParams.mean;
        "PARAM_ODD" RowParams.odd;
        "PARAM_EDITS_START" RowParams.edits_start;
        "PARAM_EDITS_END" RowParams.edits_end;
        "PARAM_SORTED" RowParams.sorted;
        "PARAM_REPORT" RowParams.report;
        "PARAM_STAGES" RowParams.stages;
        "PARAM_SPREAD" RowParams.spread;
        "PARAM_HEADER" RowParams.list;
        "WORK_HIGHEST" Work.highest;
        "WORK_LOWEST" Work.lowest;
        "WORK_LIVE" Work.live;
        "WORK_TOUCHED" Work.touched;
        "WORK_FAULT" Work.fault;
        "WORK_CANDIDATES" Work.candidates;
        "WORK_MOMENT" Work.moment;
        "WORK_SPREAD" Work.spread;
        "WORK_COUNT" Work.count;
        "WORK_MASS_LOW" Work.mass_low;
        "WORK_MASS_HIGH" Work.mass_high;
        "PLAN_SHIFT" Plan.shift;
        "PLAN_LIVE" Plan.live;
        "PLAN_TOTAL" Plan.total;
        "PLAN_ORIGINAL" Plan.original;
        "PLAN_MEAN" Plan.mean;
        "PLAN_HIGHEST" Plan.highest;
        "PLAN_REACH_KEY" Plan.reach_key;
        "PLAN_REACH" Plan.reach;
        "PLAN_MARKS" Plan.marks;
        "PLAN_COUNT" Plan.count;
        "PLAN_MASS_LOW" Plan.mass_low;
        "PLAN_MASS_HIGH" Plan.mass_high;
        "PLAN_SKIPPED" Plan.skipped;
        "PLAN_SKIPPED_LOW" Plan.skipped_low;
        "PLAN_SKIPPED_HIGH" Plan.skipped_high;
        "CARRY_FLAGS" Carry.flags;
        "CARRY_LAST_KEY" Carry.last_key;
        "CARRY_LAST_ID" Carry.last_id;
        "CARRY_FIRST_KEY" Carry.first_key;
        "CARRY_FIRST_ID" Carry.first_id;
        "CARRY_ODD_ID" Carry.odd_id;
        "CARRY_ODD" Carry.odd;
        "CARRY_MEAN" Carry.mean;
        "CARRY_ORIGINAL" Carry.original;
        "CARRY_ANCHOR" Carry.anchor;
        "CARRY_LOWEST" Carry.lowest;
        "CARRY_MANTISSA" Carry.mantissa;
        "CARRY_EXPONENT" Carry.exponent;
        "RESULT_FLAGS" RowResult.flags;
        "RESULT_LIVE" RowResult.live;
        "RESULT_MASS" RowResult.mass;
        "RESULT_MOMENT" RowResult.moment;
        "RESULT_ANCHOR" RowResult.anchor;
        "RESULT_CANDIDATES" RowResult.candidates;
        "RESULT_SORTED" RowResult.sorted;
        "RESULT_TOKEN" RowResult.token;
        "RESULT_KEY" RowResult.key;
        "RESULT_RANK" RowResult.rank;
        "RESULT_LOW" RowResult.low;
        "RESULT_HIGH" RowResult.high;
        "RESULT_TOTAL" RowResult.total;
        "RESULT_STAGES" RowResult.stages;
    };
    let sizes = [
        ("PARAM_WORDS", size_of::<RowParams>() / 4),
        ("STAGE_WORDS", size_of::<StageParams>() / 4),
        ("WORK_WORDS", size_of::<Work>() / 4),
        ("PLAN_WORDS", size_of::<Plan>() / 4),
        ("CARRY_WORDS", size_of::<Carry>() / 4),
        ("RESULT_WORDS", size_of::<RowResult>() / 4),
        ("RESULT_STAGE_WORDS", size_of::<StageResult>() / 4),
    ];
    let values = [
        ("SORTED", SORTED),
        ("BINS", BINS),
        ("BIN_BITS", BINS.ilog2()),
        ("ID_BITS", ID_BITS),
        ("PHASE_PREPARE", phase::PREPARE),
        ("PHASE_WEIGH", phase::WEIGH),
        ("PHASE_PLAN", phase::PLAN),
        ("PHASE_GATHER", phase::GATHER),
        ("PHASE_RESOLVE", phase::RESOLVE),
        ("OP_REMOVE", op::REMOVE),
        ("OP_ADD", op::ADD),
        ("OP_PENALISE", op::PENALISE),
        ("OP_DIVIDE", op::DIVIDE),
        ("OP_MULTIPLY", op::MULTIPLY),
        ("STAGE_COUNT", stage::COUNT),
        ("STAGE_MASS", stage::MASS),
        ("STAGE_DISTANCE", stage::DISTANCE),
        ("STAGE_WEIGHT", stage::WEIGHT),
        ("STAGE_EXCLUDE", stage::EXCLUDE),
        ("STAGE_DRAW", stage::DRAW),
        ("STAGE_MEAN", stage::MEAN),
        ("STAGE_DEVIATIONS", stage::DEVIATIONS),
        ("SPREAD_NONE", spread::NONE),
        ("SPREAD_OF_A_SAMPLE", spread::OF_A_SAMPLE),
        ("FLAG_TIES", flag::TIES),
        ("FLAG_ABOVE", flag::ABOVE),
        ("FLAG_ORIGINAL", flag::ORIGINAL),
        ("RESULT_FAULT", result::FAULT),
        ("RESULT_EMPTY", result::EMPTY),
        ("CUT_LAST", 1),
        ("CUT_FIRST", 2),
        ("CUT_ODD", 4),
        ("PASS_DISTANCE", 0),
        ("PASS_WEIGHT", 1),
        ("PASS_KEY", 2),
    ];
    let values = values.into_iter().map(|(name, value)| (name, value as usize));
    offsets.into_iter().chain(sizes).chain(values).collect()
}
