// The standard deviation of a row's scores.
//
// CPU twin  Scale::spreading in weights.rs; deviation and reach in transform/top_n_sigma.rs.
// Numerics  Distances of 32 bits in a unit of a power of two, so sums of them and of their
//           squares are exact in any order, and the root is an integer.

const ZERO_KEY: u32 = 0x80000000u;   // the key of a score of 0
const SPREAD_MANTISSA: u32 = 0x80000000u;

// Whether the dead tokens of a row count, as scores of 0.
fn counts_dead(spread: u32, live: u32, vocabulary: u32) -> bool {
    return spread == SPREAD_OF_A_SAMPLE && live < vocabulary;
}

// The keys of the highest and the lowest score that counts.
fn ends_of(highest: u32, lowest: u32, with_zero: bool) -> vec2<u32> {
    if !with_zero { return vec2<u32>(highest, lowest); }
    return vec2<u32>(max(highest, ZERO_KEY), min(lowest, ZERO_KEY));
}

// The exponent of the scale in which the ends are at least 2^31 and less than 2^32 apart.
fn spread_exponent(top: Decoded, bottom: Decoded) -> i32 {
    let widest = max(top.exponent, bottom.exponent) + 25;
    let coarse = distance_of(top, bottom, SPREAD_MANTISSA, -31 - widest);
    return -31 - widest + i32(countLeadingZeros(coarse.x));
}

fn quad_add(a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
    let low = wide_add(a.xy, b.xy);
    let carry = select(0u, 1u, wide_less(low, a.xy));
    return vec4<u32>(low, wide_add(wide_add(a.zw, b.zw), Wide(carry, 0u)));
}

fn quad_less(a: vec4<u32>, b: vec4<u32>) -> bool {
    return wide_less(a.zw, b.zw) || (all(a.zw == b.zw) && wide_less(a.xy, b.xy));
}

// floor(sqrt((count * squares - sum^2) / (count * degrees))), one bit a turn.
fn deviation_of(sum: Wide, squares: vec3<u32>, count: u32, degrees: u32) -> u32 {
    let whole = quad_times(squares, count);
    let triple = vec3<u32>(sum, 0u);
    let squared = quad_add(quad_times(triple, sum.x), vec4<u32>(0u, quad_times(triple, sum.y).xyz));
    var root = 0u;
    for (var bit = 0x80000000u; bit != 0u; bit >>= 1u) {
        let next = root | bit;
        let share = quad_times(vec3<u32>(product(next, next), 0u), count);
        if !quad_less(whole, quad_add(quad_times(share.xyz, degrees), squared)) { root = next; }
    }
    return root;
}
