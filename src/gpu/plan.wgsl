// plan: which bins may hold a boundary of some stage, without knowing the boundary yet.
//
// CPU twin  none: it decides nothing. A bin too many costs time; a bin too few would be seen by
//           the twin suite.
// Dispatch  x = 1 workgroup, y = B rows.
// Numerics  The mass kept by the stages so far is known only to lie in an interval, because a
//           boundary inside a bin is not resolved here. Everything that follows from that mass
//           is computed for both ends; both ends are monotone in it.

@group(0) @binding(0) var<storage, read> params: array<u32>;        // [B, PARAM_WORDS]
@group(0) @binding(3) var<storage, read> work: array<u32>;          // [B, WORK_WORDS]
@group(0) @binding(4) var<storage, read_write> plans: array<u32>;   // [B, PLAN_WORDS]
@group(0) @binding(6) var<storage, read_write> carry: array<u32>;   // [B, CARRY_WORDS]
@group(0) @binding(7) var<storage, read_write> results: array<u32>; // [B, RESULT_WORDS]

const BINS_A_LANE: u32 = BINS / LANES;

var<workgroup> upto_count: array<u32, BINS>; // bins up to and including this one
var<workgroup> upto_low: array<u32, BINS>;
var<workgroup> upto_high: array<u32, BINS>;
var<workgroup> marks: array<atomic<u32>, 32>;

fn mass_upto(bin: u32) -> Wide {
    return Wide(upto_low[bin], upto_high[bin]);
}

fn mass_before(bin: u32) -> Wide {
    if bin == 0u { return Wide(0u, 0u); }
    return mass_upto(bin - 1u);
}

fn count_before(bin: u32) -> u32 {
    if bin == 0u { return 0u; }
    return upto_count[bin - 1u];
}

// The bin of the token of a rank, from 0.
fn bin_of_rank(rank: u32) -> u32 {
    var low = 0u;
    var high = BINS - 1u;
    while low < high {
        let middle = (low + high) / 2u;
        if upto_count[middle] > rank { high = middle; } else { low = middle + 1u; }
    }
    return low;
}

// The first bin with which the mass is reached.
fn bin_of_mass(mass: Wide) -> u32 {
    var low = 0u;
    var high = BINS - 1u;
    while low < high {
        let middle = (low + high) / 2u;
        if !wide_less(mass_upto(middle), mass) { high = middle; } else { low = middle + 1u; }
    }
    return low;
}

// The bin of the token that stands `back` places before the first of a bin.
fn bin_back(bin: u32, back: u32) -> u32 {
    let before = count_before(bin);
    if before < back { return bin_of_rank(0u); }
    return bin_of_rank(before - back);
}

fn mark(first: u32, last: u32) {
    for (var bin = first; bin <= last; bin += 1u) {
        atomicOr(&marks[bin >> 5u], 1u << (bin & 31u));
    }
}

fn clamped(mass: Wide, most: Wide) -> Wide {
    return wide_max(wide_min(mass, most), Wide(1u, 0u));
}

// The least key that is no farther below the highest than the deviations of the round's first
// stage reach. Keys between two scores are scores.
fn key_in_reach(row: u32, highest: u32, lowest: u32, live: u32) -> u32 {
    let p = row * PARAM_WORDS;
    let s = row * WORK_WORDS + WORK_SPREAD;
    let vocabulary = params[p + PARAM_VOCABULARY];
    let spread = params[p + PARAM_SPREAD];
    let ends = ends_of(highest, lowest, counts_dead(spread, live, vocabulary));
    let top = decode(score_of(ends.x));
    let unit = spread_exponent(top, decode(score_of(ends.y)));
    let squares = triple_add(vec3<u32>(work[s + 2u], work[s + 3u], 0u), vec3<u32>(0u, work[s + 4u], work[s + 5u]));
    var count = live;
    var degrees = live;
    if spread == SPREAD_OF_A_SAMPLE {
        count = vocabulary;
        degrees = vocabulary - 1u;
    }
    let deviation = deviation_of(Wide(work[s], work[s + 1u]), squares, count, degrees);
    let steps = Wide(params[p + PARAM_HEADER + 2u], params[p + PARAM_HEADER + 3u]);
    // 43 bits and 32 bits, of which 32 are a fraction.
    let reach = wide_high(wide_left(steps, 20u), wide_left(Wide(deviation, 0u), 12u));
    var farthest = Wide(0u, 0u);
    var low = lowest;
    var high = highest;
    // The first turn asks for the highest score, whose distance the reach begins at.
    for (var key = highest; low < high; key = low + (high - low) / 2u) {
        let below = distance_of(top, decode(score_of(key)), SPREAD_MANTISSA, unit);
        if key == highest { farthest = wide_add(below, reach); }
        else if wide_less(farthest, below) { low = key + 1u; }
        else { high = key; }
    }
    return low;
}

