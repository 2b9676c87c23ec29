// What the kernels of a round share: where a row's words lie, and a token's bin.
//
// CPU twin  none: bins only narrow the search. They must be monotone in the distance.
// Layout    program.rs writes the parameters; the word numbers are constants written in front.

// The scale of a round.
fn mantissa_of(row: u32) -> u32 { return params[row * PARAM_WORDS + PARAM_MANTISSA]; }
fn exponent_of(row: u32) -> i32 { return bitcast<i32>(params[row * PARAM_WORDS + PARAM_EXPONENT]); }
fn has_phase(row: u32, phase: u32) -> bool { return (params[row * PARAM_WORDS + PARAM_PHASES] & phase) != 0u; }
fn is_odd(row: u32) -> bool { return params[row * PARAM_WORDS + PARAM_ODD] != 0u; }

// How far from the mean distance.
fn oddness(distance: Wide, mean: Wide) -> Wide {
    if wide_less(distance, mean) { return wide_sub(mean, distance); }
    return wide_sub(distance, mean);
}

// What a round orders by, for its bins: the distance, or the oddness.
fn place_of(distance: Wide, mean: Wide, odd: bool) -> Wide {
    if odd { return oddness(distance, mean); }
    return distance;
}

// The smallest shift with which the farthest place falls into the last bin or before.
fn shift_for(farthest: Wide, mean: Wide, odd: bool) -> u32 {
    var range = farthest;
    if odd { range = wide_max(mean, oddness(farthest, mean)); }
    return max(wide_bits(range), BIN_BITS) - BIN_BITS;
}

fn bin_of(place: Wide, shift: u32) -> u32 {
    let bin = wide_right(place, shift);
    if bin.y != 0u { return BINS - 1u; }
    return min(bin.x, BINS - 1u);
}
