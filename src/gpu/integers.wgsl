// Wide integers and the integer specification of scores: key, distance, weight, moment.
//
// CPU twin  weights.rs is the reference; change both in one commit. Constants are written in
//           front of this text by kernels.rs, from weights.rs.
// Numerics  u32 only. A 64-bit number is vec2(low, high). A shift by 32 or more is a branch,
//           because WGSL takes shift amounts modulo 32.

alias Wide = vec2<u32>;

fn wide_add(a: Wide, b: Wide) -> Wide {
    let low = a.x + b.x;
    return Wide(low, a.y + b.y + select(0u, 1u, low < a.x));
}

// a - b, for a >= b.
fn wide_sub(a: Wide, b: Wide) -> Wide {
    return Wide(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn wide_less(a: Wide, b: Wide) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

fn wide_min(a: Wide, b: Wide) -> Wide {
    return select(a, b, wide_less(b, a));
}

fn wide_max(a: Wide, b: Wide) -> Wide {
    return select(a, b, wide_less(a, b));
}

fn wide_left(a: Wide, shift: u32) -> Wide {
    if shift == 0u { return a; }
    if shift < 32u { return Wide(a.x << shift, (a.y << shift) | (a.x >> (32u - shift))); }
    if shift < 64u { return Wide(0u, a.x << (shift - 32u)); }
    return Wide(0u, 0u);
}

fn wide_right(a: Wide, shift: u32) -> Wide {
    if shift == 0u { return a; }
    if shift < 32u { return Wide((a.x >> shift) | (a.y << (32u - shift)), a.y >> shift); }
    if shift < 64u { return Wide(a.y >> (shift - 32u), 0u); }
    return Wide(0u, 0u);
}

// How many bits a number has: 0 for 0.
fn wide_bits(a: Wide) -> u32 {
    if a.y != 0u { return 64u - countLeadingZeros(a.y); }
    return 32u - countLeadingZeros(a.x);
}

// The high half of a product, from four products of 16 bits.
fn high(a: u32, b: u32) -> u32 {
    let a0 = a & 0xffffu;
    let a1 = a >> 16u;
    let b0 = b & 0xffffu;
    let b1 = b >> 16u;
    let middle = a1 * b0 + ((a0 * b0) >> 16u);
    let other = a0 * b1 + (middle & 0xffffu);
    return a1 * b1 + (middle >> 16u) + (other >> 16u);
}

fn product(a: u32, b: u32) -> Wide {
    return Wide(a * b, high(a, b));
}

// floor(a * b / 2^64).
fn wide_high(a: Wide, b: Wide) -> Wide {
    let p00 = product(a.x, b.x);
    let p01 = product(a.x, b.y);
    let p10 = product(a.y, b.x);
    let p11 = product(a.y, b.y);
    let middle = wide_add(Wide(p00.y, 0u), wide_add(Wide(p01.x, 0u), Wide(p10.x, 0u)));
    return wide_add(wide_add(p11, Wide(p01.y, 0u)), wide_add(Wide(p10.y, 0u), Wide(middle.y, 0u)));
}

// A score's place in the order as an integer; 0 is a dead token.
fn key_of(score_bits: u32) -> u32 {
    if score_bits == 0xff800000u { return 0u; }
    var bits = score_bits;
    if (bits & 0x7fffffffu) == 0u { bits = 0u; }
    return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}

fn score_of(key: u32) -> u32 {
    return select(~key, key & 0x7fffffffu, (key & 0x80000000u) != 0u);
}

// A finite score as sign, significand and exponent.
struct Decoded {
    negative: bool,
    significand: u32,
    exponent: i32,
}

fn decode(bits: u32) -> Decoded {
    let biased = (bits >> 23u) & 0xffu;
    let fraction = bits & 0x7fffffu;
    let normal = biased != 0u;
    return Decoded(
        (bits & 0x80000000u) != 0u,
        select(fraction, fraction | 0x800000u, normal),
        select(-149, i32(biased) - 150, normal),
    );
}

// 128 bits, lowest first.
fn quad_times(a: vec3<u32>, factor: u32) -> vec4<u32> {
    let p0 = product(a.x, factor);
    let p1 = wide_add(product(a.y, factor), Wide(p0.y, 0u));
    let p2 = wide_add(product(a.z, factor), Wide(p1.y, 0u));
    return vec4<u32>(p0.x, p1.x, p2.x, p2.y);
}

fn quad_right(a: vec4<u32>, shift: u32) -> vec4<u32> {
    var value = a;
    if (shift & 32u) != 0u { value = vec4<u32>(value.yzw, 0u); }
    if (shift & 64u) != 0u { value = vec4<u32>(value.zw, 0u, 0u); }
    let bits = shift & 31u;
    if bits == 0u { return value; }
    return (value >> vec4<u32>(bits)) | (vec4<u32>(value.yzw, 0u) << vec4<u32>(32u - bits));
}

// A significand moved up by at most 63 bits.
fn triple_left(significand: u32, shift: u32) -> vec3<u32> {
    let bits = shift & 31u;
    let moved = wide_left(Wide(significand, 0u), bits);
    if shift < 32u { return vec3<u32>(moved, 0u); }
    return vec3<u32>(0u, moved);
}

fn triple_add(a: vec3<u32>, b: vec3<u32>) -> vec3<u32> {
    let low = wide_add(Wide(a.x, 0u), Wide(b.x, 0u));
    let middle = wide_add(wide_add(Wide(a.y, 0u), Wide(b.y, 0u)), Wide(low.y, 0u));
    return vec3<u32>(low.x, middle.x, a.z + b.z + middle.y);
}

// a - b, for a >= b.
fn triple_sub(a: vec3<u32>, b: vec3<u32>) -> vec3<u32> {
    let low = wide_sub(Wide(a.x, a.y), Wide(b.x, b.y));
    let borrow = select(0u, 1u, wide_less(Wide(a.x, a.y), Wide(b.x, b.y)));
    return vec3<u32>(low, a.z - b.z - borrow);
}

// product * 2^shift, truncated, saturating at FARTHEST.
fn scaled(value: vec4<u32>, shift: i32) -> Wide {
    if shift >= 0 {
        let kept = max(38 - shift, 0);
        if any(quad_right(value, u32(kept)) != vec4<u32>(0u)) { return FARTHEST; }
        return wide_left(value.xy, u32(shift));
    }
    if shift <= -128 { return Wide(0u, 0u); }
    let moved = quad_right(value, u32(-shift));
    if (moved.z | moved.w) != 0u { return FARTHEST; }
    return wide_min(moved.xy, FARTHEST);
}

// trunc((highest - score) * scale * 2^32) from the exact difference, saturating at FARTHEST.
fn distance_of(highest: Decoded, score: Decoded, mantissa: u32, exponent: i32) -> Wide {
    var highest_exponent = highest.exponent;
    var score_exponent = score.exponent;
    // Zero has no exponent of its own.
    if highest.significand == 0u { highest_exponent = score_exponent; }
    else if score.significand == 0u { score_exponent = highest_exponent; }
    let base = min(highest_exponent, score_exponent);
    let highest_gap = u32(highest_exponent - base);
    let score_gap = u32(score_exponent - base);
    let shift = base + exponent + 32;
    let opposite = highest.negative != score.negative;
    if (highest_gap | score_gap) < 32u {
        let a = wide_left(Wide(highest.significand, 0u), highest_gap);
        let b = wide_left(Wide(score.significand, 0u), score_gap);
        var difference: Wide;
        if opposite { difference = wide_add(a, b); }
        else if highest.negative { difference = wide_sub(b, a); }
        else { difference = wide_sub(a, b); }
        if difference.y == 0u && shift <= 0 && shift > -64 {
            return wide_min(wide_right(product(difference.x, mantissa), u32(-shift)), FARTHEST);
        }
        return scaled(quad_times(vec3<u32>(difference, 0u), mantissa), shift);
    }
    // Beyond a gap of 60 the smaller operand only decides which way the truncation goes, so the
    // smallest one of its sign stands for it.
    let gap = max(highest_gap, score_gap);
    let excess = max(gap, 60u) - 60u;
    var a = triple_left(highest.significand, max(highest_gap, excess) - excess);
    var b = triple_left(score.significand, max(score_gap, excess) - excess);
    if excess > 0u {
        if highest_gap == 0u { a = vec3<u32>(min(highest.significand, 1u), 0u, 0u); }
        if score_gap == 0u { b = vec3<u32>(min(score.significand, 1u), 0u, 0u); }
    }
    var difference: vec3<u32>;
    if opposite { difference = triple_add(a, b); }
    else if highest.negative { difference = triple_sub(b, a); }
    else { difference = triple_sub(a, b); }
    return scaled(quad_times(difference, mantissa), shift + i32(excess));
}

// 2^-(fraction / 2^32) with 31 fractional bits.
fn exp2_negative(fraction: u32) -> u32 {
    var sum = POLYNOMIAL_6;
    sum = POLYNOMIAL_5 - high(fraction, sum);
    sum = POLYNOMIAL_4 - high(fraction, sum);
    sum = POLYNOMIAL_3 - high(fraction, sum);
    sum = POLYNOMIAL_2 - high(fraction, sum);
    sum = POLYNOMIAL_1 - high(fraction, sum);
    sum = POLYNOMIAL_0 - high(fraction, sum);
    return 0x80000000u - (high(fraction, sum) >> 1u);
}

fn weight_of(distance: Wide) -> Wide {
    if distance.y >= OCTAVES { return Wide(0u, 0u); }
    return wide_right(wide_left(Wide(exp2_negative(distance.x), 0u), WEIGHT_BITS - 31u), distance.y);
}

// weight * distance in octaves: 31 bits of weight times 32 bits of distance.
fn moment_of(distance: Wide) -> Wide {
    if distance.y >= OCTAVES { return Wide(0u, 0u); }
    return wide_right(product(exp2_negative(distance.x), wide_right(distance, 6u).x), distance.y + 12u);
}

// ceil(share * mass / 2^32), for a share of at most 2^32.
fn share_of(share: Wide, mass: Wide) -> Wide {
    if share.y != 0u { return mass; }
    let low = product(mass.x, share.x);
    let whole = wide_add(product(mass.y, share.x), Wide(low.y, 0u));
    return wide_add(whole, Wide(select(0u, 1u, low.x != 0u), 0u));
}

// floor(share * mass / 2^32) + 1.
fn share_above(share: Wide, mass: Wide) -> Wide {
    if share.y != 0u { return wide_add(mass, Wide(1u, 0u)); }
    let low = product(mass.x, share.x);
    return wide_add(wide_add(product(mass.y, share.x), Wide(low.y, 0u)), Wide(1u, 0u));
}

// floor(2^32 * moment / mass): the mean distance. One bit a turn.
fn mean_of(moment: Wide, mass: Wide) -> Wide {
    var rest = Wide(0u, 0u);
    var quotient = Wide(0u, 0u);
    for (var bit = 95i; bit >= 0; bit -= 1) {
        var next = 0u;
        if bit >= 64 { next = (moment.y >> u32(bit - 64)) & 1u; }
        else if bit >= 32 { next = (moment.x >> u32(bit - 32)) & 1u; }
        // A sum of weights is at most 2^63, so the rest never loses its highest bit.
        rest = wide_add(wide_left(rest, 1u), Wide(next, 0u));
        quotient = wide_left(quotient, 1u);
        if !wide_less(rest, mass) {
            rest = wide_sub(rest, mass);
            quotient.x |= 1u;
        }
    }
    return quotient;
}
