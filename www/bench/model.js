// Tokens a second in a browser, on one thread: the engine's optimised bundle beside wllama,
// which is llama.cpp for the web; and how soon the page shows its first distribution.
//
// `cargo xtask bench model` runs it. CHROME names the browser and SMOLLM2 the file of
// SmolLM2-135M-Instruct; without the file only the model that ships is measured.

import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";

const WWW = join(import.meta.dirname, "..");
const SMOLLM2 = process.env.SMOLLM2 ?? "";
const TEXT =
  "The quick brown fox jumps over the lazy dog, and then it runs back home before the rain starts. ";
/** Tokens written. A small model writes more: what the browser says of time is coarse. */
const GENERATED = { small: 160, large: 32 };
const REPEATS = 2;

/** Where addresses lead. @type {[string, string][]} */
const FOLDERS = [
  ["/pkg/", join(WWW, "pkg")],
  ["/wllama/", join(WWW, "node_modules/@wllama/wllama/esm")],
  ["/models/", join(WWW, "../models")],
  ["/page/", join(WWW, "../dist")],
];
/** @type {Record<string, string>} */
const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
};

/**
 * @typedef {object} Speed
 * @property {number} read tokens of the prompt
 * @property {number} prompt tokens a second
 * @property {number} generation tokens a second
 *
 * @typedef {object} Peer an engine with a model loaded, in the page under test
 * @property {(text: string, count: number) => Promise<number>} run reads a text afresh and
 *   writes so many tokens; answers how many it read
 * @property {() => Promise<void>} close
 */

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? "/", "http://localhost");
  const file = locate(pathname);
  if (pathname === "/") {
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>bench</title>");
  } else if (file && existsSync(file)) {
    response.setHeader("content-type", TYPES[extname(file)] ?? "application/octet-stream");
    createReadStream(file).pipe(response);
  } else {
    response.writeHead(404).end();
  }
});

/** @param {string} pathname */
function locate(pathname) {
  if (pathname === "/smollm2.gguf") return SMOLLM2;
  const [prefix = "", folder] = FOLDERS.find(([start]) => pathname.startsWith(start)) ?? [];
  return folder && join(folder, normalize(`/${pathname.slice(prefix.length)}`));
}

/** The engine, through the same calls as the page's: traces included. @param {string} file */
async function openOurs(file) {
  const bundle = "/pkg/logitscope.js";
  const engine = await import(bundle);
  await engine.default({ module_or_path: "/pkg/logitscope_bg.wasm" });
  const model = engine.Model.open(new Uint8Array(await (await fetch(file)).arrayBuffer()));
  /** @type {Peer} */
  const peer = {
    async run(prompt, count) {
      const session = new engine.Session(model, { prompt, pipeline: "greedy()", eos: [] });
      for (let step = 0; step < count; step++) session.step();
      const { length } = session.prompt().ids;
      session.free();
      return length;
    },
    async close() {
      model.free();
    },
  };
  Object.assign(globalThis, { peer });
}

/** wllama, on one thread and without a GPU. @param {string} file */
async function openWllama(file) {
  const bundle = "/wllama/index.js";
  const { Wllama } = await import(bundle);
  const wllama = new Wllama({ default: "/wllama/wasm/wllama.wasm" }, { suppressNativeLog: true });
  const blob = await (await fetch(file)).blob();
  await wllama.loadModel([blob], { n_threads: 1, n_ctx: 1024, n_gpu_layers: 0 });
  if (wllama.getNumThreads() !== 1) throw new Error("wllama runs on several threads");
  let runs = 0;
  /** @type {Peer} */
  const peer = {
    async run(prompt, count) {
      const { timings } = await wllama.createCompletion({
        // Another beginning each time, so that nothing comes out of a cache.
        prompt: `${runs++} ${prompt}`,
        max_tokens: count,
        temperature: 0,
        ignore_eos: true,
        cache_prompt: false,
      });
      return timings.prompt_n;
    },
    close: () => wllama.exit(),
  };
  Object.assign(globalThis, { peer });
}

