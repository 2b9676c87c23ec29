// The thread of the Sequences area. It has engines and models of its own, so that a long
// search neither delays the page nor outlives the reader's patience: stopping ends the thread.
//
// Its engine is the page's with beams, speculation and the parsers of constraints besides, which
// is why it is fetched only here. It has the device path, too: where the thread has a GPU, rows
// that step together go there together.

import init, * as engine from "../../pkg-sequences/logitscope_sequences.js";
import engineUrl from "../../pkg-sequences/logitscope_sequences_bg.wasm?url";
import { deviceState, measured, onDevice, open as openDevice, wantsGpu } from "../device.js";
import { errorData, LogitscopeError } from "../errors.js";
import { once } from "../once.js";

/**
 * @import { Engine as Device, Model } from "../../pkg-sequences/logitscope_sequences.js"
 * @import { Computed, Share } from "../protocol.js"
 * @import { Calls, Options, Request, Run } from "./protocol.js"
 */

const ready = once(async () => {
  const [wanted] = await Promise.all([wantsGpu(), init({ module_or_path: engineUrl })]);
  if (wanted) openDevice(engine.Engine);
  await measured();
});

/** A model and its draft, five tokens each, for a laboratory that counts quickly. */
const TABLES = [1, 2].map((seed) => ({ vocab: 5, seed, scale: 1, eos: 4 }));

/** @type {Map<string, () => Promise<Model>>} */
const models = new Map();

/** The file of a model that the page keeps; its own are fetched. @param {string} src */
async function kept(src) {
  if (new URL(src).origin === self.location.origin) return null;
  const { Store } = await import("../models/store.js");
  return (await (await Store.open())?.file(src)) ?? null;
}

/** @param {string} src */
async function download(src) {
  const failed = (/** @type {string} */ why) =>
    new LogitscopeError({
      code: "io",
      param: "src",
      message: `${src} could not be loaded: ${why}`,
    });
  const body =
    (await kept(src)) ??
    (await fetch(src).catch((error) => {
      throw failed(error.message);
    }));
  if (body instanceof Response && !body.ok) {
    throw failed(`the server answered ${body.status} ${body.statusText}`);
  }
  return new Uint8Array(await body.arrayBuffer());
}

/** The model at an address. @param {string} src */
function open(src) {
  const model =
    models.get(src) ??
    once(async () => {
      const [bytes] = await Promise.all([download(src), ready()]);
      return engine.Model.open(bytes);
    });
  models.set(src, model);
  return model();
}

/** After how many tokens a run is told of for the first time, and how many times as many then. */
const FIRST_PART = 4;
const NEXT_PART = 4;

/**
 * @typedef {object} Talk
 * @property {(model: Model, tokens: Iterable<number>) => void} told gives the texts of tokens
 * @property {(part: any) => void} part gives a result that is not all yet
 */

/**
 * Has something computed on the GPU, or on the CPU where there is none; and where that was.
 * @template T
 * @param {(device: Device | undefined) => Promise<T>} work
 * @returns {Promise<{ result: T, computed: Computed }>}
 */
async function computed(work) {
  const there = onDevice(async (/** @type {Device} */ device) => {
    device.account();
    const result = await work(device);
    return { result, places: /** @type {Share[]} */ (device.account()) };
  });
  const { result, places } = (await there) ?? { result: await work(undefined), places: [] };
  return { result, computed: { ...deviceState(), places } };
}

/** After which time what has been found is told, in milliseconds, and how much later then. */
const FIRST_TOLD_MS = 200;
const NEXT_TOLD = 1.5;

/**
 * Steps to the end, and tells now and then what there is: Stop ends this thread.
 * @param {{ step: () => boolean, stepOn: (device: Device) => Promise<boolean> }} strategy
 * @param {Device | undefined} device
 * @param {() => void} tell
 */
async function toTheEnd(strategy, device, tell) {
  const begin = performance.now();
  let next = FIRST_TOLD_MS;
  while (device ? await strategy.stepOn(device) : strategy.step()) {
    if (performance.now() - begin < next) continue;
    tell();
    next = (performance.now() - begin) * NEXT_TOLD;
  }
}

