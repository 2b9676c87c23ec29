//! What a stage may know besides the row: the history, the randomness, the vocabulary.

use serde::Serialize;

use crate::{
    TokenId, Vocab,
    config::Args,
    error::Result,
    logits::TokenMask,
    random::{Purpose, Randomness},
};

/// The surroundings of one decoding step.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepContext<'a> {
    /// Prompt and generated tokens, oldest first.
    pub history: &'a [TokenId],
    /// How many of them are the prompt.
    pub prompt_len: usize,
    /// Where draws come from.
    pub randomness: Randomness,
    /// What tokens stand for, if that is known.
    pub vocab: Option<&'a Vocab>,
    /// What a constraint lets through; it is applied before any stage.
    pub allowed: Option<Allowed<'a>>,
}

impl<'a> StepContext<'a> {
    /// A step with this history, of which the first `prompt_len` tokens are the prompt.
    #[must_use]
    pub fn new(history: &'a [TokenId], prompt_len: usize, randomness: Randomness) -> Self {
        Self { history, prompt_len: prompt_len.min(history.len()), randomness, vocab: None, allowed: None }
    }

    /// How many tokens have been generated so far.
    #[must_use]
    pub fn generated(&self) -> usize {
        self.history.len() - self.prompt_len
    }

    /// 64 uniform bits for a purpose.
    #[must_use]
    pub fn draw(&self, purpose: Purpose) -> u64 {
        self.randomness.draw(purpose)
    }
}

/// Which part of the history a stage looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Prompt and generated tokens.
    Context,
    /// Generated tokens only.
    Generated,
    /// The prompt only.
    Prompt,
}

/// A scope, and how far back it reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookback {
    /// Which part of the history.
    pub scope: Scope,
    /// Its last so many tokens; 0 for all of it.
    pub window: usize,
}

impl Lookback {
    /// Reads the parameters `scope` and `window`; a stage without `window` sees all.
    ///
    /// # Errors
    /// As [`Args::word`].
    pub fn from_args(args: &Args) -> Result<Self> {
        let scope = match args.word("scope")? {
            "generated" => Scope::Generated,
            "prompt" => Scope::Prompt,
            _ => Scope::Context,
        };
        let window = if args.has("window") { args.count("window")? } else { 0 };
        Ok(Self { scope, window })
    }

    /// The tokens in view, oldest first.
    ///
    /// # Examples
    /// ```
    /// use logitscope::{TokenId, random::Randomness, step::{Lookback, Scope, StepContext}};
    ///
    /// let history = [1, 2, 3, 4].map(TokenId);
    /// let context = StepContext::new(&history, 1, Randomness::default());
    /// let view = |scope, window| Lookback { scope, window }.of(&context).len();
    /// assert_eq!(view(Scope::Context, 0), 4);
    /// assert_eq!(view(Scope::Generated, 0), 3);
    /// assert_eq!(view(Scope::Prompt, 0), 1);
    /// assert_eq!(view(Scope::Generated, 2), 2);
    /// ```
    #[must_use]
    pub fn of<'a>(&self, context: &StepContext<'a>) -> &'a [TokenId] {
        let seen = match self.scope {
            Scope::Context => context.history,
            Scope::Generated => &context.history[context.prompt_len..],
            Scope::Prompt => &context.history[..context.prompt_len],
        };
        let skipped = if self.window == 0 { 0 } else { seen.len().saturating_sub(self.window) };
        &seen[skipped..]
    }
}

/// Where the parser of a [constraint](crate::constraint) stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Whether the text so far is complete.
    pub accepting: bool,
    /// Whether nothing but the end may follow.
    pub ended: bool,
    /// Whether a token was taken that the grammar does not allow.
    pub broken: bool,
    /// What the parser is inside of, in words.
    pub inside: String,
}

/// What a constraint says before one step.
#[derive(Debug, Clone, Copy)]
pub struct Allowed<'a> {
    /// The tokens that may come, those that end the sequence included if it may end.
    pub mask: &'a TokenMask,
    /// Where the parser stands.
    pub standing: &'a Standing,
}
