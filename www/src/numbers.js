// Numbers as readers write them. Fields for numbers are fields for text: those of the type
// `number` drop what they cannot hold, so that `0,8` becomes 8 and nobody can be told.

/** A decimal number as people and machines write it. */
const DECIMAL = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i;

/** Keys that turn a number up or down. @type {Record<string, number>} */
const TURNS = { ArrowUp: 1, ArrowDown: -1 };

/** The number that a text is, or the text, for whoever refuses it. @param {string} text */
export function numberIn(text) {
  const number = DECIMAL.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(number) ? number : text;
}

/**
 * A value one step up or down, as far as its range goes; null if it cannot be turned.
 * @param {string} text
 * @param {number} direction
 * @param {{ step: number, min?: number, max?: number }} range
 */
export function stepped(text, direction, { step, min = -Infinity, max = Infinity }) {
  const value = numberIn(text);
  if (typeof value === "string") return null;
  // Without the digits that binary fractions add.
  const next = Number((value + direction * step).toPrecision(12));
  return next < min || next > max ? null : String(next);
}

/**
 * Listens to the arrow keys in a field for a number, which count as a change of it.
 * @param {{ step: number, min?: number, max?: number }} range
 */
export function turning(range) {
  return (/** @type {KeyboardEvent} */ event) => {
    const direction = TURNS[event.key];
    if (direction === undefined) return;
    const field = /** @type {HTMLInputElement} */ (event.target);
    const next = stepped(field.value, direction, range);
    event.preventDefault();
    if (next === null) return;
    field.value = next;
    field.dispatchEvent(new Event("change"));
  };
}
