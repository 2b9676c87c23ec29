// The f32 operations of an edit, in integers: one rounding to nearest, ties to even, subnormal
// numbers included. A device may round as it likes and flush what it likes; this may not.
//
// CPU twin  transform/mod.rs, Op::apply: the processor's own f32 arithmetic.
// Numerics  Operands are finite and divisors are not zero (the host sees to it). A result that
//           does not fit is an infinity, which the caller reports.

// significand * 2^exponent rounded to f32. The lowest bit of the significand may stand for
// everything below it, if the significand has at least 27 bits.
fn rounded(negative: bool, significand: u32, exponent: i32) -> u32 {
    let sign = select(0u, 0x80000000u, negative);
    if significand == 0u { return sign; }
    let up = countLeadingZeros(significand) - 1u;
    let aligned = significand << up; // the highest bit is bit 30
    let biased = exponent - i32(up) + 30 + 127;
    if biased >= 255 { return sign | 0x7f800000u; }
    // Less than half of the smallest number.
    if biased < -23 { return sign; }
    let down = 7u + u32(max(1 - biased, 0));
    let kept = aligned >> down;
    let rest = aligned & ((1u << down) - 1u);
    let half = 1u << (down - 1u);
    let upward = rest > half || (rest == half && (kept & 1u) == 1u);
    // The leading bit of a normal number carries into the exponent, as does a rounding.
    return sign | ((u32(max(biased, 1) - 1) << 23u) + kept + select(0u, 1u, upward));
}

// Moves right; what falls off is remembered in the lowest bit.
fn jammed(value: u32, shift: u32) -> u32 {
    if shift == 0u { return value; }
    if shift > 31u { return select(0u, 1u, value != 0u); }
    return (value >> shift) | select(0u, 1u, (value & ((1u << shift) - 1u)) != 0u);
}

fn float_add(x: u32, y: u32) -> u32 {
    var a = decode(x);
    var b = decode(y);
    if (x & 0x7fffffffu) < (y & 0x7fffffffu) {
        a = decode(y);
        b = decode(x);
    }
    let large = a.significand << 6u;
    let small = jammed(b.significand << 6u, u32(a.exponent - b.exponent));
    if a.negative == b.negative { return rounded(a.negative, large + small, a.exponent - 6); }
    // Equal operands of opposite sign give plus zero.
    return rounded(a.negative && large != small, large - small, a.exponent - 6);
}

// The significand with bit 23 set.
fn normalised(value: Decoded) -> Decoded {
    if value.significand == 0u { return value; }
    let up = countLeadingZeros(value.significand) - 8u;
    return Decoded(value.negative, value.significand << up, value.exponent - i32(up));
}

fn float_multiply(x: u32, y: u32) -> u32 {
    let a = normalised(decode(x));
    let b = normalised(decode(y));
    let wide = product(a.significand, b.significand);
    let top = (wide.x >> 17u) | (wide.y << 15u);
    let sticky = select(0u, 1u, (wide.x & 0x1ffffu) != 0u);
    return rounded(a.negative != b.negative, top | sticky, a.exponent + b.exponent + 17);
}

fn float_divide(x: u32, y: u32) -> u32 {
    let a = normalised(decode(x));
    let b = normalised(decode(y));
    var quotient = 0u;
    var rest = a.significand;
    for (var turn = 0u; turn < 30u; turn += 1u) {
        quotient <<= 1u;
        if rest >= b.significand {
            rest -= b.significand;
            quotient |= 1u;
        }
        rest <<= 1u;
    }
    let sticky = select(0u, 1u, rest != 0u);
    return rounded(a.negative != b.negative, quotient | sticky, a.exponent - b.exponent - 29);
}

// One edit of a score: Op::apply. A removal is the caller's.
fn edited(score: u32, op: u32, positive: u32, other: u32) -> u32 {
    let above_zero = (score & 0x80000000u) == 0u && score != 0u;
    let operand = select(other, positive, above_zero);
    let divides = (op == OP_DIVIDE) || (op == OP_PENALISE && above_zero);
    if op == OP_ADD { return float_add(score, operand); }
    if divides { return float_divide(score, operand); }
    return float_multiply(score, operand);
}
