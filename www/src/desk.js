// What a reader may open beside a run: a comparison, other frameworks' settings, a bench.

import { ByHand } from "./by-hand.js";
import { Comparison } from "./compare.js";
import { visible } from "./format.js";
import { Profiles } from "./profiles.js";

/**
 * @import { Engine } from "./client.js"
 * @import { Playground } from "./playground.js"
 * @import { Settings } from "./state.js"
 */

/** How many tokens of a step are taken to the bench. */
const BENCH_TOKENS = 8;

/** See the module. Each part is null while it is closed. Fires `change`, and `answer`. */
export class Desk extends EventTarget {
  #engine;
  #play;

  /** @type {Comparison | null} */
  comparison = null;
  /** @type {Profiles | null} */
  profiles = null;
  /** @type {ByHand | null} */
  bench = null;
  /** @type {"closed" | "loading" | "open" | "failed"} */
  sequences = "closed";
  /** Whether a reader has folded it up again; it stays as it is. */
  folded = false;
  /** How it begins: as a link says, or as it stood. @type {Settings | undefined} */
  begins;
  /** How it stands, and what a link says of it until it has come. @type {Settings | undefined} */
  settings;

  /**
   * @param {Engine} engine
   * @param {Playground} play
   * @param {Settings} [begins] how the Sequences area begins
   */
  constructor(engine, play, begins) {
    super();
    this.#engine = engine;
    this.#play = play;
    this.begins = begins;
    this.settings = begins;
  }

  /** Keeps what is open up to date with the playground. */
  follow() {
    void this.comparison?.update();
    void this.profiles?.copy(this.#play.state.pipeline);
  }

  /** Opens a comparison with the pipeline that it suggests, or closes it. @param {boolean} open */
  openComparison(open) {
    this.compare(open ? [] : null);
    this.comparison?.add();
  }

  /** Compares the step in view with other pipelines, or no longer. @param {string[] | null} texts */
  compare(texts) {
    this.comparison?.close();
    this.comparison = texts && new Comparison(this.#engine, this.#rowInView(), texts);
    this.#watch(this.comparison);
    void this.comparison?.update();
  }

  /** Compares with one more pipeline. @param {string} text */
  compareWith(text) {
    if (this.comparison) this.comparison.add(text);
    else this.compare([text]);
  }

  /** The step in view, for a comparison. @returns {import("./compare.js").Source} */
  #rowInView() {
    const play = this.#play;
    return {
      pipeline: () => play.state.pipeline,
      about: () => [play.state, play.selected],
      ask: (pipelines, signal) => play.compare(pipelines, signal),
    };
  }

  /** @param {boolean} open */
  openProfiles(open) {
    this.profiles = open ? new Profiles(this.#engine) : null;
    this.#watch(this.profiles);
    void this.profiles?.open();
    void this.profiles?.copy(this.#play.state.pipeline);
  }

  /**
   * Opens the bench, or closes it.
   * @param {boolean} open
   * @param {Partial<import("./by-hand.js").Written>} [written] what is on it
   */
  openBench(open, written = {}) {
    this.bench?.close();
    this.bench = open ? new ByHand(this.#engine, written) : null;
    this.#watch(this.bench);
    void this.bench?.work();
  }

  /** Loads the Sequences area when it is first opened. @param {boolean} open */
  async openSequences(open) {
    if (this.folded === open) {
      this.folded = !open;
      this.#changed();
    }
    if (!open || this.sequences === "open") return;
    this.sequences = "loading";
    this.#changed();
    try {
      await import("./sequences/element.js");
      this.sequences = "open";
    } catch {
      this.sequences = "failed";
    }
    this.#changed();
  }

  /** Keeps how the Sequences area stands, for a link. @param {Settings} settings */
  keep(settings) {
    this.settings = settings;
    this.#changed();
  }

  /** Takes the likeliest tokens of the step in view to the bench. */
  takeStep() {
    const rows = this.#play.trace?.stages[0]?.rows.slice(0, BENCH_TOKENS) ?? [];
    const scores = rows.map(({ token, score }) => [visible(this.#play.piece(token)), score]);
    void this.bench?.set({ text: JSON.stringify(scores) });
  }

  /** Closes everything. */
  close() {
    this.comparison?.close();
    this.bench?.close();
  }

  /** @param {EventTarget | null} part */
  #watch(part) {
    part?.addEventListener("change", () => this.#changed());
    part?.addEventListener("answer", (event) => {
      const { detail } = /** @type {CustomEvent} */ (event);
      this.dispatchEvent(new CustomEvent("answer", { detail }));
    });
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
