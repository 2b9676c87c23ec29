//! Makes the end of the sequence ever likelier.

use crate::{
    TokenId,
    config::Args,
    error::Result,
    spec::{Build, Kind, Law, ParamSpec, StageSpec, positive, whole},
    step::StepContext,
    transform::{
        Edit, Op, Transform, edits_kernel, kernel::Kernel, min_new_tokens::EOS, readable, suppress::ids,
    },
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "length_decay",
    label: "Length decay",
    kind: Kind::Edit,
    summary: "Raises the score of the end-of-sequence tokens exponentially with the length.",
    formula: "z[eos] + |z[eos]| * (factor^(generated - start) - 1) once generated > start",
    source: "transformers, ExponentialDecayLengthPenalty",
    params: &[
        ParamSpec {
            name: "start",
            ty: whole(0),
            default: Some("0"),
            neutral: None,
            slider: Some((0.0, 200.0, 1.0)),
            unit: "tokens",
            help: "How many tokens are generated before the score begins to rise.",
        },
        ParamSpec {
            name: "factor",
            ty: positive(),
            default: Some("1"),
            neutral: Some("1"),
            slider: Some((1.0, 2.0, 0.01)),
            unit: "",
            help: "The growth a token; below 1 the end becomes less likely.",
        },
        EOS,
    ],
    laws: &[Law::NeutralIsIdentity],
    build: Build::Transform(|args| Ok(Box::new(LengthDecay::from_args(args)?))),
};

/// Adds `|z| · (factor^n - 1)` to the listed tokens, `n` tokens after `start`.
///
/// - **Shape** `[V]` → `[V]`; only the listed tokens change.
/// - **Units** `factor` dimensionless, above 0; `1` changes nothing. The prompt does not
///   count.
/// - **Edges** a score of 0 stays 0 for ever; a negative one rises too. The result depends on
///   where zero lies. A score too large for f32 is an error.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, StepContext, TokenId};
///
/// let history = [TokenId(0); 7];
/// let context = StepContext::new(&history, 2, Default::default()); // five generated
/// let mut logits = Logits::new(&[0.0, 5.0, -2.0])?;
/// Pipeline::parse("length_decay(start=3, factor=1.5, eos=[1,2])")?.reshape(&mut logits, &context)?;
/// assert_eq!(logits.score(TokenId(1)), Some(11.25)); // 5 · 1.5²
/// assert_eq!(logits.score(TokenId(2)), Some(0.5)); // -2 + 2 · (1.5² - 1)
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LengthDecay {
    start: usize,
    factor: f64,
    eos: Vec<TokenId>,
}

impl LengthDecay {
    fn from_args(args: &Args) -> Result<Self> {
        let mut eos = ids(args.json("eos")?);
        // A token named twice is one token.
        eos.sort_unstable();
        eos.dedup();
        Ok(Self { start: args.count("start")?, factor: args.number("factor")?, eos })
    }
}

impl Transform for LengthDecay {
    fn edits(&self, context: &StepContext) -> Result<Vec<Edit>> {
        let over = context.generated().saturating_sub(self.start);
        if over == 0 || self.factor == 1.0 {
            return Ok(Vec::new());
        }
        let growth = libm::pow(self.factor, over as f64);
        #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
        let op = Op::Multiply { positive: growth as f32, other: (2.0 - growth) as f32 };
        let why = format!("{over} past the start: |z| × {} is added", readable(growth - 1.0));
        Ok(self.eos.iter().map(|&token| Edit { token, op, why: why.clone() }).collect())
    }

    fn kernel(&self, context: &StepContext) -> Result<Kernel> {
        edits_kernel(self, context)
    }
}
