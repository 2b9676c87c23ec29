// What templates call, where the engine's own does something else: it takes white space away
// whatever characters `strip` names, and its `strftime_now` speaks the reader's language and takes
// the reader's clock. Parsed templates call these functions in their place, by names that no
// template can write.

import { formatDate } from "./dates.js";

const STRIPS = ["strip", "lstrip", "rstrip"];

/**
 * What a template is given besides its messages.
 * @param {Date | undefined} date
 */
export function functions(date) {
  const now = (/** @type {string} */ format) => {
    if (date) return formatDate(date, format);
    throw new Error("it asks for the date of the day, and none is given");
  };
  const strips = STRIPS.map((method) => [
    ` ${method}`,
    (/** @type {string} */ text, /** @type {string} */ characters) =>
      strip(text, characters, method),
  ]);
  return { " strftime_now": now, ...Object.fromEntries(strips) };
}

/** @param {string} text @param {string} characters @param {string} method */
function strip(text, characters, method) {
  let [start, end] = [0, text.length];
  if (method !== "rstrip")
    while (start < end && characters.includes(text.charAt(start))) start += 1;
  if (method !== "lstrip")
    while (start < end && characters.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

/**
 * A parsed template, or a part of one, that calls those functions.
 * @param {any} node
 * @returns {any}
 */
export function withFunctions(node) {
  if (Array.isArray(node)) return node.map(withFunctions);
  if (node instanceof Map) {
    return new Map([...node].map(([key, value]) => [withFunctions(key), withFunctions(value)]));
  }
  if (node === null || typeof node !== "object") return node;
  const copy = { ...node };
  for (const key of Object.keys(node)) copy[key] = withFunctions(node[key]);
  const { type, value, callee, args } = copy;
  if (type === "Identifier" && value === "strftime_now") return { ...copy, value: ` ${value}` };
  const method = callee?.type === "MemberExpression" && !callee.computed && callee.property.value;
  if (type === "CallExpression" && args.length && STRIPS.includes(method)) {
    const name = { type: "Identifier", value: ` ${method}` };
    return { ...copy, callee: name, args: [callee.object, ...args] };
  }
  return copy;
}
