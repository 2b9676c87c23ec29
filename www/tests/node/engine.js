// The optimised bundle, loaded from disk: the same bytes that the page loads.

import { readFileSync } from "node:fs";
import { initSync } from "../../pkg/logitscope.js";

/** Loads the engine; safe to call again. */
export function loadEngine() {
  const wasm = new URL("../../pkg/logitscope_bg.wasm", import.meta.url);
  return initSync({ module: readFileSync(wasm) });
}
