//! The laws that stages declare, and the fast paths against slow ones.
//!
//! Rows are random and adversarial: a few that look like a language model's, and many that do
//! not (all equal, heavy ties, subnormal, huge, masked), with 1 to 262,144 tokens. Parameters
//! are drawn from the declarations, so a new stage is tested without a line here.
#![cfg(not(target_arch = "wasm32"))]

use logitscope::config::Args;
use logitscope::logits::Cut;
use logitscope::random::{Randomness, splitmix, unit};
use logitscope::sampler::Draw;
use logitscope::spec::{Build, Law, ParamType, StageSpec};
use logitscope::weights::{self, Scale};
use logitscope::{ErrorCode, Logits, StepContext, TokenId, registry, testing};
use serde_json::{Value, json};

const SIZES: [usize; 8] = [1, 2, 3, 7, 64, 65, 257, 1000];

/// A source of numbers for one case.
struct Dice(u64);

impl Dice {
    fn unit(&mut self) -> f64 {
        unit(splitmix(&mut self.0))
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(splitmix(&mut self.0) % n as u64).expect("small")
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        match self.below(8) {
            0 => low,
            1 => high,
            _ => low + (high - low) * self.unit(),
        }
    }

    fn id(&mut self, vocabulary: usize) -> usize {
        self.below(vocabulary)
    }

    fn ids(&mut self, vocabulary: usize, count: usize) -> Vec<usize> {
        (0..count).map(|_| self.id(vocabulary)).collect()
    }

    /// Arguments within the declared ranges.
    fn arguments(&mut self, spec: &'static StageSpec, vocabulary: usize) -> Args {
        let mut args = Args::defaults(spec);
        for param in spec.params {
            let (low, high, _) = param.slider.unwrap_or((0.0, 1.0, 1.0));
            let value = match param.ty {
                ParamType::Number { min_excluded, .. } => {
                    let value = self.between(low, high);
                    json!(if min_excluded && value <= 0.0 { 1.0 } else { value })
                }
                ParamType::Integer { .. } => {
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a slider")]
                    let value = self.between(low, high) as u64;
                    json!(value)
                }
                ParamType::Word { words } => json!(words[self.below(words.len())]),
                ParamType::Seed => json!(splitmix(&mut self.0)),
                ParamType::Ids => {
                    let count = self.below(4);
                    json!(self.ids(vocabulary, count))
                }
                ParamType::Sequences | ParamType::Texts => {
                    let sequences: Vec<_> = (0..self.below(4))
                        .map(|_| {
                            let count = 1 + self.below(3);
                            self.ids(vocabulary, count)
                        })
                        .collect();
                    json!(sequences)
                }
                ParamType::SequenceBias => {
                    let pairs: Vec<Value> = (0..self.below(4))
                        .map(|_| {
                            let count = 1 + self.below(3);
                            json!([self.ids(vocabulary, count), self.between(-5.0, 5.0)])
                        })
                        .collect();
                    json!(pairs)
                }
                ParamType::Bias => {
                    let pairs = (0..self.below(4))
                        .map(|_| (self.id(vocabulary).to_string(), json!(self.between(-5.0, 5.0))));
                    Value::Object(pairs.collect())
                }
                ParamType::Forced => {
                    let pairs = (0..4).map(|step| (step.to_string(), json!(self.id(vocabulary))));
                    Value::Object(pairs.collect())
                }
            };
            args.set(param.name, &value).unwrap_or_else(|error| panic!("{error}"));
        }
        args
    }

    fn history(&mut self, vocabulary: usize) -> Vec<TokenId> {
        // From few ids, so that something repeats.
        let few = 1 + self.below(vocabulary.min(4));
        (0..self.below(24)).map(|_| TokenId(u32::try_from(self.below(few)).expect("small"))).collect()
    }
}

