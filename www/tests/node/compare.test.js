import assert from "node:assert/strict";
import { test } from "node:test";
import { Comparison, death } from "../../src/compare.js";
import { LogitscopeError } from "../../src/errors.js";

/** @import { Engine } from "../../src/client.js" */

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

test("a death is found at the stage that removed the token", () => {
  assert.equal(death(top, 3)?.stage.id, "top_k");
  assert.equal(death(top, 2)?.stage.id, "greedy");
  assert.equal(death(top, 1), null);
});

/** A comparison whose engine knows every text but `bad()`. @param {string[][]} asked */
function comparison(asked) {
  const engine = /** @type {Engine} */ (
    /** @type {unknown} */ ({
      /** @param {string} _call @param {{ text: string }} args */
      async ask(_call, { text }) {
        if (text === "bad()") throw new LogitscopeError({ code: "unknown_stage", message: "no" });
        return { notes: [] };
      },
    })
  );
  const source = {
    pipeline: () => "a() | b() | greedy()",
    about: () => 1,
    /** @param {string[]} texts */
    async ask(texts) {
      asked.push(texts);
      const sides = texts.map((pipeline) => ({
        pipeline,
        trace: { stages: [] },
        kept: 1,
        taken: null,
        alone: [],
        intersection: 1,
        error: null,
      }));
      const parting = { here: null, there: null, cuts_otherwise: null, words: "They part." };
      const partings = texts.slice(1).map((_, at) => ({
        ...parting,
        side: at + 1,
        place: 0,
        only_here: /** @type {[number, null]} */ ([0, null]),
        only_there: /** @type {[number, null]} */ ([0, null]),
      }));
      return { sides, tokens: [], partings };
    },
  };
  return new Comparison(engine, source, ["bad()", "c()"]);
}

test("a text that cannot be read is refused alone, and the others keep their sides", async () => {
  /** @type {string[][]} */
  const asked = [];
  const found = comparison(asked);
  await found.update();
  await found.update();
  assert.deepEqual(asked, [["a() | b() | greedy()", "c()"]]);
  const [own, bad, other] = found.rivals;
  assert.equal(own?.side?.pipeline, "a() | b() | greedy()");
  assert.deepEqual([bad?.error?.code, bad?.side], ["unknown_stage", null]);
  assert.deepEqual([other?.place, other?.side?.pipeline], [1, "c()"]);
  assert.equal(other?.parting?.words, "They part.");
  assert.equal(found.suggestion(), "b() | a() | greedy()");
});
