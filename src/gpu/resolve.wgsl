// resolve: the exact boundary of every stage, and the draw, from the gathered tokens.
//
// CPU twin  Logits::cut, the stages of transform/ that truncate, and Draw::by_mass.
// Dispatch  x = 1 workgroup, y = B rows.
// Numerics  Comparisons of integers. Few candidates are sorted; many are searched by radix over
//           (key, id), digit by digit, with a histogram of counts and masses. Both give the same
//           token for every rank and every mass, because the order is total.

@group(0) @binding(0) var<storage, read> params: array<u32>;           // [B, PARAM_WORDS]
@group(0) @binding(2) var<storage, read> keys: array<u32>;             // [B, V]
@group(0) @binding(3) var<storage, read> work: array<u32>;             // [B, WORK_WORDS]
@group(0) @binding(4) var<storage, read> plans: array<u32>;            // [B, PLAN_WORDS]
@group(0) @binding(5) var<storage, read> candidates: array<vec2<u32>>; // [B, V] key, id with bin
@group(0) @binding(6) var<storage, read_write> carry: array<u32>;      // [B, CARRY_WORDS]
@group(0) @binding(7) var<storage, read_write> results: array<u32>;    // [B, RESULT_WORDS]
@group(0) @binding(8) var<storage, read> edits: array<vec4<u32>>;      // token; those protected

const DIGITS: u32 = 256u;
const DIGITS_A_LANE: u32 = DIGITS / LANES;
const SORTED_A_LANE: u32 = SORTED / LANES;
const NOWHERE: u32 = 0xffffffffu;
const ASK_NOTHING: u32 = 0u;
const ASK_COUNT: u32 = 1u;
const ASK_RANK: u32 = 2u;
const ASK_MASS: u32 = 3u;

var<workgroup> sorted_key: array<u32, SORTED>;
var<workgroup> sorted_id: array<u32, SORTED>;
var<workgroup> digit_count: array<atomic<u32>, DIGITS>;
var<workgroup> digit_low: array<atomic<u32>, DIGITS>;
var<workgroup> digit_high: array<atomic<u32>, DIGITS>;

// The question that all lanes answer together, written by one of them.
var<workgroup> ask_bin: u32;
var<workgroup> ask_kind: u32;
var<workgroup> ask_rank: u32;
var<workgroup> ask_mass: Wide;
// The answer.
var<workgroup> passing_sum: atomic<u32>;
var<workgroup> told_count: u32;
var<workgroup> told_key: u32;
var<workgroup> told_id: u32;
var<workgroup> told_rank: u32;
var<workgroup> told_mass: Wide; // up to and including the token
// Which question is asked next.
var<workgroup> asked: u32;

// One lane's share of the sorted candidates.
var<private> own_rank: array<u32, SORTED_A_LANE>;
var<private> own_weight: array<Wide, SORTED_A_LANE>;
var<private> own_mass: array<Wide, SORTED_A_LANE>;

// Where a row lies, and how its distances are measured.
struct Row {
    plan: u32,
    start: u32,
    size: u32,
    highest: Decoded,
    mantissa: u32,
    exponent: i32,
    shift: u32,
    odd: bool,
    mean: Wide,
    sorts: bool,
}

fn id_of(packed: u32) -> u32 { return packed & ((1u << ID_BITS) - 1u); }
fn bin_in(packed: u32) -> u32 { return packed >> ID_BITS; }

fn distance_in(row: Row, key: u32) -> Wide {
    return distance_of(row.highest, decode(score_of(key)), row.mantissa, row.exponent);
}

fn count_before(row: Row, bin: u32) -> u32 {
    return plans[row.plan + PLAN_COUNT + bin];
}

fn mass_before(row: Row, bin: u32) -> Wide {
    return Wide(plans[row.plan + PLAN_MASS_LOW + bin], plans[row.plan + PLAN_MASS_HIGH + bin]);
}

// The bin of the token of a rank: the last with at most so many before it.
fn bin_of_rank(row: Row, rank: u32) -> u32 {
    var low = 0u;
    var high = BINS - 1u;
    while low < high {
        let middle = (low + high + 1u) / 2u;
        if count_before(row, middle) <= rank { low = middle; } else { high = middle - 1u; }
    }
    return low;
}

