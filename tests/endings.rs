//! How a generation ends, and what a constraint does on the way: items 6 to 12 of the faults
//! that public trackers report of other implementations, each held to what is right.
//!
//! The model here is a script: at every position it wants one token most, so that each test
//! says exactly what happens.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use std::{collections::BTreeMap, sync::Arc};

use logitscope::{
    Error, ErrorCode, Pipeline, TokenId, Vocab,
    constraint::{Constraint, mask_with_ends, no_files, open},
    model::{Encoding, LanguageModel, ModelInfo, ModelState, Precision},
    sampler::Pick,
    stop::{FinishReason, StopRules, StopState},
    strategy::sample::{Generation, Request},
    trace::Recorder,
    vocab::TokenInfo,
};

/// A model that wants token `wants[i]` after `i + 1` tokens, and its last one for ever.
#[derive(Debug, Clone)]
struct Script(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    vocab: Vocab,
    wants: Vec<u32>,
    context: usize,
    info: ModelInfo,
}

/// Token 0 is the end, token 1 a control token whose text is `a`.
fn script(texts: &[&[u8]], wants: &[&[u8]], context: usize) -> Script {
    let mut tokens = vec![
        TokenInfo { bytes: b"<end>".to_vec(), special: true },
        TokenInfo { bytes: b"a".to_vec(), special: true },
    ];
    tokens.extend(texts.iter().map(|text| TokenInfo { bytes: text.to_vec(), special: false }));
    let id = |want: &[u8]| {
        let place = texts.iter().position(|text| *text == want);
        place.map_or(0, |place| u32::try_from(place).unwrap() + 2)
    };
    let wants = wants.iter().map(|want| id(want)).collect();
    let info = ModelInfo {
        name: Some("script".to_owned()),
        architecture: "script".to_owned(),
        license: None,
        parameters: 1,
        file_bytes: 0,
        layers: 0,
        embedding_length: 0,
        heads: 0,
        key_heads: 0,
        feed_forward_length: 0,
        context_length: context,
        vocabulary_size: tokens.len(),
        tokenizer: "longest".to_owned(),
        tensor_types: BTreeMap::new(),
        bos_token: None,
        eos_token: None,
        chat_template: None,
        cache_bytes_per_token: 0,
        precision: Precision::F32,
    };
    let vocab = Vocab::new(tokens, None, vec![TokenId(0)]);
    Script(Arc::new(Inner { vocab, wants, context, info }))
}

impl LanguageModel for Script {
    fn vocab(&self) -> &Vocab {
        &self.0.vocab
    }

    fn context_length(&self) -> usize {
        self.0.context
    }

    fn info(&self) -> &ModelInfo {
        &self.0.info
    }

    fn hash(&self) -> u64 {
        // One of its own for each script, so that nothing is mistaken for another's.
        Arc::as_ptr(&self.0) as u64
    }

    fn encode(&self, text: &str, _: bool, _: bool) -> logitscope::Result<Encoding> {
        let mut rest = text.as_bytes();
        let mut ids = Vec::new();
        while !rest.is_empty() {
            let ordinary = (2..u32::try_from(self.0.vocab.len()).unwrap()).map(TokenId);
            let longest = ordinary
                .filter(|&id| rest.starts_with(self.0.vocab.bytes(id)))
                .max_by_key(|&id| self.0.vocab.bytes(id).len())
                .ok_or_else(|| Error::new(ErrorCode::BadInput, "no token"))?;
            rest = &rest[self.0.vocab.bytes(longest).len()..];
            ids.push(longest);
        }
        Ok(Encoding { ids, dropped: Vec::new() })
    }

    fn start(&self) -> Box<dyn ModelState> {
        Box::new(State { model: Arc::clone(&self.0), tokens: Vec::new() })
    }
}

#[derive(Debug, Clone)]
struct State {
    model: Arc<Inner>,
    tokens: Vec<TokenId>,
}

impl ModelState for State {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn advance(&mut self, tokens: &[TokenId], rows: usize) -> logitscope::Result<Vec<Vec<f32>>> {
        self.tokens.extend(tokens);
        let first = self.tokens.len() - rows;
        let row = |position: usize| {
            let mut row = vec![0.0; self.model.vocab.len()];
            let wants = &self.model.wants;
            row[wants[position.min(wants.len() - 1)] as usize] = 9.0;
            row
        };
        Ok((first..self.tokens.len()).map(row).collect())
    }

    fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
    }

    fn fork(&self) -> Box<dyn ModelState> {
        Box::new(self.clone())
    }
}

