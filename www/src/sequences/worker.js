// The thread of the Sequences area. It has engines and models of its own, so that a long
// search neither delays the page nor outlives the reader's patience: stopping ends the thread.
//
// There are two engines from the same source: the page's, and a larger one with the parsers
// of constraints, which is fetched when a constraint is first asked for.

import pageUrl from "../../pkg/logitscope_bg.wasm?url";
import constraintUrl from "../../pkg-constraint/logitscope_constraint_bg.wasm?url";
import { errorData, LogitscopeError } from "../errors.js";

/**
 * @import { Model } from "../../pkg/logitscope.js"
 * @import { Calls, Options, Request } from "./protocol.js"
 */

/** @typedef {typeof import("../../pkg/logitscope.js")} Engine */

const ENGINES = {
  page: once(async () => {
    const engine = await import("../../pkg/logitscope.js");
    await engine.default({ module_or_path: pageUrl });
    return engine;
  }),
  constraint: once(async () => {
    const engine = await import("../../pkg-constraint/logitscope_constraint.js");
    await engine.default({ module_or_path: constraintUrl });
    return /** @type {Engine} */ (/** @type {unknown} */ (engine));
  }),
};

/** @typedef {keyof typeof ENGINES} Kind */

/** A model and its draft, five tokens each, for a laboratory that counts quickly. */
const TABLES = [1, 2].map((seed) => ({ vocab: 5, seed, scale: 1, eos: 4 }));

/**
 * Does something once; a failure may be tried again.
 * @template T
 * @param {() => Promise<T>} make
 * @returns {() => Promise<T>}
 */
function once(make) {
  /** @type {Promise<T> | undefined} */
  let made;
  return () => {
    made ??= make().catch((error) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

/** Bytes of model files, and the models of each engine. @type {Map<string, () => Promise<Uint8Array>>} */
const files = new Map();
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

/**
 * The model at an address, in one of the engines.
 * @param {Kind} kind
 * @param {string} src
 */
function open(kind, src) {
  const file = files.get(src) ?? once(() => download(src));
  files.set(src, file);
  const key = `${kind} ${src}`;
  const model =
    models.get(key) ??
    once(async () => {
      const [engine, bytes] = await Promise.all([ENGINES[kind](), file()]);
      return engine.Model.open(bytes);
    });
  models.set(key, model);
  return model();
}

/**
 * The engine that a request needs.
 * @param {{ options?: Options, check?: string }} args
 * @returns {Kind}
 */
function kindFor({ options, check }) {
  return options?.constraint || check ? "constraint" : "page";
}

/** @type {{ [call in keyof Calls]: (args: Calls[call]["args"], told: (model: Model, tokens: Iterable<number>) => void) => Promise<Calls[call]["result"]> }} */
const calls = {
  async run({ src, options, check }, told) {
    const model = await open(kindFor({ options, check }), src);
    /** @type {Calls["run"]["result"]} */
    const run = model.run(options, check);
    told(model, mentioned(run.steps));
    return run;
  },
  async checkConstraint({ src, text }) {
    const model = await open("constraint", src);
    model.checkConstraint(text);
    return null;
  },
  async beams({ src, options, strategy }, told) {
    const kind = kindFor({ options });
    const [{ Beams }, model] = await Promise.all([ENGINES[kind](), open(kind, src)]);
    const search = new Beams(model, options, strategy);
    try {
      while (search.step());
      const record = search.record();
      told(model, mentioned(record.nodes));
      return { record, finish: search.finish() ?? null };
    } finally {
      search.free();
    }
  },
  async speculate({ src, draft, options, strategy }, told) {
    const kind = kindFor({ options });
    const [{ Speculation }, model] = await Promise.all([ENGINES[kind](), open(kind, src)]);
    const drafter = draft === null ? undefined : (await open(kind, draft)).share();
    const run = new Speculation(model, options, strategy, drafter);
    try {
      const begin = performance.now();
      while (run.step());
      const milliseconds = performance.now() - begin;
      const again = performance.now();
      model.run(options);
      const plain = performance.now() - again;
      const blocks = run.blocks();
      told(model, mentioned(blocks));
      const [summary, text, finish] = [run.summary(), run.text(), run.finish() ?? null];
      return { blocks, summary, text, finish, milliseconds, plain };
    } finally {
      run.free();
    }
  },
  async laboratory({ src, draft, setup, tables }, told) {
    const engine = await ENGINES.page();
    if (tables) {
      const [model, drafter] = TABLES.map((table) => engine.Model.table(JSON.stringify(table)));
      if (model) return engine.laboratory(model, drafter, setup);
    }
    const [model, drafter] = await Promise.all([open("page", src), open("page", draft)]);
    const findings = engine.laboratory(model, drafter.share(), setup);
    told(model, mentioned(findings.cells));
    return findings;
  },
  async watch({ src, text, size, stops }) {
    const model = await open("page", src);
    return model.watch(text, size, stops);
  },
  async repetition({ tokens }) {
    const engine = await ENGINES.page();
    return engine.repetition(Uint32Array.from(tokens));
  },
  async tree({ branches }) {
    const engine = await ENGINES.page();
    return engine.branchTree(branches);
  },
  async parting({ branches, a, b }) {
    const engine = await ENGINES.page();
    return engine.compareBranches(branches, a, b) ?? null;
  },
};

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
  const pieces = [];
  const told = (/** @type {Model} */ model, /** @type {Iterable<number>} */ tokens) => {
    for (const token of new Set(tokens)) pieces.push([token, model.piece(token)]);
  };
  try {
    const result = await /** @type {any} */ (calls[call])(args, told);
    self.postMessage({ id, result, pieces });
  } catch (error) {
    self.postMessage({ id, error: errorData(error) });
  }
});