// The bin in which a mass is reached: the last with less before it.
fn bin_of_mass(row: Row, mass: Wide) -> u32 {
    var low = 0u;
    var high = BINS - 1u;
    while low < high {
        let middle = (low + high + 1u) / 2u;
        if wide_less(mass_before(row, middle), mass) { low = middle; } else { high = middle - 1u; }
    }
    return low;
}

// The last bin whose nearest distance weighs at least `floor`; the first if none does.
fn bin_of_weight(row: Row, floor: Wide) -> u32 {
    var first = 0u;
    var end = BINS;
    while end - first > 1u {
        let middle = (first + end) / 2u;
        if !wide_less(weight_of(wide_left(Wide(middle, 0u), row.shift)), floor) { first = middle; } else { end = middle; }
    }
    return first;
}

// Score descending, then id ascending.
fn comes_first(key_a: u32, id_a: u32, key_b: u32, id_b: u32) -> bool {
    return key_a > key_b || (key_a == key_b && id_a < id_b);
}

// Whether a protected token stands at a place of the order or before it.
fn protects(row: Row, first: u32, end: u32, key: u32, id: u32) -> bool {
    for (var i = first; i < end; i += 1u) {
        let token = edits[i].x;
        let own = keys[row.start + token];
        if own != 0u && !comes_first(key, id, own, token) { return true; }
    }
    return false;
}

// A bitonic sort of the first `size` places, a power of two.
fn sort(lane: u32, size: u32) {
    for (var block = 2u; block <= size; block <<= 1u) {
        for (var step = block >> 1u; step > 0u; step >>= 1u) {
            for (var pair = lane; pair < size / 2u; pair += LANES) {
                let a = ((pair & ~(step - 1u)) << 1u) | (pair & (step - 1u));
                let b = a | step;
                let key_a = sorted_key[a];
                let id_a = sorted_id[a];
                let key_b = sorted_key[b];
                let id_b = sorted_id[b];
                let ascending = (a & block) == 0u;
                if comes_first(key_b, id_b, key_a, id_a) == ascending {
                    sorted_key[a] = key_b;
                    sorted_id[a] = id_b;
                    sorted_key[b] = key_a;
                    sorted_id[b] = id_a;
                }
            }
            workgroupBarrier();
        }
    }
}

// Sorts the candidates; then each lane knows rank and mass of its share.
fn load_sorted(lane: u32, row: Row) {
    var size = LANES;
    while size < row.size { size <<= 1u; }
    for (var i = lane; i < size; i += LANES) {
        var candidate = Wide(0u, NOWHERE);
        if i < row.size { candidate = candidates[row.start + i]; }
        sorted_key[i] = candidate.x;
        sorted_id[i] = candidate.y;
    }
    workgroupBarrier();
    sort(lane, size);
    let share = size / LANES;
    var sum = Wide(0u, 0u);
    for (var i = 0u; i < SORTED_A_LANE; i += 1u) {
        let place = lane * share + i;
        own_rank[i] = NOWHERE;
        own_weight[i] = Wide(0u, 0u);
        if i < share && place < row.size {
            own_weight[i] = weight_of(distance_in(row, sorted_key[place]));
            sum = wide_add(sum, own_weight[i]);
        }
    }
    var running = sum_before(lane, 0u, sum).mass;
    for (var i = 0u; i < SORTED_A_LANE; i += 1u) {
        let place = lane * share + i;
        if i < share && place < row.size {
            let bin = bin_in(sorted_id[place]);
            running = wide_add(running, own_weight[i]);
            own_rank[i] = place + plans[row.plan + PLAN_SKIPPED + bin];
            let skipped = Wide(plans[row.plan + PLAN_SKIPPED_LOW + bin], plans[row.plan + PLAN_SKIPPED_HIGH + bin]);
            own_mass[i] = wide_add(running, skipped);
        }
    }
}

// A digit of a candidate's place in the order, the most significant level first: one level of
// high bits (only by oddness), four of low bits, three of the id.
fn digit_of(place: vec3<u32>, level: u32) -> u32 {
    if level == 0u { return place.x & 255u; }
    if level < 5u { return (place.y >> (32u - 8u * level)) & 255u; }
    return (place.z >> (16u - 8u * (level - 5u))) & 255u;
}

