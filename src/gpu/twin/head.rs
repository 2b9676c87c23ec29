//! The last matrix's part of the suite: logits of made-up matrices, bit by bit.
//!
//! The CPU's side is the kernel that models run on. Scales reach from the smallest subnormal
//! number over infinities to NaN, hidden states likewise; sizes do not fill a workgroup.

use super::{Mutant, Report, pairwise};
use crate::{
    gpu::{
        device::{self, Device, Failure},
        head::{DeviceHead, most_bytes, obstacle},
        kernels::{HEAD, Shape},
    },
    model::{
        Precision,
        head::{Head, HeadInput},
        quant::{BLOCK, TensorType},
    },
    random::splitmix,
};

const KINDS: [TensorType; 3] = [TensorType::Q8_0, TensorType::Q4_0, TensorType::Q5_0];
const ROWS: [usize; 5] = [1, 2, 255, 257, 1_000];
const COLUMNS: [usize; 5] = [32, 64, 96, 160, 576];
const POSITIONS: [usize; 2] = [1, 3];
const PARTS: [Option<usize>; 2] = [None, Some(101)];
/// The last matrix of a language model that readers bring.
const WHOLE: Case = Case {
    kind: TensorType::Q8_0,
    rows: 49_152,
    columns: 576,
    positions: 1,
    rows_a_part: None,
    shape: Shape::ALL[2],
    extreme: false,
    hidden: 0,
    seed: 1,
};

/// A hidden state of so many numbers.
type Hidden = fn(usize, u64) -> Vec<f32>;

const HIDDEN: [(&str, Hidden); 7] = [
    ("ordinary", |n, seed| spread(n, seed, 0)),
    ("of all magnitudes", |n, seed| spread(n, seed, 60)),
    // About 2^-109: any smaller, and all quants are zero. Products are subnormal.
    ("tiny", |n, seed| signed(n, seed, |random| f32::from_bits(0x0600_0000 + random % 0x0300_0000))),
    ("huge", |n, seed| signed(n, seed, |random| f32::from_bits(0x7f7f_ffff - random % 0x0200_0000))),
    ("zeros", |n, seed| signed(n, seed, |random| if random.is_multiple_of(40) { 1.0 } else { 0.0 })),
    ("the largest float", |n, _| vec![f32::MAX; n]),
    ("an infinity", |n, seed| {
        let mut hidden = spread(n, seed, 0);
        hidden[n / 2] = f32::INFINITY;
        hidden
    }),
];

fn signed(n: usize, seed: u64, value: impl Fn(u32) -> f32) -> Vec<f32> {
    let mut state = seed;
    #[expect(clippy::cast_possible_truncation, reason = "half of a random number")]
    let one = |random: u64| if random >> 63 == 0 { value(random as u32) } else { -value(random as u32) };
    (0..n).map(|_| one(splitmix(&mut state))).collect()
}

/// Numbers about 1, and each block times a power of two.
fn spread(n: usize, seed: u64, octaves: i32) -> Vec<f32> {
    let mut values = signed(n, seed, |random| (random >> 8) as f32 / 16_777_216.0 * 4.0);
    let mut state = !seed;
    for block in values.chunks_mut(BLOCK) {
        #[expect(clippy::cast_possible_truncation, reason = "a small number")]
        let power = (splitmix(&mut state) % (2 * u64::from(octaves.unsigned_abs()) + 1)) as i32 - octaves;
        for value in block {
            *value *= libm::exp2f(power as f32);
        }
    }
    values
}

#[derive(Debug, Clone, Copy)]
struct Case {
    kind: TensorType,
    rows: usize,
    columns: usize,
    positions: usize,
    /// Where a buffer does not hold all rows.
    rows_a_part: Option<usize>,
    shape: Shape,
    /// Whether scales are the ends of the half floats rather than a model's.
    extreme: bool,
    hidden: usize,
    seed: u64,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, rows, columns, positions, rows_a_part, shape, extreme, .. } = self;
        let (hidden, _) = HIDDEN[self.hidden];
        let scales = if *extreme { "extreme" } else { "usual" };
        write!(
            f,
            "last matrix {kind} {rows}x{columns}, in parts of {rows_a_part:?} rows, {positions} positions, \
             shape {shape}, {scales} scales, hidden state {hidden}"
        )
    }
}

