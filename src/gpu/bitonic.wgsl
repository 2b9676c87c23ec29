// A full bitonic sort of every row by (score descending, id ascending): what our path is
// measured against, and nothing else. Steps within a block of two workgroups stay in workgroup
// memory; every longer step is a dispatch.
//
// Dispatch  x = ceil(padded / (2 * WORKGROUP)), y = B rows; padded is the next power of two.
// Layout    pairs [B, padded] key and id; a missing token has key 0 and sorts last.

struct Step {
    vocabulary: u32,
    padded: u32,
    block: u32, // length of the sequences being merged
    step: u32,  // distance of the pairs
}

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> logits: array<u32>;             // [B, V] bits of f32
@group(0) @binding(2) var<storage, read_write> pairs: array<vec2<u32>>;  // [B, padded]

const BLOCK: u32 = 2u * WORKGROUP;

var<workgroup> near: array<vec2<u32>, BLOCK>;

fn belongs_after(a: vec2<u32>, b: vec2<u32>) -> bool {
    return b.x > a.x || (b.x == a.x && b.y < a.y);
}

// Sorts, or merges from `block` down, what lies in workgroup memory.
fn sort_near(lane: u32, base: u32, from_block: u32, to_block: u32) {
    for (var block = from_block; block <= to_block; block <<= 1u) {
        for (var gap = min(block, BLOCK) >> 1u; gap > 0u; gap >>= 1u) {
            let a = ((lane & ~(gap - 1u)) << 1u) | (lane & (gap - 1u));
            let b = a | gap;
            let first = near[a];
            let second = near[b];
            let ascending = ((base + a) & block) == 0u;
            if belongs_after(first, second) == ascending {
                near[a] = second;
                near[b] = first;
            }
            workgroupBarrier();
        }
    }
}

@compute @workgroup_size(WORKGROUP)
fn fill_and_sort(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let base = group.x * BLOCK;
    for (var i = lane; i < BLOCK; i += WORKGROUP) {
        let id = base + i;
        var pair = vec2<u32>(0u, id);
        if id < step.vocabulary { pair.x = key_of(logits[group.y * step.vocabulary + id]); }
        near[i] = pair;
    }
    workgroupBarrier();
    sort_near(lane, base, 2u, BLOCK);
    for (var i = lane; i < BLOCK; i += WORKGROUP) { pairs[group.y * step.padded + base + i] = near[i]; }
}

@compute @workgroup_size(WORKGROUP)
fn merge_far(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let pair = group.x * WORKGROUP + lane;
    let gap = step.step;
    let a = ((pair & ~(gap - 1u)) << 1u) | (pair & (gap - 1u));
    let row = group.y * step.padded;
    let first = pairs[row + a];
    let second = pairs[row + (a | gap)];
    let ascending = (a & step.block) == 0u;
    if belongs_after(first, second) == ascending {
        pairs[row + a] = second;
        pairs[row + (a | gap)] = first;
    }
}

@compute @workgroup_size(WORKGROUP)
fn merge_near(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let base = group.x * BLOCK;
    let row = group.y * step.padded;
    for (var i = lane; i < BLOCK; i += WORKGROUP) { near[i] = pairs[row + base + i]; }
    workgroupBarrier();
    sort_near(lane, base, step.block, step.block);
    for (var i = lane; i < BLOCK; i += WORKGROUP) { pairs[row + base + i] = near[i]; }
}
