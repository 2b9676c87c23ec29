//! Penalises tokens that would continue a repetition, the longer the repetition the more.

use std::collections::BTreeMap;

use crate::{
    TokenId, Vocab,
    config::Args,
    error::{Error, ErrorCode, Result},
    spec::{Build, Kind, Law, ParamSpec, ParamType, StageSpec, non_negative, positive, whole},
    step::StepContext,
    transform::{Edit, Op, Transform, edits_kernel, kernel::Kernel, readable, suppress::ids},
};

/// Declares the stage.
pub const SPEC: StageSpec = StageSpec {
    id: "dry",
    label: "DRY",
    kind: Kind::Edit,
    summary: "Lowers tokens that would continue a sequence seen before, exponentially with its length.",
    formula: "z - multiplier * base^(L - allowed_length) if L >= allowed_length",
    source: "p-e-w 2024, https://github.com/oobabooga/text-generation-webui/pull/5677",
    params: &[
        ParamSpec {
            name: "multiplier",
            ty: non_negative(),
            default: Some("0"),
            neutral: Some("0"),
            slider: Some((0.0, 5.0, 0.05)),
            unit: "nats",
            help: "The penalty for a repetition of exactly the allowed length; 0 is off.",
        },
        ParamSpec {
            name: "base",
            ty: positive(),
            default: Some("1.75"),
            neutral: None,
            slider: Some((1.0, 4.0, 0.05)),
            unit: "",
            help: "What the penalty is multiplied by for each further token.",
        },
        ParamSpec {
            name: "allowed_length",
            ty: whole(0),
            default: Some("2"),
            neutral: None,
            slider: Some((0.0, 20.0, 1.0)),
            unit: "tokens",
            help: "Shorter repetitions cost nothing.",
        },
        ParamSpec {
            name: "window",
            ty: whole(0),
            default: Some("0"),
            neutral: None,
            slider: Some((0.0, 2048.0, 16.0)),
            unit: "tokens",
            help: "Only the last so many tokens, prompt included; 0 for all.",
        },
        ParamSpec {
            name: "breakers",
            ty: ParamType::Texts,
            default: Some("[\"\\n\",\":\",\"\\\"\",\"*\"]"),
            neutral: Some("[]"),
            slider: None,
            unit: "",
            help: "Texts, or lists of token ids, across which no repetition is counted.",
        },
    ],
    laws: &[Law::NeutralIsIdentity],
    build: Build::Transform(|args| Ok(Box::new(Dry::from_args(args)?))),
};

/// Beyond this power of the base a penalty would exceed what an f32 holds.
const LN_OF_LARGEST: f64 = 88.722_839_1;

/// Bytes of a breaker text that count, and tokens of it that may follow its first.
const BREAKER_BYTES: usize = 40;
const BREAKER_TAIL: usize = 20;

/// Finds every earlier place whose last L tokens equal the last L of the context, and subtracts
/// `multiplier · base^(L - allowed_length)` from the token that followed there, L being the
/// longest such match for that token.
///
/// - **Shape** `[V]` → `[V]`; only tokens that would continue a repetition change.
/// - **Units** `multiplier` in nats, `0` is off; `base` dimensionless, above 0.
/// - **Breakers** the last breaker in the window ends the match: nothing at or before it is
///   counted. A text breaker begins at a token that contains it, or whose end begins it while
///   the tokens after spell the rest; this needs a vocabulary. A list of ids is a breaker by
///   its ids. A token that is a breaker by itself is never penalised.
/// - **Edges** with `allowed_length = 0` every token of the window but its first is
///   penalised, as in llama.cpp. The exponent stops at `⌊88.72 / ln base⌋`; a penalty beyond
///   f32 removes the token.
/// - **Source** p-e-w 2024, <https://github.com/oobabooga/text-generation-webui/pull/5677>.
///
/// # Errors
/// `needs_vocabulary` when a breaker is a text and no vocabulary is known.
///
/// # Examples
/// ```
/// use logitscope::{Logits, Pipeline, StepContext, TokenId};
///
/// let history = [0, 1, 2, 2, 1, 2, 3, 0, 1, 2].map(TokenId); // a b c  c b c y  a b c
/// let context = StepContext::new(&history, 0, Default::default());
/// let mut logits = Logits::new(&[0.0; 4])?;
/// Pipeline::parse("dry(multiplier=0.8, breakers=[])")?.reshape(&mut logits, &context)?;
/// assert_eq!(logits.score(TokenId(2)).map(|z| z as f32), Some(-1.4)); // "a b c": L = 3
/// assert_eq!(logits.score(TokenId(3)).map(|z| z as f32), Some(-0.8)); // "b c": L = 2
/// assert_eq!(logits.score(TokenId(1)), Some(0.0)); // only "c": L = 1
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Dry {
    multiplier: f64,
    base: f64,
    allowed_length: usize,
    window: usize,
    breakers: Vec<Breaker>,
}

