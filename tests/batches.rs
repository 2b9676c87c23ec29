//! Samples, beams and drafted tokens on a device: what the CPU finds, in one launch a batch.
#![cfg(all(feature = "gpu", feature = "constraint", not(target_arch = "wasm32")))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::sync::Arc;

use logitscope::{
    gpu::{Account, Choice, Count, Disturbance, Engine, Policy, Share, SystemClock, Tally, block_on},
    model::{self, LanguageModel, Precision},
    session::{Options, Session},
    strategy::{
        beam::BeamSearch,
        speculative::{Source, Speculation},
    },
};
use serde_json::json;

/// An engine that decodes on a device, or nothing where this machine has none.
///
/// With `LOGITSCOPE_GPU=require` there must be one; otherwise a test without is no test.
fn engine() -> Option<Engine> {
    match block_on(Engine::new(Policy::Require, Arc::new(SystemClock::default()))) {
        Ok(mut engine) => {
            engine.set_choice(Choice::Device);
            Some(engine)
        }
        Err(error) => {
            assert_ne!(Policy::from_environment(), Ok(Policy::Require), "{error}");
            None
        }
    }
}

fn model(name: &str) -> Arc<dyn LanguageModel> {
    let path = format!("{}/models/{name}.gguf", env!("CARGO_MANIFEST_DIR"));
    model::open(std::fs::read(path).unwrap(), Precision::Native).unwrap()
}

fn options(pipeline: &str, max_tokens: usize) -> Options {
    serde_json::from_value(json!({
        "prompt": "The dog ran to the house. The dog ran to the",
        "pipeline": pipeline,
        "seed": "5",
        "maxTokens": max_tokens,
    }))
    .unwrap()
}

const PIPELINE: &str = "repetition_penalty(r=1.1) | temperature(t=0.8) | top_k(k=40) | top_p(p=0.9) | \
                        categorical(seed=5)";

/// Rows of the device only.
fn there(rows: usize, launches: usize) -> Count {
    Count { device: rows, launches, cpu: 0 }
}

/// Steps all sessions together until they have ended; a step may be disturbed. How many rows
/// each step had, and where they were computed.
fn run(sessions: &mut [Session], engine: &mut Engine, disturbed: Option<usize>) -> Vec<(usize, Tally)> {
    engine.take_tally();
    let mut tallies = Vec::new();
    loop {
        let running = sessions.iter().filter(|session| session.generation().finish().is_none()).count();
        if running == 0 {
            return tallies;
        }
        if disturbed == Some(tallies.len()) {
            engine.disturb(Disturbance::BeforeMap);
        }
        let mut all: Vec<&mut Session> = sessions.iter_mut().collect();
        let steps = block_on(Session::step_together(&mut all, engine));
        assert_eq!(steps.into_iter().filter(|step| step.as_ref().unwrap().is_some()).count(), running);
        tallies.push((running, engine.take_tally()));
    }
}

/// The accounts of sessions that step alone, on the CPU.
fn alone(mut session: Session) -> String {
    while session.step().unwrap().is_some() {}
    session.digest()
}

#[test]
fn samples_of_a_request_are_one_batch() {
    let Some(mut engine) = engine() else { return };
    let model = model("default");
    let request = |sample| Options { sample, ..options(PIPELINE, 6) };
    let wanted: Vec<String> =
        (0..4).map(|sample| alone(Session::new(Arc::clone(&model), &request(sample)).unwrap())).collect();
    assert_ne!(wanted[0], wanted[1], "samples differ");

    let mut first = Session::new(Arc::clone(&model), &request(0)).unwrap();
    first.step().unwrap();
    // A sample of one that is under way begins after the prompt all the same.
    let fresh = |first: &Session| (0..4).map(|sample| first.another_sample(sample)).collect::<Vec<_>>();
    let mut samples = fresh(&first);
    let tallies = run(&mut samples, &mut engine, None);
    assert_eq!(samples.iter().map(Session::digest).collect::<Vec<_>>(), wanted);
    assert_eq!(tallies.len(), 6);
    for (step, (rows, tally)) in tallies.into_iter().enumerate() {
        assert_eq!(rows, 4);
        assert_eq!(tally.draws, there(4, 1), "step {step}");
        // The prompt's row was known, and went to the device as such.
        assert_eq!(tally.logits, if step == 0 { Count::default() } else { there(4, 1) }, "step {step}");
    }

    let mut samples = fresh(&first);
    let tallies = run(&mut samples, &mut engine, Some(2));
    assert_eq!(samples.iter().map(Session::digest).collect::<Vec<_>>(), wanted);
    assert_eq!(tallies[1].1.draws.cpu, 0);
    assert!(tallies[2..].iter().all(|(_, tally)| tally.draws == Count { cpu: 4, ..Count::default() }));
    assert!(engine.take_events().iter().any(|event| event.contains("the CPU goes on")));
}