fn rules(stop: &[&str], max_tokens: usize) -> StopRules {
    StopRules {
        eos: vec![TokenId(0)],
        strings: stop.iter().map(|&stop| stop.to_owned()).collect(),
        trim: true,
        max_tokens,
    }
}

fn generation(model: &Script, pipeline: &str, stop: StopRules) -> Generation {
    let request = Request {
        prompt: vec![TokenId(2)],
        pipeline: Pipeline::parse(pipeline).unwrap(),
        sample: 0,
        seed: Some(1),
        stop,
    };
    Generation::new(Arc::new(model.clone()), request).unwrap()
}

fn constrained(model: &Script, pipeline: &str, constraint: &str, max_tokens: usize) -> Generation {
    let constraint = compiled(model, constraint);
    generation(model, pipeline, rules(&[], max_tokens)).with_constraint(constraint).unwrap()
}

fn compiled(model: &Script, constraint: &str) -> Box<dyn Constraint> {
    let model: Arc<dyn LanguageModel> = Arc::new(model.clone());
    open(&model, constraint, &no_files).unwrap_or_else(|error| panic!("{constraint}: {error}"))
}

fn finished(mut generation: Generation) -> Generation {
    while generation.finish().is_none() {
        generation.step().unwrap();
    }
    generation
}

fn reason(generation: &Generation) -> FinishReason {
    generation.finish().unwrap().reason
}

const LETTERS: &[&[u8]] = &[b"p", b"x", b"a", b"b", b"ab", b"c"];