/// What ends a repetition.
#[derive(Debug, Clone)]
enum Breaker {
    Text(Vec<u8>),
    Ids(Vec<TokenId>),
}

/// A repetition that the next token would continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repetition {
    /// The token that would continue it.
    pub token: TokenId,
    /// How many tokens match, L.
    pub length: usize,
    /// The place of `token` after the earlier match, as an index into the history.
    pub position: usize,
}

/// Where a breaker ended the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Break {
    /// The place of its first token, as an index into the history.
    pub position: usize,
    /// How many tokens after the breaker can match.
    pub limit: usize,
}

impl Dry {
    pub(crate) fn from_args(args: &Args) -> Result<Self> {
        let breakers = args.json("breakers")?.as_array().into_iter().flatten();
        let breakers = breakers.filter_map(|breaker| match breaker.as_str() {
            Some("") => None,
            Some(text) => {
                let end = (0..=BREAKER_BYTES.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
                Some(Breaker::Text(text.as_bytes()[..end.unwrap_or(0)].to_vec()))
            }
            None => Some(Breaker::Ids(ids(breaker))),
        });
        Ok(Self {
            multiplier: args.number("multiplier")?,
            base: args.number("base")?,
            allowed_length: args.count("allowed_length")?,
            window: args.count("window")?,
            breakers: breakers.collect(),
        })
    }

    /// The tokens in view, and the index in the history at which they begin.
    pub(crate) fn view<'a>(&self, context: &StepContext<'a>) -> (&'a [TokenId], usize) {
        let skipped = if self.window == 0 { 0 } else { context.history.len().saturating_sub(self.window) };
        (&context.history[skipped..], skipped)
    }

    fn vocab<'a>(&self, context: &StepContext<'a>) -> Result<Option<&'a Vocab>> {
        let text = self.breakers.iter().find_map(|breaker| match breaker {
            Breaker::Text(text) => Some(String::from_utf8_lossy(text)),
            Breaker::Ids(_) => None,
        });
        match (text, context.vocab) {
            (Some(text), None) => Err(Error::new(
                ErrorCode::NeedsVocabulary,
                format!("the breaker {text:?} is a text, which needs a vocabulary; give token ids instead"),
            )
            .stage(SPEC.id)
            .param("breakers")),
            (_, vocab) => Ok(vocab),
        }
    }

    /// The breaker nearest to the end of the view.
    ///
    /// # Errors
    /// `needs_vocabulary` when a breaker is a text and no vocabulary is known.
    pub fn last_break(&self, context: &StepContext) -> Result<Option<Break>> {
        let vocab = self.vocab(context)?;
        let (seen, skipped) = self.view(context);
        for place in (0..seen.len()).rev() {
            let after = &seen[place + 1..];
            let tails = self.breakers.iter().filter_map(|breaker| breaker.tail(seen[place], after, vocab));
            if let Some(tail) = tails.max() {
                return Ok(Some(Break { position: skipped + place, limit: after.len() - tail }));
            }
        }
        Ok(None)
    }

    /// Every repetition of at least the allowed length, the longest for each token, by
    /// ascending id.
    ///
    /// # Errors
    /// `needs_vocabulary` when a breaker is a text and no vocabulary is known.
    pub fn repetitions(&self, context: &StepContext) -> Result<Vec<Repetition>> {
        let vocab = self.vocab(context)?;
        let (seen, skipped) = self.view(context);
        let limit = self.last_break(context)?.map_or(seen.len(), |found| found.limit);
        if limit < self.allowed_length {
            return Ok(Vec::new());
        }
        let mut longest: BTreeMap<TokenId, Repetition> = BTreeMap::new();
        // The first token in view has nothing before it to repeat.
        for (place, length) in matches_of_suffix(seen).into_iter().enumerate().skip(1) {
            let length = length.min(limit);
            if length >= self.allowed_length {
                let token = seen[place];
                let repetition = Repetition { token, length, position: skipped + place };
                let known = longest.entry(token).or_insert(repetition);
                if known.length <= length {
                    *known = repetition; // the latest of the longest
                }
            }
        }
        Ok(longest
            .into_values()
            .filter(|found| !self.breakers.iter().any(|b| b.tail(found.token, &[], vocab) == Some(0)))
            .collect())
    }

    /// What a repetition of this length costs.
    #[must_use]
    pub fn penalty(&self, length: usize) -> f64 {
        let mut exponent = length.saturating_sub(self.allowed_length) as f64;
        if self.base > 1.000_001 {
            exponent = exponent.min(libm::floor(LN_OF_LARGEST / libm::log(self.base)));
        }
        self.multiplier * libm::pow(self.base, exponent)
    }
}

