//! The kinds of fault that public trackers report about samplers, and what is right.

use logitscope::{
    ErrorCode, Logits, Pipeline, StepContext, TokenId,
    apply::{Defaults, answer},
    random::Randomness,
    testing::DISTRIBUTIONS,
};
use serde_json::{Value, json};

fn run(request: &Value) -> Value {
    answer(&request.to_string(), &Defaults::default())
}

/// The ids left by a pipeline, or the code of its refusal and the parameter it names.
fn kept(logits: &Value, pipeline: &str) -> Result<Vec<u64>, (String, String)> {
    let answer = run(&json!({ "logits": logits, "pipeline": pipeline, "u": 0.5 }));
    if let Some(stage) = answer["stages"].as_array().and_then(|stages| stages.last()) {
        return Ok(stage["ids"].as_array().expect("ids").iter().filter_map(Value::as_u64).collect());
    }
    let text = |field: &str| answer["error"][field].as_str().unwrap_or_default().to_owned();
    Err((text("code"), text("param")))
}

fn refusal(code: &str, param: &str) -> Result<Vec<u64>, (String, String)> {
    Err((code.to_owned(), param.to_owned()))
}

#[test]
fn top_p_at_the_ends_of_its_range_and_beyond() {
    let row = json!([2.0, 1.0, 0.0]);
    for p in ["0", "0.0", "-0.0", "1e-9"] {
        assert_eq!(kept(&row, &format!("top_p(p={p})")), Ok(vec![0]), "p = {p} keeps exactly one");
    }
    assert_eq!(kept(&row, "top_p(p=1)"), Ok(vec![0, 1, 2]));
    for p in ["1.0000001", "-0.1", "7"] {
        assert_eq!(kept(&row, &format!("top_p(p={p})")), refusal("out_of_range", "p"));
    }
    for p in ["NaN", "null", "true", "\"0.9\"", "[0.9]", "Infinity"] {
        assert_eq!(kept(&row, &format!("top_p(p={p})")), refusal("wrong_type", "p"), "p = {p}");
    }
}

#[test]
fn the_nucleus_at_exact_equality_and_under_ties() {
    // Masses 1/2, 1/4, 1/4 exactly.
    let halves = "temperature(t=1.4426950408889634)";
    let row = json!([1.0, 0.0, 0.0]);
    assert_eq!(kept(&row, &format!("{halves} | top_p(p=0.5)")), Ok(vec![0]));
    assert_eq!(kept(&row, &format!("{halves} | top_p(p=0.5, boundary=exceed)")), Ok(vec![0, 1]));
    assert_eq!(kept(&row, &format!("{halves} | top_p(p=0.75)")), Ok(vec![0, 1]), "the lower id of a tie");
    assert_eq!(kept(&json!([1.0, 1.0, 1.0, 1.0]), "top_p(p=0.5)"), Ok(vec![0, 1]));
    // Of n equal tokens, k reach k/n, though the decimal is seldom a binary fraction.
    for n in [3_u16, 5, 6, 7, 9, 10, 100] {
        for k in 1..n {
            let p = f64::from(k) / f64::from(n);
            let equal = json!(vec![0.0; usize::from(n)]);
            let count = |pipeline: &str| kept(&equal, pipeline).map(|ids| ids.len());
            assert_eq!(count(&format!("top_p(p={p})")), Ok(usize::from(k)), "{k} of {n} reach {p}");
            let exceed = format!("top_p(p={p}, boundary=exceed)");
            assert_eq!(count(&exceed), Ok(usize::from(k) + 1), "one more than {k} of {n} exceeds {p}");
        }
    }
}

