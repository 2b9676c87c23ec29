import assert from "node:assert/strict";
import { test } from "node:test";
import { fromFragment, toFragment } from "../../src/state.js";

const SRC = "https://example.org/default.gguf";
const PIPELINE = 'logit_bias(bias={"15":2.5}) | dry(breakers=["\\n",":"]) | categorical(seed=7)';

test("a state survives its fragment, whatever the prompt contains", () => {
  for (const prompt of ["Once upon a time", "a&b=c#d+e%20f", " ⏎\n\t“ü”漢", ""]) {
    const state = {
      src: SRC,
      prompt,
      pipeline: PIPELINE,
      seed: "18446744073709551615",
      forced: { 3: 415, 5: 0 },
      length: 6,
    };
    const fragment = toFragment(state, SRC);
    const { src, ...others } = state;
    assert.deepEqual(fromFragment(`#${fragment}`), others);
    assert.deepEqual(fromFragment(toFragment(state, "another")), { src, ...others });
  }
});

test("a fragment can be read by a person", () => {
  const state = {
    src: SRC,
    prompt: "Once upon a time",
    pipeline: "temperature(t=0.8) | categorical(seed=7)",
    seed: "7",
    forced: { 3: 415 },
    length: 4,
  };
  assert.equal(
    toFragment(state, SRC),
    "v=1&p=Once+upon+a+time&pl=temperature(t=0.8)+|+categorical(seed=7)&s=7&n=4&f=3:415",
  );
});

test("compared pipelines are part of the state", () => {
  const state = { src: SRC, prompt: "a", pipeline: PIPELINE, seed: "7", forced: {}, length: 0 };
  const compared = ["greedy()", "top_p(p=0.9)"];
  assert.deepEqual(fromFragment(toFragment(state, SRC, { compared })).compared, compared);
});

test("what stands beside a state is part of the link", () => {
  const state = { src: SRC, prompt: "a", pipeline: "greedy()", seed: "7", forced: {}, length: 3 };
  const beside = {
    compared: ["top_p(p=0.9)"],
    selected: 2,
    pins: [12, 0],
    bench: {
      text: "cat 2.0\ndog -inf",
      pipeline: "top_k(k=1) | greedy()",
      multiply: "2",
      add: "-1",
      u: "",
      compared: ["greedy()", "min_p(m=0.1)"],
    },
    sequences: { tab: "stops", fields: { stops: "a\n&q=b", trim: "false", check: "" } },
  };
  const { compared, selected, pins, bench, sequences } = fromFragment(
    toFragment(state, SRC, beside),
  );
  assert.deepEqual({ compared, selected, pins, bench, sequences }, beside);
  // In any order, and without the tab.
  assert.deepEqual(fromFragment("v=1&q.width=8&q=beams").sequences, {
    tab: "beams",
    fields: { width: "8" },
  });
  assert.deepEqual(fromFragment("v=1&q.width=8").sequences, { tab: "", fields: { width: "8" } });
});

test("a browser's escapes are understood", () => {
  const address = new URL('https://example.org/#v=1&p=say+"hi"+<b>&pl=greedy()');
  assert.equal(fromFragment(address.hash).prompt, 'say "hi" <b>');
});

test("what is wrong with a fragment is said", () => {
  /** @type {[string, RegExp][]} */
  const wrong = [
    ["v=2&p=x", /version 2/],
    ["v=1&n=-1", /“n”/],
    ["v=1&f=3", /“f”/],
    ["v=1&k=1,x", /“k”/],
    ["v=1&s=18446744073709551616", /seed/],
    ["v=1&p=%E0%A4%A", /damaged/],
    ["v=1&zz=1", /“zz”/],
  ];
  for (const [fragment, message] of wrong) {
    assert.throws(() => fromFragment(fragment), {
      name: "LogitscopeError",
      code: "bad_input",
      message,
    });
  }
  assert.deepEqual(fromFragment("#chapter-2"), {});
});