/**
 * Opens an engine in a page of its own, and measures it by the processor time of that page's
 * process, so that other work on the machine disturbs little.
 * @param {(file: string) => Promise<void>} open
 * @param {string} file
 * @param {string} text
 * @param {number} generated
 * @returns {Promise<Speed>}
 */
async function measure(open, file, text, generated) {
  const page = await browser.newPage();
  await page.goto(url);
  await page.evaluate(open, file);
  const run = async (/** @type {number} */ count) => {
    const before = await processorSeconds();
    const read = await page.evaluate(
      ([prompt, tokens]) => /** @type {any} */ (globalThis).peer.run(prompt, tokens),
      /** @type {const} */ ([text, count]),
    );
    return { read, seconds: (await processorSeconds()) - before };
  };
  // The first time the browser still compiles.
  await run(1);
  let [read, reading, writing] = [0, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    const one = await run(1);
    read = one.read;
    reading = Math.min(reading, one.seconds);
    writing = Math.min(writing, (await run(1 + generated)).seconds);
  }
  await page.evaluate(() => /** @type {any} */ (globalThis).peer.close());
  await page.close();
  return { read, prompt: read / reading, generation: generated / (writing - reading) };
}

/** Processor time of every page there is: only one of them works. */
async function processorSeconds() {
  const { processInfo } = await devtools.send("SystemInfo.getProcessInfo");
  return processInfo
    .filter(({ type }) => type === "renderer")
    .reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}

/**
 * @param {string} name
 * @param {Speed} speed
 */
function tell(name, { read, prompt, generation }) {
  const numbers = [read, prompt.toFixed(1), generation.toFixed(1)];
  console.log(`${name.padEnd(28)}${numbers.map((number) => String(number).padStart(16)).join("")}`);
}

await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
const address = server.address();
if (address === null || typeof address === "string") throw new Error("the server has no port");
const url = `http://127.0.0.1:${address.port}/`;
const executablePath = process.env.CHROME;
if (!executablePath) throw new Error("CHROME is not set: run `cargo xtask bench model`");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const devtools = await browser.newBrowserCDPSession();
try {
  console.log(
    `Chromium ${browser.version()}, one thread, best of ${REPEATS}, seconds of processor time`,
  );
  const words = ["prompt tokens", "prompt tok/s", "generate tok/s"];
  console.log(" ".repeat(28) + words.map((word) => word.padStart(16)).join(""));
  tell(
    "the model that ships",
    await measure(openOurs, "/models/default.gguf", TEXT.repeat(3), GENERATED.small),
  );
  if (SMOLLM2 && existsSync(SMOLLM2)) {
    const text = TEXT.repeat(6);
    const ours = await measure(openOurs, "/smollm2.gguf", text, GENERATED.large);
    tell("SmolLM2, this engine", ours);
    const theirs = await measure(openWllama, "/smollm2.gguf", text, GENERATED.large);
    tell("SmolLM2, wllama", theirs);
    const times = (/** @type {number} */ a, /** @type {number} */ b) => (a / b).toFixed(1);
    console.log(
      `times as fast as wllama: prompt ${times(ours.prompt, theirs.prompt)}, generation ${times(ours.generation, theirs.generation)}`,
    );
  } else {
    console.log(`SmolLM2's file is not at ${SMOLLM2 || "cache/"}, so it is not measured.`);
  }

  const fresh = await (await browser.newContext()).newPage();
  await fresh.goto(`${url}page/index.html`);
  await fresh.locator("td.cell.live").first().waitFor();
  const shown = await fresh.evaluate(() => performance.now());
  await fresh.getByRole("button", { name: "Step", exact: true }).click();
  await fresh.locator('.body[data-tokens="1"]').waitFor();
  const token = await fresh.evaluate(() => performance.now());
  console.log(
    `first distribution ${shown.toFixed(0)} ms after opening the page, first token ${token.toFixed(0)} ms`,
  );
} finally {
  await browser.close();
  server.close();
}
