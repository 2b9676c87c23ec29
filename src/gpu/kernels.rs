//! The text of every shader: constants from the specification and the layouts, then WGSL.
//!
//! Nothing that host and device must agree on is written twice. Workgroup size and
//! tokens a workgroup are constants of the text, because they are chosen for each adapter.

use std::fmt::Write as _;

use crate::{
    gpu::layout,
    weights::{FARTHEST, OCTAVES, POLYNOMIAL, WEIGHT_BITS},
};

/// How the work is cut for an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Shape {
    /// Invocations of a workgroup that walks over the vocabulary.
    pub workgroup: u32,
    /// Tokens of each of its invocations; at most 32.
    pub turns: u32,
}

impl Shape {
    /// Shapes worth measuring; every one gives the same integers.
    pub const ALL: [Self; 6] = [
        Self { workgroup: 256, turns: 16 },
        Self { workgroup: 128, turns: 16 },
        Self { workgroup: 64, turns: 32 },
        Self { workgroup: 256, turns: 4 },
        Self { workgroup: 32, turns: 8 },
        Self { workgroup: 64, turns: 8 },
    ];

    /// Tokens of a workgroup.
    #[must_use]
    pub fn tile(self) -> u32 {
        self.workgroup * self.turns
    }
}

/// Invocations of the one workgroup a row that plans and resolves.
///
/// With fewer, a flood of ties takes an invocation through more turns of its loops than Mesa's
/// software driver allows, which is 65,535 for a whole shader.
const LANES: u32 = 256;

impl Default for Shape {
    fn default() -> Self {
        Self::ALL[0]
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.workgroup, self.turns)
    }
}

/// One shader: its entry point, its text without constants, and the buffers it binds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    parts: &'static [&'static str],
    /// Whether it walks over the vocabulary, cut by the shape, rather than one workgroup a row.
    pub(crate) walks: bool,
    pub(crate) bindings: &'static [u32],
}

const INTEGERS: &str = include_str!("integers.wgsl");
const FLOATS: &str = include_str!("floats.wgsl");
const ROW: &str = include_str!("row.wgsl");
const SCAN: &str = include_str!("scan.wgsl");
const SPREAD: &str = include_str!("spread.wgsl");

/// The kernels of a round, in order.
pub(crate) const ROUND: [Kernel; 5] = [
    Kernel {
        name: "prepare",
        parts: &[INTEGERS, FLOATS, ROW, include_str!("prepare.wgsl")],
        walks: true,
        bindings: &[0, 1, 2, 3, 6, 8],
    },
    Kernel {
        name: "weigh",
        parts: &[INTEGERS, ROW, SPREAD, include_str!("weigh.wgsl")],
        walks: true,
        bindings: &[0, 2, 3, 6],
    },
    Kernel {
        name: "plan",
        parts: &[INTEGERS, ROW, SCAN, SPREAD, include_str!("plan.wgsl")],
        walks: false,
        bindings: &[0, 3, 4, 6, 7],
    },
    Kernel {
        name: "gather",
        parts: &[INTEGERS, ROW, include_str!("gather.wgsl")],
        walks: true,
        bindings: &[0, 2, 3, 4, 5, 6],
    },
    Kernel {
        name: "resolve",
        parts: &[INTEGERS, ROW, SCAN, include_str!("resolve.wgsl")],
        walks: false,
        bindings: &[0, 2, 3, 4, 5, 6, 7, 8],
    },
];

/// Every function of the specification, one result an invocation.
pub(crate) const PROBE: Kernel = Kernel {
    name: "probe",
    parts: &[INTEGERS, FLOATS, include_str!("probe.wgsl")],
    walks: true,
    bindings: &[0, 1],
};

/// A model's last matrix times a hidden state.
pub(crate) const HEAD: Kernel = Kernel {
    name: "head",
    parts: &[INTEGERS, FLOATS, include_str!("head.wgsl")],
    walks: true,
    bindings: &[0, 1, 2, 3, 4, 5],
};

/// The text of the sort that ours is measured against.
pub(crate) fn sort_text(shape: Shape) -> String {
    [&constants(Some(shape)), INTEGERS, include_str!("bitonic.wgsl")].join("\n")
}

impl Kernel {
    /// The whole text; the same for every shape where the kernel does not walk, so that it is
    /// compiled once.
    pub(crate) fn text(&self, shape: Shape) -> String {
        let mut text = constants(self.walks.then_some(shape));
        for part in self.parts {
            text.push('\n');
            text.push_str(part);
        }
        text
    }
}

