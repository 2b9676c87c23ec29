// The engine's thread: holds models and sessions, and answers the page.
//
// A request names the state it wants (see protocol.js). The session is brought there with as
// little work as possible, one token at a time, and between tokens the thread listens: that
// is how Stop is prompt.

import {
  loadEngine,
  loadFrameworks,
  places,
  preview as previewNext,
  step as takeStep,
} from "./bundle.js";
import { measured } from "./device.js";
import { errorData, isAbort, LogitscopeError } from "./errors.js";

/**
 * @import { Model, Session } from "../pkg/logitscope.js"
 * @import { Given } from "./models/load.js"
 * @import { Calls, Part, Request, Wanted } from "./protocol.js"
 * @import { Comparison, Step, StepTrace } from "./types.js"
 */

/**
 * @typedef {object} Held a session, and the state it is in
 * @property {Session} session
 * @property {Model} model
 * @property {Wanted} wanted
 *
 * @typedef {object} Talk how a running call speaks to the page
 * @property {(part: Part, transfer?: Transferable[]) => void} send
 * @property {() => boolean} cancelled
 * @property {AbortSignal} signal
 */

self.postMessage({ awake: true });
const ready = loadEngine().catch((error) => {
  throw new NoEngine(error);
});
// Whoever needs the engine hears that there is none.
ready.catch(() => {});

/** A thread without engine is of no use; the next one tries again. */
class NoEngine extends Error {
  /** @param {unknown} cause */
  constructor(cause) {
    super(`it could not be loaded (${errorData(cause).message})`, { cause });
  }
}

/** @type {Map<string, Promise<Model>>} */
const models = new Map();
/** @type {Map<string, Held>} */
const sessions = new Map();
/** Calls on one session happen one after the other. @type {Map<string, Promise<unknown>>} */
const queues = new Map();
/** What the calls that are not answered yet listen to. @type {Map<number, AbortController>} */
const unanswered = new Map();
/** The models of the calls that are being answered. @type {string[]} */
let running = [];
/** Tokens whose text the page knows. @type {Map<Model, Set<number>>} */
const told = new Map();

/** The page's own files up to this size need no more keeping than the browser's cache does. */
const SMALL_BYTES = 16_000_000;

/** How often the page hears of new tokens; more often than it can draw helps nobody. */
const CHUNK_MS = 24;
/** How many of each pipeline's likeliest tokens a comparison lists. */
const COMPARED = 10;

