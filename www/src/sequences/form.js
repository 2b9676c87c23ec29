// A form of a tab: what stands in it, what may stand in it, and how its last work went.

import { count } from "../format.js";
import { numberIn } from "../numbers.js";

/** @import { ErrorData } from "../types.js" */

/** @typedef {Record<string, string>} Fields what stands in a form, as written */

/**
 * What a field takes.
 * @typedef {object} Rule
 * @property {string} wanted in words
 * @property {(value: string) => boolean} takes
 * @property {{ min?: number, max?: number, step: number }} [number] if it is one
 */

/**
 * A whole number, written in digits.
 * @param {number} min
 * @param {number} max
 * @returns {Rule}
 */
export function whole(min, max) {
  return {
    wanted: `a whole number from ${count(min)} to ${count(max)}`,
    takes: (value) => /^\d+$/.test(value) && Number(value) >= min && Number(value) <= max,
    number: { min, max, step: 1 },
  };
}

/** Any number. @type {Rule} */
export const real = {
  wanted: "a number",
  takes: (value) => typeof numberIn(value) === "number",
  number: { step: 0.1 },
};

/**
 * One of the words that a field offers.
 * @param {Record<string, unknown>} options
 * @returns {Rule}
 */
export function word(options) {
  return {
    wanted: `one of ${Object.keys(options).join(", ")}`,
    takes: (value) => Object.hasOwn(options, value),
  };
}

/** As many tokens as a reader may ask for; a model's context is shorter. */
export const MOST_TOKENS = 100_000;

let forms = 0;

/** See the module. */
export class Form {
  /** Tells it from other forms, so that what is said of a field has an address. */
  number = forms++;
  /** @type {ErrorData | null} */
  error = null;
  /** Whether the reader stopped the last work. */
  cancelled = false;
  #clear;
  #first;

  /**
   * @param {Fields} fields
   * @param {Record<string, Rule>} rules of the fields that have one
   * @param {() => void} clear forgets what was found, so that it never stands under other work
   */
  constructor(fields, rules, clear) {
    this.fields = fields;
    this.#first = { ...fields };
    this.rules = rules;
    this.#clear = clear;
  }

  /** What is wrong with a field, or nothing. @param {string} name */
  fault(name) {
    const rule = this.rules[name];
    return !rule || rule.takes((this.fields[name] ?? "").trim()) ? "" : `Needs ${rule.wanted}.`;
  }

  /** The fields that cannot be as they are. */
  get faulty() {
    return Object.keys(this.rules).filter((name) => this.fault(name) !== "");
  }

  /** What a reader has written: the fields that are not as they were at first. */
  get written() {
    const changed = Object.entries(this.fields).filter(
      ([name, text]) => text !== this.#first[name],
    );
    return Object.fromEntries(changed);
  }

  /** Stands so at first. @param {Fields} fields */
  give(fields) {
    Object.assign(this.fields, fields);
    this.#first = { ...this.fields };
  }

  /**
   * Fills the fields that a link names, and says which of its words mean nothing here. A number
   * that cannot be stands in its field, where its fault is said.
   * @param {Fields} written
   */
  take(written) {
    for (const [name, text] of Object.entries(written)) {
      const rule = this.rules[name];
      if (Object.hasOwn(this.fields, name) && (!rule || rule.number || rule.takes(text))) {
        this.fields[name] = text;
      } else {
        this.refuse(`The link has a field “q.${name}” of “${text}”, which means nothing here.`);
      }
    }
  }

  /** Says what is wrong with a link. @param {string} message */
  refuse(message) {
    this.error = { code: "bad_input", message };
  }

  /** Forgets how the last work went, and what it found. */
  begin() {
    this.error = null;
    this.cancelled = false;
    this.#clear();
  }
}
