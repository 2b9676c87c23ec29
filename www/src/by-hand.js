// The bench where a reader works a row of logits by hand, with the engine beside.

import { Comparison } from "./compare.js";
import { errorData, isAbort, LogitscopeError } from "./errors.js";
import { numberIn } from "./numbers.js";
import { parseRow } from "./rows.js";

/**
 * @import { Engine } from "./client.js"
 * @import { ByHandRequest } from "./protocol.js"
 * @import { ErrorData, Row, StageTrace, Worksheet } from "./types.js"
 */

/**
 * @typedef {object} Written what stands on the bench, as a link carries it
 * @property {string} text the scores as typed or pasted
 * @property {string} pipeline
 * @property {string} multiply
 * @property {string} add
 * @property {string} u
 * @property {string[]} compared other pipelines on the same row
 *
 * @typedef {object} Chance a probability that is asked for: of a token, after a stage
 * @property {StageTrace} stage
 * @property {Row} row
 *
 * @typedef {object} Questions what a reader predicts before the numbers are shown
 * @property {number[]} survivors the tokens that live to the draw: the key
 * @property {Chance[]} chances
 *
 * @typedef {object} Mark how a prediction did
 * @property {string} question
 * @property {unknown} answer
 * @property {unknown} expected
 * @property {boolean} answered
 * @property {boolean} correct
 */

/** How far a predicted probability may lie from the right one: half of two decimals' last. */
const TOLERANCE = 0.005;

/** See the module. Fires `change`, and `answer` with a typed detail. */
export class ByHand extends EventTarget {
  #engine;
  #run = new AbortController();
  /** @type {ByHandRequest | null} */
  #request = null;

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
  /** What other pipelines make of the row; null while it is closed. @type {Comparison | null} */
  comparison = null;
  /** Whether the reader predicts before seeing. */
  predicting = false;
  revealed = false;
  /** @type {Set<number>} */
  guessed = new Set();
  /** The predicted probabilities, as typed. @type {string[]} */
  guesses = [];

  /**
   * @param {Engine} engine
   * @param {Partial<Written>} [written]
   */
  constructor(engine, { compared, ...written } = {}) {
    super();
    this.#engine = engine;
    Object.assign(this, written);
    if (compared) this.compare(compared);
  }

  /** What stands on the bench. @returns {Written} */
  get written() {
    const { text, pipeline, multiply, add, u } = this;
    return { text, pipeline, multiply, add, u, compared: this.comparison?.texts ?? [] };
  }

  /**
   * Changes what is to be worked out.
   * @param {Partial<Pick<ByHand, "text" | "pipeline" | "multiply" | "add" | "u">>} change
   */
  async set(change) {
    Object.assign(this, change);
    this.#forgetPredictions();
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
        multiply: numberOf("multiply", this.multiply),
        add: numberOf("add", this.add),
        pipeline: this.pipeline,
        u: this.u.trim() === "" ? null : numberOf("u", this.u),
      };
      const { signal } = this.#run;
      this.sheet = await this.#engine.ask("worksheet", { request }, { signal });
      this.labels = labels;
      this.#request = request;
      this.error = null;
      void this.comparison?.update();
    } catch (error) {
      if (isAbort(error)) return;
      this.error = errorData(error);
    }
    this.#changed();
  }

  /** Compares with other pipelines on the same row, or no longer. @param {string[] | null} texts */
  compare(texts) {
    this.comparison?.close();
    this.comparison = texts && new Comparison(this.#engine, this.#row(), texts);
    this.comparison?.addEventListener("change", () => this.#changed());
    if (this.#request) void this.comparison?.update();
    this.#changed();
  }

  /** Compares with one more pipeline. @param {string} text */
  compareWith(text) {
    if (this.comparison) this.comparison.add(text);
    else this.compare([text]);
  }

  /** The row on the bench, for a comparison. @returns {import("./compare.js").Source} */
  #row() {
    return {
      pipeline: () => this.pipeline,
      about: () => [this.#request, this.labels],
      ask: async (pipelines, signal) => {
        const request = this.#request;
        if (!request) throw new DOMException("no row was read yet", "AbortError");
        const args = { request, pipelines, labels: this.labels };
        return await this.#engine.ask("compareByHand", args, { signal });
      },
    };
  }

  /** Asks nothing more. */
  close() {
    this.#run.abort();
    this.comparison?.close();
  }

  /** Hides the numbers until the reader has predicted, or shows them. @param {boolean} on */
  predict(on) {
    this.predicting = on;
    this.#forgetPredictions();
    this.#changed();
  }

  #forgetPredictions() {
    this.revealed = false;
    this.guessed = new Set();
    this.guesses = [];
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
    const chances = stages.slice(0, -1).flatMap((stage) => {
      const row = stage.rows.find((row) => row.alive && row.token === second);
      return row ? [{ stage, row }] : [];
    });
    // After the temperature, and after all stages in which the token still lives.
    const hot = chances.findLast(({ stage }) => stage.id === "temperature");
    const last = chances.at(-1);
    return { survivors, chances: [...new Set([hot, last])].flatMap((chance) => chance ?? []) };
  }

  /** How the predictions did, with the engine's numbers as the key. */
  marks() {
    const questions = this.questions();
    if (!questions) return [];
    const guessed = [...this.guessed].sort((a, b) => a - b);
    const expected = [...questions.survivors].sort((a, b) => a - b);
    /** @type {Mark[]} */
    const marks = [
      {
        question: "survivors",
        answer: guessed,
        expected,
        answered: guessed.length > 0,
        correct:
          guessed.length === expected.length &&
          guessed.every((token, at) => token === expected[at]),
      },
    ];
    questions.chances.forEach(({ row }, at) => {
      const guess = this.guesses[at]?.trim() ?? "";
      const answered = guess !== "";
      const answer = answered ? Number(guess) : null;
      const correct = answer !== null && Math.abs(answer - row.probability) <= TOLERANCE;
      marks.push({ question: "probability", answer, expected: row.probability, answered, correct });
    });
    return marks;
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

/**
 * A number of the bench.
 * @param {string} param
 * @param {string} text as written
 */
function numberOf(param, text) {
  const number = numberIn(text);
  if (typeof number === "number") return number;
  const message = `${param} is “${text}”, but must be a number.`;
  throw new LogitscopeError({ code: "wrong_type", param, message });
}
