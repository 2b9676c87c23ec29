// Numbers and tokens as people read them. Formatting only: no number is computed here.

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/**
 * A probability or a mass, with three significant digits: `0.312`, `0.0041`, `3.1·10⁻⁷`.
 * @param {number} value
 */
export function probability(value) {
  if (value === 0 || value === 1) return String(value);
  if (value >= 0.9995) return "≈1";
  if (value >= 0.1) return value.toFixed(3);
  if (value >= 0.0001) return value.toPrecision(2);
  return scientific(value);
}

/** @param {number} value @param {number} decimals */
export function scientific(value, decimals = 1) {
  const [digits = "", power = "0"] = value.toExponential(decimals).split("e");
  const sign = power.startsWith("-") ? "⁻" : "";
  const raised = [...power.replace(/^[+-]/, "")].map((digit) => SUPERSCRIPTS[Number(digit)]);
  return `${digits}·10${sign}${raised.join("")}`;
}

/** A score in nats, or an entropy: two decimals, a true minus. @param {number} value */
export function nats(value) {
  const digits = value.toFixed(2);
  return digits === "-0.00" ? "0.00" : digits.replace("-", "−");
}

/** Where something lies in [0, 1): four decimals. @param {number} value */
export function place(value) {
  return value.toFixed(4).replace("-", "−");
}

/** A whole number with thin spaces between thousands. @param {number} value */
export function count(value) {
  return value.toString().replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** A size in megabytes. @param {number} bytes */
export function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/**
 * How much of a file has arrived, and when the rest will be there.
 * @param {import("./types.js").Progress} progress
 */
export function arrived({ loaded, total, left }) {
  const size = total > 0 ? `${megabytes(loaded)} of ${megabytes(total)}` : megabytes(loaded);
  if (left === null || left < 1) return size;
  const time = left < 90 ? plural(Math.round(left), "second") : `${Math.round(left / 60)} minutes`;
  return `${size}, about ${time} left`;
}

/** What an address or a part of it says, where its escapes can be read; else as it stands. @param {string} text */
export function unescaped(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A count with its noun. @param {number} number @param {string} noun */
export function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/**
 * A token's text with its spaces and line breaks made visible.
 * @param {string} piece
 */
export function visible(piece) {
  if (piece === "") return "∅";
  return piece
    .replaceAll(" ", "␣")
    .replaceAll("\n", "⏎")
    .replaceAll("\t", "⇥")
    .replaceAll("\r", "␍");
}

/**
 * A token's text for a screen reader, which would skip spaces.
 * @param {string} piece
 */
export function spoken(piece) {
  const words = piece.replaceAll("\n", " line break ").trim();
  if (piece === "") return "empty token";
  if (words === "") return "space";
  return piece.startsWith(" ") ? words : `${words}, without a space before it`;
}

/**
 * How likely a token was in the raw row, in five levels: 0 is more than a half, 4 is below
 * one in a hundred. Limits are the logarithms of the probabilities they are named after.
 * @param {number} logprob
 */
export function level(logprob) {
  return LEVELS.findIndex(({ least }) => logprob >= least);
}

/** The levels of {@link level}, with the words of the legend. */
export const LEVELS = [
  { least: -Math.LN2, label: "at least 0.5" },
  { least: -1.6094, label: "0.2 to 0.5" },
  { least: -2.9957, label: "0.05 to 0.2" },
  { least: -4.6052, label: "0.01 to 0.05" },
  { least: Number.NEGATIVE_INFINITY, label: "below 0.01" },
];

/** Finish reasons in words. @type {Record<string, string>} */
export const REASONS = {
  grammar: "the grammar allows nothing more",
  eos: "the model drew its end-of-text token",
  stop_string: "a stop string appeared",
  max_tokens: "the agreed number of tokens is reached",
  context_full: "the model's context is full",
  constraint_unsatisfiable: "no token is left to draw",
  cancelled: "it was cancelled",
  error: "an error ended it",
};

/**
 * Why a text ended. A budget that is all the context had left is no budget that anyone set.
 * @param {import("./types.js").Finish} finish
 */
export function endedBy({ reason, also }) {
  return reason === "max_tokens" && also?.includes("context_full") ? "context_full" : reason;
}

/**
 * Why a text ended, in words.
 * @param {import("./types.js").Finish} finish
 */
export function because(finish) {
  const { stop_string, message } = finish;
  const reason = endedBy(finish);
  const words = REASONS[reason] ?? reason;
  const detail = stop_string ? ` (“${stop_string}”)` : message ? ` (${message})` : "";
  return `${words}${detail}`;
}

/** @param {import("./types.js").Finish} finish */
export function finished(finish) {
  return `Finished: ${because(finish)}.`;
}
