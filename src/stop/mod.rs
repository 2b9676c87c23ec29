//! Why and when a generation ends.
//!
//! [`StopRules`] say what ends a sequence; a [`StopState`] follows one and holds its text.

pub mod text;

use serde::Serialize;

use crate::{Error, TokenId, Vocab, stop::text::TextStream};

/// Why a generation ended.
///
/// When several reasons hold at once, the first in this order is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The constraint allows nothing but the end, so nothing was drawn.
    Grammar,
    /// An end-of-sequence token was drawn.
    Eos,
    /// A stop string was completed.
    StopString,
    /// The token budget is spent.
    MaxTokens,
    /// The model's context is full.
    ContextFull,
    /// Every token was removed.
    ConstraintUnsatisfiable,
    /// The reader cancelled.
    Cancelled,
    /// Something failed.
    Error,
}

/// How a generation ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finish {
    /// The first reason that held, in the order of precedence.
    pub reason: FinishReason,
    /// The other reasons that held at the same step.
    pub also: Vec<FinishReason>,
    /// The stop string that was completed.
    pub stop_string: Option<String>,
    /// The stage that removed every token, or that failed.
    pub stage: Option<String>,
    /// What happened, if it was a failure.
    pub message: Option<String>,
}

impl Finish {
    /// An end for one reason.
    #[must_use]
    pub fn because(reason: FinishReason) -> Self {
        Self { reason, also: Vec::new(), stop_string: None, stage: None, message: None }
    }

    /// An end because the stage that this error names left no token.
    #[must_use]
    pub fn emptied(error: Error) -> Self {
        Self {
            stage: error.stage,
            message: Some(error.message),
            ..Self::because(FinishReason::ConstraintUnsatisfiable)
        }
    }
}

/// What ends a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopRules {
    /// Tokens that end it.
    pub eos: Vec<TokenId>,
    /// Texts that end it, wherever tokens begin and end.
    pub strings: Vec<String>,
    /// Whether the stop string is left out of the text.
    pub trim: bool,
    /// How many tokens may be generated.
    pub max_tokens: usize,
}

impl StopRules {
    /// The vocabulary's own end-of-sequence tokens, and a budget.
    #[must_use]
    pub fn of_vocab(vocab: &Vocab, max_tokens: usize) -> Self {
        Self { eos: vocab.eos.clone(), strings: Vec::new(), trim: true, max_tokens }
    }
}

/// One sequence, as far as stopping is concerned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StopState {
    stream: TextStream,
    /// The text, and the stop string if it is to be included.
    shown: String,
    ended_by_token: bool,
    generated: usize,
}

impl StopState {
    /// Takes a token. Control tokens add no text.
    pub fn push(&mut self, rules: &StopRules, vocab: &Vocab, token: TokenId) {
        self.generated += 1;
        self.ended_by_token = rules.eos.contains(&token);
        if !self.ended_by_token && !vocab.is_special(token) {
            self.stream.push(vocab.bytes(token), &rules.strings);
        }
        self.show(rules);
    }

    fn show(&mut self, rules: &StopRules) {
        self.shown.clear();
        self.shown.push_str(self.stream.text());
        if !rules.trim {
            self.shown.push_str(self.stream.matched().unwrap_or_default());
        }
    }

    /// How the sequence ends here, if it does. What was held back is then given out.
    pub fn finish(&mut self, rules: &StopRules, context_full: bool) -> Option<Finish> {
        self.finish_with(rules, false, context_full)
    }

    /// As [`finish`](Self::finish); `only_the_end` says that a constraint allows no more text.
    pub fn finish_with(
        &mut self,
        rules: &StopRules,
        only_the_end: bool,
        context_full: bool,
    ) -> Option<Finish> {
        let held = [
            (FinishReason::Grammar, only_the_end && !self.ended_by_token),
            (FinishReason::Eos, self.ended_by_token),
            (FinishReason::StopString, self.stream.matched().is_some()),
            (FinishReason::MaxTokens, self.generated >= rules.max_tokens),
            (FinishReason::ContextFull, context_full),
        ];
        let mut reasons = held.into_iter().filter(|(_, holds)| *holds).map(|(reason, _)| reason);
        let reason = reasons.next()?;
        let also = reasons.collect();
        self.flush(rules);
        Some(Finish {
            also,
            stop_string: self.stream.matched().map(str::to_owned),
            ..Finish::because(reason)
        })
    }

    /// Gives out what was held back, since nothing more will come.
    pub fn flush(&mut self, rules: &StopRules) {
        self.stream.flush();
        self.show(rules);
    }

    /// What may be shown of the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.shown
    }

    /// The text with what is held back of it.
    #[must_use]
    pub fn stream(&self) -> &TextStream {
        &self.stream
    }
}

/// A text in the making, after one chunk of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// The chunk that came.
    pub chunk: Vec<u8>,
    /// What may be shown.
    pub text: String,
    /// Whole characters that may yet become a stop string.
    pub held_back: String,
    /// The bytes of a character that is not complete.
    pub partial: Vec<u8>,
    /// The stop string that is complete.
    pub matched: Option<String>,
}

/// What a reader would see after each chunk of a text, and when nothing more comes: the last
/// moment, whose chunk is empty.
///
/// # Examples
/// ```
/// use logitscope::stop::watch;
///
/// let moments = watch(&[b"a\xc3", b"\xa9!"], &["!?".to_owned()]);
/// assert_eq!((moments[0].text.as_str(), &moments[0].partial[..]), ("a", &b"\xc3"[..]));
/// assert_eq!((moments[1].text.as_str(), moments[1].held_back.as_str()), ("aé", "!"));
/// assert_eq!(moments[2].text, "aé!");
/// ```
#[must_use]
pub fn watch(chunks: &[&[u8]], stops: &[String]) -> Vec<Moment> {
    let mut stream = TextStream::default();
    let moment = |chunk: &[u8], stream: &TextStream| Moment {
        chunk: chunk.to_vec(),
        text: stream.text().to_owned(),
        held_back: stream.held_back().to_owned(),
        partial: stream.partial().to_vec(),
        matched: stream.matched().map(str::to_owned),
    };
    let mut moments = Vec::new();
    for chunk in chunks {
        stream.push(chunk, stops);
        moments.push(moment(chunk, &stream));
        if stream.matched().is_some() {
            return moments;
        }
    }
    stream.flush();
    moments.push(moment(&[], &stream));
    moments
}