/** @type {{ [call in keyof Calls]: (args: Calls[call]["args"], talk: Talk) => Promise<Calls[call]["result"]> }} */
const calls = {
  async load({ src }, talk) {
    const model = await openModel(src, talk);
    const { version, catalogue } = await ready;
    return { version: version(), catalogue: catalogue(), info: model.info() };
  },
  async parse({ text }) {
    return (await ready).parsePipeline(text);
  },
  async print({ stages }) {
    return (await ready).printPipeline(stages);
  },
  async freshSeed() {
    return (await ready).freshSeed();
  },
  async settle({ session, wanted, known }, talk) {
    const held = await bring(session, wanted, known, talk);
    await advance(held, wanted, talk);
    const finish = held.session.finish() ?? null;
    const preview = finish || talk.cancelled() ? null : await previewNext(held.session);
    if (preview) talk.send({ pieces: newPieces(held.model, preview) });
    return { length: held.session.length(), finish, preview, places: await places(held.session) };
  },
  async ranks({ session, wanted, step, stage }, talk) {
    const held = await lookAt(session, wanted, talk);
    return held.session.ranks(step, stage);
  },
  async ledger({ session, wanted, step, tokens }, talk) {
    const held = await lookAt(session, wanted, talk);
    const trace = held.session.ledger(step, Uint32Array.from(tokens));
    talk.send({ pieces: newPieces(held.model, trace) });
    return trace;
  },
  async family({ session, wanted, step, token }, talk) {
    const held = await lookAt(session, wanted, talk);
    return held.session.family(step, token);
  },
  async penalties({ session, wanted, step }, talk) {
    const held = await lookAt(session, wanted, talk);
    return held.session.penalties(step);
  },
  async compare({ session, wanted, step, pipelines }, talk) {
    const held = await lookAt(session, wanted, talk);
    /** @type {Comparison} */
    const found = held.session.compare(step, pipelines, COMPARED);
    const tokens = found.sides.flatMap(({ trace, alone }) => [
      ...mentioned(trace),
      ...alone.flatMap(({ least }) => least ?? []),
    ]);
    talk.send({ pieces: unknownPieces(held.model, tokens) });
    return found;
  },
  async worksheet({ request }) {
    return (await ready).worksheet(request);
  },
  async compareByHand({ request, pipelines, labels }) {
    return (await ready).compareByHand(request, pipelines, labels);
  },
  async profiles() {
    const { profiles, copyTargets } = await loadFrameworks();
    return { profiles: profiles(), targets: copyTargets() };
  },
  async translate({ name, params }) {
    return (await loadFrameworks()).translate(name, params, 0);
  },
  async copyAs({ target, pipeline }) {
    return (await loadFrameworks()).copyAs(target, pipeline);
  },
  async traceFile({ session, wanted }, talk) {
    const held = await lookAt(session, wanted, talk);
    return held.session.traceFile();
  },
  async search({ src, text, limit }, talk) {
    const model = await openModel(src, talk);
    return model.search(text, limit);
  },
  async keep({ src, ...given }, talk) {
    const model = await openModel(src, talk, given);
    return model.info();
  },
  async kept() {
    const store = await openStore();
    return store && { models: await store.list(), ...(await store.room()) };
  },
  async forget({ src }) {
    await (await openStore())?.remove(src);
    return null;
  },
  async forgetAll() {
    await (await openStore())?.clear();
    return null;
  },
  async setBudget({ bytes }) {
    await (await openStore())?.setBudget(bytes);
    return null;
  },
  async chat({ src, text, now }, talk) {
    const model = await openModel(src, talk);
    const { render } = await import("./models/chat.js");
    const { chat_template, bos_token: bos, eos_token: eos } = model.info();
    const messages = [{ role: "user", content: text }];
    const prompt = render(chat_template, messages, { bos, eos, date: new Date(now) });
    // A mark that the tokenizer adds by itself must not stand there twice.
    const added = model.tokenize("").ids.length > 0;
    return added && bos && prompt.startsWith(bos) ? prompt.slice(bos.length) : prompt;
  },
  async measured() {
    await measured();
    return null;
  },
  async release({ session }) {
    sessions.get(session)?.session.free();
    sessions.delete(session);
    queues.delete(session);
    return null;
  },
};

/**
 * The model at an address, loaded once however many ask for it.
 * @param {string} src
 * @param {Talk} talk
 * @param {Given} [given]
 * @returns {Promise<Model>}
 */
async function openModel(src, talk, given = {}) {
  for (;;) {
    let model = models.get(src);
    if (!model) {
      model = download(src, talk, given);
      // A failed download may be tried again.
      model.catch(() => models.delete(src));
      for (const other of models.keys()) void forget(other);
      models.set(src, model);
    }
    try {
      return await model;
    } catch (error) {
      // Another caller may have cancelled what this one still wants.
      if (!isAbort(error) || talk.cancelled()) throw error;
    }
  }
}

/** Frees a model that no session and no call uses: models are large. @param {string} src */
async function forget(src) {
  const model = await models.get(src)?.catch(() => null);
  if (!model || running.includes(src)) return;
  if ([...sessions.values()].some((held) => held.model === model)) return;
  models.delete(src);
  told.delete(model);
  model.free();
}

/**
 * @param {string} src
 * @param {Talk} talk
 * @param {Given} given
 * @returns {Promise<Model>}
 */
async function download(src, talk, given) {
  const own = !given.file && new URL(src).origin === self.location.origin;
  return (own && (await downloadSmall(src, talk))) || (await loadAndKeep(src, talk, given));
}

