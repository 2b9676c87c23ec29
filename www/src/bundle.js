// Which engine this thread computes with: the plain one, or the larger one that can use a GPU.
//
// Both are the same crate and give the same tokens. The larger one is fetched only where there
// is a GPU for it, so nobody else waits for it. Calls that a first visit does not need come with
// a second module.

import plainUrl from "../pkg/logitscope_bg.wasm?url";
import wholeUrl from "../pkg-gpu/logitscope_gpu_bg.wasm?url";
import secondUrl from "../pkg-sequences/logitscope_sequences_bg.wasm?url";
import { once } from "./once.js";

/**
 * @import { Choice, Places } from "./protocol.js"
 * @import { Session } from "../pkg/logitscope.js"
 *
 * @typedef {typeof import("../pkg/logitscope.js")} Plain
 * @typedef {typeof import("../pkg-gpu/logitscope_gpu.js")} Whole
 * @typedef {import("../pkg-gpu/logitscope_gpu.js").Session} WholeSession
 * @typedef {import("../pkg-gpu/logitscope_gpu.js").Engine} Device
 */

/** What the reader chose; the page gives it to the thread as its name. */
const choice = /** @type {Choice} */ (self.name || "measured");

/** A browser that does not say within this time whether it has a GPU has none, in milliseconds. */
const PATIENCE_MS = 1_000;

/** Why the CPU computes, if it does. */
let why = "";
/** Whether that may change, because the GPU is being measured. */
let pending = false;
/** The GPU with what was measured on it. @type {Device | null} */
let device = null;
/** Until the GPU has been measured. */
let opening = Promise.resolve();
/** Steps on the GPU happen one after the other. @type {Promise<unknown>} */
let turn = Promise.resolve();

/** The engine's calls; the GPU, if there is one, joins later. @returns {Promise<Plain>} */
export async function loadEngine() {
  why = await whyNoGpu();
  if (why) {
    // Streams where the host names the type application/wasm, and copes where it does not.
    const binary = begun(plainUrl);
    const plain = await import("../pkg/logitscope.js");
    await plain.default({ module_or_path: binary });
    return plain;
  }
  const binary = begun(wholeUrl);
  const whole = await import("../pkg-gpu/logitscope_gpu.js");
  await whole.default({ module_or_path: binary });
  why = "The GPU is being measured.";
  pending = true;
  opening = open(whole);
  return whole;
}

/** The calls for other frameworks' settings; fetched on first use. */
export const loadFrameworks = once(async () => {
  const second = await import("../pkg-sequences/logitscope_sequences.js");
  await second.default({ module_or_path: secondUrl });
  return second;
});

/** A fetch whose failure is told to whoever waits for it, and not before. @param {string} url */
function begun(url) {
  const response = fetch(url);
  response.catch(() => {});
  return response;
}

/** Why no GPU is used; empty if one is. */
async function whyNoGpu() {
  if (choice === "cpu") return "You chose the CPU.";
  const { gpu } = /** @type {any} */ (self.navigator);
  if (!gpu) return "This browser gives pages no GPU (it has no WebGPU here).";
  const adapter = await Promise.race([
    gpu.requestAdapter({ powerPreference: "high-performance" }).catch(messageOf),
    new Promise((resolve) => setTimeout(resolve, PATIENCE_MS, "it did not answer in time")),
  ]);
  if (!adapter) return "This browser found no GPU.";
  if (typeof adapter === "string") return `This browser gave no GPU: ${adapter}.`;
  const { isFallbackAdapter } = adapter.info ?? adapter;
  if (isFallbackAdapter && choice !== "gpu") {
    return "The browser's GPU is software that runs on the CPU, so the CPU itself is faster.";
  }
  return "";
}

/** @param {unknown} error */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/** A reason of the engine's as the page shows it. @param {string} why */
function sentence(why) {
  return `The CPU computes: ${why}.`;
}

/** @param {Whole} whole */
async function open(whole) {
  try {
    device = await whole.Engine.open(choice === "gpu");
    why = "";
  } catch (error) {
    why = sentence(messageOf(error));
  } finally {
    pending = false;
  }
}

/** Resolves when it is settled whether there is a GPU. */
export async function measured() {
  await opening;
}

/**
 * One step, on the GPU where that is faster: the same token.
 * @param {Session} session
 */
export function step(session) {
  return onDevice(session, (whole, engine) => whole.stepOn(engine)) ?? session.step();
}

/**
 * Uses the GPU when whoever uses it now is done; nothing if there is none.
 * @template T
 * @param {Session} session
 * @param {(whole: WholeSession, engine: Device) => Promise<T>} use
 */
function onDevice(session, use) {
  if (!device) return undefined;
  const engine = device;
  const whole = /** @type {WholeSession} */ (/** @type {unknown} */ (session));
  const result = turn.then(() => use(whole, engine));
  turn = result.catch(() => {});
  return result;
}

/**
 * The account of the step that comes next, its logits from the GPU where that is faster.
 * @param {Session} session
 */
export function preview(session) {
  return onDevice(session, (whole, engine) => whole.previewOn(engine)) ?? session.preview();
}

/**
 * Who computes the logits and runs which stage, at the step that comes next.
 * @param {Session} session
 * @returns {Promise<Places>}
 */
export async function places(session) {
  const found = await onDevice(session, async (whole, engine) => {
    const [logits, ...stages] = await whole.places(engine);
    const { adapter, measured, why: lost } = engine.about();
    return { choice, pending, adapter, measured, why: lost && sentence(lost), logits, stages };
  });
  const none = { adapter: null, measured: null, logits: null, stages: null };
  return found ?? { choice, pending, why, ...none };
}