// Whether two places share every digit before a level.
fn same_before(a: vec3<u32>, b: vec3<u32>, level: u32) -> bool {
    if level == 0u { return true; }
    if a.x != b.x { return false; }
    if level == 1u { return true; }
    if level < 5u { return ((a.y ^ b.y) >> (40u - 8u * level)) == 0u; }
    if a.y != b.y { return false; }
    if level == 5u { return true; }
    return ((a.z ^ b.z) >> (24u - 8u * (level - 5u))) == 0u;
}

fn add_to_digit(digit: u32, value: Wide) {
    atomicAdd(&digit_count[digit], 1u);
    let old = atomicAdd(&digit_low[digit], value.x);
    let carried = value.y + select(0u, 1u, old + value.x < old);
    if carried != 0u { atomicAdd(&digit_high[digit], carried); }
}

// Counts a candidate in its digit, if it is in the bin and shares every digit before.
fn tally(row: Row, i: u32, bin: u32, place: vec3<u32>, level: u32, by_mass: bool) {
    if i >= row.size { return; }
    let candidate = candidates[row.start + i];
    if bin_in(candidate.y) != bin { return; }
    var own = vec3<u32>(0u, ~candidate.x, id_of(candidate.y));
    // By oddness the place is known only from the distance; else a stranger is spared it.
    if !row.odd && !same_before(own, place, level) { return; }
    var distance = Wide(0u, 0u);
    if row.odd || by_mass { distance = distance_in(row, candidate.x); }
    if row.odd {
        let odd = oddness(distance, row.mean);
        own = vec3<u32>(odd.y, odd.x, own.z);
        if !same_before(own, place, level) { return; }
    }
    var weight = Wide(0u, 0u);
    if by_mass { weight = weight_of(distance); }
    add_to_digit(digit_of(own, level), weight);
}

var<workgroup> hit_digit: u32;
var<workgroup> hit_count: u32;
var<workgroup> hit_mass: Wide;

// The token of a rank, or the first with which a mass is reached, by radix.
fn find_by_radix(lane: u32, row: Row, by_mass: bool) {
    let bin = workgroupUniformLoad(&ask_bin);
    var rank = workgroupUniformLoad(&ask_rank) - count_before(row, bin);
    var mass = workgroupUniformLoad(&ask_mass);
    if by_mass { mass = wide_sub(mass, mass_before(row, bin)); }
    var place = vec3<u32>(0u, 0u, 0u);
    var passed_count = count_before(row, bin);
    var passed_mass = mass_before(row, bin);
    for (var level = select(1u, 0u, row.odd); level < 8u; level += 1u) {
        for (var i = 0u; i < DIGITS_A_LANE; i += 1u) {
            let digit = lane * DIGITS_A_LANE + i;
            atomicStore(&digit_count[digit], 0u);
            atomicStore(&digit_low[digit], 0u);
            atomicStore(&digit_high[digit], 0u);
        }
        workgroupBarrier();
        // Two a turn: some drivers count the turns of a shader, and stop. Not more: others
        // compile every copy anew.
        for (var i = lane; i < row.size; i += 2u * LANES) {
            tally(row, i, bin, place, level, by_mass);
            tally(row, i + LANES, bin, place, level, by_mass);
        }
        workgroupBarrier();
        var own = Sum(0u, Wide(0u, 0u));
        for (var i = 0u; i < DIGITS_A_LANE; i += 1u) {
            let digit = lane * DIGITS_A_LANE + i;
            own.count += atomicLoad(&digit_count[digit]);
            own.mass = wide_add(own.mass, Wide(atomicLoad(&digit_low[digit]), atomicLoad(&digit_high[digit])));
        }
        var before = sum_before(lane, own.count, own.mass);
        for (var i = 0u; i < DIGITS_A_LANE; i += 1u) {
            let digit = lane * DIGITS_A_LANE + i;
            let after = Sum(
                before.count + atomicLoad(&digit_count[digit]),
                wide_add(before.mass, Wide(atomicLoad(&digit_low[digit]), atomicLoad(&digit_high[digit]))),
            );
            var hit = before.count <= rank && rank < after.count;
            if by_mass { hit = wide_less(before.mass, mass) && !wide_less(after.mass, mass); }
            if hit {
                hit_digit = digit;
                hit_count = before.count;
                hit_mass = before.mass;
            }
            before = after;
        }
        let digit = workgroupUniformLoad(&hit_digit);
        let skipped = workgroupUniformLoad(&hit_count);
        let skipped_mass = workgroupUniformLoad(&hit_mass);
        rank -= skipped;
        passed_count += skipped;
        if by_mass {
            mass = wide_sub(mass, skipped_mass);
            passed_mass = wide_add(passed_mass, skipped_mass);
        }
        if level == 0u { place.x = digit; }
        else if level < 5u { place.y |= digit << (32u - 8u * level); }
        else { place.z |= digit << (16u - 8u * (level - 5u)); }
    }
    // By oddness the key is not part of the place, so the token is looked up. By rank the mass
    // was not counted on the way, so it is now: that of everything up to the place.
    if lane == 0u {
        atomicStore(&digit_low[0], 0u);
        atomicStore(&digit_high[0], 0u);
    }
    workgroupBarrier();
    for (var i = lane; i < row.size; i += LANES) {
        let candidate = candidates[row.start + i];
        let id = id_of(candidate.y);
        let hit = id == place.z;
        let counts = !by_mass && !row.odd && bin_in(candidate.y) == bin && comes_first(candidate.x, id, ~place.y, place.z);
        if hit || counts {
            let weight = weight_of(distance_in(row, candidate.x));
            if hit {
                told_key = candidate.x;
                told_id = id;
                told_rank = passed_count;
                passed_mass = wide_add(passed_mass, weight);
                told_mass = passed_mass;
            } else {
                add_to_digit(0u, weight);
            }
        }
    }
    workgroupBarrier();
    if lane == 0u && !by_mass {
        told_mass = wide_add(told_mass, Wide(atomicLoad(&digit_low[0]), atomicLoad(&digit_high[0])));
    }
    workgroupBarrier();
}

