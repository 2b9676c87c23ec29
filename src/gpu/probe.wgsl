// probe: every function of integers.wgsl and floats.wgsl on given operands, one result a lane.
//
// CPU twin  weights.rs and Op::apply; it tells a wrong driver from a wrong kernel.
// Dispatch  x = ceil(N / WORKGROUP) workgroups.

@group(0) @binding(0) var<storage, read> operands: array<vec4<u32>>;       // [N, 2]
@group(0) @binding(1) var<storage, read_write> outcomes: array<vec4<u32>>; // [N, 3]

@compute @workgroup_size(WORKGROUP)
fn probe(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i >= arrayLength(&operands) / 2u { return; }
    let a = operands[i * 2u];
    let b = operands[i * 2u + 1u];
    // a.x >= a.y are finite scores, a.z a mantissa, a.w an exponent, b two 64-bit numbers.
    let distance = distance_of(decode(a.x), decode(a.y), a.z, bitcast<i32>(a.w));
    let weight = weight_of(distance);
    let moment = moment_of(distance);
    let share = Wide(b.x, 0u);
    let mass = Wide(b.z, b.w >> 1u);
    let part = share_of(share, mass);
    let above = share_above(share, mass);
    let drawn = wide_high(b.xy, mass);
    outcomes[i * 3u] = vec4<u32>(distance, weight);
    outcomes[i * 3u + 1u] = vec4<u32>(moment, part);
    outcomes[i * 3u + 2u] = vec4<u32>(
        float_add(a.x, a.y), float_multiply(a.x, a.y),
        select(float_divide(a.x, a.y), 0u, (a.y & 0x7fffffffu) == 0u),
        above.x ^ drawn.x ^ drawn.y ^ key_of(a.x) ^ mean_of(wide_right(b.xy, 2u), wide_max(mass, Wide(0u, 0x10000u))).x,
    );
}
