// What lies beyond the likeliest tokens of the step in view: the whole vocabulary by rank,
// single tokens that a reader follows, with their families, and what the penalties saw.

import { errorData, isAbort } from "./errors.js";

/**
 * @import { Playground } from "./playground.js"
 * @import { Family, Found, PenaltyView, Ranks, StepTrace } from "./types.js"
 */

/** The stages that look at the history. */
export const PENALTIES = [
  "repetition_penalty",
  "frequency_penalty",
  "presence_penalty",
  "dry",
  "no_repeat_ngram",
];

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
  /** The family of the token that was pinned last. @type {Family | null} */
  family = null;
  /** What the penalties did at the step in view. @type {PenaltyView[]} */
  penalties = [];
  /** The way of those, and of others that matter, through the step in view. @type {StepTrace | null} */
  ledger = null;
  /** Tokens found by the last search. @type {Found[] | null} */
  found = null;

  /**
   * @param {Playground} play
   * @param {number[]} [pins]
   */
  constructor(play, pins = []) {
    super();
    this.#play = play;
    this.pins = pins;
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
      const latest = this.pins.at(-1);
      this.family = latest === undefined ? null : await play.family(latest, signal);
      for (const { token, piece } of this.family?.relatives ?? []) play.name(token, piece);
      this.penalties = edits(trace) ? await play.penalties(signal) : [];
      this.plot = { ranks: await play.ranks(play.selected, stage, signal), trace, stage };
      this.#changed();
    } catch (error) {
      if (isAbort(error)) return;
      // Whatever is wrong with the step, the step itself says; here it may be asked again.
      this.#asked = "";
      if (errorData(error).code === "token_out_of_vocabulary") this.#unpinAll(error);
    }
  }

  /** Goes on without tokens that the model does not have, as a link may name. @param {unknown} error */
  #unpinAll(error) {
    this.pins = [];
    this.#play.notice = `${errorData(error).message}; no token is kept in the table.`;
    this.#changed();
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
    // A space may be written as the page shows it.
    const found = text === "" ? null : await this.#play.search(text.replaceAll("␣", " "));
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

/** Whether a stage of the step edits scores by what was written before. @param {StepTrace} trace */
function edits({ stages }) {
  return stages.some(({ id }) => PENALTIES.includes(id));
}

/** Tokens that matter to a step though they may not be among the likeliest. @param {StepTrace} trace */
function outOfView({ stages, draw }) {
  const edited = stages.flatMap(({ edits }) => edits.map(({ token }) => token));
  return draw ? [...edited, draw.token] : edited;
}