/// Rows of one size: every distribution, whole and with every third token masked.
fn rows(size: usize) -> impl Iterator<Item = (String, Vec<f32>)> {
    testing::DISTRIBUTIONS.iter().flat_map(move |(name, make)| {
        let row = make(size, 17 + size as u64);
        let mut masked = row.clone();
        for score in masked.iter_mut().skip(1).step_by(3) {
            *score = f32::NEG_INFINITY;
        }
        [(format!("{name}, V={size}"), row), (format!("{name}, masked, V={size}"), masked)]
    })
}

/// Applies a stage, or what a sampler does before it draws.
fn apply(args: &Args, logits: &mut Logits, context: &StepContext) -> Result<(), ErrorCode> {
    let applied = match args.spec.build {
        Build::Transform(build) => build(args).and_then(|stage| stage.apply(logits, context).map(|_| ())),
        Build::Sampler(build) => build(args).and_then(|mut stage| stage.prepare(logits, context).map(|_| ())),
    };
    match applied {
        Err(error) => Err(error.code),
        Ok(()) if logits.alive().count() == 0 => Err(ErrorCode::EmptySupport),
        Ok(()) => Ok(()),
    }
}

fn scores(logits: &Logits) -> Vec<(TokenId, f64)> {
    logits.support().into_iter().filter_map(|token| Some((token, logits.score(token)?))).collect()
}

/// The live tokens, highest first, lower ids first among equals.
fn ordered(logits: &Logits) -> Vec<TokenId> {
    let mut all = scores(logits);
    all.sort_by(|a, b| b.1.partial_cmp(&a.1).expect("finite").then(a.0.cmp(&b.0)));
    all.into_iter().map(|(token, _)| token).collect()
}

/// What is wrong with a law on a row, if something is. `Ok(false)`: the stage refused the row.
fn check(law: Law, args: &Args, row: &[f32], context: &StepContext) -> Result<bool, String> {
    let before = Logits::new(row).map_err(|error| error.to_string())?;
    let mut after = before.clone();
    let mut neutral = args.clone();
    let args = if law == Law::NeutralIsIdentity {
        for param in args.spec.params {
            if let Some(text) = param.neutral {
                let value = logitscope::config::parse_value(text).expect("a neutral value");
                neutral.set(param.name, &value).expect("in range");
            }
        }
        &neutral
    } else {
        args
    };
    match apply(args, &mut after, context) {
        Ok(()) => {}
        Err(ErrorCode::EmptySupport | ErrorCode::InfiniteLogit) => return Ok(false),
        Err(code) => return Err(format!("refused with {}", code.as_str())),
    }
    let wrong = |what: String| Err(what);
    match law {
        Law::NeutralIsIdentity if scores(&after) != scores(&before) => {
            wrong("the neutral stage changed the row".to_owned())
        }
        Law::OnlyRemoves => {
            match scores(&after).iter().find(|(token, score)| before.score(*token) != Some(*score)) {
                Some((token, score)) => wrong(format!("token {token} now has score {score}")),
                None => Ok(true),
            }
        }
        Law::KeepsArgmax => {
            let highest = ordered(&before)[0];
            let top = scores(&after).iter().map(|(_, score)| *score).fold(f64::MIN, f64::max);
            match after.score(highest) {
                Some(score) if score == top => Ok(true),
                other => wrong(format!("the highest token {highest} has {other:?} of {top}")),
            }
        }
        Law::OrderPreserving => {
            let survivors: Vec<f64> =
                ordered(&before).into_iter().filter_map(|token| after.score(token)).collect();
            match survivors.windows(2).position(|pair| pair[0] < pair[1]) {
                Some(place) => wrong(format!("survivors {place} and the next changed places")),
                None => Ok(true),
            }
        }
        Law::KeepsPrefix => {
            let order = ordered(&before);
            let count = after.alive().count();
            match order[..count].iter().find(|token| !after.alive().contains(token.index())) {
                Some(token) => wrong(format!("{count} stay, but token {token}, among the first, does not")),
                None => Ok(true),
            }
        }
        Law::Idempotent => {
            let mut twice = after.clone();
            match apply(args, &mut twice, context) {
                Ok(()) if scores(&twice) == scores(&after) => Ok(true),
                other => wrong(format!("twice differs from once: {other:?}")),
            }
        }
        Law::ShiftInvariant => shift_invariant(args, row, context),
        Law::NeutralIsIdentity => Ok(true),
    }
}

