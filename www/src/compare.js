// Up to four pipelines on the same logits and the same uniform number.
//
// Each is a session of its own in the worker, led to the step in view by forcing the tokens
// of the text; then all have the same row before them, and the same seed gives the same draw.

import { errorData, isAbort } from "./errors.js";

/**
 * @import { Engine } from "./client.js"
 * @import { Playground } from "./playground.js"
 * @import { ErrorData, StageTrace, StepTrace } from "./types.js"
 */

/**
 * @typedef {object} Rival one pipeline and what it made of the step
 * @property {string} text as written
 * @property {StepTrace | null} trace
 * @property {ErrorData | null} error
 */

/** Names of the pipelines; the first is that of the page. */
export const NAMES = ["A", "B", "C", "D"];

/** Compares the pipeline of a playground with others. Fires `change`. */
export class Comparison extends EventTarget {
  #engine;
  #play;
  #run = new AbortController();
  #asked = "";
  #keys = NAMES.map(() => `comparison-${crypto.randomUUID()}`);

  /** The first is the pipeline of the page. @type {Rival[]} */
  rivals = [];

  /**
   * @param {Engine} engine
   * @param {Playground} play
   * @param {string[]} texts the other pipelines
   */
  constructor(engine, play, texts) {
    super();
    this.#engine = engine;
    this.#play = play;
    this.rivals = ["", ...texts].map((text) => ({ text, trace: null, error: null }));
  }

  /** The texts of the other pipelines. */
  get texts() {
    return this.rivals.slice(1).map(({ text }) => text);
  }

  /** Adds a pipeline, in place of the last when there are as many as fit. @param {string} text */
  add(text) {
    if (this.rivals.length === NAMES.length) this.rivals.pop();
    this.rivals.push({ text, trace: null, error: null });
    void this.update();
  }

  /** @param {number} index */
  remove(index) {
    this.rivals.splice(index, 1);
    void this.update();
  }

  /**
   * @param {number} index
   * @param {string} text
   */
  set(index, text) {
    const rival = this.rivals[index];
    if (rival) rival.text = text;
    void this.update();
  }

  /** Asks the engine about the step in view, unless it was asked already. */
  async update() {
    const { state, steps, selected } = this.#play;
    const forced = Object.fromEntries(steps.slice(0, selected).map(({ token }, at) => [at, token]));
    const [own] = this.rivals;
    if (own) own.text = state.pipeline;
    const asked = JSON.stringify([
      state.src,
      state.prompt,
      state.seed,
      forced,
      this.rivals.map((r) => r.text),
    ]);
    if (asked === this.#asked) return;
    this.#asked = asked;
    this.#run.abort();
    this.#run = new AbortController();
    const { signal } = this.#run;
    this.#changed();
    const base = {
      src: state.src,
      prompt: state.prompt,
      seed: state.seed,
      forced,
      length: selected,
    };
    await Promise.all(
      this.rivals.map(async (rival, index) => {
        const wanted = { ...base, pipeline: rival.text };
        const session = this.#keys[index] ?? "";
        try {
          // Whatever the session knows is known; no step needs to be told.
          const known = Number.POSITIVE_INFINITY;
          const settled = await this.#engine.ask("settle", { session, wanted, known }, { signal });
          rival.trace = settled.preview;
          rival.error = null;
        } catch (error) {
          if (isAbort(error)) return;
          rival.error = errorData(error);
        }
        this.#changed();
      }),
    );
  }

  /** Lets the engine forget. */
  close() {
    this.#run.abort();
    for (const session of this.#keys) {
      void this.#engine.ask("release", { session }).catch(() => {});
    }
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

/**
 * @typedef {object} Parting where two pipelines part on the same row
 * @property {StageTrace} a the first stage of the one that the other does not have there
 * @property {StageTrace} b
 * @property {number[]} onlyA tokens in view that only the one keeps to the end
 * @property {number[]} onlyB
 * @property {boolean} sameToken whether both draw the same
 */

/**
 * The first stage where two traces of one row differ, and what came of it; null if nowhere.
 * @param {StepTrace} a
 * @param {StepTrace} b
 * @returns {Parting | null}
 */
export function parting(a, b) {
  const at = a.stages.findIndex((stage, index) => stage.stage !== b.stages[index]?.stage);
  const [first, second] = [a.stages[at], b.stages[at]];
  if (!first || !second) return null;
  const [keptA, keptB] = [kept(a), kept(b)];
  return {
    a: first,
    b: second,
    onlyA: [...keptA].filter((token) => isKnownDead(b, token)),
    onlyB: [...keptB].filter((token) => isKnownDead(a, token)),
    sameToken: a.draw?.token === b.draw?.token,
  };
}

/** Tokens in view that survive to the draw. @param {StepTrace} trace */
function kept(trace) {
  const rows = trace.stages.at(-1)?.rows ?? [];
  return new Set(rows.filter((row) => row.alive).map((row) => row.token));
}

/**
 * Whether the trace shows the death of a token; one that is not in view may live.
 * @param {StepTrace} trace
 * @param {number} token
 */
function isKnownDead(trace, token) {
  return death(trace, token) !== null;
}

/**
 * The stage that removed a token, with its reason; null if none in view did.
 * @param {StepTrace} trace
 * @param {number} token
 */
export function death(trace, token) {
  for (const stage of trace.stages) {
    const row = stage.rows.find((row) => row.token === token);
    if (row && !row.alive) return { stage, row };
  }
  return null;
}
