//! Constraints by llguidance: its parser behind the trait, one vocabulary at a time.
//!
//! An [`Engine`] holds a model's vocabulary as a trie; [`Engine::constraint`] compiles a
//! grammar over it. End-of-sequence tokens are not the parser's business: it is given an end
//! of its own, outside the vocabulary, and says only whether the text may end.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use llguidance::{
    Matcher, ParserFactory,
    api::{StopReason, TopLevelGrammar},
    earley::SlicedBiasComputer,
};
use serde_json::Value;
use toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};

use crate::{
    TokenId,
    constraint::{
        Constraint, Loader, Standing, json_place,
        spec::{Grammar, Spec, offset, place_in_schema},
    },
    error::{Error, ErrorCode, Result},
    logits::TokenMask,
    model::LanguageModel,
};

/// After so many characters of white space in a row, in JSON, something else must come.
pub const MOST_WHITE_SPACE: usize = 32;

/// A vocabulary as the parser sees it.
struct Tokenizer {
    model: Arc<dyn LanguageModel>,
    trie: TokTrie,
}

impl TokenizerEnv for Tokenizer {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, text: &[u8]) -> Vec<u32> {
        self.trie.tokenize_with_greedy_fallback(text, |text| {
            let encoded = self.model.tokenize(text, false, false);
            encoded.map_or_else(
                |_| self.trie.greedy_tokenize(text.as_bytes()),
                |ids| ids.into_iter().map(|id| id.0).collect(),
            )
        })
    }
}

/// Compiles grammars for one model.
#[derive(Clone)]
pub struct Engine {
    factory: Arc<ParserFactory>,
    model: Arc<dyn LanguageModel>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("model", &self.model.info().name).finish_non_exhaustive()
    }
}

/// What the parser says, as one of our errors. Its messages carry a dump of its state after
/// the first lines, which is for its authors.
fn refusal(code: ErrorCode, error: &dyn fmt::Display) -> Error {
    let text = error.to_string();
    let text = text.split("<state>").next().unwrap_or_default();
    let text = text.split("\n<non-verbose/>").next().unwrap_or_default();
    Error::new(code, text.trim().replace('\n', "; ")).stage("constraint")
}

impl Engine {
    /// Prepares a model's vocabulary.
    ///
    /// # Errors
    /// `needs_vocabulary` when the tokens have no texts.
    pub fn new(model: Arc<dyn LanguageModel>) -> Result<Self> {
        let vocab = model.vocab();
        let size = u32::try_from(vocab.len()).unwrap_or(u32::MAX - 1);
        let mut words: Vec<Vec<u8>> = Vec::with_capacity(vocab.len() + 1);
        for id in (0..size).map(TokenId) {
            let bytes = vocab.bytes(id);
            // Control tokens are no text; the mark keeps them apart from it.
            let special = vocab.is_special(id) || bytes.first() == Some(&TokTrie::SPECIAL_TOKEN_MARKER);
            words.push(if special {
                [&[TokTrie::SPECIAL_TOKEN_MARKER], format!("<{id}>").as_bytes()].concat()
            } else {
                bytes.to_vec()
            });
        }
        if words.iter().all(Vec::is_empty) {
            let message = "the model's tokens have no texts, so no grammar can be held to them";
            return Err(Error::new(ErrorCode::NeedsVocabulary, message));
        }
        words.push([&[TokTrie::SPECIAL_TOKEN_MARKER], &b"<end>"[..]].concat());
        let trie = TokTrie::from(&TokRxInfo::new(size + 1, size), &words);
        let environment: TokEnv = Arc::new(Tokenizer { model: Arc::clone(&model), trie });
        let slices = SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(&environment, InferenceCapabilities::default(), &slices)
            .map_err(|error| refusal(ErrorCode::BadInput, &error))?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Self { factory: Arc::new(factory), model })
    }

    /// The engine of a model; the last one used is kept, since making one takes a while.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of(model: &Arc<dyn LanguageModel>) -> Result<Self> {
        static LAST: OnceLock<Mutex<Option<(u64, Engine)>>> = OnceLock::new();
        let last = LAST.get_or_init(Mutex::default);
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = model.hash();
        match &*last {
            Some((known, engine)) if *known == hash => Ok(engine.clone()),
            _ => {
                let engine = Self::new(Arc::clone(model))?;
                *last = Some((hash, engine.clone()));
                Ok(engine)
            }
        }
    }

    /// Reads and compiles a constraint's text form.
    ///
    /// # Errors
    /// What [`Spec::parse`] refuses; `syntax` for a grammar or a schema that cannot be
    /// compiled, with its place as far as the compiler knows one.
    pub fn constraint(&self, text: &str, load: Loader) -> Result<Box<dyn Constraint>> {
        let spec = Spec::parse(text, load)?;
        let parser = self.factory.create_parser(top_level(&spec.grammar));
        let parser = parser.map_err(|error| self.explain(&spec, &error))?;
        let mut matcher = Matcher::new(Ok(parser));
        if let Some(message) = matcher.get_error() {
            return Err(refusal(ErrorCode::Syntax, &message));
        }
        let fresh = matcher.clone();
        // A grammar of which no text can be written is a mistake.
        if !finished(&matcher) {
            match matcher.compute_mask() {
                Ok(_) => {}
                Err(error) if is_dead_end(&error) => {
                    let message = "the grammar allows no text at all";
                    return Err(Error::new(ErrorCode::Syntax, message).stage("constraint"));
                }
                Err(error) => return Err(refusal(ErrorCode::Syntax, &error)),
            }
        }
        Ok(Box::new(Follower {
            matcher,
            fresh: Arc::new(fresh),
            model: Arc::clone(&self.model),
            json: spec.json,
            text: spec.text.into(),
            tokens: Vec::new(),
            taken: 0,
            broken: None,
            mask: None,
            length: self.model.vocab().len(),
        }))
    }

    /// An error of the compiler, with its place.
    fn explain(&self, spec: &Spec, error: &dyn fmt::Display) -> Error {
        let refused = refusal(ErrorCode::Syntax, error);
        match &spec.grammar {
            Grammar::Schema(schema) => {
                let fails = |part: &Value| {
                    let grammar = Grammar::Schema(part.clone());
                    self.factory.create_parser(top_level(&grammar)).is_err()
                };
                let place = place_in_schema(schema, &fails);
                Error { message: format!("{} (at {place})", refused.message), ..refused }.param(place)
            }
            Grammar::Lark(text) => match line_and_column(&refused.message) {
                Some((line, column)) => refused.position(offset(text, line, column)),
                None => refused,
            },
            Grammar::Regex(_) => refused,
        }
    }
}