#[test]
fn rows_that_need_the_cpu_share_the_launch_of_those_that_do_not() {
    let Some(mut engine) = engine() else { return };
    let model = model("default");
    let sessions = || -> Vec<Session> {
        let mut forced = options(PIPELINE, 4);
        forced.forced.insert(1, logitscope::TokenId(7));
        let constrained =
            Options { constraint: Some(r#"regex("[a-z ]{40}")"#.to_owned()), ..options(PIPELINE, 5) };
        let all = [
            options(PIPELINE, 5),
            options("mirostat2(tau=3, seed=1)", 5),
            forced,
            constrained,
            options("top_k(k=1) | greedy()", 3),
        ];
        all.iter().map(|options| Session::new(Arc::clone(&model), options).unwrap()).collect()
    };
    let wanted: Vec<String> = sessions().into_iter().map(alone).collect();
    let mut together = sessions();
    let tallies = run(&mut together, &mut engine, None);
    assert_eq!(together.iter().map(Session::digest).collect::<Vec<_>>(), wanted);
    let rows: Vec<usize> = tallies.iter().map(|(rows, _)| *rows).collect();
    assert_eq!(rows, [5, 5, 5, 4, 3], "each ends on its own");
    for (step, (rows, tally)) in tallies.into_iter().enumerate() {
        assert_eq!(tally.logits, there(rows, 1), "step {step}");
        // A sampler with a state, a mask and a forced token are the CPU's.
        let cpu = if step == 1 { 3 } else { 2 };
        assert_eq!(tally.draws, Count { device: rows - cpu, launches: 1, cpu }, "step {step}");
    }
}

#[test]
fn the_account_tells_where_every_step_ran() {
    let Some(mut engine) = engine() else { return };
    // The end is held back, after a temperature, for three tokens only.
    let options =
        options("temperature(t=0.8) | min_new_tokens(n=3, eos=[1]) | top_k(k=9) | categorical()", 8);
    let mut session = Session::new(model("default"), &options).unwrap();
    for step in 0..8 {
        // What is said of the step that comes next, before it is taken.
        let planned = block_on(session.places(&mut engine)).unwrap();
        assert_eq!(planned.step, step);
        assert!(planned.stages.iter().all(|place| place.device == (step >= 3)), "{planned:?}");
        block_on(session.step_on(&mut engine)).unwrap();
    }
    let account = engine.take_account();
    assert_eq!(account.tally.draws, Count { device: 5, launches: 5, cpu: 3 });
    let told: Vec<String> = account.to_string().lines().skip(2).map(|line| line.trim().to_owned()).collect();
    let half = |stage: &str, why: &str| {
        format!("{stage}: on the GPU in 5 of 8 rows; on the CPU in 3 of 8 rows, because {why}")
    };
    let own = "it changes scores that a temperature has changed, which only the CPU rounds exactly";
    let before = "min_new_tokens before it runs on the CPU";
    assert_eq!(
        told,
        [
            "logits: on the GPU in 8 of 8 rows".to_owned(),
            half("temperature", "min_new_tokens after it runs on the CPU"),
            half("min_new_tokens", own),
            half("top_k", before),
            half("categorical", before),
        ]
    );
    assert!(engine.take_account().places.is_empty(), "each account begins anew");
}

#[test]
fn a_stage_that_ends_the_text_is_the_last_of_its_row() {
    let Some(mut engine) = engine() else { return };
    let model = model("default");
    // What is forced at the fourth step was suppressed: a row that comes no further.
    let pipeline = "suppress(ids=[7]) | forced_tokens(at={\"3\": 7}) | top_k(k=9) | categorical(seed=5)";
    let options = options(pipeline, 8);
    let wanted = [("suppress", 4), ("forced_tokens", 4), ("top_k", 3), ("categorical", 3)];
    let stages = |account: Account| {
        let mut rows: Vec<(&str, usize)> =
            account.places.iter().map(|share| (share.place.stage, share.of)).collect();
        rows.retain(|(stage, _)| *stage != "logits");
        rows.dedup();
        rows
    };
    engine.take_account();
    let mut session = Session::new(Arc::clone(&model), &options).unwrap();
    while block_on(session.step_on(&mut engine)).unwrap().is_some() {}
    assert_eq!(session.generation().len(), 3);
    assert_eq!(session.digest(), alone(Session::new(Arc::clone(&model), &options).unwrap()));
    let account = engine.take_account();
    // At the other steps nothing is forced, and the device draws.
    assert_eq!(account.tally.draws, there(3, 3));
    assert_eq!(stages(account), wanted);

    let request = options.request(&*model).unwrap();
    let strategy = "prompt_lookup(ngram=2, tokens=5, rule=rejection)".parse().unwrap();
    let mut speculation = Speculation::new(Arc::clone(&model), None, request, strategy).unwrap();
    while block_on(speculation.step_on(&mut engine)).unwrap() {}
    assert_eq!(speculation.tokens().len(), 3);
    assert_eq!(stages(engine.take_account()), wanted);

    let request = options.request(&*model).unwrap();
    let mut search = BeamSearch::new(model, request, "beam(width=1)".parse().unwrap()).unwrap();
    while block_on(search.step_on(&mut engine)).unwrap() {}
    assert_eq!(stages(engine.take_account()), wanted);
}

#[test]
fn all_beams_are_one_batch() {
    let Some(mut engine) = engine() else { return };
    let model = model("default");
    for (strategy, pipeline, groups, ran) in [
        ("beam(width=4)", "repetition_penalty(r=1.2)", 1, &["repetition_penalty"][..]),
        ("beam(width=3)", "top_k(k=50) | categorical(seed=3)", 1, &["top_k", "categorical"]),
        ("diverse_beam(width=4, groups=2)", "", 2, &[]),
    ] {
        let search = || {
            let request = options(pipeline, 6).request(&*model).unwrap();
            BeamSearch::new(Arc::clone(&model), request, strategy.parse().unwrap()).unwrap()
        };
        let mut wanted = search();
        wanted.run().unwrap();
        engine.take_tally();
        let mut on_device = search();
        while block_on(on_device.step_on(&mut engine)).unwrap() {}
        assert_eq!(on_device.record(), wanted.record(), "{strategy}");
        assert_eq!(on_device.finish(), wanted.finish());
        let record = wanted.record();
        assert!(record.rows > record.passes, "{strategy} had several beams");
        // Groups begin at the same row.
        let rows = record.rows - (groups - 1);
        let account = engine.take_account();
        // Each row is drawn from by noise on every score, or not at all.
        let cpu = if ran.contains(&"categorical") { record.rows } else { 0 };
        let draws = Count { cpu, ..Count::default() };
        let tally = Tally { logits: there(rows, record.passes), draws };
        assert_eq!(account.tally, tally, "{strategy}");
        let [logits, stages @ ..] = &account.places[..] else { panic!("{strategy} has an account") };
        assert!(logits.place.device && logits.rows == rows, "{logits:?}");
        // A sampler that is left out chooses nothing.
        assert_eq!(stages.iter().map(|share| share.place.stage).collect::<Vec<_>>(), ran);
        for stage in stages {
            assert!(stage.place.why.contains("score of every token"), "{stage:?}");
            assert_eq!((stage.rows, stage.of), (record.rows, record.rows), "{stage:?}");
        }
    }
    let search = || {
        let request = options("", 6).request(&*model).unwrap();
        BeamSearch::new(Arc::clone(&model), request, "beam(width=4)".parse().unwrap()).unwrap()
    };
    let (mut wanted, mut on_device) = (search(), search());
    wanted.run().unwrap();
    for step in 0.. {
        if step == 2 {
            engine.disturb(Disturbance::BeforeMap);
        }
        if !block_on(on_device.step_on(&mut engine)).unwrap() {
            break;
        }
    }
    assert_eq!(on_device.record(), wanted.record());
    let tally = engine.take_tally().logits;
    assert_eq!(tally.device, 1 + 4, "two passes were the device's");
    assert_eq!(tally.device + tally.cpu, wanted.record().rows);
}

#[test]
fn a_block_is_judged_in_one_launch() {
    let Some(mut engine) = engine() else { return };
    // A model that drafts for itself is often right.
    let model = model("default");
    let speculation = |strategy: &str, pipeline: &str, tokens: usize| {
        let request = options(pipeline, tokens).request(&*model).unwrap();
        let options = strategy.parse().unwrap();
        Speculation::new(Arc::clone(&model), Some(Arc::clone(&model)), request, options).unwrap()
    };
    let (mut accepted, mut rejected, mut uncertain, mut unreached) = (0, 0, 0, 0);
    for strategy in [
        r#"speculative(draft="draft", tokens=4, rule=match)"#,
        "prompt_lookup(ngram=2, tokens=5, rule=match)",
        r#"speculative(draft="draft", tokens=3, rule=rejection)"#,
    ] {
        for pipeline in
            [PIPELINE, "top_n_sigma(n=1) | temperature(t=0.6) | greedy()", "min_p(m=0.1) | top_h()"]
        {
            let context = format!("{strategy}, {pipeline}");
            let mut wanted = speculation(strategy, pipeline, 16);
            wanted.run().unwrap();
            let mut on_device = speculation(strategy, pipeline, 16);
            engine.take_tally();
            let (mut rows, mut reached, mut drafts) = (0, 0, 0);
            while block_on(on_device.step_on(&mut engine)).unwrap() {}
            for block in wanted.blocks() {
                rows += block.drafted.len() + 1;
                // What a block tells of itself: after its end nothing is looked at.
                let judged = block.drafted.iter().filter(|drafted| drafted.accepted.is_some()).count();
                let bonus = block.next.as_ref().is_some_and(|next| next.source == Source::Bonus);
                reached += judged + usize::from(bonus);
                drafts += block.draft_passes;
                accepted += block.accepted;
                rejected += block.drafted.len() - block.accepted;
                let drawn_there = strategy.contains("match") && pipeline == PIPELINE;
                let taken = block.drafted.iter().take_while(|drafted| drafted.accepted == Some(true));
                uncertain += taken.filter(|drafted| drawn_there && drafted.p < 1.0).count();
            }
            for (block, wanted) in on_device.blocks().iter().zip(wanted.blocks()) {
                assert_eq!(block, wanted, "{context}");
            }
            assert_eq!(on_device.blocks().len(), wanted.blocks().len());
            assert_eq!(on_device.tokens(), wanted.tokens(), "{context}");
            assert_eq!(on_device.logprob(), wanted.logprob(), "{context}");
            let blocks = wanted.blocks().len();
            let account = engine.take_account();
            let (tally, places) = (account.tally, account.places);
            let count = |count: Count| Count { cpu: count.cpu + drafts, ..count };
            assert_eq!(tally.logits, count(there(rows, blocks)), "{context}");
            let why = if strategy.contains("rejection") {
                "rejection rule"
            } else if pipeline.contains("top_h") {
                "top_h"
            } else {
                ""
            };
            let on_device = why.is_empty();
            let draws =
                if on_device { there(rows, blocks) } else { Count { cpu: reached, ..Count::default() } };
            assert_eq!(tally.draws, count(draws), "{context}");
            unreached += if on_device { 0 } else { rows - reached };
            // The stages, each with the target's rows and the draft's.
            let parsed = logitscope::Pipeline::parse(pipeline).unwrap();
            let stages = parsed.stages().iter().map(|stage| &stage.args).chain([parsed.sampler_args()]);
            let (mut wanted, mut found) = (Vec::new(), Vec::new());
            for args in stages {
                wanted.push((args.spec.id, on_device, if on_device { rows } else { reached }));
                wanted.extend((drafts > 0).then_some((args.spec.id, false, drafts)));
            }
            for Share { place, rows, .. } in places.iter().filter(|share| share.place.stage != "logits") {
                let of_the_draft = place.why.contains("draft model");
                assert!(of_the_draft || place.device == on_device, "{place:?}");
                let own = if place.stage == why { "no GPU version" } else { why };
                assert!(of_the_draft || place.why.contains(own), "{place:?}");
                found.push((place.stage, place.device, *rows));
            }
            // Both parts of a stage may be the CPU's; which came first does not matter.
            wanted.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, wanted, "{context}");
        }
    }
    assert!(accepted > 10 && rejected > 10, "{accepted} accepted, {rejected} not");
    assert!(unreached > 10, "{unreached} rows of the CPU's were after the end of their block");
    assert!(uncertain > 3, "the probability of {uncertain} tokens was the device's and not 1");

    let strategy = "prompt_lookup(ngram=2, tokens=5, rule=match)";
    let (mut wanted, mut on_device) =
        (speculation(strategy, PIPELINE, 16), speculation(strategy, PIPELINE, 16));
    wanted.run().unwrap();
    for block in 0.. {
        if block == 1 {
            engine.disturb(Disturbance::BeforeSubmit);
        }
        if !block_on(on_device.step_on(&mut engine)).unwrap() {
            break;
        }
    }
    assert_eq!(on_device.blocks(), wanted.blocks());
    let tally = engine.take_tally();
    assert_eq!(tally.draws.launches, 1, "one block was the device's");
    assert!(tally.draws.device > 0 && tally.draws.cpu > 0, "{tally:?}");
}