/// Scores on a grid, so that adding a constant is exact.
fn shift_invariant(args: &Args, row: &[f32], context: &StepContext) -> Result<bool, String> {
    let grid = |x: &f32| if x.is_finite() { (x.clamp(-60.0, 60.0) * 1024.0).round() / 1024.0 } else { *x };
    let row: Vec<f32> = row.iter().map(grid).collect();
    let shifted: Vec<f32> = row.iter().map(|x| x + 8.0).collect();
    let mut a = Logits::new(&row).map_err(|error| error.to_string())?;
    let mut b = Logits::new(&shifted).map_err(|error| error.to_string())?;
    if apply(args, &mut a, context).is_err() || apply(args, &mut b, context).is_err() {
        return Ok(false);
    }
    if a.support() != b.support() {
        return Err(format!("{} stay, {} after a shift", a.support().len(), b.support().len()));
    }
    let (a, b) = (a.probabilities().expect("alive"), b.probabilities().expect("alive"));
    match a.iter().zip(&b).position(|(x, y)| (x - y).abs() > 2e-6) {
        Some(id) => Err(format!("probability of {id} is {} and {} after a shift", a[id], b[id])),
        None => Ok(true),
    }
}

fn laws_on(rows: impl Iterator<Item = (String, Vec<f32>)>, tries: u64) -> (usize, usize, Vec<String>) {
    let (mut ran, mut refused, mut failures) = (0, 0, Vec::new());
    for (name, row) in rows {
        for spec in registry::ALL {
            for attempt in 0..tries {
                let mut dice = Dice(attempt * 7919 + row.len() as u64);
                let args = dice.arguments(spec, row.len());
                let history = dice.history(row.len());
                let prompt = dice.below(history.len() + 1);
                let randomness = Randomness { seed: attempt, sample: 0, position: 0 };
                let context = StepContext::new(&history, prompt, randomness);
                for &law in spec.laws {
                    match check(law, &args, &row, &context) {
                        Ok(true) => ran += 1,
                        Ok(false) => refused += 1,
                        Err(why) => failures.push(format!("{law:?} of {args} on {name}: {why}")),
                    }
                }
            }
        }
    }
    (ran, refused, failures)
}

fn report(failures: &[String]) {
    let shown: Vec<_> = failures.iter().take(30).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} failures, such as:\n{}", failures.len(), shown.join("\n"));
}

#[test]
fn stages_keep_their_laws() {
    let (ran, refused, failures) = laws_on(SIZES.into_iter().flat_map(rows), 4);
    report(&failures);
    assert!(ran > 80_000, "only {ran} laws were checked");
    assert!(refused * 5 < ran, "{refused} rows were refused, {ran} checked");
}

#[test]
fn stages_keep_their_laws_over_the_largest_vocabulary() {
    let largest = testing::DISTRIBUTIONS.iter().step_by(5).map(|(name, make)| {
        let row = make(weights::MAX_VOCABULARY, 5);
        ((*name).to_owned(), row)
    });
    let (ran, _, failures) = laws_on(
        largest.map(|(name, row)| {
            let mut row = row;
            row[0] = f32::NEG_INFINITY;
            (name, row)
        }),
        1,
    );
    report(&failures);
    assert!(ran > 150, "only {ran} laws were checked");
}

// --- Fast paths against slow ones ------------------------------------------------------

/// One row sorted, with integer weights: what the fast paths must equal exactly.
struct Sorted {
    tokens: Vec<TokenId>,
    distances: Vec<u64>,
    weights: Vec<u64>,
}

