// Up to four pipelines on the same logits and the same uniform number.
//
// The engine compares (src/compare.rs); here stands what the reader asked for and what came
// of it. Where the logits come from, a step of the text or a row worked by hand, a source says.

import { errorData, isAbort } from "./errors.js";

/**
 * @import { Engine } from "./client.js"
 * @import { Compared, ErrorData, Note, Parting, Side, StepTrace } from "./types.js"
 */

/**
 * @typedef {object} Rival one pipeline and what it made of the row
 * @property {string} text as written
 * @property {Side | null} side
 * @property {number} place among the sides that the engine compared
 * @property {Parting | null} parting where it parts from the first
 * @property {Note[]} notes what is suspicious about its order
 * @property {ErrorData | null} error
 *
 * @typedef {object} Source the logits, the draw, and the pipeline that others are held against
 * @property {() => string} pipeline
 * @property {() => unknown} about tells one row from another
 * @property {(pipelines: string[], signal: AbortSignal) => Promise<import("./types.js").Comparison>} ask
 */

/** Names of the pipelines; the first is that of the source. */
export const NAMES = ["A", "B", "C", "D"];

/** See the module. Fires `change`. */
export class Comparison extends EventTarget {
  #engine;
  #source;
  #run = new AbortController();
  #asked = "";

  /** The first is the pipeline of the source. @type {Rival[]} */
  rivals = [];
  /** The likeliest tokens of every side, with their probabilities. @type {Compared[]} */
  tokens = [];

  /**
   * @param {Engine} engine
   * @param {Source} source
   * @param {string[]} texts the other pipelines
   */
  constructor(engine, source, texts) {
    super();
    this.#engine = engine;
    this.#source = source;
    this.rivals = ["", ...texts].map(rival);
  }

  /** The texts of the other pipelines. */
  get texts() {
    return this.rivals.slice(1).map(({ text }) => text);
  }

  /** A pipeline to compare with: that of the source with its first stages swapped. */
  suggestion() {
    const pipeline = this.#source.pipeline();
    const [first, second, ...others] = pipeline.split(" | ");
    return first && second && others.length > 0 ? [second, first, ...others].join(" | ") : pipeline;
  }

  /** Adds a pipeline, in place of the last when there are as many as fit. @param {string} [text] */
  add(text = this.suggestion()) {
    if (this.rivals.length === NAMES.length) this.rivals.pop();
    this.rivals.push(rival(text));
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

  /** Asks the engine about the row as it is now, unless it was asked already. */
  async update() {
    const [own] = this.rivals;
    if (own) own.text = this.#source.pipeline();
    const asked = JSON.stringify([this.#source.about(), this.rivals.map(({ text }) => text)]);
    if (asked === this.#asked) return;
    this.#asked = asked;
    this.#run.abort();
    this.#run = new AbortController();
    const { signal } = this.#run;
    this.#changed();
    const rivals = [...this.rivals];
    try {
      await Promise.all(rivals.map((rival) => this.#read(rival, signal)));
      const sound = rivals.filter(({ error }) => error === null);
      const found = await this.#source.ask(
        sound.map(({ text }) => text),
        signal,
      );
      sound.forEach((rival, place) => {
        rival.place = place;
        rival.side = found.sides[place] ?? null;
        rival.error = rival.side?.error ?? null;
        rival.parting = found.partings.find(({ side }) => side === place) ?? null;
      });
      this.tokens = found.tokens;
    } catch (error) {
      if (isAbort(error)) return;
      // It may be asked again.
      this.#asked = "";
      if (own) own.error = errorData(error);
    }
    this.#changed();
  }

  /**
   * Holds a text to the grammar of pipelines.
   * @param {Rival} rival
   * @param {AbortSignal} signal
   */
  async #read(rival, signal) {
    try {
      const { notes } = await this.#engine.ask("parse", { text: rival.text }, { signal });
      rival.notes = notes;
      rival.error = null;
    } catch (error) {
      if (isAbort(error)) throw error;
      rival.error = errorData(error);
    }
  }

  /** Asks nothing more. */
  close() {
    this.#run.abort();
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

/** @param {string} text @returns {Rival} */
function rival(text) {
  return { text, side: null, place: 0, parting: null, notes: [], error: null };
}

/**
 * The stage that removed a token, with its reason; null if none did.
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
