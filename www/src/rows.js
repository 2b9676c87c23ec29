// Rows of logits as people paste them: JSON, CSV, or plain text, with or without names.

import { LogitscopeError } from "./errors.js";

/** @typedef {{ labels: string[], logits: number[] }} NamedRow */

/**
 * Reads a row: `[2, 1, 0]`, `{"cat": 2, "dog": 1}`, `cat 2, dog 1`, or a line each, such as
 * `cat,2.0`. Scores may be `-inf`.
 * @param {string} text
 * @returns {NamedRow}
 */
export function parseRow(text) {
  const trimmed = text.trim();
  if (trimmed === "") throw refusal("Write at least one score.");
  const entries = /^[[{]/.test(trimmed) ? fromJson(trimmed) : fromText(trimmed);
  return {
    labels: entries.map(([label], index) => label || `token ${index}`),
    logits: entries.map(([label, score], index) => readScore(score, label || `entry ${index + 1}`)),
  };
}

/**
 * @param {string} text
 * @returns {[string, unknown][]}
 */
function fromJson(text) {
  /** @type {unknown} */
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw refusal("This begins like JSON, but is not JSON.");
  }
  if (!Array.isArray(value)) return Object.entries(/** @type {object} */ (value));
  return value.map((entry) => (Array.isArray(entry) ? [String(entry[0]), entry[1]] : ["", entry]));
}

/**
 * @param {string} text
 * @returns {[string, unknown][]}
 */
function fromText(text) {
  const entries = text.split("\n").flatMap((line) => {
    const parts = line.split(/[,;\t]/);
    const [name = "", score = ""] = parts;
    // A name and a score is one entry of a table; anything else is a list of entries.
    const pair = parts.length === 2 && !isScore(name) && isScore(score);
    return pair ? [`${name} ${score}`] : parts;
  });
  return entries.filter((entry) => entry.trim() !== "").map((entry) => nameAndScore(entry.trim()));
}

/** @param {string} text */
function isScore(text) {
  return /^\s*[+-]?(\d[\d.]*(e[+-]?\d+)?|\.\d+|inf(inity)?)\s*$/i.test(text);
}

/**
 * @param {string} entry
 * @returns {[string, string]}
 */
function nameAndScore(entry) {
  const found = entry.match(
    /^(.*?)[\s:=,;]*([+-]?(?:\d[\d.]*(?:e[+-]?\d+)?|\.\d+|inf(?:inity)?))$/i,
  );
  return found ? [(found[1] ?? "").replace(/^["']|["']$/g, ""), found[2] ?? ""] : ["", entry];
}

/**
 * @param {unknown} score
 * @param {string} label
 */
function readScore(score, label) {
  if (/^-inf(inity)?$/i.test(String(score))) return Number.NEGATIVE_INFINITY;
  const readable = typeof score === "number" || (typeof score === "string" && score.trim() !== "");
  const value = readable ? Number(score) : Number.NaN;
  if (Number.isFinite(value)) return value;
  throw refusal(`The score of ${label} is “${String(score)}”, but must be a number or -inf.`);
}

/** @param {string} message */
function refusal(message) {
  return new LogitscopeError({ code: "bad_input", param: "logits", message });
}