impl Sorted {
    fn new(row: &[f32], temperature: f64) -> Self {
        let mut order: Vec<usize> = (0..row.len()).filter(|&id| row[id] > f32::NEG_INFINITY).collect();
        order.sort_by(|&a, &b| row[b].partial_cmp(&row[a]).expect("finite").then(a.cmp(&b)));
        let scale = Scale::from_temperature(temperature);
        let highest = row[order[0]];
        let distances: Vec<u64> =
            order.iter().map(|&id| weights::distance(highest, row[id], scale)).collect();
        Self {
            tokens: order.iter().map(|&id| TokenId(u32::try_from(id).expect("small"))).collect(),
            weights: distances.iter().map(|&distance| weights::weight(distance)).collect(),
            distances,
        }
    }

    fn total(&self) -> u64 {
        self.weights.iter().sum()
    }

    fn cut(&self, reached: impl Fn(usize, u64) -> bool) -> Cut {
        let mut mass = 0;
        for (place, &weight) in self.weights.iter().enumerate() {
            let mass_before = mass;
            mass += weight;
            if reached(place + 1, mass) || place + 1 == self.weights.len() {
                return Cut { last: self.tokens[place], count: place + 1, mass, mass_before };
            }
        }
        unreachable!("a row has a token")
    }
}

#[test]
fn cuts_draws_and_standings_equal_a_sort() {
    let mut ran = 0;
    let mut failures = Vec::new();
    let large = testing::DISTRIBUTIONS.iter().map(|(name, make)| ((*name).to_owned(), make(50_257, 3)));
    for (name, row) in SIZES.into_iter().flat_map(rows).chain(large) {
        for temperature in [1.0, 0.3, 5.0, std::f64::consts::LOG2_E] {
            let sorted = Sorted::new(&row, temperature);
            let mut logits = Logits::new(&row).expect("a row");
            logits.scale_temperature(temperature).expect("above zero");
            let mut dice = Dice(row.len() as u64);
            let total = sorted.total();
            if logits.mass().expect("alive") != total {
                failures.push(format!("{name}: mass"));
            }
            for _ in 0..6 {
                let count = 1 + dice.below(sorted.tokens.len());
                let u = splitmix(&mut dice.0);
                let mass = weights::drawn_mass(u, total) + 1;
                let distance = sorted.distances[dice.below(sorted.distances.len())];
                let token = sorted.tokens[count - 1];
                let within = sorted.distances.iter().filter(|&&other| other <= distance).count();
                let by_mass = sorted.cut(|_, held| held >= mass);
                let before: u64 = sorted.weights[..count - 1].iter().sum();
                let standing = logits.standing(token).expect("alive").expect("alive");
                let draw = Draw::by_mass(&mut logits, u).expect("alive");
                let first = logits.cut_at_count(count).and_then(|cut| logits.first(&cut)).expect("alive");
                for (what, equal) in [
                    ("count", logits.cut_at_count(count) == Ok(sorted.cut(|place, _| place >= count))),
                    ("mass", logits.cut_at_mass(mass) == Ok(by_mass)),
                    (
                        "distance",
                        logits.cut_at_distance(distance) == Ok(sorted.cut(|place, _| place >= within)),
                    ),
                    (
                        "draw",
                        (draw.token, draw.low, draw.high)
                            == (by_mass.last, by_mass.mass_before, by_mass.mass),
                    ),
                    ("rank", standing.rank == count - 1),
                    ("mass before", logits.mass_before(token) == Ok(before)),
                    ("first", first == sorted.tokens[..count]),
                    ("weights", logits.weights_in_order().as_ref() == Ok(&sorted.weights)),
                ] {
                    ran += 1;
                    if !equal {
                        failures.push(format!("{name} at {temperature}: {what} of {count}"));
                    }
                }
            }
        }
    }
    report(&failures);
    assert!(ran > 40_000, "only {ran} comparisons ran");
}

