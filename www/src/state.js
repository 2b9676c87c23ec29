// The state of a playground, and how it is written into the page's address.
//
// The fragment is versioned and made to be read and edited by people:
// `#v=1&p=Once+upon+a+time&pl=temperature(t=0.8)+|+categorical(seed=7)&s=7&n=4&f=3:415`.

import { LogitscopeError } from "./errors.js";

/** @import { Wanted } from "./protocol.js" */

/** The version of the fragment. Older ones must stay readable. */
const VERSION = "1";

/**
 * The state as a fragment, without the `#`.
 * @param {Wanted} state
 * @param {string} defaultSrc the model that need not be named
 * @param {string[]} [compared] other pipelines beside the state's
 */
export function toFragment(state, defaultSrc, compared = []) {
  /** @type {[string, string][]} */
  const fields = [["v", VERSION]];
  // An object in the memory of one page has no address that a link could name.
  if (state.src !== defaultSrc && !state.src.startsWith("blob:")) fields.push(["m", state.src]);
  fields.push(["p", state.prompt], ["pl", state.pipeline]);
  if (state.seed !== null) fields.push(["s", state.seed]);
  if (state.length > 0) fields.push(["n", String(state.length)]);
  const forced = Object.entries(state.forced).map(([position, token]) => `${position}:${token}`);
  if (forced.length > 0) fields.push(["f", forced.join(",")]);
  compared.forEach((text, index) => {
    fields.push([`c${index + 1}`, text]);
  });
  return fields.map(([name, value]) => `${name}=${escaped(value)}`).join("&");
}

/**
 * What a fragment says; fields that it does not mention are absent.
 * @param {string} fragment with or without the `#`
 * @returns {Partial<Wanted> & { compared?: string[] }}
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
    else if (/^c[1-3]$/.test(name)) state.compared = [...(state.compared ?? []), value];
    else if (name !== "v")
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