impl Transform for Dry {
    fn edits(&self, context: &StepContext) -> Result<Vec<Edit>> {
        if self.multiplier == 0.0 {
            return Ok(Vec::new());
        }
        let edits = self.repetitions(context)?.into_iter().map(|found| {
            let penalty = self.penalty(found.length);
            #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
            let amount = penalty as f32;
            let op = if amount.is_finite() { Op::Add(-amount) } else { Op::Remove };
            let why = format!("would continue {} repeated tokens: -{}", found.length, readable(penalty));
            Edit { token: found.token, op, why }
        });
        Ok(edits.collect())
    }

    fn kernel(&self, context: &StepContext) -> Result<Kernel> {
        edits_kernel(self, context)
    }
}

impl Breaker {
    /// If the breaker begins at `head`, how many of the tokens after belong to it.
    fn tail(&self, head: TokenId, after: &[TokenId], vocab: Option<&Vocab>) -> Option<usize> {
        match self {
            Self::Ids(ids) => {
                let (first, rest) = ids.split_first()?;
                (*first == head && after.starts_with(rest)).then_some(rest.len())
            }
            Self::Text(text) => {
                let bytes = vocab?.bytes(head);
                if bytes.windows(text.len()).any(|window| window == text) {
                    return Some(0);
                }
                // Every end of the head that begins the breaker leaves a rest to be spelled.
                let overlaps = (1..text.len().min(bytes.len() + 1)).filter(|&n| bytes.ends_with(&text[..n]));
                overlaps.filter_map(|n| spelled(&text[n..], after, vocab?)).max()
            }
        }
    }
}

/// How many tokens from the start spell exactly this text, if some do. A rest longer than the
/// longest tail that counts is cut there.
fn spelled(mut text: &[u8], tokens: &[TokenId], vocab: &Vocab) -> Option<usize> {
    for (count, &token) in tokens.iter().enumerate() {
        if count == BREAKER_TAIL {
            return Some(count);
        }
        let bytes = vocab.bytes(token);
        text = text.strip_prefix(bytes).filter(|_| !bytes.is_empty())?;
        if text.is_empty() {
            return Some(count + 1);
        }
    }
    None
}

/// For each place, how many tokens just before it equal the last ones of the whole: the
/// Z-function of the reversed sequence, in linear time.
fn matches_of_suffix(tokens: &[TokenId]) -> Vec<usize> {
    let n = tokens.len();
    let from_end = |index: usize| tokens[n - 1 - index];
    let mut z = vec![0; n];
    let (mut left, mut right) = (0, 0);
    for start in 1..n {
        let mut length = if start < right { (right - start).min(z[start - left]) } else { 0 };
        while start + length < n && from_end(length) == from_end(start + length) {
            length += 1;
        }
        z[start] = length;
        if start + length > right {
            (left, right) = (start, start + length);
        }
    }
    // z[s] belongs to the suffix that ends s tokens before the end; the token after it stands
    // at n - s.
    (0..n).map(|place| if place == 0 { 0 } else { z[n - place] }).collect()
}