/**
 * A small file of the page's own; null if it is not small.
 * @param {string} src
 * @param {Talk} talk
 */
async function downloadSmall(src, talk) {
  const failed = (/** @type {string} */ why) =>
    new LogitscopeError({
      code: "io",
      param: "src",
      message: `${src} could not be loaded: ${why}`,
    });
  const { signal } = talk;
  const response = await fetch(src, { signal }).catch((error) => {
    throw isAbort(error) ? error : failed(error.message);
  });
  if (!response.ok || !response.body) {
    throw failed(`the server answered ${response.status} ${response.statusText}`);
  }
  const total = Number(response.headers.get("content-length") ?? 0);
  if (total > SMALL_BYTES) {
    await response.body.cancel();
    return null;
  }
  const { Incoming } = await ready;
  const incoming = new Incoming();
  let loaded = 0;
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      incoming.push(value);
      loaded += value.length;
      talk.send({ progress: { loaded, total, left: null } });
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    incoming.free();
    throw error;
  }
  return incoming.open();
}

/**
 * @param {string} src
 * @param {Talk} talk
 * @param {Given} given
 */
async function loadAndKeep(src, { signal, send }, given) {
  const [{ load }, { Incoming }] = await Promise.all([import("./models/load.js"), ready]);
  const talk = {
    signal,
    /** @param {import("./types.js").Progress} progress */
    tell: (progress) => send({ progress }),
    /** @param {number} [size] */
    receive: (size) => new Incoming(size),
  };
  return await load(src, talk, given);
}

/** Where models are kept; null where the browser keeps none. */
async function openStore() {
  const { Store } = await import("./models/store.js");
  return await Store.open();
}

/**
 * A session in a state that `wanted` grows from: same prompt, pipeline and seed, and no token
 * that `wanted` would not have. Steps from `known` on are forgotten, so that they are taken,
 * and told, again; the engine keeps their logits.
 * @param {string} key
 * @param {Wanted} wanted
 * @param {number} known
 * @param {Talk} talk
 * @returns {Promise<Held>}
 */
async function bring(key, wanted, known, talk) {
  const model = await openModel(wanted.src, talk);
  let held = sessions.get(key);
  const before = held?.wanted;
  if (
    !held ||
    before?.src !== wanted.src ||
    before.prompt !== wanted.prompt ||
    Boolean(before.slide) !== Boolean(wanted.slide) ||
    (wanted.seed !== null && before.seed !== wanted.seed)
  ) {
    const session = new (await ready).Session(model, {
      prompt: wanted.prompt,
      pipeline: wanted.pipeline,
      slide: Boolean(wanted.slide),
      ...(wanted.seed === null ? {} : { seed: wanted.seed }),
    });
    held?.session.free();
    held = { session, model, wanted: { ...wanted, forced: {}, length: 0 } };
    sessions.set(key, held);
  } else {
    const kept = Math.min(
      held.session.length(),
      wanted.length,
      known,
      branches(held.wanted, wanted),
    );
    if (kept < held.session.length()) held.session.rewind(kept);
    if (before.pipeline !== wanted.pipeline) held.session.setPipeline(wanted.pipeline);
    held.wanted = { ...wanted, forced: forcedBefore(wanted, kept) };
  }
  // The page goes on with the canonical text and the seed that was drawn.
  held.wanted.pipeline = held.session.pipeline();
  held.wanted.seed = held.session.seed();
  talk.send({
    opened: {
      pipeline: held.wanted.pipeline,
      seed: held.wanted.seed,
      notes: held.session.notes(),
      prompt: held.session.prompt(),
    },
  });
  return held;
}

/**
 * A session in the state that is wanted, to be asked about one of its steps.
 * @param {string} session
 * @param {Wanted} wanted
 * @param {Talk} talk
 */
async function lookAt(session, wanted, talk) {
  const held = await bring(session, wanted, Number.POSITIVE_INFINITY, talk);
  await advance(held, wanted, talk);
  return held;
}

/**
 * The first position where two states force different tokens.
 * @param {Wanted} a
 * @param {Wanted} b
 */
