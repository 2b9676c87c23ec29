//! One row of scores, which tokens are still alive, and the integer masses made from them.
//!
//! [`Logits`] is what every stage reads and changes. A stage may edit scores, multiply the
//! temperature, or remove tokens; it never writes `-∞`, because the page must be able to say
//! who removed a token and a device may assume that infinities do not occur.
//!
//! Tokens are ordered by score, highest first, and by lower id among equals: one total order
//! on every device. A [`Cut`] is a place in that order, and everything that truncates or
//! draws is a search for one, by count or by mass. The search narrows by histogram and never
//! sorts the vocabulary.

use std::fmt;

use crate::{
    TokenId,
    error::{Error, ErrorCode, Result},
    weights::{self, DISTANCE_BITS, Ruler, Scale},
};

/// Which tokens are alive: one bit a token.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct TokenMask {
    words: Vec<u64>,
    length: usize,
}

impl TokenMask {
    /// All `length` tokens alive.
    #[must_use]
    pub fn all(length: usize) -> Self {
        let mut words = vec![u64::MAX; length.div_ceil(64)];
        if !length.is_multiple_of(64)
            && let Some(last) = words.last_mut()
        {
            *last = (1 << (length % 64)) - 1;
        }
        Self { words, length }
    }

    /// No token alive.
    #[must_use]
    pub fn none(length: usize) -> Self {
        Self { words: vec![0; length.div_ceil(64)], length }
    }

    /// How many tokens the mask speaks of, dead or alive.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the mask speaks of no token at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// How many are alive.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether a token is alive; ids outside the mask are not.
    #[must_use]
    pub fn contains(&self, index: usize) -> bool {
        self.words.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Makes a token alive.
    pub fn insert(&mut self, index: usize) {
        debug_assert!(index < self.length);
        self.words[index / 64] |= 1 << (index % 64);
    }

    /// Makes a token dead.
    pub fn remove(&mut self, index: usize) {
        if let Some(word) = self.words.get_mut(index / 64) {
            *word &= !(1 << (index % 64));
        }
    }

    /// The live indices, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(place, &word)| Bits(word).map(move |bit| place * 64 + bit))
    }

    /// Calls `visit` on every live index, ascending; faster than [`iter`](Self::iter) over
    /// whole vocabularies.
    #[inline]
    pub(crate) fn for_each(&self, mut visit: impl FnMut(usize)) {
        for (place, &word) in self.words.iter().enumerate() {
            let base = place * 64;
            if word == u64::MAX {
                for bit in 0..64 {
                    visit(base + bit);
                }
            } else {
                for bit in Bits(word) {
                    visit(base + bit);
                }
            }
        }
    }

    /// Keeps the live indices for which `keep` holds, and returns how many died.
    #[inline]
    fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) -> usize {
        let mut died = 0;
        for (place, word) in self.words.iter_mut().enumerate() {
            let before = *word;
            for bit in Bits(before) {
                if !keep(place * 64 + bit) {
                    *word &= !(1 << bit);
                }
            }
            died += (before & !*word).count_ones() as usize;
        }
        died
    }
}

impl fmt::Debug for TokenMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenMask({} of {})", self.count(), self.length)
    }
}

/// The set bits of a word, lowest first.
struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        (self.0 != 0).then(|| {
            let bit = self.0.trailing_zeros() as usize;
            self.0 &= self.0 - 1;
            bit
        })
    }
}

/// A place in the order of tokens: everything up to and including `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The last token before the cut.
    pub last: TokenId,
    /// How many live tokens stand at or before it.
    pub count: usize,
    /// Their mass, `last` included.
    pub mass: u64,
    /// Their mass without `last`.
    pub mass_before: u64,
}

/// Where one live token stands in the row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// The token.
    pub token: TokenId,
    /// Its place in the order, from 0.
    pub rank: usize,
    /// Its score divided by the temperatures so far, in nats.
    pub score: f64,
    /// Its probability.
    pub probability: f64,
    /// The probability of all tokens before it in the order.
    pub mass_before: f64,
}

/// Sums over the live tokens, by distance below the highest.
#[derive(Debug, Clone, Default)]
struct Survey {
    count: usize,
    mass: u64,
    /// The sum of [`weights::moment`].
    moment: u64,
    /// Count and mass a bin; see [`bin_of`].
    bins: Vec<(u32, u64)>,
}

