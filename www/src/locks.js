// What a reader may not change, as the attribute `lock` of the element lists it.

import { LogitscopeError } from "./errors.js";

/**
 * @import { StageArgs } from "./types.js"
 *
 * @typedef {{ stages: StageArgs[], seed: string | null }} Written a pipeline, the sampler last
 */

/** The names in a list of locks. @param {string | null} text */
export function locksOf(text) {
  return (text ?? "").split(/[\s,]+/).filter((name) => name !== "");
}

/**
 * The first lock that a change from one pipeline to another would break; null if none.
 * @param {string[]} locks
 * @param {Written} before
 * @param {Written} after
 */
export function brokenLock(locks, before, after) {
  return locks.find((lock) => reading(lock, before) !== reading(lock, after)) ?? null;
}

/**
 * What must stay under a lock, as a text to compare; locks of other parts read the same always.
 * @param {string} lock
 * @param {Written} pipeline
 */
function reading(lock, { stages, seed }) {
  const sampler = stages.at(-1)?.stage;
  if (lock === "seed") return seed;
  if (lock === "sampler") return sampler;
  const [id, param] = lock.split(".");
  const same = (/** @type {StageArgs} */ { seed: _, ...args }) => args;
  if (lock === "pipeline") return JSON.stringify([stages.map(same), seed]);
  if (lock === "stages") return JSON.stringify(stages.slice(0, -1).map(({ stage }) => stage));
  const own = stages.filter(({ stage }) => stage === id).map(same);
  return JSON.stringify(param ? own.map((args) => args[param]) : own);
}

/** The refusal of such a change. @param {string} lock */
export function lockedError(lock) {
  return new LogitscopeError({
    code: "locked",
    message: `“${lock}” is locked here, and this text would change it.`,
  });
}
