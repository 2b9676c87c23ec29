// What lies beyond the likeliest tokens of the step in view: the whole vocabulary by rank,
// and single tokens that a reader follows.

import { isAbort } from "./errors.js";

/**
 * @import { Playground } from "./playground.js"
 * @import { Found, Ranks, StepTrace } from "./types.js"
 */

/** How long the stages must rest before the whole vocabulary follows a slider. */
const REST_MS = 60;

/** See the module. Fires `change`. */
export class Lookout extends EventTarget {
  #play;
  #run = new AbortController();
  #rest = 0;
  #searches = 0;
  /** What was asked last. */
  #asked = "";

  /** The column whose survivors the rank plot shows; null for the last. @type {number | null} */
  stage = null;
  /** What the rank plot draws, and of which step. @type {{ ranks: Ranks, trace: StepTrace, stage: number } | null} */
  plot = null;
  /** Tokens kept in the table wherever they stand. @type {number[]} */
  pins = [];
  /** The way of those, and of others that matter, through the step in view. @type {StepTrace | null} */
  ledger = null;
  /** Tokens found by the last search. @type {Found[] | null} */
  found = null;

  /** @param {Playground} play */
  constructor(play) {
    super();
    this.#play = play;
  }

  /** Looks as soon as the playground has rested for a moment. */
  lookSoon() {
    clearTimeout(this.#rest);
    this.#rest = window.setTimeout(() => this.look(), REST_MS);
  }

  /** Asks about the step in view, unless that was asked already. */
  async look() {
    const play = this.#play;
    const { trace } = play;
    if (!trace || play.busy !== null) return;
    const last = trace.stages.length - 1;
    const stage = Math.min(this.stage ?? last, last);
    const asked = JSON.stringify([play.state, play.selected, stage, this.pins]);
    if (asked === this.#asked) return;
    this.#asked = asked;
    this.#run.abort();
    this.#run = new AbortController();
    const { signal } = this.#run;
    try {
      const followed = [...new Set([...this.pins, ...outOfView(trace)])];
      this.ledger = followed.length > 0 ? await play.ledger(followed, signal) : null;
      this.plot = { ranks: await play.ranks(play.selected, stage, signal), trace, stage };
      this.#changed();
    } catch (error) {
      // Whatever is wrong with the step, the step itself says; here it may be asked again.
      if (!isAbort(error)) this.#asked = "";
    }
  }

  /** Shows the survivors of a stage. @param {number} column */
  showStage(column) {
    this.stage = column;
    this.#changed();
    void this.look();
  }

  /** Keeps a token in the table, or no longer. @param {number} token */
  pin(token) {
    const kept = this.pins.includes(token);
    this.pins = kept ? this.pins.filter((other) => other !== token) : [...this.pins, token];
    this.#changed();
    void this.look();
  }

  /** Looks for tokens by text or id. @param {string} text */
  async find(text) {
    const search = ++this.#searches;
    const found = text === "" ? null : await this.#play.search(text);
    if (search !== this.#searches) return;
    this.found = found;
    this.#changed();
  }

  /** Asks nothing more. */
  close() {
    clearTimeout(this.#rest);
    this.#run.abort();
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

/** Tokens that matter to a step though they may not be among the likeliest. @param {StepTrace} trace */
function outOfView({ stages, draw }) {
  const edited = stages.flatMap(({ edits }) => edits.map(({ token }) => token));
  return draw ? [...edited, draw.token] : edited;
}