/// What stands in front of every shader.
fn constants(shape: Option<Shape>) -> String {
    let mut text = String::from("// Written by kernels.rs from weights.rs and layout.rs.\n");
    let mut constant = |name: &str, value: u64| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "const {name}: u32 = {value}u;");
    };
    for (degree, coefficient) in POLYNOMIAL.iter().enumerate() {
        constant(&format!("POLYNOMIAL_{degree}"), u64::from(*coefficient));
    }
    constant("OCTAVES", u64::from(OCTAVES));
    constant("WEIGHT_BITS", u64::from(WEIGHT_BITS));
    for (name, value) in layout::constants() {
        constant(name, value as u64);
    }
    constant("LANES", u64::from(LANES));
    if let Some(shape) = shape {
        constant("WORKGROUP", u64::from(shape.workgroup));
        constant("TURNS", u64::from(shape.turns));
        constant("TILE", u64::from(shape.tile()));
    }
    let (low, high) = (FARTHEST & 0xffff_ffff, FARTHEST >> 32);
    let _ = writeln!(text, "const FARTHEST: vec2<u32> = vec2<u32>({low}u, {high}u);");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validated(kernel: &Kernel, shape: Shape) -> naga::Module {
        let text = kernel.text(shape);
        let module = naga::front::wgsl::parse_str(&text)
            .unwrap_or_else(|error| panic!("{} {shape}: {}", kernel.name, error.emit_to_string(&text)));
        naga::valid::Validator::new(naga::valid::ValidationFlags::all(), naga::valid::Capabilities::empty())
            .validate(&module)
            .unwrap_or_else(|error| panic!("{} {shape}: {}", kernel.name, error.emit_to_string(&text)));
        module
    }

    fn kernels() -> impl Iterator<Item = Kernel> {
        ROUND.into_iter().chain([PROBE, HEAD])
    }

    #[test]
    fn every_shader_is_valid_without_a_device() {
        let mut checked = 0;
        for kernel in kernels() {
            for shape in Shape::ALL {
                let module = validated(&kernel, shape);
                assert!(module.entry_points.iter().any(|entry| entry.name == kernel.name));
                checked += 1;
            }
        }
        assert_eq!(checked, 7 * 6);
    }

    #[test]
    fn the_sort_is_valid_too() {
        let text = sort_text(Shape::default());
        let module = naga::front::wgsl::parse_str(&text)
            .unwrap_or_else(|error| panic!("{}", error.emit_to_string(&text)));
        assert_eq!(module.entry_points.len(), 3);
        naga::valid::Validator::new(naga::valid::ValidationFlags::all(), naga::valid::Capabilities::empty())
            .validate(&module)
            .unwrap_or_else(|error| panic!("{}", error.emit_to_string(&text)));
    }

    #[test]
    fn shaders_bind_what_the_host_binds_and_stay_within_default_limits() {
        for kernel in kernels() {
            for shape in Shape::ALL {
                let module = validated(&kernel, shape);
                let mut bound: Vec<u32> = module
                    .global_variables
                    .iter()
                    .filter_map(|(_, variable)| variable.binding.as_ref().map(|binding| binding.binding))
                    .collect();
                bound.sort_unstable();
                assert_eq!(bound, kernel.bindings, "{}", kernel.name);
                assert!(bound.len() <= 8, "{}: {} storage buffers", kernel.name, bound.len());
                let mut layouter = naga::proc::Layouter::default();
                layouter.update(module.to_ctx()).expect("a valid module");
                let shared: u32 = module
                    .global_variables
                    .iter()
                    .filter(|(_, variable)| variable.space == naga::AddressSpace::WorkGroup)
                    .map(|(_, variable)| layouter[variable.ty].size)
                    .sum();
                assert!(shared <= 16_384, "{} {shape}: {shared} bytes of workgroup memory", kernel.name);
                let invocations: u32 = module.entry_points[0].workgroup_size.iter().product();
                assert!((1..=256).contains(&invocations), "{} {shape}: {invocations}", kernel.name);
            }
        }
    }

    /// The constants as the shader's own front end reads them, against the structs.
    #[test]
    fn parameter_layouts_are_those_of_the_structs() {
        use crate::gpu::layout::{RowParams, StageParams};

        let module = validated(&ROUND[4], Shape::default());
        let read = |wanted: &str| {
            let (_, constant) = module
                .constants
                .iter()
                .find(|(_, constant)| constant.name.as_deref() == Some(wanted))
                .unwrap_or_else(|| panic!("no constant {wanted}"));
            match module.global_expressions[constant.init] {
                naga::Expression::Literal(naga::Literal::U32(value)) => value as usize,
                ref other => panic!("{wanted} is {other:?}"),
            }
        };
        // Each field gets a value of its own, and is looked for at the shader's word.
        let mut params = RowParams {
            vocabulary: 11,
            phases: 12,
            mantissa: 13,
            exponent: -14,
            sorted: 15,
            stages: 16,
            ..RowParams::default()
        };
        params.list[1] =
            StageParams { op: 21, flags: 22, operand: [23, 24], min_keep: 25, ..StageParams::default() };
        let words: &[u32] = bytemuck::cast_slice(std::slice::from_ref(&params));
        assert_eq!(words.len(), read("PARAM_WORDS"));
        assert_eq!(words[read("PARAM_VOCABULARY")], 11);
        assert_eq!(words[read("PARAM_PHASES")], 12);
        assert_eq!(words[read("PARAM_MANTISSA")], 13);
        assert_eq!(words[read("PARAM_EXPONENT")].cast_signed(), -14);
        assert_eq!(words[read("PARAM_SORTED")], 15);
        assert_eq!(words[read("PARAM_STAGES")], 16);
        let stage = read("PARAM_HEADER") + read("STAGE_WORDS");
        assert_eq!(words[stage..stage + 5], [21, 22, 23, 24, 25]);
        for (name, value) in layout::constants() {
            assert_eq!(read(name), value, "{name}");
        }
    }
}
