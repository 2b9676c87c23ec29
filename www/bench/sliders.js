// What dragging a slider costs the engine: one step at a large vocabulary with its whole trace,
// for every single stage of the catalogue, on a row that is already there.
//
// Printed for each stage: the step with the trace as the inspector gets it, and the bare step
// for comparison. Times are those of the processor, because the machines that run this are
// shared; the least disturbed one and the median.

import { catalogue, Decoder } from "../pkg/logitscope.js";
import { loadEngine } from "../tests/node/engine.js";
import { history, median, row, uniform } from "./rows.js";

const VOCABULARY = 262_144;
const STEPS = 15;
const IN_VIEW = 20;

/**
 * Arguments with which a stage has work to do, where its defaults leave it idle.
 * @type {Record<string, string>}
 */
const ARGUMENTS = {
  logit_bias: 'bias={"5": 2.5}',
  sequence_bias: "bias=[[[255],1]]",
  suppress: "ids=[1,2]",
  bad_words: "sequences=[[3],[255,4]]",
  forced_tokens: 'at={"200": 7}',
  min_new_tokens: "n=1000, eos=[0]",
  length_decay: "start=1, factor=1.01, eos=[0]",
  repetition_penalty: "r=1.1",
  presence_penalty: "s=0.2",
  frequency_penalty: "f=0.1",
  no_repeat_ngram: "n=2",
  dry: "multiplier=0.8, breakers=[]",
  temperature: "t=0.8",
  dynamic_temperature: "low=0.5, high=1.5",
  top_k: "k=40",
  top_p: "p=0.95",
  min_p: "m=0.05",
  typical: "p=0.9",
  epsilon: "e=0.0003",
  eta: "e=0.0003",
  top_h: "h=0.7",
  top_a: "a=0.2",
  tail_free: "z=0.95",
  top_n_sigma: "n=2",
  quadratic: "factor=0.3",
  xtc: "probability=1, threshold=0.05",
};

loadEngine();
const logits = row(VOCABULARY);
const past = history(200, VOCABULARY);

/** @param {(u: number) => unknown} step */
function time(step) {
  const times = [];
  for (let i = 0; i < STEPS + 3; i++) {
    const u = uniform();
    const start = process.cpuUsage();
    step(u);
    const { user, system } = process.cpuUsage(start);
    times.push((user + system) / 1000);
  }
  const warm = times.slice(3);
  return { least: Math.min(...warm), median: median(warm) };
}

console.log(
  `one stage, V = ${VOCABULARY}, ${IN_VIEW} tokens in view, least and median of ${STEPS}`,
);
console.log("ms: traced        bare");
let slowest = 0;
for (const { id, kind } of catalogue()) {
  const text = `${id}(${ARGUMENTS[id] ?? ""})`;
  const decoder = new Decoder(kind === "sampler" ? text : `${text} | categorical(seed=7)`);
  const traced = time((u) => decoder.trace(logits, past, 0, u, IN_VIEW));
  const bare = time((u) => decoder.decode(logits, past, 0, u));
  slowest = Math.max(slowest, traced.median);
  const columns = [traced.least, traced.median, bare.least, bare.median];
  console.log(`${columns.map((ms) => ms.toFixed(1).padStart(7)).join("")}  ${text}`);
}
console.log(`slowest median: ${slowest.toFixed(1)} ms; a frame is 16.7 ms`);
