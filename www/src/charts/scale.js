// Scales of charts: where on the page a number stands. The only file that may take
// logarithms, because a rank plot is drawn on logarithmic axes.

/**
 * A linear function of log10: maps `from` to 0 and `to` to `size`.
 * @param {number} from
 * @param {number} to
 * @param {number} size
 */
export function logScale(from, to, size) {
  const low = Math.log10(from);
  const span = Math.log10(to) - low || 1;
  return (/** @type {number} */ value) => ((Math.log10(value) - low) / span) * size;
}

/**
 * The powers of ten in a range, thinned to at most `most` of them.
 * @param {number} from
 * @param {number} to
 * @param {number} most
 */
export function powersOfTen(from, to, most) {
  const first = Math.ceil(Math.log10(from) - 1e-9);
  const last = Math.floor(Math.log10(to) + 1e-9);
  const stride = Math.max(1, Math.ceil((last - first + 1) / most));
  const ticks = [];
  for (let power = last; power >= first; power -= stride) ticks.push(power);
  return ticks;
}

/** Where the bars of a table may end, so that they do not jump while a slider moves. */
const CEILINGS = [0.05, 0.1, 0.2, 0.5];

/** The smallest ceiling that a probability fits under. @param {number} highest */
export function ceiling(highest) {
  return CEILINGS.find((limit) => highest <= limit) ?? 1;
}

/**
 * Ranks 1, 2, 5, 10, 20, 50, … up to a count, and the count itself.
 * @param {number} count
 */
export function roundRanks(count) {
  const ranks = [];
  for (let decade = 1; decade <= count; decade *= 10) {
    for (const step of [1, 2, 5]) if (step * decade < count) ranks.push(step * decade);
  }
  ranks.push(count);
  return ranks;
}
