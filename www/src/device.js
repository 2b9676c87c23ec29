// The GPU of this thread: whether there is one, why not, and taking turns on it.
//
// A thread computes with an engine of its own, so each has a GPU of its own, which it opens and
// measures for itself.

/**
 * @import { Engine as Device } from "../pkg-gpu/logitscope_gpu.js"
 * @import { Choice, DeviceState } from "./protocol.js"
 *
 * @typedef {{ open: (required: boolean) => Promise<any> }} Opener the engine's class for a GPU
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
/** Work on the GPU is done one after the other. @type {Promise<unknown>} */
let turn = Promise.resolve();

/** Whether it is worth to fetch an engine that can use a GPU. */
export async function wantsGpu() {
  why = await whyNoGpu();
  return why === "";
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

/** Opens the GPU and measures it, beside whatever else goes on. @param {Opener} Engine */
export function open(Engine) {
  why = "The GPU is being measured.";
  pending = true;
  opening = measure(Engine);
}

/** @param {Opener} Engine */
async function measure(Engine) {
  try {
    device = await Engine.open(choice === "gpu");
    why = "";
  } catch (error) {
    why = `The CPU computes, because ${messageOf(error)}`;
  } finally {
    pending = false;
  }
}

/** Resolves when it is settled whether there is a GPU. */
export async function measured() {
  await opening;
}

/**
 * Uses the GPU when whoever uses it now is done; nothing if there is none.
 * @template T
 * @param {(device: any) => Promise<T>} use gets the engine's object for the GPU
 * @returns {Promise<T> | undefined}
 */
export function onDevice(use) {
  if (!device) return undefined;
  const given = device;
  const result = turn.then(() => use(given));
  turn = result.catch(() => {});
  return result;
}

/**
 * What the GPU is, what was measured, and why the CPU computes.
 * @returns {DeviceState}
 */
export function deviceState() {
  const { adapter, measured, why: lost } = device?.about() ?? { adapter: null, measured: null };
  return {
    choice,
    pending,
    adapter,
    measured,
    why: lost ? `The CPU computes, because ${lost}.` : why,
  };
}
