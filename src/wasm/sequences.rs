//! Beams, speculation, and the laboratory.

use std::sync::Arc;

use serde::Deserialize;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use super::{Model, Session, Thrown, from_object, object, thrown};
use crate::{
    Error, ErrorCode,
    constraint::{self, no_files},
    session::Options,
    strategy::{
        Strategy,
        beam::BeamSearch,
        laboratory::{self, Experiment},
        speculative::{self, Fault},
    },
};

fn compiled(model: &Model, options: &Options) -> Result<Option<Box<dyn constraint::Constraint>>, Error> {
    let open = |text: &String| constraint::open(&model.inner, text, &no_files);
    options.constraint.as_ref().map(open).transpose()
}

fn other(strategy: &Strategy, wanted: &str) -> Error {
    Error::new(ErrorCode::BadInput, format!("the strategy is {strategy}, not {wanted}")).param("strategy")
}

#[wasm_bindgen]
impl Model {
    /// The same model once more, to be given away as a draft.
    #[must_use]
    pub fn share(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), sha256: self.sha256.clone() }
    }
}

#[wasm_bindgen]
impl Session {
    /// Where the constraint's parser stands: `{accepting, ended, broken, inside}`, or null.
    pub fn standing(&mut self) -> Thrown<JsValue> {
        object(&self.inner.standing().map_err(thrown)?)
    }

    /// What the generation noticed, such as an end of sequence that a stage removed.
    #[wasm_bindgen(js_name = sequenceNotes)]
    pub fn sequence_notes(&self) -> Thrown<JsValue> {
        object(&self.inner.generation().notes())
    }
}

/// A beam search.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Beams {
    inner: BeamSearch,
}

#[wasm_bindgen]
impl Beams {
    /// Prepares a search: the options of a session, and a text such as `beam(width=4)`.
    #[wasm_bindgen(constructor)]
    pub fn new(model: &Model, options: JsValue, strategy: &str) -> Thrown<Self> {
        let options: Options = from_object(options)?;
        let strategy: Strategy = strategy.parse().map_err(thrown)?;
        let Strategy::Beam(beams) = strategy else {
            return Err(thrown(other(&strategy, "beam or diverse_beam")));
        };
        let request = options.request(&*model.inner).map_err(thrown)?;
        let mut inner = BeamSearch::new(Arc::clone(&model.inner), request, beams).map_err(thrown)?;
        if let Some(constraint) = compiled(model, &options).map_err(thrown)? {
            inner = inner.with_constraint(&*constraint);
        }
        Ok(Self { inner })
    }

    /// Lengthens every beam by one token; false when the search has ended.
    pub fn step(&mut self) -> Thrown<bool> {
        self.inner.step().map_err(thrown)
    }

    /// The tree, the steps and the sequences so far.
    pub fn record(&self) -> Thrown<JsValue> {
        object(self.inner.record())
    }

    /// Why the search ended, or null.
    pub fn finish(&self) -> Thrown<JsValue> {
        object(&self.inner.finish())
    }
}

/// A generation by drafting and judging.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Speculation {
    inner: speculative::Speculation,
}

#[wasm_bindgen]
impl Speculation {
    /// Prepares a generation: the options of a session, a text such as
    /// `speculative(draft="other", tokens=4)`, and the draft model that it names, which is
    /// given away: [`Model::share`] makes another.
    #[wasm_bindgen(constructor)]
    pub fn new(model: &Model, options: JsValue, strategy: &str, draft: Option<Model>) -> Thrown<Self> {
        let options: Options = from_object(options)?;
        let strategy: Strategy = strategy.parse().map_err(thrown)?;
        let Strategy::Speculative(speculative) = strategy else {
            return Err(thrown(other(&strategy, "speculative or prompt_lookup")));
        };
        let request = options.request(&*model.inner).map_err(thrown)?;
        let draft = draft.map(|draft| draft.inner);
        let mut inner = speculative::Speculation::new(Arc::clone(&model.inner), draft, request, speculative)
            .map_err(thrown)?;
        if let Some(constraint) = compiled(model, &options).map_err(thrown)? {
            inner = inner.with_constraint(constraint);
        }
        Ok(Self { inner })
    }

    /// Drafts a block and has it judged; false when the sequence has ended.
    pub fn step(&mut self) -> Thrown<bool> {
        self.inner.step().map_err(thrown)
    }

    /// Every block so far.
    pub fn blocks(&self) -> Thrown<JsValue> {
        object(&self.inner.blocks())
    }

    /// What speculation saved or cost so far.
    pub fn summary(&self) -> Thrown<JsValue> {
        object(&self.inner.summary())
    }

    /// The text so far.
    #[must_use]
    pub fn text(&self) -> String {
        self.inner.text().to_owned()
    }

    /// Why the generation ended, or null.
    pub fn finish(&self) -> Thrown<JsValue> {
        object(&self.inner.finish())
    }
}

/// An experiment as JavaScript gives it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Setup {
    options: Options,
    strategy: String,
    #[serde(default)]
    fault: Fault,
    runs: u32,
}

/// Counts many short sequences and holds them to the target's own probabilities:
/// `{options, strategy, fault, runs}`. `fault` is a mistake to make: `none`, `argmax_draft`,
/// `mismatched_temperature` or `no_residual`.
#[wasm_bindgen]
pub fn laboratory(model: &Model, draft: Option<Model>, setup: JsValue) -> Thrown<JsValue> {
    let setup: Setup = from_object(setup)?;
    let strategy: Strategy = setup.strategy.parse().map_err(thrown)?;
    let Strategy::Speculative(options) = strategy else {
        return Err(thrown(other(&strategy, "speculative or prompt_lookup")));
    };
    let experiment = Experiment {
        target: Arc::clone(&model.inner),
        draft: draft.map(|draft| draft.inner),
        request: setup.options.request(&*model.inner).map_err(thrown)?,
        options,
        fault: setup.fault,
        runs: setup.runs,
    };
    object(&laboratory::run(&experiment).map_err(thrown)?)
}