#[test]
fn ids_outside_the_vocabulary_are_refused_and_named() {
    let row = json!([1.0, 0.0]);
    let refused = |param: &str| refusal("token_out_of_vocabulary", param);
    assert_eq!(kept(&row, "xtc(probability=1, threshold=0.1, protect=[9])"), refused("protect"));
    assert_eq!(kept(&row, "sequence_bias(bias=[[[9,1],1]])"), refused("bias"));
    let request = json!({ "logits": row, "pipeline": "greedy()", "history": [0, 7], "u": 0.5 });
    let error = &run(&request)["error"];
    assert_eq!((&error["code"], &error["param"]), (&json!("token_out_of_vocabulary"), &json!("history")));
}

#[test]
fn an_end_named_twice_counts_once_and_zero_stays_zero() {
    let score = |logits: [f32; 2], pipeline: &str, history: Vec<u32>| {
        let request = json!({ "logits": logits, "pipeline": pipeline, "history": history, "u": 0.5 });
        run(&request)["stages"][0]["scores"][0].as_f64()
    };
    let decay = |eos: &str| score([1.0, 1.0], &format!("length_decay(factor=2, eos={eos})"), vec![0, 0]);
    assert_eq!((decay("[0]"), decay("[0,0]")), (Some(4.0), Some(4.0)));
    let penalised = score([0.0, 1.0], "repetition_penalty(r=100, power=count)", vec![0; 20]);
    assert_eq!(penalised, Some(0.0));
}

#[test]
fn a_nucleus_of_nearly_everything_falls_back_to_the_full_set() {
    for (name, make) in DISTRIBUTIONS {
        let row = make(150_000, 3);
        let mut logits = Logits::new(&row).expect("a finite row");
        let all = logits.alive().count();
        Pipeline::parse("top_p(p=0.9999999)")
            .and_then(|pipeline| pipeline.reshape(&mut logits, &StepContext::default()))
            .expect("in range");
        let kept = logits.alive().count();
        assert!((1..=all).contains(&kept), "{name} keeps {kept}");
        let mut full = Logits::new(&row).expect("a finite row");
        let share: f64 = {
            let mass = full.mass().expect("alive");
            logits.support().iter().map(|&id| full.weight(id).expect("alive") as f64).sum::<f64>()
                / mass as f64
        };
        assert!(share >= 0.999_999_8, "{name} keeps a mass of {share}");
    }
}

#[test]
fn every_k() {
    let row = json!([2.0, 1.0, 0.0, -1.0]);
    for (k, count) in [(0, 4), (1, 1), (3, 3), (4, 4), (5, 4), (1u64 << 31, 4)] {
        assert_eq!(kept(&row, &format!("top_k(k={k})")).map(|ids| ids.len()), Ok(count), "k = {k}");
    }
    assert_eq!(kept(&row, "top_k(k=-1)"), refusal("out_of_range", "k"));
    assert_eq!(kept(&row, "top_k(k=1.5)"), refusal("wrong_type", "k"));
}

#[test]
fn rows_that_are_no_distribution_are_refused_and_the_token_named() {
    let cases = [
        (json!(["NaN", 1.0]), "nan_logit", "token 0"),
        (json!([1.0, 2.0, "NaN"]), "nan_logit", "token 2"),
        (json!(["NaN", "NaN"]), "nan_logit", "token 0"),
        (json!([1.0, "inf"]), "infinite_logit", "token 1"),
        (json!([null, 1.0]), "nan_logit", "token 0"),
        (json!(["-inf", "-inf"]), "empty_support", ""),
        (json!([]), "empty_row", ""),
    ];
    for (row, code, token) in cases {
        let answer = run(&json!({ "logits": row, "pipeline": "greedy()" }));
        assert_eq!(answer["error"]["code"], code, "{row}: {answer}");
        assert!(
            answer["error"]["message"].as_str().is_some_and(|message| message.contains(token)),
            "{answer}"
        );
        assert!(answer["draw"].is_null(), "no token is drawn");
    }
    // As Python prints them, which is not JSON.
    let answer =
        answer(r#"{"id": 7, "logits": [1.0, NaN, -Infinity], "pipeline": "greedy()"}"#, &Defaults::default());
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!("nan_logit")));
}

