// The engine's thread: loads the wasm module while it downloads, then answers the page.

import init, { version } from "../pkg/logitscope.js";
import wasmUrl from "../pkg/logitscope_bg.wasm?url";

// Streams where the host names the type application/wasm, and copes where it does not.
const ready = init({ module_or_path: wasmUrl });

self.addEventListener("message", async () => {
  await ready;
  self.postMessage(version());
});
