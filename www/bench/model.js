// Tokens a second in a browser, on one thread: the engine's optimised bundle beside wllama,
// which is llama.cpp for the web; and how soon the page shows its first distribution.
//
// `cargo xtask bench model` runs it. CHROME names the browser and SMOLLM2 the file of
// SmolLM2-135M-Instruct; without the file only the model that ships is measured.

import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";
import { firstMoments } from "../tests/browser/reader.js";

const WWW = join(import.meta.dirname, "..");
const SMOLLM2 = process.env.SMOLLM2 ?? "";
const TEXT =
  "The quick brown fox jumps over the lazy dog, and then it runs back home before the rain starts. ";
/** Tokens written. A small model writes more: what the browser says of time is coarse. */
const GENERATED = { small: 160, large: 32 };
const ROUNDS = 4;

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
 * @property {(text: string) => Promise<number>} read reads a text afresh and writes one token;
 *   answers how many were read
 * @property {(count: number) => Promise<number>} write goes on for so many tokens; answers how
 *   many were computed
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
  /** @type {any} */
  let session;
  /** @type {Peer} */
  const peer = {
    async read(prompt) {
      session?.free();
      session = new engine.Session(model, { prompt, pipeline: "greedy()", eos: [] });
      session.step();
      return session.prompt().ids.length;
    },
    async write(count) {
      for (let step = 0; step < count; step++) session.step();
      return count;
    },
    async close() {
      session?.free();
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
  let begun = "";
  const complete = async (/** @type {number} */ count, /** @type {boolean} */ goOn) => {
    const { timings } = await wllama.createCompletion({
      prompt: begun,
      max_tokens: count,
      temperature: 0,
      ignore_eos: true,
      cache_prompt: goOn,
    });
    return timings.prompt_n;
  };
  /** @type {Peer} */
  const peer = {
    read(prompt) {
      // Another beginning each time, so that nothing comes out of a cache.
      begun = `${runs++} ${prompt}`;
      return complete(1, false);
    },
    async write(count) {
      const again = await complete(count, true);
      // The text is still in the cache, but for its end.
      if (again > 2) throw new Error(`wllama read ${again} tokens again`);
      return again + count - 1;
    },
    close: () => wllama.exit(),
  };
  Object.assign(globalThis, { peer });
}

/**
 * Opens each engine in a page of its own and measures them in turn, some rounds, so that a busy
 * moment of the machine spoils a round of both. Times are the processor's, best of the rounds.
 * Reading and writing are timed apart: a difference of two long times would be mostly noise.
 * @param {((file: string) => Promise<void>)[]} engines
 * @param {string} file
 * @param {string} text
 * @param {number} generated
 * @returns {Promise<Speed[]>}
 */
async function measure(engines, file, text, generated) {
  const measured = [];
  for (const open of engines) {
    const page = await browser.newPage();
    await page.goto(url);
    await page.evaluate(open, file);
    // The first time the browser still compiles.
    await rate(page, "read", text);
    await rate(page, "write", generated);
    measured.push({ page, read: 0, prompt: 0, generation: 0 });
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const engine of measured) {
      const reading = await rate(engine.page, "read", text);
      const writing = await rate(engine.page, "write", generated);
      engine.read = reading.tokens;
      engine.prompt = Math.max(engine.prompt, reading.speed);
      engine.generation = Math.max(engine.generation, writing.speed);
    }
  }
  for (const { page } of measured) {
    await page.evaluate(() => /** @type {any} */ (globalThis).peer.close());
    await page.close();
  }
  return measured.map(({ read, prompt, generation }) => ({ read, prompt, generation }));
}

/**
 * Lets the engine of a page read a text or write some tokens; answers how many tokens it computed,
 * and how many a second of the processor's.
 * @param {import("playwright-core").Page} page
 * @param {"read" | "write"} call
 * @param {string | number} argument
 */
async function rate(page, call, argument) {
  const before = await processorSeconds();
  const tokens = await page.evaluate(
    ([call, argument]) => /** @type {any} */ (globalThis).peer[call](argument),
    /** @type {const} */ ([call, argument]),
  );
  return { tokens, speed: tokens / ((await processorSeconds()) - before) };
}

/** Processor time of every page there is: only one of them works at a time. */
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
    `Chromium ${browser.version()}, one thread, best of ${ROUNDS}, seconds of processor time`,
  );
  const words = ["prompt tokens", "prompt tok/s", "generate tok/s"];
  console.log(" ".repeat(28) + words.map((word) => word.padStart(16)).join(""));
  const text = TEXT.repeat(3);
  for (const speed of await measure([openOurs], "/models/default.gguf", text, GENERATED.small)) {
    tell("the model that ships", speed);
  }
  if (SMOLLM2 && existsSync(SMOLLM2)) {
    const both = [openOurs, openWllama];
    const speeds = await measure(both, "/smollm2.gguf", TEXT.repeat(6), GENERATED.large);
    const [ours, theirs] = /** @type {[Speed, Speed]} */ (speeds);
    tell("SmolLM2, this engine", ours);
    tell("SmolLM2, wllama", theirs);
    const times = (/** @type {number} */ a, /** @type {number} */ b) => (a / b).toFixed(1);
    console.log(
      `times as fast as wllama: prompt ${times(ours.prompt, theirs.prompt)}, generation ${times(ours.generation, theirs.generation)}`,
    );
  } else {
    console.log(`SmolLM2's file is not at ${SMOLLM2 || "cache/"}, so it is not measured.`);
  }

  for (let visit = 0; visit < ROUNDS; visit++) {
    const context = await browser.newContext();
    const { distribution, token } = await firstMoments(
      await context.newPage(),
      `${url}page/index.html`,
    );
    console.log(
      `first distribution ${distribution.toFixed(0)} ms after opening the page, first token ${token.toFixed(0)} ms`,
    );
    await context.close();
  }
} finally {
  await browser.close();
  server.close();
}
