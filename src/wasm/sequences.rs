//! Whole sequences: runs, beams, speculation, the laboratories, and the tree of all of them.

use std::sync::Arc;

use serde::Deserialize;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

#[cfg(feature = "gpu")]
use super::Engine;
use super::{Model, Session, Thrown, from_object, object, thrown};
use crate::{
    Error, ErrorCode,
    constraint::{self, no_files},
    model::table::TableModel,
    run,
    session::Options,
    statistics::repeated_share,
    stop,
    strategy::{
        Strategy,
        beam::BeamSearch,
        laboratory::{self, Experiment},
        speculative::{self, Fault},
        tree::{BranchTree, Taken},
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

    /// A model that is a table, from JSON: `{"vocab": 5, "seed": 1, "scale": 1, "eos": 4}`. It
    /// costs nothing to run, but its tokens have no texts.
    pub fn table(json: &str) -> Thrown<Self> {
        Ok(Self { inner: Arc::new(TableModel::from_json(json).map_err(thrown)?), sha256: None })
    }

    /// One sequence from the prompt to its end, with what each step allowed and cost: the
    /// options of a session, and a constraint that the finished text is checked with.
    #[expect(clippy::needless_pass_by_value, reason = "wasm-bindgen hands over texts that own themselves")]
    pub fn run(&self, options: JsValue, check: Option<String>) -> Thrown<JsValue> {
        let options: Options = from_object(options)?;
        object(&run::run(&self.inner, &options, check.as_deref()).map_err(thrown)?)
    }

    /// As `run`, each step on a GPU where the engine chooses it: the same run.
    #[cfg(feature = "gpu")]
    #[wasm_bindgen(js_name = runOn)]
    pub async fn run_on(
        &self,
        engine: &mut Engine,
        options: JsValue,
        check: Option<String>,
    ) -> Thrown<JsValue> {
        let options: Options = from_object(options)?;
        let run = run::run_on(&mut engine.inner, &self.inner, &options, check.as_deref()).await;
        object(&run.map_err(thrown)?)
    }

    /// Compiles a constraint and forgets it: throws what is wrong with it, and where.
    #[wasm_bindgen(js_name = checkConstraint)]
    pub fn check_constraint(&self, text: &str) -> Thrown<()> {
        constraint::open(&self.inner, text, &no_files).map(drop).map_err(thrown)
    }

    /// What a reader sees of a text as it comes, chunk by chunk: chunks of `size` bytes, or the
    /// tokens of the text if `size` is 0; then once more when nothing more comes.
    pub fn watch(&self, text: &str, size: usize, stops: JsValue) -> Thrown<JsValue> {
        let stops: Vec<String> = from_object(stops)?;
        let chunks: Vec<&[u8]> = if size > 0 {
            text.as_bytes().chunks(size).collect()
        } else {
            let ids = self.inner.tokenize(text, false, false).map_err(thrown)?;
            ids.into_iter().map(|id| self.inner.vocab().bytes(id)).collect()
        };
        object(&stop::watch(&chunks, &stops))
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

    /// As `step`, on a GPU where the engine chooses it.
    #[cfg(feature = "gpu")]
    #[wasm_bindgen(js_name = stepOn)]
    pub async fn step_on(&mut self, engine: &mut Engine) -> Thrown<bool> {
        self.inner.step_on(&mut engine.inner).await.map_err(thrown)
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

    /// As `step`, on a GPU where the engine chooses it.
    #[cfg(feature = "gpu")]
    #[wasm_bindgen(js_name = stepOn)]
    pub async fn step_on(&mut self, engine: &mut Engine) -> Thrown<bool> {
        self.inner.step_on(&mut engine.inner).await.map_err(thrown)
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
/// `{options, strategy, fault, runs}`. `fault` is a mistake to make: `none`, `likeliest_draft`,
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

/// Of all short runs of tokens, the share that had come before.
#[wasm_bindgen]
#[must_use]
pub fn repetition(tokens: &[u32]) -> f64 {
    repeated_share(tokens, run::REPEATED_LENGTH)
}

/// Sequences that begin alike, as one tree: a list of `{token, raw_logprob, final_logprob}`
/// for each branch in; `{nodes, ends}` out.
#[wasm_bindgen(js_name = branchTree)]
pub fn branch_tree(branches: JsValue) -> Thrown<JsValue> {
    object(&tree(branches)?)
}

/// Where two of the branches part, and what each cost; null if one does not exist.
#[wasm_bindgen(js_name = compareBranches)]
pub fn compare_branches(branches: JsValue, a: usize, b: usize) -> Thrown<JsValue> {
    object(&tree(branches)?.compare(a, b))
}

fn tree(branches: JsValue) -> Thrown<BranchTree> {
    let branches: Vec<Vec<Taken>> = from_object(branches)?;
    let mut tree = BranchTree::default();
    for branch in &branches {
        tree.add(branch);
    }
    Ok(tree)
}