fn top_level(grammar: &Grammar) -> TopLevelGrammar {
    match grammar {
        Grammar::Lark(text) => TopLevelGrammar::from_lark(text.clone()),
        Grammar::Regex(pattern) => TopLevelGrammar::from_regex(pattern),
        Grammar::Schema(schema) => TopLevelGrammar::from_json_schema(schema.clone()),
    }
}

/// The first `12(34)` of a message: how the compiler writes a line and a column.
fn line_and_column(message: &str) -> Option<(usize, usize)> {
    message.match_indices('(').find_map(|(at, _)| {
        let line = message[..at].rsplit(|c: char| !c.is_ascii_digit()).next()?;
        let column = message[at + 1..].split(')').next()?;
        Some((line.parse().ok()?, column.parse().ok()?))
    })
}

/// Whether a parser has taken a whole text after which nothing can come. It may also have
/// stopped at a dead end, or given up.
fn finished(matcher: &Matcher) -> bool {
    matches!(matcher.stop_reason(), StopReason::NoExtension | StopReason::EndOfSentence)
}

/// Whether a parser says that no token can come, although the text is not whole.
fn is_dead_end(error: &dyn fmt::Display) -> bool {
    error.to_string().starts_with(&StopReason::NoExtensionBias.to_string())
}

/// Follows one sequence.
struct Follower {
    matcher: Matcher,
    /// As it was before the first token: a parser that met a dead end cannot go back.
    fresh: Arc<Matcher>,
    model: Arc<dyn LanguageModel>,
    json: bool,
    text: Arc<str>,
    /// Every token taken.
    tokens: Vec<TokenId>,
    /// How many of them the parser took.
    taken: usize,
    /// How many tokens had been taken when one came that is not allowed.
    broken: Option<usize>,
    mask: Option<TokenMask>,
    length: usize,
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("text", &self.text)
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}

