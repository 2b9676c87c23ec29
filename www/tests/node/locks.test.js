import assert from "node:assert/strict";
import { test } from "node:test";
import { brokenLock, locksOf } from "../../src/locks.js";

const temperature = { stage: "temperature", t: 1 };
const topP = { stage: "top_p", p: 0.9, min_keep: 1 };
const categorical = { stage: "categorical", seed: "3" };
/** @type {import("../../src/locks.js").Written} */
const before = { seed: "3", stages: [temperature, topP, categorical] };

/** @type {[string, import("../../src/locks.js").Written, string[]][]} */
const changes = [
  [
    "a parameter",
    { ...before, stages: [{ ...temperature, t: 2 }, topP, categorical] },
    ["temperature", "temperature.t"],
  ],
  [
    "another parameter",
    { ...before, stages: [temperature, { ...topP, min_keep: 2 }, categorical] },
    ["top_p", "top_p.min_keep"],
  ],
  ["the order", { ...before, stages: [topP, temperature, categorical] }, ["stages"]],
  [
    "a stage more",
    { ...before, stages: [temperature, topP, { stage: "top_k", k: 2 }, categorical] },
    ["stages", "top_k"],
  ],
  [
    "a stage less",
    { ...before, stages: [topP, categorical] },
    ["stages", "temperature", "temperature.t"],
  ],
  [
    "the sampler",
    { ...before, stages: [temperature, topP, { stage: "greedy" }] },
    ["sampler", "categorical"],
  ],
  ["the seed", { seed: "4", stages: [temperature, topP, { ...categorical, seed: "4" }] }, ["seed"]],
];

test("a lock is broken by what it names, and by nothing else", () => {
  const every = [
    "stages",
    "sampler",
    "seed",
    "temperature",
    "temperature.t",
    "top_p",
    "top_p.p",
    "top_p.min_keep",
    "top_k",
    "categorical",
    "prompt",
    "force",
    "run",
    "model",
  ];
  assert.equal(brokenLock([...every, "pipeline"], before, structuredClone(before)), null);
  for (const [what, after, locks] of changes) {
    for (const lock of every) {
      assert.equal(
        brokenLock([lock], before, after),
        locks.includes(lock) ? lock : null,
        `${lock}: ${what}`,
      );
    }
    assert.equal(brokenLock(["pipeline"], before, after), "pipeline", what);
  }
});

test("locks are listed with blanks or commas", () => {
  assert.deepEqual(locksOf(" prompt, top_p.p\nseed "), ["prompt", "top_p.p", "seed"]);
  assert.deepEqual(locksOf(null), []);
});