/// Packed rows: each block a half float, then quants. `extreme` scales are the ends of the half
/// floats rather than a model's.
pub(in crate::gpu) fn matrix(
    kind: TensorType,
    rows: usize,
    columns: usize,
    extreme: bool,
    seed: u64,
) -> Vec<u8> {
    const ENDS: [u16; 10] = [0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x7bff, 0xfbff, 0x3c00, 0xbc00];
    const NO_NUMBERS: [u16; 4] = [0x7c00, 0xfc00, 0x7e00, 0xfd01];
    let stride = kind.row_bytes(BLOCK).unwrap_or(0);
    let blocks = rows * columns / BLOCK;
    let mut bytes = Vec::with_capacity(blocks * stride);
    let mut state = seed;
    for _ in 0..blocks {
        let random = splitmix(&mut state);
        #[expect(clippy::cast_possible_truncation, reason = "a part of a random number")]
        let (choice, fraction) = ((random >> 32) as usize, random as u16);
        let scale = match (extreme, choice % 128) {
            (true, 0) => NO_NUMBERS[choice / 128 % 4],
            (true, 1..64) => ENDS[choice / 128 % 10],
            // Between 2^-9 and 2^-3.
            _ => 0x1800 + fraction % 0x1800,
        };
        bytes.extend(scale.to_le_bytes());
        let end = bytes.len() + stride - 2;
        while bytes.len() < end {
            let random = splitmix(&mut state).to_le_bytes();
            bytes.extend_from_slice(&random[..(end - bytes.len()).min(8)]);
        }
    }
    bytes
}

fn design() -> Vec<Case> {
    let sizes =
        [KINDS.len(), ROWS.len(), COLUMNS.len(), POSITIONS.len(), Shape::ALL.len(), 2, HIDDEN.len(), 2];
    let cases = pairwise(&sizes, |case, factor, value| case[factor] == value, |_| true);
    let case = |(index, at): (usize, Vec<usize>)| Case {
        kind: KINDS[at[0]],
        rows: ROWS[at[1]],
        columns: COLUMNS[at[2]],
        positions: POSITIONS[at[3]],
        shape: Shape::ALL[at[4]],
        extreme: at[5] == 1,
        hidden: at[6],
        rows_a_part: PARTS[at[7]],
        seed: index as u64 * 104_729 + 1,
    };
    cases.into_iter().enumerate().map(case).collect()
}

/// What one case showed.
struct Outcome {
    compared: u64,
    /// Of those, how many are not NaN on the CPU.
    numbers: u64,
    different: u64,
    first: Option<String>,
}

/// Compares every logit of a case, by the kernel of this text in place of the sound one.
async fn outcome(
    device: &mut Device,
    case: &Case,
    faulty: Option<&wgpu::ComputePipeline>,
) -> Result<Outcome, Failure> {
    device.set_shape(case.shape);
    let kernel = match faulty {
        Some(faulty) => faulty.clone(),
        None => device.kernel(&HEAD),
    };
    let bytes = matrix(case.kind, case.rows, case.columns, case.extreme, case.seed);
    let head = Head::new(case.kind, &bytes, case.rows, case.columns, Precision::Native)
        .ok_or_else(|| Failure::Invalid(format!("{case}: no matrix")))?;
    if let Some(why) = obstacle(&head) {
        return Err(Failure::Invalid(format!("{case}: {why}")));
    }
    // Rows of a part, times the bytes of one.
    let part = case.rows_a_part.map_or(most_bytes(device), |rows| rows * case.columns);
    let mut there = DeviceHead::upload(device, &head, part, kernel).await?;
    let hidden: Vec<f32> = (0..case.positions as u64)
        .flat_map(|position| HIDDEN[case.hidden].1(case.columns, case.seed + position))
        .collect();
    let inputs: Vec<HeadInput> = hidden.chunks(case.columns).map(|hidden| head.input(hidden)).collect();
    there.multiply(device, &inputs, 0).await?;
    let have = there.read(device, case.positions).await?;
    let wanted = head.multiply(&hidden);
    let mut outcome = Outcome { compared: 0, numbers: 0, different: 0, first: None };
    for (index, (have, wanted)) in have.iter().zip(&wanted).enumerate() {
        outcome.compared += 1;
        outcome.numbers += u64::from(!wanted.is_nan());
        if have.to_bits() != wanted.to_bits() && !(have.is_nan() && wanted.is_nan()) {
            outcome.different += 1;
            outcome.first.get_or_insert_with(|| format!("{case}: logit {index} is {have:e}, not {wanted:e}"));
        }
    }
    Ok(outcome)
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "accumulators are added in another order",
        kernel: "head",
        from: "let even = plus(accumulators[lane], accumulators[lane + 2u]);\n        \
               let odd = plus(accumulators[lane + 1u], accumulators[lane + 3u]);",
        to: "let even = plus(accumulators[lane], accumulators[lane + 1u]);\n        \
             let odd = plus(accumulators[lane + 2u], accumulators[lane + 3u]);",
    },
    Mutant {
        name: "a block's scales are applied one after the other",
        kernel: "head",
        from: "let scale = times(weight_scales[w], input_scales[i]);\n            \
               total = plus(total, times(scale, rounded(sum < 0, u32(abs(sum)), 0)));",
        to: "let scaled = times(input_scales[i], rounded(sum < 0, u32(abs(sum)), 0));\n            \
             total = plus(total, times(weight_scales[w], scaled));",
    },
    Mutant {
        name: "the input's scale is dropped",
        kernel: "head",
        from: "let scale = times(weight_scales[w], input_scales[i]);",
        to: "let scale = weight_scales[w] + (input_scales[i] & 0u);",
    },
    Mutant {
        name: "floats are cut off rather than rounded",
        kernel: "head",
        from: "let upward = rest > half || (rest == half && (kept & 1u) == 1u);",
        to: "let upward = false;",
    },
    Mutant {
        name: "numbers below the normal ones are zero",
        kernel: "head",
        from: "if biased < -23 { return sign; }",
        to: "if biased < 1 { return sign; }",
    },
    Mutant {
        name: "an infinity times nothing is nothing",
        kernel: "head",
        from: "if max(a, b) > INFINITY || min(a, b) == 0u { return NOT_A_NUMBER; }",
        to: "if max(a, b) > INFINITY { return NOT_A_NUMBER; }\n    if min(a, b) == 0u { return 0u; }",
    },
    Mutant {
        name: "weights have no sign",
        kernel: "head",
        from: "(w >> 24u) * (b >> 16u)",
        to: "bitcast<i32>(packed >> 24u) * (b >> 16u)",
    },
    Mutant {
        name: "every part is the first",
        kernel: "head",
        from: "logits[position * sizes[3] + sizes[2] + row]",
        to: "logits[position * sizes[3] + row]",
    },
    Mutant {
        name: "the last token is dropped",
        kernel: "head",
        from: "if row < rows && lane % ACCUMULATORS == 0u {",
        to: "if row + 1u < rows && lane % ACCUMULATORS == 0u {",
    },
];