// Brackets every stage of the round. One lane; a search takes ten turns.
fn bracket(row: u32, live: u32, shift: u32, original: Wide, mean: Wide, reach: Wide) {
    let p = row * PARAM_WORDS;
    let odd = is_odd(row);
    let total = mass_upto(BINS - 1u);
    // The last kept token lies in bins low..=high; BINS says that nothing was cut.
    var low = BINS;
    var high = BINS;
    var least = total;
    var most = total;
    let stages = params[p + PARAM_STAGES];
    for (var stage = 0u; stage < stages; stage += 1u) {
        let s = p + PARAM_HEADER + stage * STAGE_WORDS;
        let op = params[s];
        let flags = params[s + 1u];
        let operand = Wide(params[s + 2u], params[s + 3u]);
        let min_keep = params[s + 4u];
        if op == STAGE_DRAW {
            let from_bin = bin_of_mass(wide_add(wide_high(operand, least), Wide(1u, 0u)));
            let to_bin = bin_of_mass(wide_add(wide_high(operand, most), Wide(1u, 0u)));
            mark(from_bin, min(max(from_bin, to_bin), BINS - 1u));
            continue;
        }
        var target_low = BINS;
        var target_high = BINS;
        var floor = Wide(0u, 0u);
        var ceiling = Wide(0xffffffffu, 0xffffffffu);
        if op == STAGE_COUNT {
            if operand.x < live {
                target_low = bin_of_rank(operand.x - 1u);
                target_high = target_low;
            }
        } else if op == STAGE_MASS {
            var of_least = least;
            var of_most = most;
            if (flags & FLAG_ORIGINAL) != 0u {
                of_least = original;
                of_most = original;
            }
            var wanted_least: Wide;
            var wanted_most: Wide;
            if (flags & FLAG_ABOVE) != 0u {
                wanted_least = clamped(share_above(operand, of_least), least);
                wanted_most = clamped(share_above(operand, of_most), most);
            } else {
                wanted_least = clamped(share_of(operand, of_least), least);
                wanted_most = clamped(share_of(operand, of_most), most);
            }
            target_low = bin_of_mass(wanted_least);
            target_high = bin_of_mass(wanted_most);
            if min_keep <= 1u {
                // What is kept exceeds what is wanted by less than the crossing token's weight.
                floor = wanted_least;
                if !odd {
                    ceiling = wide_add(wanted_most, weight_of(wide_left(Wide(target_low, 0u), shift)));
                }
            }
        } else if op == STAGE_DISTANCE || op == STAGE_DEVIATIONS {
            target_high = bin_of(select(operand, reach, op == STAGE_DEVIATIONS), shift);
            target_low = bin_back(target_high, 1u);
        } else {
            // By weight: the last bin whose nearest distance still weighs enough.
            let floor_least = share_of(operand, least);
            let floor_most = share_of(operand, most);
            var first = 0u;
            var end = BINS;
            while end - first > 1u {
                let middle = (first + end) / 2u;
                if !wide_less(weight_of(wide_left(Wide(middle, 0u), shift)), floor_most) { first = middle; } else { end = middle; }
            }
            var nearest = first;
            end = BINS;
            while end - first > 1u {
                let middle = (first + end) / 2u;
                if !wide_less(weight_of(wide_left(Wide(middle, 0u), shift)), floor_least) { first = middle; } else { end = middle; }
            }
            target_high = first;
            if op == STAGE_MEAN {
                let second = Wide(params[s + 6u], params[s + 7u]);
                let reach = bin_of(wide_min(wide_add(mean, second), FARTHEST), shift);
                nearest = max(nearest, reach);
                target_high = max(target_high, reach);
            }
            target_low = bin_back(nearest, select(1u, 2u, op == STAGE_EXCLUDE));
            if op == STAGE_EXCLUDE {
                mark(target_low, target_high);
                // If all that is kept qualifies, the last but one is looked for, too.
                if low < BINS { mark(bin_back(low, 1u), high); }
                continue;
            }
        }
        if min_keep > 1u || op == STAGE_WEIGHT || op == STAGE_MEAN {
            let kept = bin_of_rank(min(max(min_keep, 1u), live) - 1u);
            mark(kept, kept);
            if target_low < BINS {
                mark(target_low, target_high);
                target_low = max(target_low, kept);
                target_high = max(target_high, kept);
            }
        }
        if target_low < BINS {
            low = min(low, target_low);
            high = min(high, target_high);
            mark(low, high);
            least = wide_min(least, wide_max(mass_before(low), floor));
            most = wide_min(most, wide_min(mass_upto(high), ceiling));
        }
    }
}

