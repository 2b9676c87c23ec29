// prepare: keys of a row, what earlier rounds removed, edits, and the ends of the row.
//
// CPU twin  Logits::refill, Op::apply and the search for the highest token in Logits::refresh.
// Dispatch  x = ceil(V / TILE) workgroups, y = B rows. A workgroup owns TILE tokens, so no two
//           write the same key.
// Numerics  A dead token has key 0. NaN and +infinity are reported by the lowest id, and so is
//           an edit whose result is not finite; the host then asks the CPU, which refuses.

@group(0) @binding(0) var<storage, read> params: array<u32>;             // [B, PARAM_WORDS]
@group(0) @binding(1) var<storage, read> logits: array<u32>;             // [B, V] bits of f32, nats
@group(0) @binding(2) var<storage, read_write> keys: array<u32>;         // [B, V]
@group(0) @binding(3) var<storage, read_write> work: array<atomic<u32>>; // [B, WORK_WORDS]
@group(0) @binding(6) var<storage, read> carry: array<u32>;              // [B, CARRY_WORDS]
@group(0) @binding(8) var<storage, read> edits: array<vec4<u32>>;        // token, op, operands; by token

var<workgroup> ends: array<atomic<u32>, 4>; // highest key, inverse of the lowest, live, touched

// The first edit of [start, end) whose token is not below `token`.
fn first_edit(start: u32, end: u32, token: u32) -> u32 {
    var low = start;
    var high = end;
    while low < high {
        let middle = (low + high) / 2u;
        if edits[middle].x < token { low = middle + 1u; } else { high = middle; }
    }
    return low;
}

// Whether an earlier round removed a token that was alive in it.
fn removed(row: u32, key: u32, token: u32) -> bool {
    let c = row * CARRY_WORDS;
    let flags = carry[c + CARRY_FLAGS];
    if (flags & CUT_LAST) != 0u {
        let last = carry[c + CARRY_LAST_KEY];
        if key < last || (key == last && token > carry[c + CARRY_LAST_ID]) { return true; }
    }
    if (flags & CUT_FIRST) != 0u {
        let first = carry[c + CARRY_FIRST_KEY];
        if key > first || (key == first && token <= carry[c + CARRY_FIRST_ID]) { return true; }
    }
    if (flags & CUT_ODD) != 0u {
        let anchor = decode(score_of(carry[c + CARRY_ANCHOR]));
        let distance = distance_of(
            anchor, decode(score_of(key)),
            carry[c + CARRY_MANTISSA], bitcast<i32>(carry[c + CARRY_EXPONENT]),
        );
        let odd = oddness(distance, Wide(carry[c + CARRY_MEAN], carry[c + CARRY_MEAN + 1u]));
        let limit = Wide(carry[c + CARRY_ODD], carry[c + CARRY_ODD + 1u]);
        if wide_less(limit, odd) || (all(limit == odd) && token > carry[c + CARRY_ODD_ID]) { return true; }
    }
    return false;
}

@compute @workgroup_size(WORKGROUP)
fn prepare(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    if !has_phase(row, PHASE_PREPARE) { return; }
    let p = row * PARAM_WORDS;
    let w = row * WORK_WORDS;
    let vocabulary = params[p + PARAM_VOCABULARY];
    let from_logits = params[p + PARAM_SOURCE] == 0u;
    let base = group.x * TILE;
    let end = min(base + TILE, vocabulary);
    let k = row * vocabulary;
    let edits_start = params[p + PARAM_EDITS_START];
    let edits_end = params[p + PARAM_EDITS_END];
    let first = first_edit(edits_start, edits_end, base);
    let last = first_edit(edits_start, edits_end, base + TILE);

    var highest = 0u;
    var lowest = 0u;
    var live = 0u;
    for (var i = base + lane; i < end; i += WORKGROUP) {
        var key = 0u;
        if from_logits {
            let bits = logits[k + i];
            let bad = (bits & 0x7fffffffu) > 0x7f800000u || bits == 0x7f800000u;
            if bad { atomicMax(&work[w + WORK_FAULT], ~i); } else { key = key_of(bits); }
            keys[k + i] = key;
        } else {
            key = keys[k + i];
            if key != 0u && removed(row, key, i) {
                key = 0u;
                keys[k + i] = 0u;
            }
        }
        if key != 0u {
            highest = max(highest, key);
            lowest = max(lowest, ~key);
            live += 1u;
        }
    }
    if first < last {
        storageBarrier();
        workgroupBarrier();
        for (var j = first + lane; j < last; j += WORKGROUP) {
            let token = edits[j].x;
            // One invocation makes all edits of a token, in their order.
            if j > first && edits[j - 1u].x == token { continue; }
            var key = keys[k + token];
            if key == 0u { continue; }
            atomicOr(&ends[3], 1u);
            for (var e = j; e < last && edits[e].x == token && key != 0u; e += 1u) {
                let edit = edits[e];
                if edit.y == OP_REMOVE {
                    key = 0u;
                } else {
                    let score = edited(score_of(key), edit.y, edit.z, edit.w);
                    if (score & 0x7f800000u) == 0x7f800000u {
                        atomicMax(&work[w + WORK_FAULT], ~token);
                        key = 0u;
                    } else {
                        key = key_of(score);
                    }
                }
            }
            keys[k + token] = key;
        }
        storageBarrier();
        workgroupBarrier();
        highest = 0u;
        lowest = 0u;
        live = 0u;
        for (var i = base + lane; i < end; i += WORKGROUP) {
            let key = keys[k + i];
            if key != 0u {
                highest = max(highest, key);
                lowest = max(lowest, ~key);
                live += 1u;
            }
        }
    }
    atomicMax(&ends[0], highest);
    atomicMax(&ends[1], lowest);
    atomicAdd(&ends[2], live);
    workgroupBarrier();
    if lane == 0u {
        atomicMax(&work[w + WORK_HIGHEST], atomicLoad(&ends[0]));
        atomicMax(&work[w + WORK_LOWEST], atomicLoad(&ends[1]));
        atomicAdd(&work[w + WORK_LIVE], atomicLoad(&ends[2]));
        atomicOr(&work[w + WORK_TOUCHED], atomicLoad(&ends[3]));
    }
}
