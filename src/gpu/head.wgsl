// Logits: each row of a model's last matrix times a hidden state, with the CPU's bits.
//
// CPU twin  model/kernel.rs, dot_quantised: block b adds (weight scale * input scale) * sum to
//           accumulator b % 4; the result is (0 + 2) + (1 + 3).
// Layout    head.rs. A block is 32 weights of 8 bits, four to a word, and 32 inputs of 16 bits,
//           two to a word. Four invocations share a row, one for each accumulator.
// Numerics  A block's sum is an exact integer. Every float is a word, and every operation on it
//           rounds as the CPU's does; infinities and NaN are kept, the latter as one value.

@group(0) @binding(0) var<storage, read> sizes: array<u32>; // of this part: see head.rs
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>; // [rows of the part, blocks, 2]
@group(0) @binding(2) var<storage, read> weight_scales: array<u32>; // [rows of the part, blocks]
@group(0) @binding(3) var<storage, read> inputs: array<vec4<u32>>; // [positions, blocks, 4]
@group(0) @binding(4) var<storage, read> input_scales: array<u32>; // [positions, blocks]
@group(0) @binding(5) var<storage, read_write> logits: array<u32>; // [positions, vocabulary]

const ACCUMULATORS: u32 = 4u;
const INFINITY: u32 = 0x7f800000u;
const NOT_A_NUMBER: u32 = 0x7fc00000u;

var<workgroup> accumulators: array<u32, WORKGROUP>;

fn times(x: u32, y: u32) -> u32 {
    let a = x & 0x7fffffffu;
    let b = y & 0x7fffffffu;
    if max(a, b) < INFINITY { return float_multiply(x, y); }
    if max(a, b) > INFINITY || min(a, b) == 0u { return NOT_A_NUMBER; }
    return INFINITY | ((x ^ y) & 0x80000000u);
}

fn plus(x: u32, y: u32) -> u32 {
    let a = x & 0x7fffffffu;
    let b = y & 0x7fffffffu;
    if max(a, b) < INFINITY { return float_add(x, y); }
    if max(a, b) > INFINITY || (a == b && x != y) { return NOT_A_NUMBER; }
    return select(y, x, a == INFINITY);
}

// Four products.
fn four(packed: u32, first: u32, second: u32) -> i32 {
    let w = bitcast<i32>(packed);
    let a = bitcast<i32>(first);
    let b = bitcast<i32>(second);
    return ((w << 24u) >> 24u) * ((a << 16u) >> 16u) + ((w << 16u) >> 24u) * (a >> 16u)
        + ((w << 8u) >> 24u) * ((b << 16u) >> 16u) + (w >> 24u) * (b >> 16u);
}

fn sixteen(w: vec4<u32>, a: vec4<u32>, b: vec4<u32>) -> i32 {
    return four(w.x, a.x, a.y) + four(w.y, a.z, a.w) + four(w.z, b.x, b.y) + four(w.w, b.z, b.w);
}

@compute @workgroup_size(WORKGROUP)
fn head(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let rows = sizes[0];
    let blocks = sizes[1];
    let row = group.x * (WORKGROUP / ACCUMULATORS) + lane / ACCUMULATORS;
    let position = group.y;
    var total = 0u;
    if row < rows {
        for (var block = lane % ACCUMULATORS; block < blocks; block += ACCUMULATORS) {
            let w = row * blocks + block;
            let i = position * blocks + block;
            let sum = sixteen(weights[2u * w], inputs[4u * i], inputs[4u * i + 1u])
                + sixteen(weights[2u * w + 1u], inputs[4u * i + 2u], inputs[4u * i + 3u]);
            let scale = times(weight_scales[w], input_scales[i]);
            total = plus(total, times(scale, rounded(sum < 0, u32(abs(sum)), 0)));
        }
    }
    accumulators[lane] = total;
    workgroupBarrier();
    if row < rows && lane % ACCUMULATORS == 0u {
        let even = plus(accumulators[lane], accumulators[lane + 2u]);
        let odd = plus(accumulators[lane + 1u], accumulators[lane + 3u]);
        logits[position * sizes[3] + sizes[2] + row] = plus(even, odd);
    }
}
