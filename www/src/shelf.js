// The models a reader may open, and what the browser keeps of them.
//
// It loads a model beside whatever is on the page, so that a failure costs nothing: only when
// the model is there does the element go over to it.

import { errorData, isAbort } from "./errors.js";

/**
 * @import { Engine } from "./client.js"
 * @import { ErrorData, Kept, Progress, Room } from "./types.js"
 */

/** See the module. Fires `change`, and `opened` with the address of a model that is loaded. */
export class Shelf extends EventTarget {
  #engine;
  #run = new AbortController();

  /** What is kept, and how much may be; null until it is known, or where nothing is kept. @type {Room & { models: Kept[] } | null} */
  kept = null;
  /** What is being loaded. @type {{ src: string, progress: Progress | null } | null} */
  loading = null;
  /** @type {ErrorData | null} */
  fault = null;
  /** A model of another host that a link asks for. @type {string | null} */
  asked = null;

  /** @param {Engine} engine */
  constructor(engine) {
    super();
    this.#engine = engine;
  }

  /** Whether a model is kept completely, so that opening it fetches nothing. @param {string} src */
  async has(src) {
    await this.look();
    return this.kept?.models.some((model) => model.src === src && model.sha256 !== null) ?? false;
  }

  /** Looks up what is kept. */
  async look() {
    try {
      this.kept = await this.#engine.ask("kept", {});
    } catch (error) {
      this.fault = errorData(error);
    }
    this.#changed();
  }

  /**
   * Loads a model, and keeps it.
   * @param {string} src
   * @param {{ file?: File, sha256?: string }} [given] the file itself, or the hash it must have
   */
  async open(src, given = {}) {
    this.cancel();
    const run = new AbortController();
    this.#run = run;
    this.fault = null;
    this.loading = { src, progress: null };
    this.#changed();
    try {
      await this.#engine.ask(
        "keep",
        { src, ...given },
        {
          signal: run.signal,
          onPart: ({ progress }) => {
            if (this.#run !== run || !progress) return;
            this.loading = { src, progress };
            this.#changed();
          },
        },
      );
      if (this.#run !== run) return;
      this.dispatchEvent(new CustomEvent("opened", { detail: src }));
    } catch (error) {
      if (!isAbort(error) && this.#run === run) this.fault = errorData(error);
    } finally {
      if (this.#run === run) this.loading = null;
      await this.look();
    }
  }

  /** Opens a file of the reader's own device. @param {File} file */
  openFile(file) {
    return this.open(`file:///${encodeURIComponent(file.name)}`, { file });
  }

  /** Ends loading; what has arrived is kept. */
  cancel() {
    this.#run.abort();
  }

  /** @param {string} src */
  forget(src) {
    return this.#change("forget", { src });
  }

  forgetAll() {
    return this.#change("forgetAll", {});
  }

  /** @param {number} bytes */
  setBudget(bytes) {
    return this.#change("setBudget", { bytes });
  }

  /**
   * @param {"forget" | "forgetAll" | "setBudget"} call
   * @param {any} args
   */
  async #change(call, args) {
    this.fault = null;
    try {
      await this.#engine.ask(call, args);
    } catch (error) {
      this.fault = errorData(error);
    }
    await this.look();
  }

  /** Says that what stands in a control is no address. @param {ErrorData} fault */
  refuse(fault) {
    this.fault = fault;
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
