// The thread that talks to the GPU: the suite and the benchmark compute for seconds at a time.

import init, { Gpu, version } from "../../pkg-gpu/logitscope_gpu.js";
import wasmUrl from "../../pkg-gpu/logitscope_gpu_bg.wasm?url";

/** @import { Asked, Told } from "./protocol.js" */

/** @param {Told} told */
const tell = (told) => self.postMessage(told);

/** @type {Promise<Gpu> | undefined} */
let opened;

async function open() {
  await init({ module_or_path: wasmUrl });
  const gpu = await Gpu.open();
  const adapter = gpu.adapter();
  const name = (await named()) || adapter.name;
  tell({ tell: "adapter", adapter: { ...adapter, name }, version: version() });
  return gpu;
}

/** What the browser calls its GPU, which the engine is not told. */
async function named() {
  const { gpu } = /** @type {any} */ (self.navigator);
  const adapter = await gpu?.requestAdapter({ powerPreference: "high-performance" });
  const { vendor, architecture, device, description } = adapter?.info ?? {};
  return [vendor, architecture, device, description].filter(Boolean).join(" ");
}

/** @param {MessageEvent<Asked>} event */
async function answer({ data }) {
  try {
    opened ??= open();
    const gpu = await opened;
    if (data.ask === "check") {
      const progress = (/** @type {string} */ line) => tell({ tell: "progress", line });
      const report = await gpu.check(data.full, progress);
      tell({ tell: "report", full: data.full, report });
    } else if (data.ask === "bench") {
      const each = (/** @type {import("./protocol.js").Line} */ line) =>
        tell({ tell: "line", line });
      await gpu.bench(data.vocabularies, data.batches, each);
    }
    tell({ tell: "done" });
  } catch (error) {
    // What has failed once may be lost for good; another try asks for a GPU anew.
    opened = undefined;
    tell({ tell: "failed", message: error instanceof Error ? error.message : String(error) });
  }
}

self.addEventListener("message", answer);
