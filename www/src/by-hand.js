// The bench where a reader works a row of logits by hand, with the engine beside.

import { errorData, isAbort } from "./errors.js";
import { parseRow } from "./rows.js";

/**
 * @import { Engine } from "./client.js"
 * @import { ErrorData, Row, StageTrace, Worksheet } from "./types.js"
 */

/**
 * @typedef {object} Questions what a reader predicts before the numbers are shown
 * @property {number[]} survivors the tokens that live to the draw: the key
 * @property {{ stage: StageTrace, row: Row } | null} chance whose probability is asked for
 */

/** How far a predicted probability may lie from the right one: half of two decimals' last. */
const TOLERANCE = 0.005;

/** See the module. Fires `change`, and `answer` with a typed detail. */
export class ByHand extends EventTarget {
  #engine;
  #run = new AbortController();

  text = "cat 2.0\ndog 1.0\nfish 0.0";
  pipeline = "temperature(t=2) | top_p(p=0.8) | categorical()";
  multiply = "1";
  add = "0";
  u = "0.5";
  /** @type {string[]} */
  labels = [];
  /** @type {Worksheet | null} */
  sheet = null;
  /** @type {ErrorData | null} */
  error = null;
  /** Whether the reader predicts before seeing. */
  predicting = false;
  revealed = false;
  /** @type {Set<number>} */
  guessed = new Set();
  guess = "";

  /** @param {Engine} engine */
  constructor(engine) {
    super();
    this.#engine = engine;
  }

  /**
   * Changes what is to be worked out.
   * @param {Partial<Pick<ByHand, "text" | "pipeline" | "multiply" | "add" | "u">>} change
   */
  async set(change) {
    Object.assign(this, change);
    this.revealed = false;
    this.guessed = new Set();
    this.guess = "";
    await this.work();
  }

  /** Works the row out. */
  async work() {
    this.#run.abort();
    this.#run = new AbortController();
    try {
      const { labels, logits } = parseRow(this.text);
      const request = {
        logits,
        multiply: Number(this.multiply),
        add: Number(this.add),
        pipeline: this.pipeline,
        u: this.u.trim() === "" ? null : Number(this.u),
      };
      const { signal } = this.#run;
      this.sheet = await this.#engine.ask("worksheet", { request }, { signal });
      this.labels = labels;
      this.error = null;
    } catch (error) {
      if (isAbort(error)) return;
      this.error = errorData(error);
    }
    this.#changed();
  }

  /** Hides the numbers until the reader has predicted, or shows them. @param {boolean} on */
  predict(on) {
    this.predicting = on;
    this.revealed = false;
    this.#changed();
  }

  /** @param {number} token @param {boolean} on */
  guessSurvivor(token, on) {
    if (on) this.guessed.add(token);
    else this.guessed.delete(token);
  }

  /** Shows the numbers, and says how the predictions did. */
  reveal() {
    this.revealed = true;
    for (const mark of this.marks())
      this.dispatchEvent(new CustomEvent("answer", { detail: mark }));
    this.#changed();
  }

  /** What is asked about the present sheet. @returns {Questions | null} */
  questions() {
    if (!this.sheet) return null;
    const { stages } = this.sheet.trace;
    const survivors = (stages.at(-1)?.rows ?? [])
      .filter((row) => row.alive)
      .map((row) => row.token);
    const second = stages[0]?.rows[1]?.token;
    // The last stage before the sampler in which the second token still lives.
    const asked = stages
      .slice(0, -1)
      .flatMap((stage) =>
        stage.rows
          .filter((row) => row.alive && row.token === second)
          .map((row) => ({ stage, row })),
      );
    return { survivors, chance: asked.at(-1) ?? null };
  }

  /** How the predictions did, with the engine's numbers as the key. */
  marks() {
    const questions = this.questions();
    if (!questions) return [];
    const { survivors, chance } = questions;
    const guessed = [...this.guessed].sort((a, b) => a - b);
    const expected = [...survivors].sort((a, b) => a - b);
    /** @type {{ question: string, answer: unknown, expected: unknown, correct: boolean }[]} */
    const marks = [
      {
        question: "survivors",
        answer: guessed,
        expected,
        correct:
          guessed.length === expected.length &&
          guessed.every((token, at) => token === expected[at]),
      },
    ];
    if (chance) {
      const { probability } = chance.row;
      const answer = this.guess.trim() === "" ? null : Number(this.guess);
      const correct = answer !== null && Math.abs(answer - probability) <= TOLERANCE;
      marks.push({ question: "probability", answer, expected: probability, correct });
    }
    return marks;
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
