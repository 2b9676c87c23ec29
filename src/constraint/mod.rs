//! Constraints: which tokens may follow, so that the text keeps to a grammar.
//!
//! A [`Constraint`] follows one sequence. Before each step it says which tokens of text may
//! come next; that mask is applied to the raw row, before any stage. Whether the sequence may
//! end is separate: an end-of-sequence token is allowed iff the text so far is
//! [accepted](Standing::accepting), whatever its id.
//!
//! Parsers come from llguidance, behind the feature `constraint`, so that a page without
//! grammars stays small. This module is the part without them: the trait, the record of a
//! step, and the scanner that says what of a JSON text is open.

#[cfg(feature = "constraint")]
pub mod gbnf;
#[cfg(feature = "constraint")]
pub mod grammar;
pub mod json_place;
#[cfg(feature = "constraint")]
pub mod spec;

use std::{fmt, sync::Arc};

use crate::{
    TokenId,
    error::{Error, ErrorCode, Result},
    logits::TokenMask,
    model::LanguageModel,
};
pub use crate::{
    step::{Allowed, Standing},
    trace::ConstraintTrace,
};

/// Reads a file that a constraint names.
pub type Loader<'a> = &'a dyn Fn(&str) -> Result<String>;

/// A loader that has no files.
///
/// # Errors
/// Always `io`.
pub fn no_files(path: &str) -> Result<String> {
    Err(Error::new(ErrorCode::Io, format!("{path:?} would be a file, and there are no files here")))
}

/// Reads and compiles the text form of a constraint for a model.
///
/// # Errors
/// `syntax` with its place for a text, a grammar or a schema that is not right; what `load`
/// refuses; `needs_constraints` in a build without the feature `constraint`.
#[cfg(feature = "constraint")]
pub fn open(model: &Arc<dyn LanguageModel>, text: &str, load: Loader) -> Result<Box<dyn Constraint>> {
    grammar::Engine::of(model)?.constraint(text, load)
}

/// Refuses: this build has no parsers.
///
/// # Errors
/// Always `needs_constraints`.
#[cfg(not(feature = "constraint"))]
pub fn open(_: &Arc<dyn LanguageModel>, text: &str, _: Loader) -> Result<Box<dyn Constraint>> {
    let message = format!("{text} needs the build with grammars, which this one is not");
    Err(Error::new(ErrorCode::NeedsConstraints, message).stage("constraint"))
}

/// Follows one sequence and says what may come next.
pub trait Constraint: fmt::Debug + Send {
    /// Which tokens of text may come next: one bit a token, those that end a sequence left
    /// out.
    ///
    /// # Errors
    /// `constraint` when the parser gives up, such as on a grammar that is too ambiguous.
    fn allowed(&mut self) -> Result<&TokenMask>;

    /// Where the parser stands.
    ///
    /// # Errors
    /// As [`allowed`](Self::allowed).
    fn standing(&mut self) -> Result<Standing>;

    /// Takes a token. One that is not allowed, or comes after the end, is remembered, and
    /// nothing is allowed after it.
    ///
    /// # Errors
    /// As [`allowed`](Self::allowed).
    fn commit(&mut self, token: TokenId) -> Result<()>;

    /// Forgets the last `tokens` tokens.
    ///
    /// # Errors
    /// `bad_input` for more than were taken.
    fn rollback(&mut self, tokens: usize) -> Result<()>;

    /// How many tokens were taken.
    fn len(&self) -> usize;

    /// Whether none was.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An independent copy.
    fn fork(&self) -> Box<dyn Constraint>;

    /// The text form.
    fn text(&self) -> &str;
}

impl Clone for Box<dyn Constraint> {
    fn clone(&self) -> Self {
        self.fork()
    }
}

/// The mask of a step, with the ends of sequences put in or taken out.
///
/// # Errors
/// As [`Constraint::allowed`].
pub fn mask_with_ends(constraint: &mut dyn Constraint, eos: &[TokenId]) -> Result<(TokenMask, Standing)> {
    let standing = constraint.standing()?;
    let mut mask = constraint.allowed()?.clone();
    let size = mask.len();
    for token in eos.iter().filter(|token| token.index() < size) {
        if standing.accepting {
            mask.insert(token.index());
        } else {
            mask.remove(token.index());
        }
    }
    Ok((mask, standing))
}

/// Where a parser stands after a text, whatever it has taken before.
///
/// # Errors
/// As [`Constraint::commit`]; what the tokenizer refuses.
pub fn standing_after(
    model: &dyn LanguageModel,
    constraint: &dyn Constraint,
    text: &str,
) -> Result<Standing> {
    let mut constraint = constraint.fork();
    constraint.rollback(constraint.len())?;
    for token in model.tokenize(text, false, false)? {
        constraint.commit(token)?;
    }
    constraint.standing()
}

/// Whether a text, as a whole, keeps to a constraint.
///
/// # Errors
/// As [`standing_after`].
pub fn accepts(model: &dyn LanguageModel, constraint: &dyn Constraint, text: &str) -> Result<bool> {
    Ok(standing_after(model, constraint, text)?.accepting)
}