impl Survey {
    fn clear(&mut self) {
        (self.count, self.mass, self.moment) = (0, 0, 0);
        self.bins.clear();
        self.bins.resize(BINS, (0, 0));
    }

    /// Adds a token and returns its weight.
    #[inline]
    fn add(&mut self, distance: u64) -> u64 {
        let (weight, moment) = weights::weight_and_moment(distance);
        let bin = &mut self.bins[bin_of(distance)];
        bin.0 += 1;
        bin.1 += weight;
        self.count += 1;
        self.mass += weight;
        self.moment += moment;
        weight
    }
}

/// Sixteen bins an octave; the last holds all that is farther than any weight.
const BIN_SHIFT: u32 = DISTANCE_BITS - 4;
const BINS: usize = 64 * 16 + 1;

/// Bits of a token id, of which there are at most [`weights::MAX_VOCABULARY`].
const ID_BITS: u32 = weights::MAX_VOCABULARY.trailing_zeros();

fn bin_of(distance: u64) -> usize {
    (distance >> BIN_SHIFT) as usize
}

/// How far the derived data can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freshness {
    /// Scores, temperature or the highest token changed: everything is stale.
    Stale,
    /// Distances and weights hold, but some were edited: sums and original mass do not.
    Edited,
    /// Only the mask shrank: distances and weights hold, sums do not.
    Shrunk,
    /// Everything holds.
    Fresh,
}

/// One row of V scores in nats, the live tokens, and the temperature they are read at.
///
/// Temperature does not rewrite scores: the row carries the product of the temperatures so
/// far, and every reading divides by it. Weights are always relative to the highest live
/// token; they are computed when first asked for and kept until something changes.
///
/// # Examples
/// ```
/// use logitscope::{Logits, TokenId};
///
/// let mut logits = Logits::new(&[3.0, 1.0, 2.0, f32::NEG_INFINITY])?;
/// assert_eq!(logits.alive().count(), 3); // the last was dead on arrival
/// let cut = logits.cut_at_count(2)?;
/// logits.keep_through(&cut);
/// assert_eq!(logits.support(), [TokenId(0), TokenId(2)]);
/// assert!((logits.probability(TokenId(0))? - 0.731_058_578).abs() < 1e-9);
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Logits {
    scores: Vec<f32>,
    alive: TokenMask,
    temperature: f64,
    highest: Option<TokenId>,
    distance: Vec<u64>,
    weight: Vec<u64>,
    survey: Survey,
    freshness: Freshness,
    revision: u64,
    /// Mass of all tokens alive when weights were last made: what "original" mass means.
    original_mass: u64,
    scratch: Vec<u64>,
}

impl Logits {
    /// A row of scores. `-∞` is a dead token.
    ///
    /// # Errors
    /// `empty_row`; `nan_logit` and `infinite_logit`, which name the token; `empty_support`
    /// when every score is `-∞`; `out_of_range` beyond [`weights::MAX_VOCABULARY`] tokens.
    pub fn new(scores: &[f32]) -> Result<Self> {
        let mut logits = Self::unfilled();
        logits.refill(scores)?;
        Ok(logits)
    }

    /// A row without tokens, to be [refilled](Self::refill); reading it is an error.
    #[must_use]
    pub fn unfilled() -> Self {
        Self {
            scores: Vec::new(),
            alive: TokenMask::default(),
            temperature: 1.0,
            highest: None,
            distance: Vec::new(),
            weight: Vec::new(),
            survey: Survey::default(),
            freshness: Freshness::Stale,
            revision: 0,
            original_mass: 0,
            scratch: Vec::new(),
        }
    }

    /// Natural logarithms of probabilities as scores; for tests and examples.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
    pub fn from_probabilities(probabilities: &[f64]) -> Result<Self> {
        let scores: Vec<f32> = probabilities.iter().map(|&p| libm::log(p) as f32).collect();
        Self::new(&scores)
    }

