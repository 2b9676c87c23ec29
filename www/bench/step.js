// One decoding step at a large vocabulary: the engine in wasm beside plain JavaScript.
//
// Both see the same logits and the same history, in one run, and take turns, so that a busy
// machine slows both. The JavaScript is what a page would write by hand: penalties, a sort
// of the whole vocabulary, a softmax, and cuts along the sorted list. It sorts once as most
// pages do, a list of objects, and once with care, a typed array of ids.

import { Decoder } from "../pkg/logitscope.js";
import { loadEngine } from "../tests/node/engine.js";
import { history, median, row, uniform } from "./rows.js";

const VOCABULARY = 131_072;
const STEPS = 60;
const WARM_UP = 10;
const SETTINGS = { r: 1.1, presence: 0.1, frequency: 0.1, t: 0.8, k: 1000, p: 0.95, m: 0.01 };

const PIPELINE = [
  `repetition_penalty(r=${SETTINGS.r})`,
  `presence_penalty(s=${SETTINGS.presence})`,
  `frequency_penalty(f=${SETTINGS.frequency})`,
  `temperature(t=${SETTINGS.t})`,
  `top_k(k=${SETTINGS.k})`,
  `top_p(p=${SETTINGS.p})`,
  `min_p(m=${SETTINGS.m})`,
  "categorical(seed=7)",
].join(" | ");

/** @param {Float32Array} scores */
function orderOfObjects(scores) {
  const entries = Array.from(scores, (score, id) => ({ id, score }));
  entries.sort((a, b) => b.score - a.score || a.id - b.id);
  return entries.map(({ id }) => id);
}

/** @param {Float32Array} scores */
function orderOfIds(scores) {
  const ids = Uint32Array.from(scores, (_, id) => id);
  return ids.sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b);
}

/**
 * The same pipeline with a sort of the whole vocabulary.
 * @param {Float32Array} logits
 * @param {Uint32Array} past
 * @param {number} u
 * @param {(scores: Float32Array) => ArrayLike<number>} order ids, likeliest first
 */
function sortBased(logits, past, u, order) {
  const scores = Float32Array.from(logits);
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const id of past) counts.set(id, (counts.get(id) ?? 0) + 1);
  for (const [id, count] of counts) {
    const z = scores[id] ?? 0;
    const penalised = z > 0 ? z / SETTINGS.r : z * SETTINGS.r;
    scores[id] = penalised - SETTINGS.presence - SETTINGS.frequency * count;
  }
  const kept = Array.from(order(scores)).slice(0, SETTINGS.k);
  const highest = scores[kept[0] ?? 0] ?? 0;

  let total = 0;
  const masses = kept.map((id) => {
    const mass = Math.exp(((scores[id] ?? 0) - highest) / SETTINGS.t);
    total += mass;
    return mass;
  });
  let before = 0;
  let alive = 0;
  while (alive < kept.length && before < SETTINGS.p * total) before += masses[alive++] ?? 0;
  while (alive > 1 && (masses[alive - 1] ?? 0) < SETTINGS.m) alive--;

  total = 0;
  for (let i = 0; i < alive; i++) total += masses[i] ?? 0;
  let rest = u * total;
  for (let i = 0; i < alive; i++) {
    rest -= masses[i] ?? 0;
    if (rest < 0) return kept[i] ?? 0;
  }
  return kept[alive - 1] ?? 0;
}

loadEngine();
const decoder = new Decoder(PIPELINE);
const logits = row(VOCABULARY);
const past = history(200, VOCABULARY);

const ways = [
  {
    name: "wasm, integer masses, no sort",
    step: (/** @type {number} */ u) => decoder.decode(logits, past, 0, u),
  },
  {
    name: "plain JavaScript, objects sorted",
    step: (/** @type {number} */ u) => sortBased(logits, past, u, orderOfObjects),
  },
  {
    name: "plain JavaScript, ids sorted",
    step: (/** @type {number} */ u) => sortBased(logits, past, u, orderOfIds),
  },
].map((way) => ({
  ...way,
  times: /** @type {number[]} */ ([]),
  tokens: /** @type {number[]} */ ([]),
}));

for (let step = 0; step < WARM_UP + STEPS; step++) {
  const u = uniform();
  for (const way of ways) {
    const start = performance.now();
    const token = way.step(u);
    const time = performance.now() - start;
    if (step < WARM_UP) continue;
    way.times.push(time);
    way.tokens.push(token);
  }
}

console.log(`one step of ${PIPELINE}`);
console.log(`V = ${VOCABULARY}, history of ${past.length}, Node ${process.version}`);
console.log(`median of ${STEPS} steps; times as long as the first; steps with the first's token`);
const [first] = ways;
for (const { name, times, tokens } of ways) {
  const time = median(times);
  const ratio = time / median(first?.times ?? []);
  const same = tokens.filter((token, step) => token === first?.tokens[step]).length;
  console.log(`  ${name.padEnd(34)} ${time.toFixed(2)} ms  ${ratio.toFixed(1)}  ${same}`);
}
