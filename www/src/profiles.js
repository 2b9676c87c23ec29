// Settings of other frameworks: what they would do here, and how to take a pipeline there.

import { errorData } from "./errors.js";

/**
 * @import { Engine } from "./client.js"
 * @import { Copied, ErrorData, Profile, Translation } from "./types.js"
 */

/** Words for the forms of code. @type {Record<string, string>} */
const TARGETS = {
  transformers: "transformers, Python",
  vllm_python: "vLLM, Python",
  vllm_json: "vLLM, JSON request",
  llama_cpp_flags: "llama.cpp, flags",
  llama_cpp_json: "llama.cpp, JSON request",
};

/** A form of code in words. @param {string} target */
export function targetLabel(target) {
  return TARGETS[target] ?? target;
}

/** See the module. Fires `change`. */
export class Profiles extends EventTarget {
  #engine;
  #asked = 0;

  /** @type {Profile[]} */
  all = [];
  name = "llama.cpp";
  params = "{}";
  /** @type {Translation | null} */
  translation = null;
  /** @type {ErrorData | null} */
  error = null;
  /** The forms of code there are. @type {string[]} */
  targets = [];
  target = "transformers";
  /** @type {Copied | null} */
  copied = null;
  /** The pipeline that `copied` says. */
  #copiedOf = "";

  /** @param {Engine} engine */
  constructor(engine) {
    super();
    this.#engine = engine;
  }

  /** Loads the list, and translates the defaults of the first choice. */
  async open() {
    try {
      const { profiles, targets } = await this.#engine.ask("profiles", {});
      this.all = profiles;
      this.targets = targets;
    } catch (error) {
      this.error = errorData(error);
      this.#changed();
      return;
    }
    await this.set({});
  }

  /**
   * Asks what a framework makes of a request.
   * @param {Partial<Pick<Profiles, "name" | "params">>} change
   */
  async set(change) {
    Object.assign(this, change);
    const asked = ++this.#asked;
    try {
      const { name, params } = this;
      const translation = await this.#engine.ask("translate", { name, params });
      if (asked !== this.#asked) return;
      this.translation = translation;
      this.error = null;
    } catch (error) {
      if (asked !== this.#asked) return;
      this.error = errorData(error);
    }
    this.#changed();
  }

  /**
   * Writes a pipeline as code of another framework.
   * @param {string} pipeline
   * @param {string} [target]
   */
  async copy(pipeline, target = this.target) {
    const wanted = JSON.stringify([pipeline, target]);
    if (wanted === this.#copiedOf) return;
    this.#copiedOf = wanted;
    this.target = target;
    try {
      const copied = await this.#engine.ask("copyAs", { target, pipeline });
      if (wanted !== this.#copiedOf) return;
      this.copied = copied;
      this.error = null;
    } catch (error) {
      this.error = errorData(error);
    }
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