    /// Replaces the row, keeping the memory.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn refill(&mut self, scores: &[f32]) -> Result<()> {
        if scores.is_empty() {
            return Err(Error::new(ErrorCode::EmptyRow, "the row of logits is empty"));
        }
        if scores.len() > weights::MAX_VOCABULARY {
            return Err(Error::new(
                ErrorCode::OutOfRange,
                format!("a row of {} logits; at most {} are possible", scores.len(), weights::MAX_VOCABULARY),
            ));
        }
        self.alive = TokenMask::all(scores.len());
        // Block by block, because nearly every block is all finite and that is quickly seen.
        for (block, chunk) in scores.chunks(64).enumerate() {
            if chunk.iter().fold(true, |all, score| all & score.is_finite()) {
                continue;
            }
            for (id, &score) in (block * 64..).zip(chunk) {
                if score.is_nan() {
                    let message = format!("the logit of token {id} is NaN");
                    return Err(Error::new(ErrorCode::NanLogit, message));
                }
                if score == f32::INFINITY {
                    let message = format!("the logit of token {id} is +infinity");
                    return Err(Error::new(ErrorCode::InfiniteLogit, message));
                }
                if score == f32::NEG_INFINITY {
                    self.alive.remove(id);
                }
            }
        }
        self.scores.clear();
        self.scores.extend_from_slice(scores);
        self.temperature = 1.0;
        self.freshness = Freshness::Stale;
        self.revision += 1;
        if self.alive.count() == 0 {
            return Err(Error::new(
                ErrorCode::EmptySupport,
                "every logit is -infinity, so no token is alive",
            ));
        }
        Ok(())
    }

    /// V.
    #[must_use]
    pub fn len(&self) -> usize {
        self.scores.len()
    }

    /// Whether the row has no tokens; only before it is filled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// A number that grows whenever the row changes, so that what was read at one revision still
    /// holds while it stays.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The live tokens.
    #[must_use]
    pub fn alive(&self) -> &TokenMask {
        &self.alive
    }

    /// The ids of the live tokens, ascending.
    #[must_use]
    pub fn support(&self) -> Vec<TokenId> {
        self.alive.iter().map(id_of).collect()
    }

    /// The product of the temperatures so far.
    #[must_use]
    pub fn temperature(&self) -> f64 {
        self.temperature
    }

    /// The score of a token divided by the temperatures so far, in nats; `None` if dead.
    #[must_use]
    pub fn score(&self, token: TokenId) -> Option<f64> {
        self.alive.contains(token.index()).then(|| f64::from(self.scores[token.index()]) / self.temperature)
    }

    /// The scores as stored, by id: not divided by the temperature, and without meaning for
    /// dead tokens.
    #[must_use]
    pub fn stored_scores(&self) -> &[f32] {
        &self.scores
    }

    /// Whether a token stands at or before the cut.
    #[must_use]
    pub fn is_within(&self, token: TokenId, cut: &Cut) -> bool {
        self.order(token.index()) <= self.order(cut.last.index())
    }

    /// Multiplies the temperature the scores are read at.
    ///
    /// # Errors
    /// `out_of_range` when `t`, or the product with the temperatures before, is not a finite
    /// number above zero.
    pub fn scale_temperature(&mut self, t: f64) -> Result<()> {
        let product = self.temperature * t;
        if !(t > 0.0 && product > 0.0 && product.is_finite()) {
            return Err(Error::new(
                ErrorCode::OutOfRange,
                format!(
                    "temperature {t:?} after {:?}: their product is not a finite number above 0",
                    self.temperature
                ),
            ));
        }
        if t != 1.0 {
            self.temperature = product;
            self.freshness = Freshness::Stale;
            self.revision += 1;
        }
        Ok(())
    }

    /// Divides the scores by the temperature once and for all, so that they can be edited in
    /// the new scale. The quotient is computed in f64 and rounded to f32.
    ///
    /// # Errors
    /// `infinite_logit` when a quotient is too large for f32.
    #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is the point")]
    pub fn materialise(&mut self) -> Result<()> {
        if self.temperature != 1.0 {
            let temperature = self.temperature;
            self.rewrite(|_, score| Some((f64::from(score) / temperature) as f32))?;
            self.temperature = 1.0;
        }
        Ok(())
    }

    /// Replaces the score of every live token; `None` removes it. Scores are as stored: call
    /// [`materialise`](Self::materialise) first if they are to be read at a temperature.
    ///
    /// # Errors
    /// `infinite_logit` or `nan_logit`, which name the token.
    pub fn rewrite(&mut self, mut new: impl FnMut(TokenId, f32) -> Option<f32>) -> Result<()> {
        self.freshness = Freshness::Stale;
        self.revision += 1;
        let mut fault = None;
        let scores = &mut self.scores;
        self.alive.retain(|index| match new(id_of(index), scores[index]) {
            None => false,
            Some(score) => {
                if score.is_finite() {
                    scores[index] = score;
                } else {
                    fault.get_or_insert((index, score));
                }
                true
            }
        });
        fault.map_or(Ok(()), |(index, score)| Err(not_finite(index, score)))
    }

    /// Replaces the score of every live token by one made from its weight, which no longer
    /// depends on the temperature: that becomes 1. `None` removes the token.
    ///
    /// # Errors
    /// `empty_support` when no token is alive; `infinite_logit` or `nan_logit`, which name the
    /// token.
    pub fn rescore(&mut self, mut new: impl FnMut(TokenId, u64) -> Option<f32>) -> Result<()> {
        self.refresh()?;
        self.temperature = 1.0;
        let weight = std::mem::take(&mut self.weight);
        let done = self.rewrite(|token, _| new(token, weight[token.index()]));
        self.weight = weight;
        done
    }

    /// Refuses a token that the row has no place for.
    ///
    /// # Errors
    /// `token_out_of_vocabulary`.
    pub fn require(&self, token: TokenId) -> Result<()> {
        if token.index() < self.len() {
            return Ok(());
        }
        let message = format!("token {token} is not in a vocabulary of {}", self.len());
        Err(Error::new(ErrorCode::TokenOutOfVocabulary, message))
    }

    /// Replaces the score of one token, if it is alive; `None` removes it.
    ///
    /// # Errors
    /// `token_out_of_vocabulary`; `infinite_logit` or `nan_logit`, which name the token.
    pub fn edit(&mut self, token: TokenId, new: impl FnOnce(f32) -> Option<f32>) -> Result<()> {
        self.require(token)?;
        let index = token.index();
        if self.alive.contains(index) {
            match new(self.scores[index]) {
                None => self.alive.remove(index),
                Some(score) if score.is_finite() => self.scores[index] = score,
                Some(score) => return Err(not_finite(index, score)),
            }
            self.edited(index);
        }
        Ok(())
    }

    /// Keeps what is known of the other tokens if the highest is still the highest: a penalty
    /// touches a few hundred tokens of a vocabulary.
    fn edited(&mut self, index: usize) {
        self.revision += 1;
        let highest = self.highest.filter(|_| self.freshness != Freshness::Stale).map(TokenId::index);
        match highest {
            Some(highest) if highest != index && self.order(highest) < self.order(index) => {
                let scale = Scale::from_temperature(self.temperature);
                let distance = weights::distance(self.scores[highest], self.scores[index], scale);
                self.distance[index] = distance;
                if self.alive.contains(index) {
                    self.weight[index] = weights::weight(distance);
                }
                self.freshness = Freshness::Edited;
            }
            _ => self.freshness = Freshness::Stale,
        }
    }

    /// Removes every live token for which `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(TokenId) -> bool) {
        if self.alive.retain(|index| keep(id_of(index))) > 0 {
            self.shrunk();
        }
    }

    /// Removes every token after the cut.
    pub fn keep_through(&mut self, cut: &Cut) {
        let last = self.order(cut.last.index());
        let scores = &self.scores;
        let died = self.alive.retain(|index| order_of(scores[index], index) <= last);
        if died > 0 {
            self.shrunk();
        }
    }

    /// Removes every token at or before the cut.
    pub fn drop_through(&mut self, cut: &Cut) {
        let last = self.order(cut.last.index());
        let scores = &self.scores;
        if self.alive.retain(|index| order_of(scores[index], index) > last) > 0 {
            self.shrunk();
        }
    }

    /// Removes every token after the cut, except those tied with its last.
    pub fn keep_through_ties(&mut self, cut: &Cut) {
        let key = weights::key(self.scores[cut.last.index()]);
        let scores = &self.scores;
        if self.alive.retain(|index| weights::key(scores[index]) >= key) > 0 {
            self.shrunk();
        }
    }

    fn shrunk(&mut self) {
        self.revision += 1;
        let highest_died = self.highest.is_none_or(|id| !self.alive.contains(id.index()));
        self.freshness = match self.freshness {
            _ if highest_died => Freshness::Stale,
            Freshness::Fresh => Freshness::Shrunk,
            older => older,
        };
    }

    /// Brings distances, weights and sums up to date.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    fn refresh(&mut self) -> Result<()> {
        if self.freshness == Freshness::Fresh {
            return Ok(());
        }
        let stale = self.freshness == Freshness::Stale;
        if stale {
            self.highest = highest(&self.scores, &self.alive);
        }
        let Some(highest) = self.highest.filter(|id| self.alive.contains(id.index())) else {
            return Err(Error::new(ErrorCode::EmptySupport, "no token is left to sample from"));
        };
        // Owned by this function for the while, so that its sums stay in registers.
        let mut survey = std::mem::take(&mut self.survey);
        survey.clear();
        if stale {
            let ruler = Ruler::new(self.scores[highest.index()], Scale::from_temperature(self.temperature));
            self.distance.resize(self.scores.len(), 0);
            self.weight.resize(self.scores.len(), 0);
            let derived = self.distance.chunks_mut(64).zip(self.weight.chunks_mut(64));
            let blocks = self.alive.words.iter().zip(self.scores.chunks(64)).zip(derived);
            for ((&word, scores), (distance, weight)) in blocks.filter(|((word, _), _)| **word != 0) {
                ruler.distances(scores, distance);
                if word == u64::MAX {
                    for (&mut distance, weight) in distance.iter_mut().zip(weight) {
                        *weight = survey.add(distance);
                    }
                } else {
                    Bits(word).for_each(|place| weight[place] = survey.add(distance[place]));
                }
            }
        } else {
            let distance = &self.distance;
            self.alive.for_each(|index| {
                survey.add(distance[index]);
            });
        }
        self.survey = survey;
        if self.freshness != Freshness::Shrunk {
            self.original_mass = self.survey.mass;
        }
        self.freshness = Freshness::Fresh;
        Ok(())
    }

    /// The highest live token; the lowest id among equals.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn highest(&mut self) -> Result<TokenId> {
        self.refresh()?;
        self.highest.ok_or_else(|| Error::new(ErrorCode::EmptySupport, "no token is left to sample from"))
    }

    /// The sum of the weights of the live tokens.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn mass(&mut self) -> Result<u64> {
        self.refresh()?;
        Ok(self.survey.mass)
    }

    /// The mass of all tokens that were alive when scores or temperature last changed.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn original_mass(&mut self) -> Result<u64> {
        self.refresh()?;
        Ok(self.original_mass)
    }

    /// The sum of [`weights::moment`] over the live tokens.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn moment(&mut self) -> Result<u64> {
        self.refresh()?;
        Ok(self.survey.moment)
    }

    /// The mean distance of the live tokens, each counted by its weight: `⌊2^32 · Σwy / Σw⌋`.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    #[expect(clippy::cast_possible_truncation, reason = "a mean is no larger than the largest distance")]
    pub fn mean_distance(&mut self) -> Result<u64> {
        let moment = self.moment()?;
        Ok(((u128::from(moment) << DISTANCE_BITS) / u128::from(self.survey.mass)) as u64)
    }

    /// How far a live token lies below the highest; see [`weights::distance`].
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn distance(&mut self, token: TokenId) -> Result<u64> {
        self.refresh()?;
        Ok(self.distance[token.index()])
    }

    /// The weight of a live token; see [`weights::weight`].
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn weight(&mut self, token: TokenId) -> Result<u64> {
        self.refresh()?;
        Ok(if self.alive.contains(token.index()) { self.weight[token.index()] } else { 0 })
    }

    /// Distances and weights by id, for stages that look at all of them. Entries of dead
    /// tokens mean nothing.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn weighed(&mut self) -> Result<Weighed<'_>> {
        self.refresh()?;
        Ok(Weighed { alive: &self.alive, distance: &self.distance, weight: &self.weight })
    }

    /// The probability of a token: 0 if dead.
    ///
    /// The denominator is the integer mass; the numerator is the exact power of two that the
    /// weight truncates, so that a probability far below `2^-46` still shows.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn probability(&mut self, token: TokenId) -> Result<f64> {
        self.refresh()?;
        Ok(if self.alive.contains(token.index()) { self.probability_of(token.index()) } else { 0.0 })
    }

    /// As [`probability`](Self::probability), of a live token in a fresh row.
    fn probability_of(&self, index: usize) -> f64 {
        let highest = self.highest.map_or(0.0, |id| self.scores[id.index()]);
        weights::probability(highest, self.scores[index], self.temperature, self.survey.mass)
    }

    /// A mass as a share of the row's.
    fn share(&self, mass: u64) -> f64 {
        mass as f64 / self.survey.mass as f64
    }

    /// The entropy of the live tokens' distribution, in nats.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn entropy(&mut self) -> Result<f64> {
        let moment = self.moment()?;
        let bits = weights::log2_mass(self.survey.mass) + self.share(moment);
        Ok((bits * std::f64::consts::LN_2).max(0.0))
    }

    /// A token's place in the total order, smaller first.
    fn order(&self, index: usize) -> u64 {
        order_of(self.scores[index], index)
    }

    /// The cut after the first `count` live tokens, or after the last if there are fewer.
    ///
    /// # Errors
    /// `empty_support` when no token is alive or `count` is 0.
    pub fn cut_at_count(&mut self, count: usize) -> Result<Cut> {
        self.refresh()?;
        let wanted = count.min(self.survey.count);
        self.cut(|count, _| count >= wanted, wanted >= 1)
    }

    /// The shortest cut whose mass reaches `mass`, or the one after the last live token if
    /// none does.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn cut_at_mass(&mut self, mass: u64) -> Result<Cut> {
        self.refresh()?;
        let wanted = mass.min(self.survey.mass).max(1);
        self.cut(|_, mass| mass >= wanted, true)
    }

    /// The cut after the last token that is no farther than `distance`.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn cut_at_distance(&mut self, distance: u64) -> Result<Cut> {
        let weighed = self.weighed()?;
        let mut count = 0;
        weighed.alive.for_each(|index| count += usize::from(weighed.distance[index] <= distance));
        self.cut_at_count(count.max(1))
    }

    /// How many live tokens have a distance and a weight for which `holds`.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn count_where(&mut self, holds: impl Fn(u64, u64) -> bool) -> Result<usize> {
        let weighed = self.weighed()?;
        let mut count = 0;
        weighed
            .alive
            .for_each(|index| count += usize::from(holds(weighed.distance[index], weighed.weight[index])));
        Ok(count)
    }

    /// The first place in the order at which `reached(count, mass)` holds, both counted up to
    /// and including that place. `reached` must stay true once it is, and hold at the end.
    fn cut(&mut self, reached: impl Fn(usize, u64) -> bool, possible: bool) -> Result<Cut> {
        let (mut count, mut mass) = (0usize, 0u64);
        let mut found = None;
        for (bin, &(bin_count, bin_mass)) in self.survey.bins.iter().enumerate() {
            if bin_count > 0 && reached(count + bin_count as usize, mass + bin_mass) {
                found = Some(bin);
                break;
            }
            count += bin_count as usize;
            mass += bin_mass;
        }
        let Some(bin) = found.filter(|_| possible) else {
            return Err(Error::new(ErrorCode::EmptySupport, "no token is left to sample from"));
        };
        let mut candidates = std::mem::take(&mut self.scratch);
        candidates.clear();
        let (distance, scores) = (&self.distance, &self.scores);
        self.alive.for_each(|index| {
            if bin_of(distance[index]) == bin {
                candidates.push(order_of(scores[index], index));
            }
        });
        let cut = search(&mut candidates, &self.weight, (count, mass), reached);
        self.scratch = candidates;
        cut.ok_or_else(|| Error::new(ErrorCode::EmptySupport, "no token is left to sample from"))
    }

    /// As [`cut_at_mass`](Self::cut_at_mass) and [`cut_at_count`](Self::cut_at_count) together,
    /// in an order of the caller's: the first place, by ascending `key` (below `2^46`) and then id, at which
    /// `reached(count, mass)` holds, or the last place if it never does.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn cut_in_order_of(
        &mut self,
        key: impl Fn(u64) -> u64,
        reached: impl Fn(usize, u64) -> bool,
    ) -> Result<Cut> {
        self.refresh()?;
        let bin = |index: usize| bin_of(key(self.distance[index])).min(BINS - 1);
        let mut bins = vec![(0usize, 0u64); BINS];
        let mut all = 0;
        self.alive.for_each(|index| {
            let bin = &mut bins[bin(index)];
            bin.0 += 1;
            bin.1 += self.weight[index];
            all += 1;
        });
        let reached = |count, mass| count == all || reached(count, mass);
        let (mut count, mut mass) = (0, 0);
        let mut place = 0;
        for (bin, &(bin_count, bin_mass)) in bins.iter().enumerate() {
            place = bin;
            if bin_count > 0 && reached(count + bin_count, mass + bin_mass) {
                break;
            }
            count += bin_count;
            mass += bin_mass;
        }
        let mut candidates = std::mem::take(&mut self.scratch);
        candidates.clear();
        self.alive.for_each(|index| {
            if bin(index) == place {
                candidates.push(key(self.distance[index]) << ID_BITS | index as u64);
            }
        });
        let cut = search(&mut candidates, &self.weight, (count, mass), reached);
        self.scratch = candidates;
        cut.ok_or_else(|| Error::new(ErrorCode::EmptySupport, "no token is left to sample from"))
    }

    /// The weights of the live tokens, heaviest first: for stages that need all of them in
    /// order. They are spread over bins that are in order already, so fine that a crowded
    /// row has a few dozen in each, and only each of them is sorted.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn weights_in_order(&mut self) -> Result<Vec<u64>> {
        self.refresh()?;
        let (distance, weight) = (&self.distance, &self.weight);
        let finer = if self.survey.count > BINS { 6 } else { 0 };
        let bin = |index: usize| bin_of(distance[index] << finer);
        let mut places = vec![0u32; BINS << finer];
        self.alive.for_each(|index| places[bin(index)] += 1);
        let mut end = 0;
        for place in &mut places {
            end += std::mem::replace(place, end);
        }
        let mut weights = vec![0; self.survey.count];
        // Each bin's place moves from its begin to its end.
        self.alive.for_each(|index| {
            let place = &mut places[bin(index)];
            weights[*place as usize] = weight[index];
            *place += 1;
        });
        let mut begin = 0;
        for end in places {
            weights[begin..end as usize].sort_unstable_by(|a, b| b.cmp(a));
            begin = end as usize;
        }
        Ok(weights)
    }

    /// The live tokens at or before the cut, in order.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn first(&mut self, cut: &Cut) -> Result<Vec<TokenId>> {
        self.refresh()?;
        let last = self.order(cut.last.index());
        let mut ids: Vec<usize> = self.alive.iter().filter(|&index| self.order(index) <= last).collect();
        ids.sort_unstable_by_key(|&index| self.order(index));
        Ok(ids.into_iter().map(id_of).collect())
    }

    /// The first `count` live tokens in order.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn top(&mut self, count: usize) -> Result<Vec<Standing>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        self.refresh()?;
        let mut within = 0;
        let last = self.survey.bins.iter().position(|&(count_in_bin, _)| {
            within += count_in_bin as usize;
            within >= count
        });
        let last = last.unwrap_or(BINS - 1);
        let mut ids = Vec::with_capacity(within);
        let distance = &self.distance;
        self.alive.for_each(|index| {
            if bin_of(distance[index]) <= last {
                ids.push(id_of(index));
            }
        });
        let order = |token: &TokenId| self.order(token.index());
        if ids.len() > count {
            ids.select_nth_unstable_by_key(count, order);
            ids.truncate(count);
        }
        ids.sort_unstable_by_key(order);
        let mut before = 0;
        let standing = ids.iter().enumerate().map(|(rank, token)| {
            let index = token.index();
            let mass_before = self.share(before);
            before += self.weight[index];
            Standing {
                token: id_of(index),
                rank,
                score: f64::from(self.scores[index]) / self.temperature,
                probability: self.probability_of(index),
                mass_before,
            }
        });
        Ok(standing.collect())
    }

    /// Where one token stands; `None` if it is dead.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn standing(&mut self, token: TokenId) -> Result<Option<Standing>> {
        self.refresh()?;
        if !self.alive.contains(token.index()) {
            return Ok(None);
        }
        let before = self.mass_before(token)?;
        let own = self.order(token.index());
        let mut rank = 0;
        self.alive.for_each(|index| rank += usize::from(self.order(index) < own));
        Ok(Some(Standing {
            token,
            rank,
            score: f64::from(self.scores[token.index()]) / self.temperature,
            probability: self.probability_of(token.index()),
            mass_before: self.share(before),
        }))
    }

    /// The mass of the live tokens before a live token in order.
    ///
    /// # Errors
    /// `empty_support` when the token is not alive.
    pub fn mass_before(&mut self, token: TokenId) -> Result<u64> {
        self.refresh()?;
        if !self.alive.contains(token.index()) {
            return Err(Error::new(ErrorCode::EmptySupport, format!("token {token} is not alive")));
        }
        if self.highest == Some(token) {
            return Ok(0);
        }
        let own = self.order(token.index());
        let mut before = 0;
        self.alive.for_each(|index| {
            if self.order(index) < own {
                before += self.weight[index];
            }
        });
        Ok(before)
    }

    /// The mass that tokens of an earlier mask had when the row was last weighed and that
    /// have died since. For observers: right after a stage, before anything weighs again.
    pub(crate) fn mass_lost_since(&self, earlier: &TokenMask) -> u64 {
        let died = earlier.words.iter().zip(&self.alive.words).map(|(before, after)| before & !after);
        let died = died.enumerate().flat_map(|(place, word)| Bits(word).map(move |bit| place * 64 + bit));
        died.map(|index| self.weight[index]).sum()
    }

    /// The probabilities of all tokens by id, 0 for dead ones.
    ///
    /// # Errors
    /// `empty_support` when no token is alive.
    pub fn probabilities(&mut self) -> Result<Vec<f64>> {
        self.refresh()?;
        let mut all = vec![0.0; self.len()];
        for index in self.alive.iter() {
            all[index] = self.probability_of(index);
        }
        Ok(all)
    }
}