impl Follower {
    /// What is written so far.
    fn written(&self) -> String {
        let vocab = self.model.vocab();
        let bytes: Vec<u8> =
            self.tokens[..self.taken].iter().flat_map(|&token| vocab.bytes(token)).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// How many characters of white space the text ends with.
    fn white_space(&self) -> usize {
        let vocab = self.model.vocab();
        let bytes = self.tokens[..self.taken].iter().rev().flat_map(|&token| vocab.bytes(token).iter().rev());
        bytes.take_while(|byte| byte.is_ascii_whitespace()).count()
    }

    /// A parser in the place of one that met a dead end.
    fn revive(&mut self) -> Result<()> {
        self.matcher = (*self.fresh).clone();
        let taken: Vec<u32> = self.tokens[..self.taken].iter().map(|token| token.0).collect();
        self.matcher.consume_tokens(&taken).map_err(|error| refusal(ErrorCode::Constraint, &error))
    }

    fn compute(&mut self) -> Result<TokenMask> {
        let mut mask = TokenMask::none(self.length);
        if self.broken.is_some() || self.matcher.is_stopped() {
            return Ok(mask);
        }
        let allowed = match self.matcher.compute_mask() {
            Ok(allowed) => allowed,
            Err(error) if is_dead_end(&error) => {
                self.revive()?;
                return Ok(mask);
            }
            Err(error) => return Err(refusal(ErrorCode::Constraint, &error)),
        };
        for id in allowed.iter().filter(|&id| (id as usize) < self.length) {
            mask.insert(id as usize);
        }
        if self.json && self.white_space() >= MOST_WHITE_SPACE {
            let vocab = self.model.vocab();
            let mut other = TokenMask::none(self.length);
            for id in mask.iter() {
                #[expect(clippy::cast_possible_truncation, reason = "an index is a token id")]
                let bytes = vocab.bytes(TokenId(id as u32));
                if !bytes.first().is_some_and(u8::is_ascii_whitespace) {
                    other.insert(id);
                }
            }
            // A grammar may want more white space; then it gets it.
            if other.count() > 0 {
                return Ok(other);
            }
        }
        Ok(mask)
    }
}

impl Constraint for Follower {
    fn allowed(&mut self) -> Result<&TokenMask> {
        let mask = match self.mask.take() {
            Some(mask) => mask,
            None => self.compute()?,
        };
        Ok(self.mask.insert(mask))
    }

    fn standing(&mut self) -> Result<Standing> {
        let broken = self.broken.is_some();
        let finished = finished(&self.matcher);
        let accepting = !broken
            && (finished
                || self.matcher.is_accepting().map_err(|error| refusal(ErrorCode::Constraint, &error))?);
        let written = self.written();
        let inside = if self.json {
            json_place::describe(&written)
        } else if written.is_empty() {
            "the beginning".to_owned()
        } else {
            let tail: String = written.chars().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect();
            format!("after {tail:?}")
        };
        let ended = accepting && (finished || self.allowed()?.count() == 0);
        Ok(Standing { accepting, ended, broken, inside })
    }

    fn commit(&mut self, token: TokenId) -> Result<()> {
        self.mask = None;
        self.tokens.push(token);
        if self.broken.is_some() {
            return Ok(());
        }
        let stopped = self.matcher.is_stopped();
        let valid = !stopped
            && token.index() < self.length
            && !self.model.vocab().is_special(token)
            && self
                .matcher
                .validate_tokens(&[token.0])
                .map_err(|error| refusal(ErrorCode::Constraint, &error))?
                == 1;
        if valid {
            self.matcher.consume_token(token.0).map_err(|error| refusal(ErrorCode::Constraint, &error))?;
            self.taken += 1;
        } else {
            self.broken = Some(self.tokens.len() - 1);
        }
        Ok(())
    }

    fn rollback(&mut self, tokens: usize) -> Result<()> {
        if tokens > self.tokens.len() {
            let message =
                format!("{tokens} tokens cannot be taken back, since {} were taken", self.tokens.len());
            return Err(Error::new(ErrorCode::BadInput, message).stage("constraint"));
        }
        if tokens == 0 {
            return Ok(());
        }
        self.mask = None;
        let left = self.tokens.len() - tokens;
        self.tokens.truncate(left);
        if self.broken.is_some_and(|broken| broken >= left) {
            self.broken = None;
        }
        let back = self.taken.saturating_sub(left);
        if back > 0 {
            self.matcher.rollback(back).map_err(|error| refusal(ErrorCode::Constraint, &error))?;
            self.taken = left;
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.tokens.len()
    }

    fn fork(&self) -> Box<dyn Constraint> {
        Box::new(Self {
            matcher: self.matcher.clone(),
            fresh: Arc::clone(&self.fresh),
            model: Arc::clone(&self.model),
            json: self.json,
            text: Arc::clone(&self.text),
            tokens: self.tokens.clone(),
            taken: self.taken,
            broken: self.broken,
            mask: self.mask.clone(),
            length: self.length,
        })
    }

    fn text(&self) -> &str {
        &self.text
    }
}