/// A row in f64, sorted: what a truncation is held to where probabilities decide.
struct Naive {
    tokens: Vec<usize>,
    scores: Vec<f64>,
    probabilities: Vec<f64>,
}

impl Naive {
    fn new(row: &[f32]) -> Self {
        let mut tokens: Vec<usize> = (0..row.len()).filter(|&id| row[id] > f32::NEG_INFINITY).collect();
        tokens.sort_by(|&a, &b| row[b].partial_cmp(&row[a]).expect("finite").then(a.cmp(&b)));
        let scores: Vec<f64> = tokens.iter().map(|&id| f64::from(row[id])).collect();
        let masses: Vec<f64> = scores.iter().map(|score| (score - scores[0]).exp()).collect();
        // From the smallest up, so that the sum is good to the last bits.
        let total: f64 = masses.iter().rev().sum();
        Self { tokens, scores, probabilities: masses.iter().map(|mass| mass / total).collect() }
    }

    fn entropy(&self) -> f64 {
        self.probabilities.iter().rev().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum()
    }

    /// The mean and the standard deviation of the scores.
    fn deviation(&self) -> f64 {
        let n = self.scores.len() as f64;
        let mean = self.scores.iter().sum::<f64>() / n;
        (self.scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / n).sqrt()
    }
}

/// Relative; what integer weights, f32 scores and half a step of slack may shift a limit by.
const SLACK: f64 = 2e-7;

/// Whether every kept token's quantity reaches the limit and no removed one's does, but for
/// those on the limit itself and the first.
fn threshold(
    naive: &Naive,
    kept: &Logits,
    quantity: impl Fn(usize) -> f64,
    limit: f64,
) -> Result<(), String> {
    for place in 0..naive.tokens.len() {
        let value = quantity(place);
        if (value - limit).abs() <= SLACK * (1.0 + limit.abs()) * limit.abs().max(1e-300) {
            continue;
        }
        let wanted = value >= limit || place == 0;
        if !wanted && naive.scores[place] == naive.scores[0] {
            continue; // tied with the first, which stays whatever the limit: some stages keep both
        }
        if kept.alive().contains(naive.tokens[place]) != wanted {
            return Err(format!("token {} has {value} against {limit}", naive.tokens[place]));
        }
    }
    Ok(())
}

/// Whether a prefix stops where a cumulative sum reaches a limit.
fn prefix(naive: &Naive, kept: &Logits, part: impl Fn(usize) -> f64, limit: f64) -> Result<(), String> {
    let count = kept.alive().count();
    let before: f64 = (0..count - 1).map(&part).sum();
    let with = before + part(count - 1);
    let slack = SLACK * limit.abs().max(1e-9) + 1e-9;
    if count > 1 && before >= limit + slack {
        return Err(format!("{count} stay, though {before} had reached {limit}"));
    }
    if count < naive.tokens.len() && with < limit - slack {
        return Err(format!("{count} stay, though {with} had not reached {limit}"));
    }
    Ok(())
}

fn truncate(row: &[f32], text: &str) -> Logits {
    let args = Args::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut logits = Logits::new(row).expect("a row");
    apply(&args, &mut logits, &StepContext::default())
        .unwrap_or_else(|code| panic!("{text}: {}", code.as_str()));
    logits
}