/// The highest live token; the lowest id among equals. Block by block, because most blocks are
/// wholly alive and hold nothing higher than what was found before.
fn highest(scores: &[f32], alive: &TokenMask) -> Option<TokenId> {
    let mut best: Option<usize> = None;
    for (block, (chunk, &word)) in scores.chunks(64).zip(&alive.words).enumerate() {
        let bar = best.map_or(f32::NEG_INFINITY, |index| scores[index]);
        #[expect(clippy::needless_bitwise_bool, reason = "without branches, so that it is done in lanes")]
        let higher = chunk.iter().fold(false, |any, &score| any | (score > bar));
        if !higher {
            continue;
        }
        for index in Bits(word).map(|bit| block * 64 + bit) {
            // Strictly greater, so that the lower id wins a tie.
            if best.is_none_or(|best| scores[index] > scores[best]) {
                best = Some(index);
            }
        }
    }
    best.map(id_of)
}

/// The first of the candidates at which `reached(count, mass)` holds, counted from what stands
/// before them all. A candidate is its place in an order, with its id in the low bits.
fn search(
    candidates: &mut [u64],
    weight: &[u64],
    (mut count, mut mass): (usize, u64),
    reached: impl Fn(usize, u64) -> bool,
) -> Option<Cut> {
    let index = |candidate: u64| (candidate & ((1 << ID_BITS) - 1)) as usize;
    let mut rest = candidates;
    // Narrow by halves: the mass of the nearer half tells which half holds the place.
    while rest.len() > 32 {
        let middle = rest.len() / 2;
        rest.select_nth_unstable(middle);
        let (near, far) = rest.split_at_mut(middle);
        let near_mass: u64 = near.iter().map(|&candidate| weight[index(candidate)]).sum();
        if reached(count + middle, mass + near_mass) {
            rest = near;
        } else {
            count += middle;
            mass += near_mass;
            rest = far;
        }
    }
    rest.sort_unstable();
    for &candidate in &*rest {
        let before = mass;
        count += 1;
        mass += weight[index(candidate)];
        if reached(count, mass) {
            return Some(Cut { last: id_of(index(candidate)), count, mass, mass_before: before });
        }
    }
    None
}

/// Distances and weights of a row, by id.
#[derive(Debug, Clone, Copy)]
pub struct Weighed<'a> {
    /// Which entries mean something.
    pub alive: &'a TokenMask,
    /// Octaves below the highest, with 32 fractional bits.
    pub distance: &'a [u64],
    /// Integer masses.
    pub weight: &'a [u64],
}

/// Score descending, then id ascending, as one integer to sort by.
fn order_of(score: f32, index: usize) -> u64 {
    u64::from(!weights::key(score)) << 32 | index as u64
}

fn id_of(index: usize) -> TokenId {
    #[expect(clippy::cast_possible_truncation, reason = "a row has at most 2^18 tokens")]
    TokenId(index as u32)
}

fn not_finite(index: usize, score: f32) -> Error {
    let code = if score.is_nan() { ErrorCode::NanLogit } else { ErrorCode::InfiniteLogit };
    Error::new(code, format!("the edited logit of token {index} is {score}, which is not finite"))
}
