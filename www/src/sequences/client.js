// The Sequences area's end of its worker.

import { LogitscopeError } from "../errors.js";

/**
 * @import { Choice } from "../protocol.js"
 * @import { Answer, Calls } from "./protocol.js"
 *
 * @typedef {object} Owner
 * @property {(pieces: [number, string][]) => void} learn hears the texts of tokens
 * @property {() => Choice} choice where the reader wants it computed
 */

/** Asks the worker, which starts with the first question. */
export class Client {
  /** @type {Worker | undefined} */
  #worker;
  /** @type {Map<number, { resolve: (result: any) => void, reject: (error: unknown) => void, onPart: (part: any) => void }>} */
  #pending = new Map();
  #next = 1;
  #owner;
  /** What the worker was started with. @type {Choice} */
  #choice = "measured";

  /** @param {Owner} owner */
  constructor(owner) {
    this.#owner = owner;
  }

  /**
   * @template {keyof Calls} C
   * @param {C} call
   * @param {Calls[C]["args"]} args
   * @param {(part: Calls[C]["result"]) => void} [onPart] hears of a result that is not all yet
   * @returns {Promise<Calls[C]["result"]>}
   */
  ask(call, args, onPart = () => {}) {
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#pending.set(id, { resolve, reject, onPart });
      this.#start().postMessage({ id, call, args });
    });
  }

  /** Ends whatever runs. The next question starts another worker. */
  stop() {
    this.#lose(new DOMException("it was stopped", "AbortError"));
  }

  #start() {
    const choice = this.#owner.choice();
    // Another choice is for another thread, once this one has done what it was asked.
    if (this.#worker && (choice === this.#choice || this.#pending.size > 1)) return this.#worker;
    this.#worker?.terminate();
    this.#choice = choice;
    const worker = new Worker(new URL("./worker.js", import.meta.url), {
      type: "module",
      name: choice,
    });
    worker.addEventListener("message", ({ data }) => this.#hear(data));
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      const message = event.message || "the worker could not be started";
      this.#lose(new LogitscopeError({ code: "engine_lost", message }));
    });
    this.#worker = worker;
    return worker;
  }

  /** @param {Answer} answer */
  #hear(answer) {
    const pending = this.#pending.get(answer.id);
    if (!pending) return;
    if ("error" in answer && answer.fatal) {
      const message = `The engine stopped, perhaps for want of memory: ${answer.error.message}. The next work starts another.`;
      this.#lose(new LogitscopeError({ code: "engine_lost", message }));
      return;
    }
    if ("error" in answer) {
      this.#pending.delete(answer.id);
      pending.reject(new LogitscopeError(answer.error));
      return;
    }
    this.#owner.learn(answer.pieces);
    if ("part" in answer) {
      pending.onPart(answer.part);
      return;
    }
    this.#pending.delete(answer.id);
    pending.resolve(answer.result);
  }

  /** @param {unknown} why */
  #lose(why) {
    this.#worker?.terminate();
    this.#worker = undefined;
    const lost = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of lost) reject(why);
  }
}
