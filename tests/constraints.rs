//! Holds constraints to other implementations' masks, to an independent validator, and to
//! their own past.
//!
//! `tests/oracle/grammar_regex.json` and `tests/oracle/grammar_schema.json` are masks over
//! SmolLM2's vocabulary, and judgements of whole texts, by llguidance 1.9.1 and others.
#![cfg(not(target_arch = "wasm32"))]

mod support;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use logitscope::{
    Pipeline, TokenId, Vocab,
    constraint::{Constraint, no_files, open},
    model::{Encoding, LanguageModel, ModelInfo, ModelState, Precision, fnv::fnv_1a},
    random::splitmix,
    stop::{FinishReason, StopRules},
    strategy::sample::{Generation, Request},
};
use serde_json::{Value, json};
use support::{default_model, oracle, smollm2};

fn compile(model: &Arc<dyn LanguageModel>, text: &str) -> Box<dyn Constraint> {
    open(model, text, &no_files).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn mask_of(constraint: &mut dyn Constraint) -> (usize, String, Vec<usize>) {
    // The oracle counts SmolLM2's end of sequence apart.
    let ids: Vec<usize> = constraint.allowed().expect("a mask").iter().filter(|&id| id != 2).collect();
    let bytes = ids.iter().flat_map(|&id| u32::try_from(id).expect("an id").to_le_bytes());
    (ids.len(), format!("{:016x}", fnv_1a(bytes)), ids)
}

/// Holds one constraint to a list of masks; what differs, and how many there were.
fn compare_masks(fresh: &dyn Constraint, masks: &Value) -> (Vec<String>, usize) {
    let mut failures = Vec::new();
    let masks = masks.as_array().expect("masks");
    for mask in masks {
        let mut follower = fresh.fork();
        let prefix: Vec<TokenId> = serde_json::from_value(mask["prefix_ids"].clone()).expect("ids");
        for &token in &prefix {
            follower.commit(token).expect("a commit");
        }
        let standing = follower.standing().expect("a standing");
        let (count, fnv, ids) = mask_of(&mut *follower);
        if json!(count) != mask["count"]
            || json!(fnv) != mask["fnv"]
            || json!(standing.accepting) != mask["accepting"]
        {
            failures.push(format!(
                "after {}: {count} allowed, accepting {}, not {} and {}; {:?} against {}",
                mask["prefix"],
                standing.accepting,
                mask["count"],
                mask["accepting"],
                &ids[..ids.len().min(20)],
                mask["first20"]
            ));
        }
    }
    (failures, masks.len())
}

fn accepts(model: &dyn LanguageModel, fresh: &dyn Constraint, text: &str) -> bool {
    let mut follower = fresh.fork();
    for token in model.tokenize(text, false, false).expect("tokens") {
        follower.commit(token).expect("a commit");
    }
    follower.standing().expect("a standing").accepting
}

#[test]
#[expect(clippy::print_stdout, reason = "how much ran is worth reading")]
fn masks_and_judgements_agree_with_the_oracle() {
    let model = smollm2(Precision::Native);
    let mut failures = Vec::new();
    let (mut masks, mut strings) = (0, 0);
    let mut check = |name: &str, constraint: &str, expected: &Value, texts: &Value, field: &str| {
        let fresh = compile(&model, constraint);
        let (found, count) = compare_masks(&*fresh, expected);
        masks += count;
        failures.extend(found.into_iter().map(|why| format!("{name}: {why}")));
        for text in texts.as_array().expect("texts") {
            let Some(wanted) = text[field].as_bool() else { continue };
            strings += 1;
            let string = text["s"].as_str().expect("a text");
            if accepts(&*model, &*fresh, string) != wanted {
                failures.push(format!("{name}: {string:?} should be accepted: {wanted}"));
            }
        }
    };
    for case in oracle("grammar_regex")["cases"].as_array().expect("cases") {
        let constraint = format!("regex({})", case["regex"]);
        check(&constraint, &constraint, &case["llguidance"], &case["strings"], "llguidance");
    }
    for case in oracle("grammar_schema")["cases"].as_array().expect("cases") {
        for (mode, masks, judgements) in [
            ("flexible", "llguidance_default", "llguidance"),
            ("compact", "llguidance_compact", "llguidance_compact"),
        ] {
            let constraint = format!("json_schema({}, whitespace={mode})", case["schema"]);
            check(&constraint, &constraint, &case[masks], &case["strings"], judgements);
        }
    }
    println!("{masks} masks, {strings} judgements");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    assert!(masks >= 100 && strings >= 1000, "{masks} masks, {strings} judgements");
}

/// GBNF has no lexer and forces no tokens, so its masks are not compared, but its judgements
/// are.
#[test]
fn translated_gbnf_judges_like_llama_cpp() {
    let model = smollm2(Precision::Native);
    let (mut strings, mut failures) = (0, Vec::new());
    for case in oracle("grammar_regex")["cases"].as_array().expect("cases") {
        let Some(grammar) = case["gbnf"].as_str() else { continue };
        let fresh = compile(&model, &format!("gbnf({})", json!(format!("{grammar}\n"))));
        for text in case["strings"].as_array().expect("texts") {
            let Some(wanted) = text["llama_cpp_gbnf"].as_bool() else { continue };
            strings += 1;
            let string = text["s"].as_str().expect("a text");
            if accepts(&*model, &*fresh, string) != wanted {
                failures.push(format!("{}: {string:?} should be accepted: {wanted}", case["name"]));
            }
        }
    }
    // A recursive grammar: the one for any JSON that llama.cpp ships, shortened.
    let grammar = "root ::= value\nvalue ::= object | array | string | number | \"true\"\n\
        object ::= \"{\" ( string \":\" value (\",\" string \":\" value)* )? \"}\"\n\
        array ::= \"[\" ( value (\",\" value)* )? \"]\"\n\
        string ::= \"\\\"\" [^\"\\\\]* \"\\\"\"\nnumber ::= \"-\"? [0-9]+\n";
    let fresh = compile(&model, &format!("gbnf({})", json!(grammar)));
    for (text, wanted) in [
        ("{\"a\":[1,-2,{}]}", true),
        ("[]", true),
        ("[1,]", false),
        ("{\"a\"}", false),
        ("\"x\"", true),
        ("[[", false),
    ] {
        strings += 1;
        if accepts(&*model, &*fresh, text) != wanted {
            failures.push(format!("recursive: {text} should be accepted: {wanted}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(strings > 200, "only {strings} judgements");
}

const TOOLS: &str = r#"tool([{"type": "function", "function": {"name": "weather", "parameters":
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}},
    {"name": "now", "input_schema": {"type": "object", "properties": {}, "additionalProperties": false}}])"#;

#[test]
fn every_kind_judges_a_text() {
    let model = default_model();
    for (constraint, good, bad) in [
        (r#"regex("[ab]{2}")"#, "ab", "abc"),
        (r#"choice(["yes", "yes.", "no"])"#, "yes.", "ye"),
        ("json()", r#"{"a": [1, null, "x"]}"#, "{a: 1}"),
        (r#"json_schema({"type": "integer", "minimum": 3})"#, "12", "2"),
        (r#"lark("start: \"a\" start \"b\" | \"c\"")"#, "aacbb", "aacb"),
        ("gbnf(\"root ::= \\\"(\\\" root? \\\")\\\"\")", "(())", "(()"),
        (
            TOOLS,
            r#"{"name": "weather", "arguments": {"city": "Oslo"}}"#,
            r#"{"name": "snow", "arguments": {}}"#,
        ),
        (TOOLS, r#"{"name": "now", "input": {}}"#, r#"{"name": "now", "arguments": {}}"#),
        (
            "sql_select()",
            "SELECT name, COUNT(*) AS n FROM users AS u JOIN orders ON u.id = orders.user WHERE age >= 18 \
             AND NOT (city LIKE 'O%') GROUP BY name ORDER BY n DESC LIMIT 10;",
            "DELETE FROM users",
        ),
        ("sql_select()", "select * from t where a in (select b from s) or c is not null", "SELECT FROM t"),
    ] {
        let fresh = compile(&model, constraint);
        // Some texts may have no tokens in this model's small vocabulary.
        let judge = |text: &str| model.tokenize(text, false, false).map(|_| accepts(&*model, &*fresh, text));
        assert_eq!(judge(good), Ok(true), "{constraint}: {good}");
        assert!(judge(bad) != Ok(true), "{constraint}: {bad}");
    }
}

/// After any rollback the mask is what a fresh parser says of the same tokens.
#[test]
fn going_back_is_as_if_one_had_never_gone_on() {
    let model = default_model();
    let mut stream = 7;
    let mut below = |n: usize| usize::try_from(splitmix(&mut stream) % n as u64).expect("small");
    let mut compared = 0;
    for constraint in [
        r#"regex("([a-z]+ ){2,5}[0-9]{3}")"#,
        r#"json_schema({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "number"}}, "b": {"enum": ["x", "yy"]}}, "required": ["a", "b"]})"#,
        r#"lark("start: \"(\" start* \")\" | /[a-z]+/")"#,
        "json()",
    ] {
        let fresh = compile(&model, constraint);
        let mut follower = fresh.fork();
        let mut taken: Vec<TokenId> = Vec::new();
        for _ in 0..60 {
            if !taken.is_empty() && below(3) == 0 {
                let back = 1 + below(taken.len().min(6));
                follower.rollback(back).expect("a rollback");
                taken.truncate(taken.len() - back);
            } else {
                let ids: Vec<usize> = follower.allowed().expect("a mask").iter().collect();
                // Sometimes a token that is not allowed, which going back must undo too.
                let id = if ids.is_empty() || below(12) == 0 {
                    below(model.vocab().len())
                } else {
                    ids[below(ids.len())]
                };
                let token = TokenId(u32::try_from(id).expect("an id"));
                follower.commit(token).expect("a commit");
                taken.push(token);
            }
            let mut other = fresh.fork();
            for &token in &taken {
                other.commit(token).expect("a commit");
            }
            assert_eq!(
                follower.standing().expect("ours"),
                other.standing().expect("theirs"),
                "{constraint} {taken:?}"
            );
            let (own, wanted) =
                (follower.allowed().expect("a mask").clone(), other.allowed().expect("a mask"));
            assert!(own == *wanted, "{constraint} after {taken:?}: {own:?}, not {wanted:?}");
            compared += 1;
        }
    }
    assert_eq!(compared, 240);
}

/// Ten schemas of the kinds that people write.
fn schemas() -> Vec<Value> {
    vec![
        json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 120}}, "required": ["name", "age"], "additionalProperties": false}),
        json!({"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99}, "minItems": 1, "maxItems": 4}),
        json!({"enum": ["red", "green", "blue"]}),
        json!({"type": "object", "properties": {"ok": {"type": "boolean"}, "why": {"type": "string", "maxLength": 16}}, "required": ["ok"], "additionalProperties": false}),
        json!({"type": "object", "properties": {"user": {"type": "object", "properties": {"id": {"type": "integer"}, "admin": {"type": "boolean"}}, "required": ["id", "admin"], "additionalProperties": false}}, "required": ["user"], "additionalProperties": false}),
        json!({"anyOf": [{"type": "null"}, {"type": "number", "minimum": -1, "maximum": 1}, {"type": "string", "maxLength": 8}]}),
        json!({"type": "object", "properties": {"kind": {"const": "point"}, "x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["kind", "x", "y"], "additionalProperties": false}),
        json!({"$defs": {"t": {"type": "object", "properties": {"v": {"type": "integer", "minimum": 0, "maximum": 9}, "kids": {"type": "array", "items": {"$ref": "#/$defs/t"}, "maxItems": 2}}, "required": ["v"], "additionalProperties": false}}, "$ref": "#/$defs/t"}),
        json!({"type": "string", "pattern": "^[a-z]{2,6}-[0-9]{2}$"}),
        json!({"type": "array", "items": {"type": "object", "properties": {"day": {"enum": ["mon", "tue", "wed"]}, "open": {"type": "boolean"}}, "required": ["day", "open"], "additionalProperties": false}, "minItems": 1, "maxItems": 2}),
    ]
}

const RUNS: u32 = 200;

/// Rows by the tokens they follow.
type Rows = Mutex<BTreeMap<Vec<TokenId>, Vec<f32>>>;

/// A model that remembers what it has computed: texts under a schema begin alike, and a pass
/// takes long in a build that is not optimised.
#[derive(Debug)]
struct Remembering {
    model: Arc<dyn LanguageModel>,
    rows: Arc<Rows>,
}

impl LanguageModel for Remembering {
    fn vocab(&self) -> &Vocab {
        self.model.vocab()
    }

    fn context_length(&self) -> usize {
        self.model.context_length()
    }

    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn hash(&self) -> u64 {
        self.model.hash()
    }

    fn encode(&self, text: &str, parse_special: bool, add_bos: bool) -> logitscope::Result<Encoding> {
        self.model.encode(text, parse_special, add_bos)
    }

    fn start(&self) -> Box<dyn ModelState> {
        Box::new(Remembered { tokens: Vec::new(), inner: self.model.start(), rows: Arc::clone(&self.rows) })
    }
}

#[derive(Debug)]
struct Remembered {
    tokens: Vec<TokenId>,
    /// As far as anything had to be computed.
    inner: Box<dyn ModelState>,
    rows: Arc<Rows>,
}

impl ModelState for Remembered {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn advance(&mut self, tokens: &[TokenId], rows: usize) -> logitscope::Result<Vec<Vec<f32>>> {
        assert_eq!(rows, 1, "the sampling loop asks for one row");
        self.tokens.extend(tokens);
        if let Some(row) = self.rows.lock().expect("rows").get(&self.tokens) {
            return Ok(vec![row.clone()]);
        }
        let unseen = self.tokens[self.inner.tokens().len()..].to_vec();
        let row = self.inner.advance(&unseen, 1)?;
        self.rows.lock().expect("rows").insert(self.tokens.clone(), row[0].clone());
        Ok(row)
    }

    fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
        self.inner.truncate(length);
    }

    fn fork(&self) -> Box<dyn ModelState> {
        Box::new(Self { tokens: self.tokens.clone(), inner: self.inner.fork(), rows: Arc::clone(&self.rows) })
    }
}

/// Two hundred texts under each schema: what ends by grammar or end of sequence parses and
/// validates, at least half do, and what the budget ended says where the parser stood.
#[test]
#[expect(clippy::print_stdout, reason = "how much ran is worth reading")]
fn what_is_written_under_a_schema_validates() {
    let model: Arc<dyn LanguageModel> =
        Arc::new(Remembering { model: default_model(), rows: Arc::default() });
    let work = schemas();
    let next = AtomicUsize::new(0);
    let results: Vec<Vec<String>> = thread::scope(|scope| {
        let worker = || {
            let mut lines = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(schema) = work.get(index) else { return lines };
                lines.extend(under_schema(&model, schema).into_iter().map(|line| format!("{index} {line}")));
            }
        };
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in results.into_iter().flatten() {
        let kind = line.split_once(' ').expect("a line").1;
        let kind = kind.split(':').next().expect("a kind");
        *counts.entry(kind.to_owned()).or_default() += 1;
        assert!(kind != "wrong", "{line}");
    }
    println!("{counts:?}");
    let total: usize = counts.values().sum();
    assert_eq!(total, 2000, "{counts:?}");
    let finished = counts.get("valid").copied().unwrap_or(0);
    assert!(finished >= 1000, "{counts:?}");
}

/// One line for each run: `valid`, `budget`, or `wrong: why`.
fn under_schema(model: &Arc<dyn LanguageModel>, schema: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).expect("a schema");
    let constraint = compile(model, &format!("json_schema({schema}, whitespace=compact)"));
    let prompt = model.tokenize("The answer is", true, true).expect("a prompt");
    let request = Request {
        prompt,
        pipeline: Pipeline::parse("temperature(t=0.7) | categorical()").expect("a pipeline"),
        sample: 0,
        seed: Some(11),
        stop: StopRules::of_vocab(model.vocab(), 40),
    };
    let run = |sample: u32| {
        let request = Request { sample, ..request.clone() };
        let mut generation = Generation::new(Arc::clone(model), request).expect("a generation");
        generation = generation.with_constraint(constraint.fork()).expect("a constraint");
        while generation.finish().is_none() {
            generation.step().expect("a step");
        }
        let text = generation.text().to_owned();
        let reason = generation.finish().expect("an end").reason;
        let standing = generation.standing().expect("a standing").expect("a constraint");
        let parsed: Result<Value, _> = serde_json::from_str(&text);
        match reason {
            FinishReason::Grammar | FinishReason::Eos => match parsed {
                Ok(value) if validator.is_valid(&value) && standing.accepting => "valid".to_owned(),
                Ok(_) => format!("wrong: {text} does not validate"),
                Err(error) => format!("wrong: {text} does not parse: {error}"),
            },
            FinishReason::MaxTokens if !standing.inside.is_empty() => "budget".to_owned(),
            other => format!("wrong: ended {other:?} with {text}"),
        }
    };
    (0..RUNS).map(run).collect()
}
