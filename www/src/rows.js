// Rows of logits as people paste them: JSON, CSV, or plain text, with or without names.

import { LogitscopeError } from "./errors.js";

/**
 * @typedef {{ labels: string[], logits: number[] }} NamedRow
 * @typedef {[label: string, score: unknown]} Entry
 */

/** What servers call a token and its score, in their answers, and a whole row of them. */
const NAMES = ["token", "text", "decoded_token", "id", "token_id"];
const SCORES = ["logit", "logprob", "score", "value"];
const ROWS = ["logits", "top_logprobs", "logprobs", "scores"];

/**
 * Reads a row: `[2, 1, 0]`, `{"cat": 2, "dog": 1}`, `[{"token": "cat", "logprob": -0.4}]`, the
 * answer of a server with such a row in it, a table such as `token,logit` with a line each,
 * `cat 2, dog 1`, or bare numbers as a program prints them. Scores may be `-inf`; a table whose
 * cells are parted by semicolons or tabs may have decimal commas.
 * @param {string} text
 * @returns {NamedRow}
 */
export function parseRow(text) {
  // The minus of typesetters is what pages print, this one included.
  const trimmed = text.replaceAll("\u2212", "-").replace(/^\n+|\s+$/g, "");
  if (trimmed.trim() === "") throw refusal("Write at least one score.");
  const entries =
    bareScores(trimmed) ??
    (/^\s*[[{]/.test(trimmed) ? fromJson(trimmed) : (fromTable(trimmed) ?? fromText(trimmed)));
  return {
    labels: entries.map(([label], index) => label || `token ${index}`),
    logits: entries.map(([label, score], index) => readScore(score, label || `entry ${index + 1}`)),
  };
}

/**
 * Nothing but numbers, as arrays are printed: on one line, or in brackets.
 * @param {string} text
 * @returns {Entry[] | null}
 */
function bareScores(text) {
  const bracketed = text.trim().match(/^\[([\s\S]*)\]$/)?.[1];
  const inside = bracketed ?? text.trim();
  const scores = inside.split(/[\s,;]+/).filter((part) => part !== "");
  const listed = bracketed !== undefined || (scores.length > 1 && !inside.includes("\n"));
  return listed && scores.length > 0 && scores.every(isScore)
    ? scores.map((score) => ["", score])
    : null;
}

/**
 * @param {string} text
 * @returns {Entry[]}
 */
function fromJson(text) {
  /** @type {unknown} */
  let value;
  try {
    // Python writes infinity bare, which JSON does not have.
    value = JSON.parse(text.replace(/-Infinity\b(?!")/g, '"-inf"'));
  } catch {
    throw refusal("This begins like JSON, but is not JSON.");
  }
  return fromValue(rowIn(value) ?? value);
}

/**
 * The row that an answer carries somewhere inside: the first one, which is the first token's.
 * @param {unknown} value
 * @returns {object | null}
 */
function rowIn(value) {
  if (!isObject(value)) return null;
  const fields = Array.isArray(value) ? [] : ROWS.map((name) => Reflect.get(value, name));
  for (const inner of [...fields, ...Object.values(value)]) {
    const found = rowIn(inner);
    if (found) return found;
  }
  return fields.find(isObject) ?? null;
}

/**
 * @param {unknown} value
 * @returns {Entry[]}
 */
function fromValue(value) {
  if (!Array.isArray(value)) return Object.entries(/** @type {object} */ (value));
  const lists = value.filter(Array.isArray);
  const pairs = lists.every(([name, , ...more]) => more.length === 0 && isName(name));
  if (lists.length === 1 && value.length === 1 && !pairs) return fromValue(lists[0]);
  if (!pairs) throw refusal(`These are ${lists.length} rows, but one is worked out at a time.`);
  const [first] = value;
  // One position after another, each with its tokens' scores by their texts.
  const byText = isObject(first) && !lists.length && !SCORES.some((name) => name in first);
  if (byText) return Object.entries(first);
  return value.map((entry) => {
    if (Array.isArray(entry)) return [String(entry[0]), entry[1]];
    if (!isObject(entry)) return ["", entry];
    const field = (/** @type {string[]} */ names) =>
      Reflect.get(entry, names.find((name) => name in entry) ?? "");
    return [String(field(NAMES) ?? ""), field(SCORES)];
  });
}

/** @param {unknown} value @returns {value is object} */
function isObject(value) {
  return value !== null && typeof value === "object";
}

/** A token's text, or its id. @param {unknown} value */
function isName(value) {
  return typeof value === "string" || (Number.isInteger(value) && Number(value) >= 0);
}

/**
 * Lines of as many columns each, the last a score; the first line may name the columns.
 * @param {string} text
 * @returns {Entry[] | null}
 */
function fromTable(text) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  const rows = lines.map(lines.every((line) => /[;\t]/.test(line)) ? commaColumns : columns);
  const [first = []] = rows;
  const headed = rows.length > 1 && !first.some(isScore);
  const body = headed ? rows.slice(1) : rows;
  const regular = body.every((row) => row.length === first.length && isScore(row.at(-1) ?? ""));
  if (first.length < 2 || !regular) return null;
  // Without a head, numbers alone are a list; a column of words or of ids makes them a table.
  const worded = body.every((row) => row.slice(0, -1).some((cell) => !isScore(cell)));
  const ids = new Set(body.map(([id = ""]) => id.trim()).filter((id) => /^\d+$/.test(id)));
  if (!headed && !worded && !(body.length > 1 && ids.size === body.length)) return null;
  return body.map((row) => {
    const names = row.slice(0, -1);
    return [names.findLast((cell) => !isScore(cell)) ?? names[0] ?? "", row.at(-1)];
  });
}

/** The cells of a line; a cell in quotes may contain anything. @param {string} line */
function columns(line) {
  const cells = line.matchAll(/(?:^|[,;\t])(?:"((?:[^"]|"")*)"(?=[,;\t]|$)|([^,;\t]*))/g);
  return [...cells].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? "");
}

/** As columns, but a comma parts no cells: one between digits is a decimal point. @param {string} line */
function commaColumns(line) {
  const cells = columns(line.replaceAll(/(?<=\d),(?=\d)/g, "."));
  return cells.length === line.split(/[;\t]/).length ? cells : columns(line);
}

/**
 * @param {string} text
 * @returns {Entry[]}
 */
function fromText(text) {
  const entries = text.split(/[\n,;\t]/).filter((entry) => entry.trim() !== "");
  return entries.map((entry) => nameAndScore(entry.trim()));
}

/** @param {string} text */
function isScore(text) {
  return /^\s*[+-]?(\d[\d.]*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|inf(inity)?)\s*$/i.test(text);
}

/**
 * @param {string} entry
 * @returns {Entry}
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
  if (/^\s*-inf(inity)?\s*$/i.test(String(score))) return Number.NEGATIVE_INFINITY;
  const readable = typeof score === "number" || (typeof score === "string" && score.trim() !== "");
  const value = readable ? Number(score) : Number.NaN;
  if (Number.isFinite(value)) return value;
  throw refusal(`The score of ${label} is “${String(score)}”, but must be a number or -inf.`);
}

/** @param {string} message */
function refusal(message) {
  return new LogitscopeError({ code: "bad_input", param: "logits", message });
}
