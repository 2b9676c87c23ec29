// weigh: how many tokens and how much mass lie in each bin of distance, the sum of moments, and
// the sums that a deviation needs.
//
// CPU twin  the loop of Logits::refresh, and that of deviation in transform/top_n_sigma.rs.
// Dispatch  x = ceil(V / TILE) workgroups, y = B rows. Sums meet in atomics.
// Numerics  Integer sums, exact in any order. A 64-bit sum is a low and a high word; whoever
//           makes the low word wrap adds one to the high word, so the total is exact once all
//           have added.

@group(0) @binding(0) var<storage, read> params: array<u32>;             // [B, PARAM_WORDS]
@group(0) @binding(2) var<storage, read> keys: array<u32>;               // [B, V]
@group(0) @binding(3) var<storage, read_write> work: array<atomic<u32>>; // [B, WORK_WORDS]
@group(0) @binding(6) var<storage, read> carry: array<u32>;              // [B, CARRY_WORDS]

var<workgroup> count: array<atomic<u32>, BINS>;
var<workgroup> mass_low: array<atomic<u32>, BINS>;
var<workgroup> mass_high: array<atomic<u32>, BINS>;
// Of moments; of the distances of a deviation, and of the halves of their squares.
var<workgroup> sums: array<atomic<u32>, 8>;

fn add_to_bin(bin: u32, value: Wide) {
    let old = atomicAdd(&mass_low[bin], value.x);
    let carried = value.y + select(0u, 1u, old + value.x < old);
    if carried != 0u { atomicAdd(&mass_high[bin], carried); }
}

fn add_to_sum(which: u32, value: Wide) {
    let old = atomicAdd(&sums[2u * which], value.x);
    let carried = value.y + select(0u, 1u, old + value.x < old);
    if carried != 0u { atomicAdd(&sums[2u * which + 1u], carried); }
}

fn add_to_row(low: u32, high: u32, value: Wide) {
    let old = atomicAdd(&work[low], value.x);
    let carried = value.y + select(0u, 1u, old + value.x < old);
    if carried != 0u { atomicAdd(&work[high], carried); }
}

@compute @workgroup_size(WORKGROUP)
fn weigh(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    if !has_phase(row, PHASE_WEIGH) { return; }
    let w = row * WORK_WORDS;
    let c = row * CARRY_WORDS;
    let vocabulary = params[row * PARAM_WORDS + PARAM_VOCABULARY];
    let mantissa = mantissa_of(row);
    let exponent = exponent_of(row);
    let odd = is_odd(row);
    let mean = Wide(carry[c + CARRY_MEAN], carry[c + CARRY_MEAN + 1u]);
    // A round by oddness goes on with the ends that the round before it found.
    var highest_key = atomicLoad(&work[w + WORK_HIGHEST]);
    var lowest_key = ~atomicLoad(&work[w + WORK_LOWEST]);
    if odd {
        highest_key = carry[c + CARRY_ANCHOR];
        lowest_key = carry[c + CARRY_LOWEST];
    }
    let highest = decode(score_of(highest_key));
    let farthest = distance_of(highest, decode(score_of(lowest_key)), mantissa, exponent);
    let shift = shift_for(farthest, mean, odd);
    let base = group.x * TILE;
    let end = min(base + TILE, vocabulary);
    let spread = params[row * PARAM_WORDS + PARAM_SPREAD];
    let with_dead = counts_dead(spread, atomicLoad(&work[w + WORK_LIVE]), vocabulary);
    let ends = ends_of(highest_key, lowest_key, with_dead);
    let top = decode(score_of(ends.x));
    var unit = 0i;
    if spread != SPREAD_NONE { unit = spread_exponent(top, decode(score_of(ends.y))); }
    var moments = Wide(0u, 0u);
    var distances = Wide(0u, 0u);
    var low_squares = Wide(0u, 0u);
    var high_squares = Wide(0u, 0u);
    for (var i = base + lane; i < end; i += WORKGROUP) {
        let key = keys[row * vocabulary + i];
        if key != 0u {
            let distance = distance_of(highest, decode(score_of(key)), mantissa, exponent);
            let bin = bin_of(place_of(distance, mean, odd), shift);
            atomicAdd(&count[bin], 1u);
            if distance.y < OCTAVES {
                add_to_bin(bin, weight_of(distance));
                moments = wide_add(moments, moment_of(distance));
            }
        }
        if spread != SPREAD_NONE && (key != 0u || with_dead) {
            let score = decode(score_of(select(key, ZERO_KEY, key == 0u)));
            let below = distance_of(top, score, SPREAD_MANTISSA, unit).x;
            let square = product(below, below);
            distances = wide_add(distances, Wide(below, 0u));
            low_squares = wide_add(low_squares, Wide(square.x, 0u));
            high_squares = wide_add(high_squares, Wide(square.y, 0u));
        }
    }
    add_to_sum(0u, moments);
    if spread != SPREAD_NONE {
        add_to_sum(1u, distances);
        add_to_sum(2u, low_squares);
        add_to_sum(3u, high_squares);
    }
    workgroupBarrier();
    for (var bin = lane; bin < BINS; bin += WORKGROUP) {
        let counted = atomicLoad(&count[bin]);
        if counted != 0u {
            atomicAdd(&work[w + WORK_COUNT + bin], counted);
            add_to_row(
                w + WORK_MASS_LOW + bin, w + WORK_MASS_HIGH + bin,
                Wide(atomicLoad(&mass_low[bin]), atomicLoad(&mass_high[bin])),
            );
        }
    }
    if lane < 4u {
        let word = 2u * lane;
        // The words of a deviation lie behind the moment's.
        add_to_row(
            w + WORK_MOMENT + word, w + WORK_MOMENT + word + 1u,
            Wide(atomicLoad(&sums[word]), atomicLoad(&sums[word + 1u])),
        );
    }
}