function branches(a, b) {
  const positions = [...Object.keys(a.forced), ...Object.keys(b.forced)].map(Number);
  const differing = positions.filter((position) => a.forced[position] !== b.forced[position]);
  return Math.min(Number.POSITIVE_INFINITY, ...differing);
}

/**
 * @param {Wanted} wanted
 * @param {number} length
 */
function forcedBefore(wanted, length) {
  return Object.fromEntries(
    Object.entries(wanted.forced).filter(([position]) => Number(position) < length),
  );
}

/**
 * Takes tokens until there are as many as wanted, it is finished, or nobody wants more.
 * @param {Held} held
 * @param {Wanted} wanted
 * @param {Talk} talk
 */
async function advance(held, wanted, talk) {
  /** @type {Step[]} */
  let steps = [];
  let last = performance.now();
  const flush = () => {
    if (steps.length === 0) return;
    const traces = steps.map((step) => step.trace);
    talk.send({ pieces: newPieces(held.model, ...traces), steps });
    steps = [];
    last = performance.now();
  };
  try {
    while (held.session.length() < wanted.length && !talk.cancelled()) {
      const position = held.session.length();
      const token = wanted.forced[position];
      const step = token === undefined ? await takeStep(held.session) : held.session.force(token);
      if (!step) break;
      if (token !== undefined) held.wanted.forced[position] = token;
      steps.push(step);
      if (performance.now() - last >= CHUNK_MS) flush();
      await breath();
    }
  } finally {
    flush();
  }
}

/**
 * The texts of tokens in traces that the page does not know yet.
 * @param {Model} model
 * @param {...StepTrace} traces
 */
function newPieces(model, ...traces) {
  return unknownPieces(model, traces.flatMap(mentioned));
}

/** Every token that a trace mentions. @param {StepTrace} trace */
function mentioned({ stages, draw }) {
  return [
    ...stages.flatMap(({ rows, edits, cut }) => [...rows, ...edits, ...(cut ? [cut] : [])]),
    ...(draw ? [draw, ...draw.slices] : []),
  ].map(({ token }) => token);
}

/**
 * The texts of those tokens that the page does not know yet.
 * @param {Model} model
 * @param {number[]} tokens
 * @returns {[number, string][]}
 */
function unknownPieces(model, tokens) {
  const known = told.get(model) ?? new Set();
  told.set(model, known);
  const fresh = [...new Set(tokens)].filter((token) => !known.has(token));
  return fresh.map((token) => {
    known.add(token);
    return [token, model.piece(token)];
  });
}

/** Lets waiting messages in, without the delay that timers have. */
function breath() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve(undefined);
    };
    port2.postMessage(null);
  });
}

self.addEventListener("message", (/** @type {MessageEvent<Request>} */ { data }) => {
  if ("cancel" in data) {
    unanswered.get(data.cancel)?.abort();
    return;
  }
  const { id, call, args } = data;
  const controller = new AbortController();
  const { signal } = controller;
  unanswered.set(id, controller);
  const talk = {
    send: (/** @type {Part} */ part) => self.postMessage({ id, part }),
    cancelled: () => signal.aborted,
    signal,
  };
  const work = async () => {
    if (signal.aborted) {
      unanswered.delete(id);
      return;
    }
    const src = args.wanted?.src ?? args.src;
    running.push(src);
    try {
      const result = await /** @type {any} */ (calls[call])(args, talk);
      self.postMessage({ id, result });
    } catch (error) {
      // Anything but a refusal means that the engine's memory can no longer be trusted.
      const fatal = error instanceof WebAssembly.RuntimeError || error instanceof NoEngine;
      self.postMessage({ id, error: errorData(error), fatal });
    } finally {
      unanswered.delete(id);
      running = running.toSpliced(running.indexOf(src), 1);
    }
  };
  if (!("session" in args)) {
    void work();
    return;
  }
  const turn = (queues.get(args.session) ?? Promise.resolve()).then(work);
  queues.set(args.session, turn);
});