// Answers ask_rank or ask_mass. Every lane must call it.
fn find(lane: u32, row: Row, by_mass: bool) {
    if lane == 0u {
        if by_mass { ask_bin = bin_of_mass(row, ask_mass); } else { ask_bin = bin_of_rank(row, ask_rank); }
    }
    workgroupBarrier();
    if !row.sorts {
        find_by_radix(lane, row, by_mass);
        return;
    }
    let rank = workgroupUniformLoad(&ask_rank);
    let mass = workgroupUniformLoad(&ask_mass);
    let share = max(LANES, row.size);
    for (var i = 0u; i < SORTED_A_LANE; i += 1u) {
        if own_rank[i] == NOWHERE { continue; }
        var hit = own_rank[i] == rank;
        if by_mass {
            hit = wide_less(wide_sub(own_mass[i], own_weight[i]), mass) && !wide_less(own_mass[i], mass);
        }
        if hit {
            var size = LANES;
            while size < share { size <<= 1u; }
            let place = lane * (size / LANES) + i;
            told_key = sorted_key[place];
            told_id = id_of(sorted_id[place]);
            told_rank = own_rank[i];
            told_mass = own_mass[i];
        }
    }
    workgroupBarrier();
}

// How many tokens of the row stand before those of ask_bin that fail: by distance at most
// ask_mass, by weight at least ask_mass, or by key at least ask_rank.
fn count_passing(lane: u32, row: Row) {
    if lane == 0u { atomicStore(&passing_sum, count_before(row, ask_bin)); }
    let bin = workgroupUniformLoad(&ask_bin);
    let kind = workgroupUniformLoad(&ask_kind);
    let limit = workgroupUniformLoad(&ask_mass);
    let least_key = workgroupUniformLoad(&ask_rank);
    var passing = 0u;
    for (var i = lane; i < row.size; i += LANES) {
        let candidate = candidates[row.start + i];
        if bin_in(candidate.y) != bin { continue; }
        var passes = candidate.x >= least_key;
        if kind != PASS_KEY {
            let distance = distance_in(row, candidate.x);
            if kind == PASS_DISTANCE { passes = !wide_less(limit, distance); }
            else { passes = !wide_less(weight_of(distance), limit); }
        }
        if passes { passing += 1u; }
    }
    if passing > 0u { atomicAdd(&passing_sum, passing); }
    workgroupBarrier();
    if lane == 0u { told_count = atomicLoad(&passing_sum); }
    workgroupBarrier();
}

