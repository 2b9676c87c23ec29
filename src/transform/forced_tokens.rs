//! Leaves one token at chosen steps.

use std::collections::BTreeMap;

use crate::{
    TokenId,
    config::Args,
    error::{Error, ErrorCode, Result},
    logits::{Logits, Standing},
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec},
    step::StepContext,
    transform::{
        Facts, Outcome, Transform, Verdict,
        kernel::{Kernel, ONE_TOKEN_IS_LEFT},
    },
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "forced_tokens",
    label: "Forced tokens",
    kind: Kind::Edit,
    summary: "Leaves a single token at the steps that are listed.",
    formula: "z[forced] = 0, all others -inf, at its step",
    source: "transformers, ForcedBOSTokenLogitsProcessor and ForcedEOSTokenLogitsProcessor",
    params: &[ParamSpec {
        name: "at",
        ty: ParamType::Forced,
        default: Some("{}"),
        neutral: Some("{}"),
        slider: None,
        unit: "",
        help: "Steps, counted from 0, with the id of the token forced there.",
    }],
    laws: &[Law::NeutralIsIdentity, Law::Idempotent],
    build: Build::Transform(|args| Ok(Box::new(ForcedTokens::from_args(args)?))),
};

/// Removes every token but the one listed for this step, whose score becomes 0.
///
/// - **Shape** `[V]` → `[V]`; steps are counted in generated tokens, the first is 0.
/// - **Edges** a token that is already dead is not revived: that is an error, as is an id
///   outside the vocabulary.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, TokenId};
///
/// let mut logits = Logits::new(&[0.0, 1.0, 2.0])?;
/// Pipeline::parse("forced_tokens(at={\"0\": 1})")?.reshape(&mut logits, &Default::default())?;
/// assert_eq!(logits.support(), [TokenId(1)]);
/// assert_eq!(logits.score(TokenId(1)), Some(0.0));
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ForcedTokens {
    at: BTreeMap<usize, TokenId>,
}

impl ForcedTokens {
    fn from_args(args: &Args) -> Result<Self> {
        let at = args.json("at")?.as_object().into_iter().flatten();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "declared as token ids")]
        let at = at.filter_map(|(step, id)| Some((step.parse().ok()?, TokenId(id.as_f64()? as u32))));
        Ok(Self { at: at.collect() })
    }
}

impl Transform for ForcedTokens {
    fn apply(&self, logits: &mut Logits, context: &StepContext) -> Result<Outcome> {
        let Some(&forced) = self.at.get(&context.generated()) else { return Ok(Outcome::default()) };
        if forced.index() >= logits.len() {
            let message = format!("token {forced} is not in a vocabulary of {}", logits.len());
            return Err(Error::new(ErrorCode::TokenOutOfVocabulary, message));
        }
        if !logits.alive().contains(forced.index()) {
            let message = format!("token {forced} is forced at this step, but an earlier stage removed it");
            return Err(Error::new(ErrorCode::EmptySupport, message));
        }
        logits.rescore(|token, _| (token == forced).then_some(0.0))?;
        Ok(Outcome { cut: None, limit: Some(f64::from(forced.0)) })
    }

    fn kernel(&self, context: &StepContext) -> Result<Kernel> {
        let forces = self.at.contains_key(&context.generated());
        Ok(if forces { Kernel::Missing(ONE_TOKEN_IS_LEFT) } else { Kernel::Nothing })
    }

    fn verdict(&self, _: &Facts, standing: &Standing, outcome: &Outcome) -> Option<Verdict> {
        let forced = outcome.limit?;
        let own = f64::from(standing.token.0);
        let (reason, margin) = if own == forced {
            ("it is forced at this step".to_owned(), 0.0)
        } else {
            (format!("token {forced} is forced at this step"), -1.0)
        };
        Some(Verdict { reason, value: own, limit: forced, margin })
    }
}