#[test]
fn temperatures_near_nothing_and_beyond() {
    let row = json!([-1000.0, 3.0, 2.0, "-inf"]);
    let answer =
        |t: &str| run(&json!({ "logits": row, "u": 0.5, "pipeline": format!("temperature(t={t})") }));
    for t in ["1e-45", "1e-7", "1e-4"] {
        let answer = answer(t);
        assert_eq!(answer["draw"]["token"], 1, "{answer}");
        assert_eq!(answer["stages"][0]["probs"][1], 1.0, "{answer}");
        assert_eq!(answer["stages"][0]["alive"], 3, "alive counts mask bits");
        assert!(!answer.to_string().contains("null,null"), "no number became null: {answer}");
    }
    let zero = run(&json!({ "logits": row, "u": 0.5, "pipeline": "temperature(t=0)" }));
    assert_eq!((&zero["draw"]["token"], &zero["notes"][0]["code"]), (&json!(1), &json!("temperature_zero")));
    let hot = answer("1e4");
    let probability = hot["stages"][0]["probs"][1].as_f64().expect("a number");
    assert!((probability - 0.344).abs() < 0.01, "{hot}");
    for t in ["-1", "-1e-9"] {
        assert_eq!(answer(t)["error"]["code"], "out_of_range");
        assert_eq!(answer(t)["error"]["param"], "t");
    }
}

#[test]
fn penalties_mind_signs_and_never_raise_the_dead() {
    let request = |pipeline: &str, history: &[u32], prompt_len: usize| {
        run(&json!({
            "logits": [2.0, -2.0, 0.0, "-inf", 1.0], "history": history, "prompt_len": prompt_len,
            "u": 0.5, "pipeline": pipeline,
        }))
    };
    let scores = |answer: &Value| answer["stages"][0]["scores"].clone();
    // Once a token, away from zero on the negative side, and zero stays zero.
    let answer = request("repetition_penalty(r=2)", &[0, 0, 1, 2, 3], 0);
    assert_eq!(answer["stages"][0]["ids"], json!([0, 1, 2, 4]), "token 3 stays dead");
    assert_eq!(scores(&answer), json!([1.0, -4.0, 0.0, 1.0]));
    assert_eq!(scores(&request("repetition_penalty(r=2, power=count)", &[0, 0], 0))[0], 0.5);
    assert_eq!(scores(&request("repetition_penalty(r=2, negative=divide)", &[1], 0))[1], -1.0);
    assert_eq!(scores(&request("repetition_penalty(r=0.5)", &[0, 1], 0)), json!([4.0, -1.0, 0.0, 1.0]));
    // A token of the prompt alone counts only where the scope says so.
    for (scope, first) in [("context", 1.0), ("prompt", 1.0), ("generated", 2.0)] {
        let answer = request(&format!("repetition_penalty(r=2, scope={scope})"), &[0, 4], 1);
        assert_eq!(scores(&answer)[0], first, "{scope}");
    }
    assert_eq!(scores(&request("presence_penalty(s=1)", &[0, 4], 1)), json!([2.0, -2.0, 0.0, 0.0]));
    for r in ["0", "-1", "Infinity", "NaN"] {
        let code = request(&format!("repetition_penalty(r={r})"), &[0], 0)["error"]["code"].clone();
        assert!(code == "out_of_range" || code == "wrong_type", "r = {r}: {code}");
    }
}

#[test]
fn an_emptied_set_fails_closed_and_names_the_stage() {
    let answer = run(&json!({ "logits": [1.0, 2.0], "pipeline": "suppress(ids=[0,1]) | top_k(k=1)" }));
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["stage"]),
        (&json!("empty_support"), &json!("suppress"))
    );
}

