import assert from "node:assert/strict";
import { test } from "node:test";
import { death, parting } from "../../src/compare.js";

/**
 * A stage in which some tokens live and others were just removed.
 * @param {string} id
 * @param {number[]} alive
 * @param {number[]} [removed]
 */
function stage(id, alive, removed = []) {
  const row = (/** @type {number} */ token, /** @type {boolean} */ lives) => ({
    token,
    rank: 0,
    score: 0,
    probability: 0,
    mass_before: 0,
    alive: lives,
  });
  return {
    stage: `${id}()`,
    id,
    label: id,
    alive_before: alive.length + removed.length,
    alive: alive.length,
    removed_mass: 0,
    entropy: 0,
    temperature: 1,
    rest_mass: 0,
    edits: [],
    rows: [...alive.map((token) => row(token, true)), ...removed.map((token) => row(token, false))],
  };
}

const raw = stage("raw", [1, 2, 3]);
const top = { stages: [raw, stage("top_k", [1, 2], [3]), stage("greedy", [1], [2])] };
const min = { stages: [raw, stage("min_p", [1], [2, 3]), stage("greedy", [1])] };

test("two traces part at the first stage that one has and the other has not", () => {
  const found = parting(top, min);
  assert.equal(found?.a.id, "top_k");
  assert.equal(found?.b.id, "min_p");
  assert.equal(parting(top, top), null);
});

test("only a token whose death is in view counts as removed", () => {
  const narrow = { stages: [raw, stage("top_k", [1, 2]), stage("categorical", [1, 2])] };
  assert.deepEqual(parting(narrow, min)?.onlyA, [2]);
  assert.deepEqual(parting(min, narrow)?.onlyA, []);
  assert.equal(death(top, 2)?.stage.id, "greedy");
  assert.equal(death(narrow, 3), null);
});