@compute @workgroup_size(LANES)
fn resolve(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group.y;
    if !has_phase(index, PHASE_RESOLVE) { return; }
    let p = index * PARAM_WORDS;
    let q = index * PLAN_WORDS;
    let c = index * CARRY_WORDS;
    let r = index * RESULT_WORDS;
    let size = work[index * WORK_WORDS + WORK_CANDIDATES];
    // Where nothing was gathered no stage cuts, which is a result, too.
    if plans[q + PLAN_LIVE] == 0u { return; }
    let odd = is_odd(index);
    let row = Row(
        q, index * params[p + PARAM_VOCABULARY], size,
        decode(score_of(plans[q + PLAN_HIGHEST])), mantissa_of(index), exponent_of(index),
        plans[q + PLAN_SHIFT], odd, Wide(plans[q + PLAN_MEAN], plans[q + PLAN_MEAN + 1u]),
        size <= min(params[p + PARAM_SORTED], SORTED) && !odd,
    );
    let original = Wide(plans[q + PLAN_ORIGINAL], plans[q + PLAN_ORIGINAL + 1u]);
    if lane == 0u {
        results[r + RESULT_CANDIDATES] = size;
        results[r + RESULT_SORTED] = select(0u, 1u, row.sorts);
    }
    if row.sorts { load_sorted(lane, row); }

    // What the stages so far have kept. The first lane decides; all lanes search.
    var kept = plans[q + PLAN_LIVE];
    var kept_mass = Wide(plans[q + PLAN_TOTAL], plans[q + PLAN_TOTAL + 1u]);
    var last_key = 0u;
    var last_id = NOWHERE;
    let stages = params[p + PARAM_STAGES];
    for (var stage = 0u; stage < stages; stage += 1u) {
        let s = p + PARAM_HEADER + stage * STAGE_WORDS;
        let op = params[s];
        let flags = params[s + 1u];
        let operand = Wide(params[s + 2u], params[s + 3u]);
        let min_keep = params[s + 4u];
        let slot = params[s + 5u];
        let second = Wide(params[s + 6u], params[s + 7u]);
        let by_limit = op == STAGE_DISTANCE || op == STAGE_DEVIATIONS || op == STAGE_WEIGHT
            || op == STAGE_MEAN || op == STAGE_EXCLUDE;
        let cuts = op != STAGE_DRAW && op != STAGE_EXCLUDE;
        let before = kept;
        let before_mass = kept_mass;
        var wanted = kept;
        var known = false;
        var passing = 0u;
        var ties = false;
        // A stage needs at most three counts and three searches: by its own limit, for the end
        // of what it keeps, and for ties with that end. Each stands once in this text, because
        // drivers copy what is called.
        for (var turn = 0u; turn < 3u; turn += 1u) {
            if lane == 0u {
                asked = ASK_NOTHING;
                if turn == 0u && by_limit {
                    asked = ASK_COUNT;
                    ask_mass = operand;
                    ask_kind = PASS_DISTANCE;
                    ask_bin = bin_of(operand, row.shift);
                    if op == STAGE_DEVIATIONS {
                        ask_rank = plans[q + PLAN_REACH_KEY];
                        ask_kind = PASS_KEY;
                        ask_bin = bin_of(Wide(plans[q + PLAN_REACH], plans[q + PLAN_REACH + 1u]), row.shift);
                    } else if op != STAGE_DISTANCE {
                        ask_mass = share_of(operand, before_mass);
                        ask_kind = PASS_WEIGHT;
                        ask_bin = bin_of_weight(row, ask_mass);
                    }
                } else if turn == 1u && op == STAGE_MEAN {
                    asked = ASK_COUNT;
                    ask_mass = wide_min(wide_add(row.mean, second), FARTHEST);
                    ask_kind = PASS_DISTANCE;
                    ask_bin = bin_of(ask_mass, row.shift);
                } else if turn == 2u && ties {
                    asked = ASK_COUNT;
                    ask_rank = last_key;
                    ask_kind = PASS_KEY;
                    ask_bin = bin_of_rank(row, kept - 1u);
                }
            }
            if workgroupUniformLoad(&asked) == ASK_COUNT { count_passing(lane, row); }
            if lane == 0u {
                let counted = min(told_count, before);
                if turn == 0u {
                    passing = counted;
                    asked = ASK_NOTHING;
                    if op == STAGE_DRAW {
                        asked = ASK_MASS;
                        ask_mass = wide_add(wide_high(operand, before_mass), Wide(1u, 0u));
                    } else if op == STAGE_MASS {
                        var whole = before_mass;
                        if (flags & FLAG_ORIGINAL) != 0u { whole = original; }
                        var share = share_of(operand, whole);
                        if (flags & FLAG_ABOVE) != 0u { share = share_above(operand, whole); }
                        // By oddness a mass out of reach keeps everything, weightless tokens too.
                        if !odd || !wide_less(before_mass, share) {
                            asked = ASK_MASS;
                            ask_mass = wide_max(wide_min(share, before_mass), Wide(1u, 0u));
                        }
                    } else if op == STAGE_EXCLUDE {
                        let excluded = max(passing, 1u) - 1u;
                        if excluded > 0u && before - excluded >= min_keep {
                            asked = ASK_RANK;
                            ask_rank = excluded - 1u;
                        }
                    }
                } else if turn == 1u {
                    if op == STAGE_MEAN { passing = max(passing, counted); }
                    if op == STAGE_COUNT { wanted = min(operand.x, before); }
                    if by_limit { wanted = min(max(max(passing, 1u), min_keep), before); }
                    asked = ASK_NOTHING;
                    if cuts && wanted < before && !known {
                        asked = ASK_RANK;
                        ask_rank = wanted - 1u;
                    }
                } else {
                    asked = ASK_NOTHING;
                    if ties {
                        wanted = counted;
                        if wanted > kept && wanted < before {
                            asked = ASK_RANK;
                            ask_rank = wanted - 1u;
                        }
                    }
                }
            }
            let question = workgroupUniformLoad(&asked);
            if question != ASK_NOTHING { find(lane, row, question == ASK_MASS); }
            if lane == 0u {
                if turn == 0u && op == STAGE_DRAW {
                    let low = wide_sub(told_mass, weight_of(distance_in(row, told_key)));
                    results[r + RESULT_TOKEN] = told_id;
                    results[r + RESULT_KEY] = told_key;
                    results[r + RESULT_RANK] = told_rank;
                    results[r + RESULT_LOW] = low.x;
                    results[r + RESULT_LOW + 1u] = low.y;
                    results[r + RESULT_HIGH] = told_mass.x;
                    results[r + RESULT_HIGH + 1u] = told_mass.y;
                    results[r + RESULT_TOTAL] = before_mass.x;
                    results[r + RESULT_TOTAL + 1u] = before_mass.y;
                } else if turn == 0u && question == ASK_MASS {
                    let least = min(min_keep, before);
                    wanted = max(told_rank + 1u, least);
                    known = wanted == told_rank + 1u;
                } else if turn == 0u && question == ASK_RANK {
                    if !protects(row, second.x, second.y, told_key, told_id) {
                        carry[c + CARRY_FLAGS] |= CUT_FIRST;
                        carry[c + CARRY_FIRST_KEY] = told_key;
                        carry[c + CARRY_FIRST_ID] = told_id;
                    }
                } else if turn == 1u && cuts && wanted < before {
                    if odd {
                        let limit = oddness(distance_in(row, told_key), row.mean);
                        carry[c + CARRY_FLAGS] |= CUT_ODD;
                        carry[c + CARRY_ODD] = limit.x;
                        carry[c + CARRY_ODD + 1u] = limit.y;
                        carry[c + CARRY_ODD_ID] = select(told_id, NOWHERE, (flags & FLAG_TIES) != 0u);
                    } else {
                        kept = wanted;
                        kept_mass = told_mass;
                        last_key = told_key;
                        last_id = told_id;
                        ties = (flags & FLAG_TIES) != 0u && (op == STAGE_COUNT || passing < min_keep);
                    }
                } else if turn == 2u && ties && wanted > kept {
                    kept = wanted;
                    if wanted < before {
                        kept_mass = told_mass;
                        last_key = told_key;
                        last_id = told_id;
                    } else {
                        kept_mass = before_mass;
                        last_id = NOWHERE;
                    }
                }
            }
        }
        if lane == 0u && cuts && !odd {
            if kept < before {
                carry[c + CARRY_FLAGS] |= CUT_LAST;
                carry[c + CARRY_LAST_KEY] = last_key;
                carry[c + CARRY_LAST_ID] = last_id;
            }
            let o = r + RESULT_STAGES + slot * RESULT_STAGE_WORDS;
            results[o] = kept;
            results[o + 1u] = kept_mass.x;
            results[o + 2u] = kept_mass.y;
            results[o + 3u] = last_id;
        }
    }
}