#[test]
fn mistakes_in_the_text_have_a_position() {
    let cases = [
        ("top_k(k=5) | topp(p=1)", ErrorCode::UnknownStage, 13),
        ("top_k(k=5, q=1)", ErrorCode::UnknownParam, 11),
        ("top_k(k=5, k=6)", ErrorCode::DuplicateParam, 11),
        ("top_k(k=x)", ErrorCode::WrongType, 6),
        ("top_p(p=2)", ErrorCode::OutOfRange, 6),
        ("greedy() | top_k(k=5)", ErrorCode::SamplerPosition, 11),
        ("greedy() | categorical(seed=1)", ErrorCode::SamplerPosition, 11),
        ("top_k(k=5", ErrorCode::Syntax, 9),
        ("top_k k=5)", ErrorCode::Syntax, 6),
        ("top_k(k=5) top_p(p=1)", ErrorCode::Syntax, 11),
        ("top_k(k=5) |", ErrorCode::Syntax, 12),
        ("top_k(5)", ErrorCode::Syntax, 6),
        ("logit_bias(bias={\"0\": 1)", ErrorCode::Syntax, 23),
    ];
    for (text, code, position) in cases {
        let error = Pipeline::parse(text).expect_err(text);
        assert_eq!((error.code, error.position), (code, Some(position)), "{text}: {error}");
    }
}

#[test]
fn draws_do_not_depend_on_how_many_tokens_survived() {
    let row: Vec<f32> = (0..50u8).map(|id| f32::from(id) / 10.0).collect();
    let context = |seed| StepContext::new(&[], 0, Randomness { seed, sample: 0, position: 0 });
    let u = |pipeline: &str, seed: u64| {
        let request = json!({ "logits": row, "seed": seed, "pipeline": pipeline });
        run(&request)["draw"]["u"].as_f64().expect("a draw")
    };
    assert_eq!(u("categorical()", 7), u("top_k(k=3) | categorical()", 7));
    assert_ne!(u("categorical()", 7), u("categorical()", 7 + (1 << 32)));
    let pipeline = Pipeline::parse("categorical(seed=7)").expect("a pipeline");
    assert_eq!(pipeline.choose(&row, &context(1)), pipeline.choose(&row, &context(2)), "its own seed wins");
    let shown = run(&json!({ "logits": row, "pipeline": "categorical()" }));
    assert!(shown["seed"].is_u64(), "an omitted seed is drawn and shown: {shown}");
}

#[test]
fn one_pipeline_serves_request_after_request() {
    // A, B, A with one set of memory gives A's answer twice.
    let pipeline = Pipeline::parse("top_p(p=0.9) | categorical(seed=3)").expect("a pipeline");
    let (a, b) = ([1.0f32, 5.0, 2.0], [9.0f32, 1.0, 1.0, 1.0, 9.0]);
    let mut logits = Logits::unfilled();
    let mut ids = |row: &[f32]| -> Vec<TokenId> {
        logits.refill(row).expect("a row");
        pipeline.reshape(&mut logits, &StepContext::default()).expect("a pipeline");
        logits.support()
    };
    let first = ids(&a);
    ids(&b);
    assert_eq!(ids(&a), first);
}

/// The code, stage, parameter and message of a refused pipeline on a row of three tokens.
fn refused(pipeline: &str) -> (String, String, String, String) {
    let error = &run(&json!({ "logits": [2.0, 1.0, 0.0], "u": 0.5, "pipeline": pipeline }))["error"];
    let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
    (text("code"), text("stage"), text("param"), text("message"))
}