@compute @workgroup_size(LANES)
fn plan(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    if !has_phase(row, PHASE_PLAN) { return; }
    let p = row * PARAM_WORDS;
    let w = row * WORK_WORDS;
    let q = row * PLAN_WORDS;
    let c = row * CARRY_WORDS;
    let r = row * RESULT_WORDS;
    let odd = is_odd(row);
    var counts: array<u32, BINS_A_LANE>;
    var masses: array<Wide, BINS_A_LANE>;
    var own = Sum(0u, Wide(0u, 0u));
    for (var i = 0u; i < BINS_A_LANE; i += 1u) {
        let bin = lane * BINS_A_LANE + i;
        counts[i] = work[w + WORK_COUNT + bin];
        masses[i] = Wide(work[w + WORK_MASS_LOW + bin], work[w + WORK_MASS_HIGH + bin]);
        own = Sum(own.count + counts[i], wide_add(own.mass, masses[i]));
    }
    var before = sum_before(lane, own.count, own.mass);
    for (var i = 0u; i < BINS_A_LANE; i += 1u) {
        let bin = lane * BINS_A_LANE + i;
        plans[q + PLAN_COUNT + bin] = before.count;
        plans[q + PLAN_MASS_LOW + bin] = before.mass.x;
        plans[q + PLAN_MASS_HIGH + bin] = before.mass.y;
        before = Sum(before.count + counts[i], wide_add(before.mass, masses[i]));
        upto_count[bin] = before.count;
        upto_low[bin] = before.mass.x;
        upto_high[bin] = before.mass.y;
    }
    workgroupBarrier();
    if lane == 0u {
        let live = upto_count[BINS - 1u];
        let total = mass_upto(BINS - 1u);
        var highest = work[w + WORK_HIGHEST];
        var lowest = ~work[w + WORK_LOWEST];
        var mean = Wide(carry[c + CARRY_MEAN], carry[c + CARRY_MEAN + 1u]);
        var original = Wide(carry[c + CARRY_ORIGINAL], carry[c + CARRY_ORIGINAL + 1u]);
        if odd {
            highest = carry[c + CARRY_ANCHOR];
            lowest = carry[c + CARRY_LOWEST];
        } else {
            let dropped = (carry[c + CARRY_FLAGS] & CUT_FIRST) != 0u;
            let fresh = params[p + PARAM_FRESH] != 0u;
            let touched = work[w + WORK_TOUCHED] != 0u;
            if fresh || touched || dropped || highest != carry[c + CARRY_ANCHOR] { original = total; }
            let moment = Wide(work[w + WORK_MOMENT], work[w + WORK_MOMENT + 1u]);
            if live > 0u && params[p + PARAM_MEAN] != 0u { mean = mean_of(moment, total); }
            carry[c + CARRY_ANCHOR] = highest;
            carry[c + CARRY_LOWEST] = lowest;
            carry[c + CARRY_MEAN] = mean.x;
            carry[c + CARRY_MEAN + 1u] = mean.y;
            carry[c + CARRY_ORIGINAL] = original.x;
            carry[c + CARRY_ORIGINAL + 1u] = original.y;
            carry[c + CARRY_MANTISSA] = mantissa_of(row);
            carry[c + CARRY_EXPONENT] = bitcast<u32>(exponent_of(row));
            if params[p + PARAM_SOURCE] == 0u {
                results[r + RESULT_FLAGS] = 0u;
                results[r + RESULT_LIVE] = live;
                results[r + RESULT_MASS] = total.x;
                results[r + RESULT_MASS + 1u] = total.y;
                results[r + RESULT_MOMENT] = moment.x;
                results[r + RESULT_MOMENT + 1u] = moment.y;
            }
            if work[w + WORK_FAULT] != 0u { results[r + RESULT_FLAGS] |= RESULT_FAULT; }
            if live == 0u { results[r + RESULT_FLAGS] |= RESULT_EMPTY; }
            results[r + RESULT_ANCHOR] = highest;
            // What the stage that ended the round before has left, known only now.
            let slot = params[p + PARAM_REPORT];
            if slot != 0u {
                let o = r + RESULT_STAGES + (slot - 1u) * RESULT_STAGE_WORDS;
                results[o] = live;
                results[o + 1u] = total.x;
                results[o + 2u] = total.y;
                results[o + 3u] = 0xffffffffu;
            }
        }
        carry[c + CARRY_FLAGS] = 0u;
        let farthest = distance_of(
            decode(score_of(highest)), decode(score_of(lowest)), mantissa_of(row), exponent_of(row),
        );
        let shift = shift_for(farthest, mean, odd);
        plans[q + PLAN_SHIFT] = shift;
        plans[q + PLAN_LIVE] = live;
        plans[q + PLAN_TOTAL] = total.x;
        plans[q + PLAN_TOTAL + 1u] = total.y;
        plans[q + PLAN_ORIGINAL] = original.x;
        plans[q + PLAN_ORIGINAL + 1u] = original.y;
        plans[q + PLAN_HIGHEST] = highest;
        plans[q + PLAN_MEAN] = mean.x;
        plans[q + PLAN_MEAN + 1u] = mean.y;
        var reach = Wide(0u, 0u);
        if live > 0u && params[p + PARAM_SPREAD] != SPREAD_NONE {
            let key = key_in_reach(row, highest, lowest, live);
            reach = distance_of(decode(score_of(highest)), decode(score_of(key)), mantissa_of(row), exponent_of(row));
            plans[q + PLAN_REACH_KEY] = key;
            plans[q + PLAN_REACH] = reach.x;
            plans[q + PLAN_REACH + 1u] = reach.y;
        }
        if live > 0u { bracket(row, live, shift, original, mean, reach); }
    }
    workgroupBarrier();
    own = Sum(0u, Wide(0u, 0u));
    for (var i = 0u; i < BINS_A_LANE; i += 1u) {
        let bin = lane * BINS_A_LANE + i;
        if ((atomicLoad(&marks[bin >> 5u]) >> (bin & 31u)) & 1u) == 0u {
            counts[i] = 0u;
            masses[i] = Wide(0u, 0u);
        }
        own = Sum(own.count + counts[i], wide_add(own.mass, masses[i]));
    }
    before = sum_before(lane, own.count, own.mass);
    // What takes a rank and a mass among the gathered tokens to those among all.
    for (var i = 0u; i < BINS_A_LANE; i += 1u) {
        let bin = lane * BINS_A_LANE + i;
        plans[q + PLAN_SKIPPED + bin] = count_before(bin) - before.count;
        let skipped = wide_sub(mass_before(bin), before.mass);
        plans[q + PLAN_SKIPPED_LOW + bin] = skipped.x;
        plans[q + PLAN_SKIPPED_HIGH + bin] = skipped.y;
        before = Sum(before.count + counts[i], wide_add(before.mass, masses[i]));
    }
    if lane < 32u { plans[q + PLAN_MARKS + lane] = atomicLoad(&marks[lane]); }
}
