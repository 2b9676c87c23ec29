// Made-up input for the benchmarks: repeatable, and shaped like a language model's.

/** A small repeatable generator: only a benchmark's input depends on it. */
function* uniforms(state = 1) {
  for (;;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield (state + 0.5) / 2 ** 32;
  }
}

const random = uniforms();
export const uniform = () => random.next().value ?? 0.5;

/**
 * Scores as a language model's: a normal bulk and a few tokens far above it.
 * @param {number} vocabulary
 */
export function row(vocabulary) {
  const scores = new Float32Array(vocabulary);
  for (let i = 0; i < scores.length; i++) {
    scores[i] = 2 * Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  }
  for (let i = 0; i < 40; i++) scores[Math.floor(uniform() * vocabulary)] = 9 + 6 * uniform();
  return scores;
}

/**
 * Token ids of a text that has gone before.
 * @param {number} length
 * @param {number} vocabulary
 */
export function history(length, vocabulary) {
  return Uint32Array.from({ length }, () => Math.floor(uniform() * vocabulary));
}

/** @param {number[]} times */
export function median(times) {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}