#[test]
fn item_06_everything_masked_fails_closed() {
    let model = script(LETTERS, &[b"x"], 100);
    let all = "suppress(ids=[0,1,2,3,4,5,6,7]) | greedy()";
    let stopped = finished(generation(&model, all, rules(&[], 5)));
    assert_eq!(reason(&stopped), FinishReason::ConstraintUnsatisfiable);
    assert_eq!(stopped.finish().unwrap().stage.as_deref(), Some("suppress"));
    assert!(stopped.tokens().is_empty(), "no token is appended");

    // The constraint leaves one token, and a stage takes that.
    let stopped = finished(constrained(&model, "suppress(ids=[7]) | greedy()", r#"choice(["c"])"#, 5));
    assert_eq!(reason(&stopped), FinishReason::ConstraintUnsatisfiable);
    assert_eq!(stopped.finish().unwrap().stage.as_deref(), Some("suppress"));

    // A text that no token can go on with, though it is not whole. Going back is possible.
    let mut follower = compiled(&model, r#"regex("(ab|c[de])c")"#);
    follower.commit(TokenId(7)).unwrap();
    for _ in 0..2 {
        assert_eq!(
            follower.allowed().unwrap().iter().collect::<Vec<_>>(),
            [] as [usize; 0],
            "no token is `d` or `e`"
        );
        let standing = follower.standing().unwrap();
        assert!(!standing.accepting && !standing.ended && !standing.broken, "{standing:?}");
    }
    follower.rollback(1).unwrap();
    assert_eq!(follower.allowed().unwrap().iter().collect::<Vec<_>>(), [4, 6, 7], "a, ab and c");
    let mut dead = constrained(&model, "greedy()", r#"regex("(ab|c[de])c")"#, 5);
    dead.step_observed(Pick::Forced(TokenId(7)), &mut Recorder::new(3)).unwrap();
    let dead = finished(dead);
    assert_eq!(reason(&dead), FinishReason::ConstraintUnsatisfiable);
    assert_eq!(dead.finish().unwrap().stage.as_deref(), Some("constraint"));

    // A forced token breaks the grammar: after it nothing is allowed.
    let mut broken = constrained(&model, "greedy()", r#"regex("[ab]+")"#, 5);
    broken.step_observed(Pick::Forced(TokenId(3)), &mut Recorder::new(3)).unwrap();
    let broken = finished(broken);
    assert_eq!(reason(&broken), FinishReason::ConstraintUnsatisfiable);
    assert_eq!(broken.finish().unwrap().stage.as_deref(), Some("constraint"));
}

#[test]
fn item_07_the_mask_comes_before_the_pipeline() {
    let model = script(LETTERS, &[b"x"], 100);
    let mut generation = constrained(&model, "top_k(k=1) | categorical()", r#"regex("[ab]{3}")"#, 10);
    let trace = generation.trace(0, 10).unwrap();
    let after: Vec<&str> = trace.stages.iter().map(|stage| stage.id.as_str()).collect();
    assert_eq!(after, ["raw", "constraint", "top_k", "categorical"]);
    let live: f64 = trace.stages[1].rows.iter().map(|row| row.probability).sum();
    assert!((live - 1.0).abs() < 1e-12, "the allowed set's probabilities sum to 1, not {live}");
    let removed: Vec<_> = trace.stages[2].rows.iter().filter(|row| !row.alive).collect();
    assert_eq!(removed.len(), 2, "top-k's column knows what the constraint let through");
    assert!(removed.iter().all(|row| row.verdict.is_some() && row.probability_before > Some(0.0)));
    let facts = trace.constraint.unwrap();
    assert_eq!(facts.allowed, 3, "a, b and ab");
    assert_eq!(facts.top_forbidden, Some(TokenId(3)));
    assert!(facts.feasible_mass < 0.01 && facts.off_manifold);
    let finished = finished(generation);
    assert_eq!(reason(&finished), FinishReason::Grammar);
    assert!(finished.text().chars().all(|c| "ab".contains(c)), "{}", finished.text());
}

#[test]
fn item_08_past_the_end_and_special_tokens_with_texts() {
    let model = script(LETTERS, &[b"a"], 100);
    let mut follower = compiled(&model, r#"choice(["ab"])"#);
    let (mask, standing) = mask_with_ends(&mut *follower, &[TokenId(0)]).unwrap();
    assert!(!standing.accepting && !mask.contains(0), "the end is allowed iff the text is complete");
    assert!(!mask.contains(1), "a control token is no text, whatever its name");
    follower.commit(TokenId(6)).unwrap();
    let (mask, standing) = mask_with_ends(&mut *follower, &[TokenId(0)]).unwrap();
    assert!(standing.accepting && standing.ended);
    assert_eq!(mask.iter().collect::<Vec<_>>(), [0], "only the end is left");
    // One step past it: no abort, and nothing is allowed.
    follower.commit(TokenId(4)).unwrap();
    assert!(follower.standing().unwrap().broken);
    assert_eq!(follower.allowed().unwrap().count(), 0);
    follower.rollback(1).unwrap();
    assert!(follower.standing().unwrap().accepting);

    // Only the end is legal: the generation ends without drawing it.
    let ended = finished(constrained(&model, "greedy()", r#"choice(["ab"])"#, 10));
    assert_eq!(reason(&ended), FinishReason::Grammar);
    assert_eq!(ended.text(), "ab");
    // The text may go on or end: the end is drawn like any token.
    let model = script(LETTERS, &[b"x", b"a", b"<end>"], 100);
    let ended = finished(constrained(&model, "greedy()", r#"regex("a+b*")"#, 10));
    assert_eq!((reason(&ended), ended.text()), (FinishReason::Eos, "aa"));
}

#[test]
fn item_09_white_space_does_not_go_on() {
    let texts: &[&[u8]] =
        &[b"p", b" ", b"    ", b"{", b"}", b"\"", b":", b"n", b"1", b"\n", b"[", b"]", b",", b"t", b"e"];
    let model = script(texts, &[b"    "], 1000);
    let schema =
        r#"json_schema({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})"#;
    let mut ended = finished(constrained(&model, "greedy()", schema, 6));
    assert_eq!(reason(&ended), FinishReason::MaxTokens, "incomplete, and says so");
    let standing = ended.standing().unwrap().unwrap();
    assert!(!standing.accepting);
    assert_eq!(standing.inside, "the object $, before a key");
    let text = finished(constrained(&model, "greedy()", schema, 64)).text().to_owned();
    let longest = text.split(|c: char| !c.is_whitespace()).map(str::len).max().unwrap();
    assert!((32..36).contains(&longest), "{longest} characters of white space in {text:?}");
    assert!(text.trim_end().len() > 1, "something came after it: {text:?}");
}

#[test]
fn item_10_stop_strings_across_boundaries() {
    let run = |pieces: &[&[u8]], stop: &[&str]| {
        let texts: Vec<&[u8]> = [&[&b"p"[..]], pieces].concat();
        let model = script(&texts, &[&[&b"unused"[..]], pieces].concat()[1..], 100);
        finished(generation(&model, "greedy()", rules(stop, pieces.len())))
    };
    let ended = run(&[b"the br", b"own f", b"ox jumps"], &["own fox"]);
    assert_eq!((reason(&ended), ended.text()), (FinishReason::StopString, "the br"));
    let ended = run(&[b"x", b"ab", b"c"], &["ab", "abc"]);
    assert_eq!(ended.finish().unwrap().stop_string.as_deref(), Some("ab"), "the earliest wins");
    let ended = run(&[b"stop"], &["s"]);
    assert_eq!((reason(&ended), ended.text()), (FinishReason::StopString, ""));
    let ended = run(&[b"hi \xf0\x9f", b"\x98\x80!"], &["\u{1F600}"]);
    assert_eq!((reason(&ended), ended.text()), (FinishReason::StopString, "hi "));
    let ended = run(&[b"a stop mid", b"way"], &["top m"]);
    assert_eq!((reason(&ended), ended.text()), (FinishReason::StopString, "a s"));
    // Held back, and given out on every other end.
    let ended = run(&[b"the br", b"own f"], &["own fox"]);
    assert_eq!((reason(&ended), ended.text()), (FinishReason::MaxTokens, "the brown f"));
}

#[test]
fn item_11_the_stronger_reason_is_reported() {
    let model = script(LETTERS, &[b"b"], 100);
    let ended = finished(generation(&model, "greedy()", rules(&["b"], 1)));
    assert_eq!(reason(&ended), FinishReason::StopString, "the stop string completes at the budget");
    assert_eq!(ended.finish().unwrap().also, [FinishReason::MaxTokens]);
    let model = script(LETTERS, &[b"<end>"], 100);
    let ended = finished(generation(&model, "greedy()", rules(&[], 1)));
    assert_eq!(reason(&ended), FinishReason::Eos);
    let model = script(LETTERS, &[b"a"], 3);
    let ended = finished(generation(&model, "greedy()", rules(&[], 50)));
    assert_eq!(reason(&ended), FinishReason::ContextFull);
    assert_eq!(ended.len(), 2);
    let ended = finished(generation(&model, "greedy()", rules(&[], 1)));
    assert_eq!(reason(&ended), FinishReason::MaxTokens);
    // The grammar beats the budget it was completed at.
    let model = script(LETTERS, &[b"a"], 100);
    let ended = finished(constrained(&model, "greedy()", r#"choice(["ab"])"#, 1));
    assert_eq!(reason(&ended), FinishReason::Grammar);
    assert_eq!(ended.finish().unwrap().also, [FinishReason::MaxTokens]);
    let ended = finished(constrained(&model, "greedy()", r#"regex("")"#, 0));
    assert_eq!(reason(&ended), FinishReason::Grammar);
    assert_eq!(ended.finish().unwrap().also, [FinishReason::MaxTokens]);
    // A stop string that is left out is no part of the text that parsed or did not.
    for (trim, parsed) in [(true, false), (false, true)] {
        let stop = StopRules { trim, ..rules(&["b"], 9) };
        let judged =
            generation(&model, "greedy()", stop).with_constraint(compiled(&model, r#"choice(["ab"])"#));
        let mut judged = finished(judged.unwrap());
        assert_eq!(reason(&judged), FinishReason::Grammar);
        assert_eq!(judged.text(), if trim { "a" } else { "ab" });
        assert_eq!(judged.standing().unwrap().unwrap().accepting, parsed);
    }
    // No budget at all: nothing is drawn.
    let ended = finished(generation(&model, "greedy()", rules(&[], 0)));
    assert_eq!((reason(&ended), ended.len()), (FinishReason::MaxTokens, 0));
}

#[test]
fn item_12_characters_in_pieces() {
    let plain = StopRules { eos: Vec::new(), ..rules(&[], 99) };
    let vocab = |pieces: &[&[u8]]| {
        let info = |piece: &&[u8]| TokenInfo { bytes: piece.to_vec(), special: false };
        Vocab::new(pieces.iter().map(info).collect(), None, Vec::new())
    };
    // Every way to cut an emoji, a family joined by zero width joiners, and CJK.
    for text in ["\u{1F600}", "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}", "漢字かな"] {
        let bytes = text.as_bytes();
        for size in 1..=4 {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            let vocab = vocab(&pieces);
            let mut state = StopState::default();
            for id in (0..).take(pieces.len()).map(TokenId) {
                state.push(&plain, &vocab, id);
                assert!(text.starts_with(state.text()), "never half a character: {:?}", state.text());
            }
            assert_eq!(state.text(), text);
        }
    }
    // A byte that can be no character is replaced at once; a cut one once, at the end.
    let pieces: &[&[u8]] = &[b"a\xff", b"b\xf0\x9f", b"\x98"];
    let vocab = vocab(pieces);
    let mut state = StopState::default();
    for id in (0..3).map(TokenId) {
        state.push(&plain, &vocab, id);
    }
    assert_eq!(state.text(), "a\u{fffd}b");
    state.flush(&plain);
    state.flush(&plain);
    assert_eq!(state.text(), "a\u{fffd}b\u{fffd}");
}

#[test]
fn an_end_that_is_removed_or_wrong_is_noticed() {
    let model = script(LETTERS, &[b"x", b"<end>"], 100);
    let watched = finished(generation(&model, "suppress(ids=[0]) | greedy()", rules(&[], 3)));
    let note = watched.notes().iter().find(|note| note.code == "eos_removed").expect("a note");
    assert!(note.stage.starts_with("suppress("), "{note:?}");
    let wrong = generation(&model, "greedy()", StopRules { eos: vec![TokenId(3)], ..rules(&[], 3) });
    assert_eq!(wrong.notes()[0].code, "eos_not_the_models");
    let none = generation(&model, "greedy()", StopRules { eos: Vec::new(), ..rules(&[], 3) });
    assert_eq!(none.notes()[0].code, "eos_none");
    assert!(generation(&model, "greedy()", rules(&[], 3)).notes().is_empty());
}

#[test]
fn mistakes_in_a_constraint_have_a_place() {
    let model: Arc<dyn LanguageModel> = Arc::new(script(LETTERS, &[b"x"], 100));
    let fault = |text: &str| match open(&model, text, &no_files) {
        Ok(_) => panic!("{text} was taken"),
        Err(error) => error,
    };
    assert_eq!(fault(r#"regex("a(b")"#).position, Some(1));
    assert_eq!(fault(r#"gbnf("root ::= [a")"#).position, Some(9));
    assert_eq!(fault(r#"gbnf("root ::= \"a\" b")"#).position, Some(13), "where the missing rule is used");
    assert_eq!(fault(r#"gbnf("root ::= \"a\"{4,2}")"#).position, Some(12));
    // Grammars of which no text can be written, of whatever kind.
    for text in [
        r##"json_schema({"$ref": "#"})"##,
        r#"regex("[^\\x00-\\U0010FFFF]")"#,
        r#"regex("a[^\\x00-\\U0010FFFF]")"#,
        r#"lark("start: start")"#,
        r#"gbnf("root ::= root")"#,
    ] {
        let error = fault(text);
        assert_eq!(
            (error.code, error.message.as_str()),
            (ErrorCode::Syntax, "the grammar allows no text at all"),
            "{text}"
        );
    }
    let error = fault(r#"json_schema({"type": "object", "properties": {"n": {"type": "intger"}}})"#);
    assert_eq!((error.code, error.param.as_deref()), (ErrorCode::Syntax, Some("#/properties/n")), "{error}");
    let error = fault(r#"json_schema("{\"type\": }")"#);
    assert_eq!((error.code, error.position), (ErrorCode::Syntax, Some(9)), "{error}");
    let error = fault(r#"lark("start: \"a\"\n  other: :")"#);
    assert!(error.code == ErrorCode::Syntax && error.position.is_some_and(|at| at >= 11), "{error:?}");
    assert_eq!(fault("grammar()").code, ErrorCode::UnknownStage);
    assert_eq!(fault("json_schema(missing.json)").code, ErrorCode::Io);
    assert_eq!(fault("choice([])").code, ErrorCode::WrongType);
}

/// `tests/oracle/stop_strings.json`: transformers 5.24.0 fires at the same token. Its text
/// runs on to the end of that token, ours stops with the stop string.
#[test]
fn stop_strings_fire_where_transformers_does() {
    let model = support::smollm2(Precision::Native);
    let mut ran = 0;
    for case in support::oracle("stop_strings")["cases"].as_array().unwrap() {
        ran += 1;
        let ids: Vec<TokenId> = serde_json::from_value(case["ids"].clone()).unwrap();
        let stop: Vec<String> = serde_json::from_value(case["stop"].clone()).unwrap();
        let rules = StopRules { eos: Vec::new(), strings: stop, trim: false, max_tokens: usize::MAX };
        let mut state = StopState::default();
        let first = ids.iter().position(|&id| {
            state.push(&rules, model.vocab(), id);
            state.finish(&rules, false).is_some()
        });
        assert_eq!(
            first.map(|first| first + 1),
            case["first"].as_u64().and_then(|first| usize::try_from(first).ok()),
            "{case}"
        );
        let theirs = case["text_at_first"].as_str().unwrap_or_default();
        assert!(theirs.starts_with(state.text()), "{case}: {:?}", state.text());
    }
    assert_eq!(ran, 22);
}
