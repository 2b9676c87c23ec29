// The Sequences area's end of its worker.

import { LogitscopeError } from "../errors.js";

/** @import { Answer, Calls } from "./protocol.js" */

/** Asks the worker, which starts with the first question. */
export class Client {
  /** @type {Worker | undefined} */
  #worker;
  /** @type {Map<number, { resolve: (result: any) => void, reject: (error: unknown) => void, onPart: (part: any) => void }>} */
  #pending = new Map();
  #next = 1;
  #learn;

  /** @param {(pieces: [number, string][]) => void} learn hears the texts of tokens */
  constructor(learn) {
    this.#learn = learn;
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
    if (this.#worker) return this.#worker;
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
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
    this.#learn(answer.pieces);
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