/** @type {{ [call in keyof Calls]: (args: Calls[call]["args"], talk: Talk) => Promise<Calls[call]["result"]> }} */
const calls = {
  // Stop ends this thread, so what it had is told before: the same run with a smaller budget,
  // which is how the whole begins. Growing budgets cost a third of the whole together.
  async run({ src, options, check }, { told, part }) {
    const model = await open(src);
    const run = async (/** @type {Options} */ options) => {
      const { result, computed: where } = await computed(async (device) =>
        device ? await model.runOn(device, options, check) : model.run(options, check),
      );
      told(model, mentioned(result.steps));
      return /** @type {Run} */ ({ ...result, computed: where });
    };
    const budget = options.maxTokens ?? Number.POSITIVE_INFINITY;
    for (let maxTokens = FIRST_PART; maxTokens < budget; maxTokens *= NEXT_PART) {
      const begun = await run({ ...options, maxTokens });
      if (begun.finish?.reason !== "max_tokens") return begun;
      part(begun);
    }
    return await run(options);
  },
  async checkConstraint({ src, text }) {
    const model = await open(src);
    model.checkConstraint(text);
    return null;
  },
  async beams({ src, options, strategy }, { told, part }) {
    const model = await open(src);
    const search = new engine.Beams(model, options, strategy);
    return await freed(search, async () => {
      const found = () => {
        const record = search.record();
        told(model, mentioned(record.nodes));
        return { record, finish: search.finish() ?? null };
      };
      const tell = () => part({ ...found(), computed: null });
      const { computed: where } = await computed((device) => toTheEnd(search, device, tell));
      return { ...found(), computed: where };
    });
  },
  async speculate({ src, draft, options, strategy }, { told, part }) {
    const model = await open(src);
    const drafter = draft === null ? undefined : (await open(draft)).share();
    const run = new engine.Speculation(model, options, strategy, drafter);
    return await freed(run, async () => {
      const found = () => {
        const blocks = run.blocks();
        told(model, mentioned(blocks));
        return { blocks, summary: run.summary(), text: run.text(), finish: run.finish() ?? null };
      };
      const tell = () => part({ ...found(), milliseconds: null, plain: null, computed: null });
      const begin = performance.now();
      const { computed: where } = await computed((device) => toTheEnd(run, device, tell));
      const milliseconds = performance.now() - begin;
      // The run without a draft takes longer still.
      tell();
      const again = performance.now();
      await computed(async (device) =>
        device ? await model.runOn(device, options) : model.run(options),
      );
      const plain = performance.now() - again;
      return { ...found(), milliseconds, plain, computed: where };
    });
  },
  async laboratory({ src, draft, setup, tables }, { told }) {
    await ready();
    if (tables) {
      const [model, drafter] = TABLES.map((table) => engine.Model.table(JSON.stringify(table)));
      if (model) return engine.laboratory(model, drafter, setup);
    }
    const [model, drafter] = await Promise.all([open(src), open(draft)]);
    const findings = engine.laboratory(model, drafter.share(), setup);
    told(model, mentioned(findings.cells));
    return findings;
  },
  async watch({ src, text, size, stops }) {
    const model = await open(src);
    return model.watch(text, size, stops);
  },
  async repetition({ tokens }) {
    await ready();
    return engine.repetition(Uint32Array.from(tokens));
  },
  async tree({ branches }) {
    await ready();
    return engine.branchTree(branches);
  },
  async parting({ branches, a, b }) {
    await ready();
    return engine.compareBranches(branches, a, b) ?? null;
  },
};

/** Whether the engine's memory can no longer be trusted. @param {unknown} error */
function fatal(error) {
  return error instanceof WebAssembly.RuntimeError;
}

/**
 * Works with something of the engine's and frees it; after a fault that ends the engine there
 * is nothing left to free, and trying would hide the fault.
 * @template T
 * @param {{ free: () => void }} owned
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
async function freed(owned, work) {
  try {
    const result = await work();
    owned.free();
    return result;
  } catch (error) {
    if (!fatal(error)) owned.free();
    throw error;
  }
}

/**
 * The tokens that a result names, wherever in it.
 * @param {unknown} value
 * @returns {Generator<number>}
 */
function* mentioned(value) {
  if (typeof value !== "object" || value === null) return;
  for (const [name, part] of Object.entries(value)) {
    if (typeof part === "number") {
      if (name === "token" || name === "top_forbidden") yield part;
    } else if (name === "tokens") {
      yield* part;
    } else {
      yield* mentioned(part);
    }
  }
}

self.addEventListener("message", async (/** @type {MessageEvent<Request>} */ { data }) => {
  const { id, call, args } = data;
  /** @type {[number, string][]} */
  let pieces = [];
  /** @type {Talk} */
  const talk = {
    told: (model, tokens) => {
      for (const token of new Set(tokens)) pieces.push([token, model.piece(token)]);
    },
    part: (part) => {
      self.postMessage({ id, part, pieces });
      pieces = [];
    },
  };
  try {
    const result = await /** @type {any} */ (calls[call])(args, talk);
    self.postMessage({ id, result, pieces });
  } catch (error) {
    self.postMessage({ id, error: errorData(error), fatal: fatal(error) });
  }
});
