// gather: the tokens of the marked bins, in no particular order.
//
// CPU twin  the collection of candidates in Logits::cut.
// Dispatch  x = ceil(V / TILE) workgroups, y = B rows. One atomic a workgroup finds the place.
// Numerics  Copies only.

@group(0) @binding(0) var<storage, read> params: array<u32>;                  // [B, PARAM_WORDS]
@group(0) @binding(2) var<storage, read> keys: array<u32>;                    // [B, V]
@group(0) @binding(3) var<storage, read_write> work: array<atomic<u32>>;      // [B, WORK_WORDS]
@group(0) @binding(4) var<storage, read> plans: array<u32>;                   // [B, PLAN_WORDS]
@group(0) @binding(5) var<storage, read_write> candidates: array<vec2<u32>>;  // [B, V] key, id with bin
@group(0) @binding(6) var<storage, read> carry: array<u32>;                   // [B, CARRY_WORDS]

var<workgroup> found: atomic<u32>;
var<workgroup> start: u32;

@compute @workgroup_size(WORKGROUP)
fn gather(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    if !has_phase(row, PHASE_GATHER) { return; }
    let q = row * PLAN_WORDS;
    let c = row * CARRY_WORDS;
    let vocabulary = params[row * PARAM_WORDS + PARAM_VOCABULARY];
    let mantissa = mantissa_of(row);
    let exponent = exponent_of(row);
    let odd = is_odd(row);
    let mean = Wide(carry[c + CARRY_MEAN], carry[c + CARRY_MEAN + 1u]);
    let highest = decode(score_of(plans[q + PLAN_HIGHEST]));
    let shift = plans[q + PLAN_SHIFT];
    let base = group.x * TILE + lane;
    var taken = 0u; // one bit a turn
    for (var turn = 0u; turn < TURNS; turn += 1u) {
        let i = base + turn * WORKGROUP;
        if i < vocabulary {
            let key = keys[row * vocabulary + i];
            if key != 0u {
                let distance = distance_of(highest, decode(score_of(key)), mantissa, exponent);
                let bin = bin_of(place_of(distance, mean, odd), shift);
                taken |= ((plans[q + PLAN_MARKS + (bin >> 5u)] >> (bin & 31u)) & 1u) << turn;
            }
        }
    }
    let own = countOneBits(taken);
    var place = 0u;
    if own > 0u { place = atomicAdd(&found, own); }
    workgroupBarrier();
    if lane == 0u {
        let all_found = atomicLoad(&found);
        if all_found > 0u { start = atomicAdd(&work[row * WORK_WORDS + WORK_CANDIDATES], all_found); }
    }
    workgroupBarrier();
    place += start + row * vocabulary;
    while taken != 0u {
        let i = base + firstTrailingBit(taken) * WORKGROUP;
        taken &= taken - 1u;
        let key = keys[row * vocabulary + i];
        let distance = distance_of(highest, decode(score_of(key)), mantissa, exponent);
        let bin = bin_of(place_of(distance, mean, odd), shift);
        candidates[place] = Wide(key, i | (bin << ID_BITS));
        place += 1u;
    }
}