#[test]
fn ids_outside_the_vocabulary_are_refused_with_their_parameter() {
    for (pipeline, stage, param) in [
        ("suppress(ids=[1,9])", "suppress", "ids"),
        ("logit_bias(bias={\"9\": 1})", "logit_bias", "bias"),
        ("sequence_bias(bias=[[[9,1],1]])", "sequence_bias", "bias"),
        ("bad_words(sequences=[[1],[0,9]])", "bad_words", "sequences"),
        ("min_new_tokens(n=1, eos=[9])", "min_new_tokens", "eos"),
        ("forced_tokens(at={\"5\": 9})", "forced_tokens", "at"),
        ("length_decay(eos=[9])", "length_decay", "eos"),
        ("dry(breakers=[[9]])", "dry", "breakers"),
        ("xtc(protect=[9])", "xtc", "protect"),
    ] {
        let (code, at_stage, at_param, message) = refused(pipeline);
        assert_eq!(
            (&*code, &*at_stage, &*at_param),
            ("token_out_of_vocabulary", stage, param),
            "{pipeline}: {message}"
        );
        assert!(message.starts_with(&format!("{stage}.{param} names token 9")), "{message}");
    }
    let forced = run(&json!({ "logits": [2.0, 1.0], "pipeline": "greedy()", "force": 2 }));
    assert_eq!(forced["error"]["param"], "force");
}

#[test]
fn a_value_that_cannot_be_read_is_named_with_its_parameter() {
    for (value, code, part) in [
        ("1e400", "out_of_range", "`1e400` at position 8 is too large"),
        ("00.9", "syntax", "`00.9` at position 8 is not a number"),
        ("+0.9", "syntax", "`+0.9` at position 8"),
        (".9", "syntax", "`.9` at position 8"),
        ("[1", "syntax", "JSON from position 8 on does not end"),
        ("[1e400]", "syntax", "number out of range"),
    ] {
        let (at, stage, param, message) = refused(&format!("top_p(p={value}"));
        assert_eq!((&*at, &*stage, &*param), (code, "top_p", "p"), "{value}: {message}");
        assert!(message.contains(part), "{value}: {message}");
    }
    // The place inside a literal, not where it begins.
    let error = Pipeline::parse("suppress(ids=[1)").expect_err("the list does not end");
    assert_eq!(error.position, Some(15), "{error}");
    let error = Pipeline::parse("suppress(ids=[1,\n2 3])").expect_err("a comma is missing");
    assert_eq!(error.position, Some(19), "{error}");
}

#[test]
fn a_whole_number_too_large_is_out_of_range() {
    for (pipeline, param) in [
        ("top_k(k=4294967296)", "k"),
        ("top_k(k=18446744073709551616)", "k"),
        ("categorical(seed=18446744073709551616)", "seed"),
        ("categorical(seed=-1)", "seed"),
    ] {
        let (code, _, at, message) = refused(pipeline);
        assert_eq!((&*code, &*at), ("out_of_range", param), "{pipeline}: {message}");
        assert!(message.contains("a whole number from 0 to"), "{message}");
    }
    assert_eq!(refused("categorical(seed=1.5)").0, "wrong_type");
}

#[test]
fn nothing_is_given_twice() {
    let (code, stage, param, message) = refused("logit_bias(bias={\"0\": 1, \"0\": 2})");
    assert_eq!((&*code, &*stage, &*param), ("syntax", "logit_bias", "bias"), "{message}");
    assert!(message.contains("the key \"0\" is given twice"), "{message}");
    assert_eq!(refused("logit_bias(bias={\"1\": 1, \"01\": 2})").0, "wrong_type");
    let twice = answer(r#"{"logits": [1], "logits": [2, 3], "pipeline": "greedy()"}"#, &Defaults::default());
    assert_eq!(twice["error"]["code"], "bad_input", "{twice}");
    assert!(
        twice["error"]["message"].as_str().is_some_and(|message| message.contains("logits is given twice"))
    );
}

#[test]
fn temperatures_at_the_ends_of_f64_stay_readable() {
    let tiny = run(&json!({ "logits": [2.0, -1.0, 0.0], "u": 0.5, "pipeline": "temperature(t=5e-324)" }));
    assert_eq!(tiny["stages"][0]["scores"], json!(["inf", "-inf", 0.0]), "JSON has no infinities");
    let (code, stage, _, message) = refused("temperature(t=1e308) | temperature(t=1e308)");
    assert_eq!((&*code, &*stage), ("out_of_range", "temperature"));
    assert!(message.contains("1e308") && message.len() < 100, "{message}");
}