#[test]
#[expect(clippy::too_many_lines, reason = "one row a mechanism")]
fn truncations_equal_their_formulas_in_f64() {
    let mut ran = 0;
    let mut failures = Vec::new();
    let large =
        testing::DISTRIBUTIONS.iter().take(9).map(|(name, make)| ((*name).to_owned(), make(50_257, 3)));
    for (name, row) in SIZES.into_iter().flat_map(rows).chain(large) {
        // Spreads beyond an f32 exponential are for the integer tests.
        if row.iter().any(|x| x.is_finite() && x.abs() > 1e6) {
            continue;
        }
        let naive = Naive::new(&row);
        let (p, z) = (&naive.probabilities, &naive.scores);
        let entropy = naive.entropy();
        let mut dice = Dice(row.len() as u64 + 1);
        for _ in 0..3 {
            let x = dice.unit();
            let small = x * 0.02;
            let n = x * 3.0;
            let mean = -entropy;
            let typical = truncate(&row, &format!("typical(p={x}, ties=cut)"));
            let odd = |place: usize| (p[place].ln() - mean).abs();
            let kept_mass: f64 =
                (0..p.len()).filter(|&i| typical.alive().contains(naive.tokens[i])).map(|i| p[i]).sum();
            let worst_kept = (0..p.len())
                .filter(|&i| typical.alive().contains(naive.tokens[i]))
                .map(odd)
                .fold(0.0, f64::max);
            let best_removed = (0..p.len())
                .filter(|&i| !typical.alive().contains(naive.tokens[i]))
                .map(odd)
                .fold(f64::INFINITY, f64::min);
            let pool = 100.min(p.len());
            let pool_mass: f64 = p[..pool].iter().sum();
            let part = |i: usize| {
                if i < pool && p[i] > 0.0 { -p[i] / pool_mass * (p[i] / pool_mass).ln() } else { 0.0 }
            };
            let pool_entropy: f64 = (0..pool).map(part).sum();
            let top_h = truncate(&row, &format!("top_h(h={x})"));
            let held: f64 = (0..top_h.alive().count()).map(part).sum();
            let next = held + part(top_h.alive().count().min(pool - 1));
            let checks: [(String, Result<(), String>); 11] = [
                (
                    format!("top_p {x}"),
                    prefix(&naive, &truncate(&row, &format!("top_p(p={x})")), |i| p[i], x),
                ),
                (
                    format!("min_p {x}"),
                    threshold(&naive, &truncate(&row, &format!("min_p(m={x})")), |i| p[i], x * p[0]),
                ),
                (
                    format!("epsilon {small}"),
                    threshold(&naive, &truncate(&row, &format!("epsilon(e={small})")), |i| p[i], small),
                ),
                (
                    format!("eta {small}"),
                    threshold(
                        &naive,
                        &truncate(&row, &format!("eta(e={small})")),
                        |i| p[i],
                        small.min(small.sqrt() * (-entropy).exp()),
                    ),
                ),
                (
                    format!("top_a {x}"),
                    threshold(&naive, &truncate(&row, &format!("top_a(a={x})")), |i| p[i], x * p[0] * p[0]),
                ),
                (format!("top_n_sigma {n}"), {
                    let kept = truncate(&row, &format!("top_n_sigma(n={n})"));
                    let limit = z[0] - n * naive.deviation();
                    // Shifted, so that the slack is relative to the spread.
                    let spread = z[0] - z[z.len() - 1];
                    threshold(&naive, &kept, |i| 1.0 + (z[i] - limit) / spread.max(1e-30), 1.0)
                }),
                (format!("mirostat2 {n}"), {
                    let kept = truncate(&row, &format!("mirostat2(tau={n})"));
                    threshold(&naive, &kept, |i| p[i], (-2.0 * n).exp2())
                }),
                (
                    format!("typical {x}: mass"),
                    if kept_mass >= x - 1e-6 { Ok(()) } else { Err(format!("{kept_mass} is kept")) },
                ),
                (
                    format!("typical {x}: order"),
                    if worst_kept <= best_removed * (1.0 + 1e-6) + 1e-6 {
                        Ok(())
                    } else {
                        Err(format!("{worst_kept} is kept, {best_removed} is not"))
                    },
                ),
                (
                    format!("top_h {x}"),
                    if top_h.alive().count() == 1 || held <= x * pool_entropy + 1e-6 {
                        Ok(())
                    } else {
                        Err(format!("{held} of {pool_entropy} is held"))
                    },
                ),
                (
                    format!("top_h {x}: no less"),
                    if top_h.alive().count() == pool || next >= x * pool_entropy - 1e-6 {
                        Ok(())
                    } else {
                        Err(format!("{next} of {pool_entropy} would fit"))
                    },
                ),
            ];
            for (what, result) in checks {
                ran += 1;
                if let Err(why) = result {
                    failures.push(format!("{name}: {what}: {why}"));
                }
            }
        }
    }
    report(&failures);
    assert!(ran > 7_000, "only {ran} comparisons ran");
}

