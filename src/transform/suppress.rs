//! Removes chosen tokens.

use crate::{
    TokenId,
    config::Args,
    error::Result,
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec},
    step::StepContext,
    transform::{Edit, Op, Transform, edits_kernel, kernel::Kernel},
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "suppress",
    label: "Suppress",
    kind: Kind::Edit,
    summary: "Removes chosen tokens at every step.",
    formula: "z[i] = -inf for i in ids",
    source: "transformers, SuppressTokensLogitsProcessor",
    params: &[ParamSpec {
        name: "ids",
        ty: ParamType::Ids,
        default: Some("[]"),
        neutral: Some("[]"),
        slider: None,
        unit: "",
        help: "The ids of the tokens to remove.",
    }],
    laws: &[Law::OnlyRemoves, Law::NeutralIsIdentity, Law::OrderPreserving, Law::Idempotent],
    build: Build::Transform(|args| Ok(Box::new(Suppress::from_args(args)?))),
};

/// Removes the listed tokens.
///
/// - **Shape** `[V]` → `[V]`; the others keep their scores.
/// - **Edges** an id outside the vocabulary is an error.
///
/// # Examples
/// ```
/// use logitscope::{Pipeline, Logits, TokenId};
///
/// let mut logits = Logits::new(&[0.0, 1.0, 2.0])?;
/// Pipeline::parse("suppress(ids=[0,2])")?.reshape(&mut logits, &Default::default())?;
/// assert_eq!(logits.support(), [TokenId(1)]);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Suppress {
    ids: Vec<TokenId>,
}

impl Suppress {
    fn from_args(args: &Args) -> Result<Self> {
        Ok(Self { ids: ids(args.json("ids")?) })
    }
}

/// A JSON list as token ids.
pub(crate) fn ids(json: &serde_json::Value) -> Vec<TokenId> {
    let items = json.as_array().into_iter().flatten();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "declared as token ids")]
    items.filter_map(|id| id.as_f64().map(|id| TokenId(id as u32))).collect()
}

impl Transform for Suppress {
    fn edits(&self, _: &StepContext) -> Result<Vec<Edit>> {
        let remove = |&token| Edit { token, op: Op::Remove, why: "its id is listed".to_owned() };
        Ok(self.ids.iter().map(remove).collect())
    }

    fn kernel(&self, context: &StepContext) -> Result<Kernel> {
        edits_kernel(self, context)
    }
}
