// Which engine the page's thread computes with: the plain one, or the larger one that can use a
// GPU.
//
// Both are the same crate and give the same tokens. The larger one is fetched only where there
// is a GPU for it, so nobody else waits for it. Calls that a first visit does not need come with
// a second module.

import plainUrl from "../pkg/logitscope_bg.wasm?url";
import wholeUrl from "../pkg-gpu/logitscope_gpu_bg.wasm?url";
import secondUrl from "../pkg-sequences/logitscope_sequences_bg.wasm?url";
import { deviceState, onDevice, open, wantsGpu } from "./device.js";
import { once } from "./once.js";

/**
 * @import { Places } from "./protocol.js"
 * @import { Session } from "../pkg/logitscope.js"
 *
 * @typedef {typeof import("../pkg/logitscope.js")} Plain
 * @typedef {import("../pkg-gpu/logitscope_gpu.js").Session} WholeSession
 * @typedef {import("../pkg-gpu/logitscope_gpu.js").Engine} Device
 */

/** The engine's calls; the GPU, if there is one, joins later. @returns {Promise<Plain>} */
export async function loadEngine() {
  if (!(await wantsGpu())) {
    // Streams where the host names the type application/wasm, and copes where it does not.
    const binary = begun(plainUrl);
    const plain = await import("../pkg/logitscope.js");
    await plain.default({ module_or_path: binary });
    return plain;
  }
  const binary = begun(wholeUrl);
  const whole = await import("../pkg-gpu/logitscope_gpu.js");
  await whole.default({ module_or_path: binary });
  open(whole.Engine);
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

/**
 * A session as the engine with the device path has it.
 * @param {Session} session
 */
function whole(session) {
  return /** @type {WholeSession} */ (/** @type {unknown} */ (session));
}

/**
 * One step, on the GPU where that is faster: the same token.
 * @param {Session} session
 */
export function step(session) {
  return onDevice((/** @type {Device} */ gpu) => whole(session).stepOn(gpu)) ?? session.step();
}

/**
 * The account of the step that comes next, its logits from the GPU where that is faster.
 * @param {Session} session
 */
export function preview(session) {
  return (
    onDevice((/** @type {Device} */ gpu) => whole(session).previewOn(gpu)) ?? session.preview()
  );
}

/**
 * Who computes the logits and runs which stage, at the step that comes next.
 * @param {Session} session
 * @returns {Promise<Places>}
 */
export async function places(session) {
  const found = onDevice((/** @type {Device} */ gpu) => whole(session).places(gpu));
  const none = { step: null, logits: null, stages: null };
  return { ...((await found) ?? none), ...deviceState() };
}