#[test]
fn xtc_tail_free_and_ties_equal_a_sort() {
    let mut ran = 0;
    let mut failures = Vec::new();
    for (name, row) in SIZES.into_iter().flat_map(rows) {
        let sorted = Sorted::new(&row, 1.0);
        let (w, total) = (&sorted.weights, sorted.total());
        let mut dice = Dice(row.len() as u64 + 2);
        for _ in 0..4 {
            let x = dice.unit();
            let k = 1 + dice.below(w.len());
            let floor = weights::share_of(weights::proportion_to_reach(x), total);
            let choices = w.iter().filter(|&&weight| weight >= floor).count();
            let dropped = choices.saturating_sub(1);
            let bends: Vec<u64> = w.windows(3).map(|w| (w[0] + w[2]).abs_diff(2 * w[1])).collect();
            let allowed = weights::share_above(weights::proportion(x), bends.iter().sum()) - 1;
            let mut sum = 0;
            let fitting = bends.iter().filter(|&&bend| {
                sum += bend;
                sum <= allowed
            });
            let tail_free = 1 + fitting.count();
            let last_tie = sorted.distances.iter().filter(|&&d| d <= sorted.distances[k - 1]).count();
            for (text, wanted) in [
                (format!("xtc(probability=1, threshold={x})"), &sorted.tokens[dropped..]),
                (format!("tail_free(z={x})"), &sorted.tokens[..tail_free]),
                (format!("top_k(k={k})"), &sorted.tokens[..k]),
            ] {
                ran += 1;
                let mut wanted = wanted.to_vec();
                wanted.sort_unstable();
                let own = truncate(&row, &text).support();
                if own != wanted {
                    failures.push(format!("{name}: {text}: kept {}, not {}", own.len(), wanted.len()));
                }
            }
            let ties = truncate(&row, &format!("top_k(k={k}, ties=keep)")).alive().count();
            // Distances of different scores can coincide far out, never the other way round.
            if ties < k || ties > last_tie {
                failures.push(format!("{name}: top_k({k}) with ties keeps {ties}"));
            }
        }
    }
    report(&failures);
    assert!(ran > 2_500, "only {ran} comparisons ran");
}

#[test]
fn gumbel_max_has_the_distribution_of_categorical() {
    let row = [2.0, 1.0, 0.5, 0.0, -1.0, f32::NEG_INFINITY, 1.5];
    let mut logits = Logits::new(&row).expect("a row");
    let wanted = logits.probabilities().expect("alive");
    let draws = 60_000;
    let mut counts = vec![0.0; row.len()];
    let args = Args::parse("gumbel_max()").expect("a sampler");
    let Build::Sampler(build) = args.spec.build else { panic!("a sampler") };
    let mut sampler = build(&args).expect("a sampler");
    let mut dice = Dice(3);
    for _ in 0..draws {
        let u = splitmix(&mut dice.0);
        let draw = sampler.pick(&mut logits, u, &StepContext::default()).expect("alive");
        counts[draw.token.index()] += 1.0;
    }
    let expected = |id: usize| wanted[id] * f64::from(draws);
    let live = (0..row.len()).filter(|&id| wanted[id] > 0.0);
    let chi_squared: f64 = live.map(|id| (counts[id] - expected(id)).powi(2) / expected(id)).sum();
    // Five degrees of freedom: one run in a million exceeds 35.9.
    assert!(chi_squared < 35.9, "chi squared is {chi_squared}");
    assert_eq!(counts[5], 0.0);
}