/// Runs this part of the suite; its mutants only if nothing differed.
pub(super) async fn run(
    device: &mut Device,
    report: &mut Report,
    progress: &mut dyn FnMut(String),
) -> Result<(), Failure> {
    let cases = design();
    let (mut compared, mut numbers) = (0, 0);
    for case in cases.iter().chain([&WHOLE]) {
        let outcome = outcome(device, case, None).await?;
        compared += outcome.compared;
        numbers += outcome.numbers;
        report.launches += 1;
        report.different += outcome.different;
        report.differences.extend(outcome.first.filter(|_| report.differences.len() < 20));
    }
    report.comparisons += compared;
    progress(format!(
        "last matrix: {compared} logits, {numbers} of them numbers, {} differences",
        report.different
    ));
    if numbers < compared / 2 {
        report.different += 1;
        report.differences.push(format!("only {numbers} of {compared} logits are numbers"));
    }
    if report.different > 0 {
        return Ok(());
    }
    for mutant in MUTANTS {
        let mut found = false;
        for shape in Shape::ALL {
            let text = HEAD.text(shape);
            if text.matches(mutant.from).count() != 1 {
                break;
            }
            let faulty = device::pipeline(device.raw().0, HEAD.name, &text.replace(mutant.from, mutant.to));
            for case in cases.iter().filter(|case| case.shape == shape) {
                found = found || outcome(device, case, Some(&faulty)).await?.different > 0;
            }
            if found {
                break;
            }
        }
        progress(format!("mutant: {}: {}", mutant.name, if found { "rejected" } else { "SURVIVED" }));
        let list = if found { &mut report.rejected } else { &mut report.survived };
        list.push(mutant.name.to_owned());
    }
    Ok(())
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::gpu::{Policy, SystemClock, block_on};

    #[test]
    #[expect(clippy::print_stdout, reason = "how much was compared is a part of the result")]
    fn every_logit_is_the_cpus_and_every_fault_is_noticed() {
        let mut device = match block_on(Device::acquire(Arc::new(SystemClock::default()))) {
            Ok(device) => device,
            Err(failure) => {
                assert_ne!(Policy::from_environment(), Ok(Policy::Require), "{failure}");
                return;
            }
        };
        device.patience *= 60;
        let mut report = Report::default();
        block_on(run(&mut device, &mut report, &mut |line| println!("{line}"))).expect("a device");
        assert!(report.differences.is_empty(), "{:#?}", report.differences);
        assert!(report.comparisons > 60_000, "{} comparisons", report.comparisons);
        assert!(report.survived.is_empty(), "{:?}", report.survived);
        assert_eq!(report.rejected.len(), MUTANTS.len());
    }
}
