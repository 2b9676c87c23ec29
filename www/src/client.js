// The page's end of the worker: one worker, shared by every element on the page.
//
// A worker that dies is replaced and asked again; requests carry their whole state, so
// nothing is lost (see protocol.js).

import { LogitscopeError } from "./errors.js";

/**
 * @import { Answer, Calls, Choice, Part } from "./protocol.js"
 */

/**
 * @typedef {object} Pending
 * @property {keyof Calls} call
 * @property {any} args
 * @property {(result: any) => void} resolve
 * @property {(error: unknown) => void} reject
 * @property {(part: Part) => void} onPart
 * @property {number} attempts
 */

/** A worker that has not begun within this time is not waited for, in milliseconds. */
const PATIENCE_MS = 150;

/** How often a request may lose its worker before it is given up. */
const ATTEMPTS = 2;

/**
 * The engine as the page sees it. Fires `restart` when a lost worker has been replaced, and
 * `choice` when another one computes elsewhere.
 */
export class Engine extends EventTarget {
  /** @type {Worker | undefined} */
  #worker;
  /** @type {Map<number, Pending>} */
  #pending = new Map();
  #next = 1;
  /** @type {Choice} */
  #choice = "measured";
  /** The texts of tokens, by model. @type {Map<string, Map<number, string>>} */
  #pieces = new Map();
  #wake = () => {};
  /** @type {Promise<void>} */
  #awake = new Promise((resolve) => {
    this.#wake = resolve;
  });

  /**
   * Resolves when the first worker runs, or soon. Browsers start workers through the page's
   * thread, so a page that draws at once makes the engine wait for the drawing.
   */
  get awake() {
    setTimeout(this.#wake, PATIENCE_MS);
    return this.#awake;
  }

  /**
   * The texts of the tokens of a model that were mentioned so far.
   * @param {string} src
   */
  pieces(src) {
    const pieces = this.#pieces.get(src) ?? new Map();
    this.#pieces.set(src, pieces);
    return pieces;
  }

  /**
   * Asks the worker.
   * @template {keyof Calls} C
   * @param {C} call
   * @param {Calls[C]["args"]} args
   * @param {{ signal?: AbortSignal, onPart?: (part: Part) => void }} [options]
   * @returns {Promise<Calls[C]["result"]>}
   */
  ask(call, args, { signal, onPart = () => {} } = {}) {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const id = this.#next++;
      const abort = () => {
        this.#pending.delete(id);
        this.#worker?.postMessage({ cancel: id });
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
      const settled = () => signal?.removeEventListener("abort", abort);
      this.#pending.set(id, {
        call,
        args,
        resolve: (result) => {
          settled();
          resolve(result);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
        onPart: (part) => {
          if (part.pieces) this.#learn(args, part.pieces);
          onPart(part);
        },
        attempts: 1,
      });
      this.#start().postMessage({ id, call, args });
    });
  }

  /**
   * @param {any} args
   * @param {[number, string][]} pieces
   */
  #learn(args, pieces) {
    const known = this.pieces(args.wanted?.src ?? args.src);
    for (const [token, piece] of pieces) known.set(token, piece);
  }

  #start() {
    if (this.#worker) return this.#worker;
    const worker = new Worker(new URL("./worker.js", import.meta.url), {
      type: "module",
      name: this.#choice,
    });
    worker.addEventListener("message", ({ data }) => this.#hear(data));
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      this.#replace(worker, event.message || "the worker could not be started");
    });
    this.#worker = worker;
    return worker;
  }

  /** Where the reader wants it computed. */
  get choice() {
    return this.#choice;
  }

  /**
   * Computes elsewhere from now on, in a fresh worker: the same tokens.
   * @param {Choice} choice
   */
  choose(choice) {
    if (choice === this.#choice) return;
    this.#choice = choice;
    this.#worker?.terminate();
    this.#worker = undefined;
    for (const [id, { call, args }] of this.#pending) this.#start().postMessage({ id, call, args });
    this.dispatchEvent(new Event("choice"));
  }

  /** @param {Answer} answer */
  #hear(answer) {
    if ("awake" in answer) {
      this.#wake();
      return;
    }
    const pending = this.#pending.get(answer.id);
    if (!pending) return;
    if ("part" in answer) {
      pending.onPart(answer.part);
    } else if ("result" in answer) {
      this.#pending.delete(answer.id);
      pending.resolve(answer.result);
    } else if (answer.fatal) {
      if (this.#worker) this.#replace(this.#worker, answer.error.message);
    } else {
      this.#pending.delete(answer.id);
      pending.reject(new LogitscopeError(answer.error));
    }
  }

  /**
   * Ends a worker that cannot be trusted, and asks a fresh one whatever is unanswered.
   * @param {Worker} lost
   * @param {string} why
   */
  #replace(lost, why) {
    if (lost !== this.#worker) return;
    lost.terminate();
    this.#worker = undefined;
    for (const [id, pending] of this.#pending) {
      pending.attempts += 1;
      if (pending.attempts > ATTEMPTS) {
        this.#pending.delete(id);
        pending.reject(
          new LogitscopeError({ code: "engine_lost", message: `The engine stopped: ${why}` }),
        );
      } else {
        this.#start().postMessage({ id, call: pending.call, args: pending.args });
      }
    }
    this.dispatchEvent(new CustomEvent("restart", { detail: why }));
  }
}

/** The one engine of this page. */
export const engine = new Engine();
