// The page's end of the worker: one worker, shared by every element on the page.

/** @type {Worker | undefined} */
let worker;

/**
 * The version that the wasm module reports.
 * @returns {Promise<string>}
 */
export function engineVersion() {
  worker ??= new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  const shared = worker;
  return new Promise((resolve, reject) => {
    shared.addEventListener("message", (event) => resolve(event.data), { once: true });
    shared.addEventListener("error", (event) => reject(new Error(event.message)), { once: true });
    shared.postMessage("version");
  });
}
