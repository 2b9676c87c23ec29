// The state of a playground, and how it is written into the page's address.
//
// The fragment is versioned and made to be read and edited by people:
// `#v=1&p=Once+upon+a+time&pl=temperature(t=0.8)+|+categorical(seed=7)&s=7&n=4&f=3:415`.

import { LogitscopeError } from "./errors.js";

/**
 * @import { Written } from "./by-hand.js"
 * @import { Wanted } from "./protocol.js"
 */

/**
 * @typedef {object} Beside what else a link shows beside a state
 * @property {string[]} [compared] other pipelines beside the state's
 * @property {number} [selected] the step in view, if it is not the first
 * @property {number[]} [pins] tokens kept in the table
 * @property {Partial<Written>} [bench] what stands on the bench
 * @property {Settings} [sequences] how the Sequences area stands, if it is open
 *
 * @typedef {object} Settings
 * @property {string} tab
 * @property {Record<string, string>} fields what is written in it, but for what stands there at first
 */

/** The fields of the bench, apart from its pipelines. @type {Record<string, Exclude<keyof Written, "compared">>} */
const BENCH = { h: "text", hp: "pipeline", hm: "multiply", ha: "add", hu: "u" };

/** The version of the fragment. Older ones must stay readable. */
const VERSION = "1";

/**
 * The state as a fragment, without the `#`.
 * @param {Wanted} state
 * @param {string} defaultSrc the model that need not be named
 * @param {Beside} [beside]
 */
export function toFragment(state, defaultSrc, beside = {}) {
  /** @type {[string, string][]} */
  const fields = [["v", VERSION]];
  // An object in the memory of one page has no address that a link could name.
  if (state.src !== defaultSrc && !state.src.startsWith("blob:")) fields.push(["m", state.src]);
  fields.push(["p", state.prompt], ["pl", state.pipeline]);
  if (state.seed !== null) fields.push(["s", state.seed]);
  if (state.length > 0) fields.push(["n", String(state.length)]);
  const forced = Object.entries(state.forced).map(([position, token]) => `${position}:${token}`);
  if (forced.length > 0) fields.push(["f", forced.join(",")]);
  if (state.slide) fields.push(["w", "slide"]);
  if (beside.selected) fields.push(["at", String(beside.selected)]);
  if (beside.pins?.length) fields.push(["k", beside.pins.join(",")]);
  beside.compared?.forEach((text, index) => {
    fields.push([`c${index + 1}`, text]);
  });
  for (const [name, field] of Object.entries(BENCH)) {
    const value = beside.bench?.[field];
    if (value !== undefined) fields.push([name, value]);
  }
  beside.bench?.compared?.forEach((text, index) => {
    fields.push([`h${index + 1}`, text]);
  });
  if (beside.sequences) fields.push(["q", beside.sequences.tab]);
  for (const [name, value] of Object.entries(beside.sequences?.fields ?? {})) {
    fields.push([`q.${name}`, value]);
  }
  return fields.map(([name, value]) => `${name}=${escaped(value)}`).join("&");
}

/**
 * What a fragment says; fields that it does not mention are absent.
 * @param {string} fragment with or without the `#`
 * @returns {Partial<Wanted> & Beside}
 */
export function fromFragment(fragment) {
  const text = fragment.replace(/^#/, "");
  if (text === "") return {};
  /** @type {Map<string, string>} */
  const fields = new Map();
  for (const field of text.split("&")) {
    const [name = "", ...rest] = field.split("=");
    fields.set(name, unescaped(name, rest.join("=")));
  }
  const version = fields.get("v");
  if (version !== VERSION) {
    // Any anchor may stand behind the `#`; only what claims to be ours is held to it.
    if (version === undefined) return {};
    throw refusal("v", `This link is of version ${version}; this page reads version ${VERSION}.`);
  }
  /** @type {ReturnType<typeof fromFragment>} */
  const state = {};
  for (const [name, value] of fields) {
    if (name === "m") state.src = value;
    else if (name === "p") state.prompt = value;
    else if (name === "pl") state.pipeline = value;
    else if (name === "s") state.seed = seed(value);
    else if (name === "n") state.length = count(name, value);
    else if (name === "f") state.forced = forcedTokens(value);
    else if (name === "at") state.selected = count(name, value);
    else if (name === "k") state.pins = value.split(",").map((token) => count(name, token));
    else if (name === "w" && value === "slide") state.slide = true;
    else if (/^c[1-3]$/.test(name)) state.compared = [...(state.compared ?? []), value];
    else if (Object.hasOwn(BENCH, name))
      state.bench = { ...state.bench, [BENCH[name] ?? ""]: value };
    else if (/^h[1-3]$/.test(name))
      state.bench = { ...state.bench, compared: [...(state.bench?.compared ?? []), value] };
    else if (name === "q") state.sequences = { fields: {}, ...state.sequences, tab: value };
    else if (name.startsWith("q.")) {
      const { tab = "", fields = {} } = state.sequences ?? {};
      state.sequences = { tab, fields: { ...fields, [name.slice(2)]: value } };
    } else if (name !== "v")
      throw refusal(name, `The link has a field “${name}”, which means nothing.`);
  }
  return state;
}

/** @param {string} value */
function escaped(value) {
  return value.replace(/[%&#+\p{Cc}]/gu, encodeURIComponent).replaceAll(" ", "+");
}

/**
 * @param {string} name
 * @param {string} value
 */
function unescaped(name, value) {
  try {
    return decodeURIComponent(value.replaceAll("+", " "));
  } catch {
    throw refusal(name, `The field “${name}” of the link is damaged: ${value}`);
  }
}

/**
 * @param {string} name
 * @param {string} value
 */
function count(name, value) {
  if (!/^\d{1,9}$/.test(value)) {
    throw refusal(
      name,
      `The field “${name}” of the link is “${value}”, but must be a whole number.`,
    );
  }
  return Number(value);
}

/** @param {string} value */
export function seed(value) {
  if (!/^\d{1,20}$/.test(value) || BigInt(value) >= 1n << 64n) {
    throw refusal(
      "s",
      `The seed is “${value}”, but must be a whole number from 0 to 18446744073709551615.`,
    );
  }
  return BigInt(value).toString();
}

/** @param {string} value */
function forcedTokens(value) {
  /** @type {Record<number, number>} */
  const forced = {};
  for (const pair of value.split(",")) {
    const [position = "", token = ""] = pair.split(":");
    forced[count("f", position)] = count("f", token);
  }
  return forced;
}

/**
 * @param {string} param
 * @param {string} message
 */
function refusal(param, message) {
  return new LogitscopeError({ code: "bad_input", param, message });
}
