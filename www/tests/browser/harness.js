// What every browser test needs: dist/ behind a plain static server, and a real Chromium.

import { readFileSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, normalize, sep } from "node:path";
import { after } from "node:test";
import { chromium } from "playwright-core";

/** The pages as they are delivered. */
export const DIST = join(import.meta.dirname, "../../../dist");
/** Screenshots for people to look at; ignored by git. */
const SHOTS = join(import.meta.dirname, "../shots");

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** A software GPU has been opened and measured within this time, however busy the machine is. */
export const GPU_MS = 180_000;
/** Anything else on a page is there within this time. */
const PAGE_MS = 60_000;

/** What a static host says about a file. @type {Record<string, string>} */
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

/**
 * Serves a folder and nothing else: no rewriting, no headers that a plain host lacks.
 * @param {string} [folder]
 * @param {string} [prefix] path under which the folder appears, such as `/course/week-3`
 * @param {string} [workerScript] what runs in every worker before its own script
 */
export async function serve(folder = DIST, prefix = "", workerScript = "") {
  /** @type {Set<string>} */
  const sent = new Set();
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    const inside = pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : "/missing";
    const file = join(
      folder,
      normalize(decodeURIComponent(inside.endsWith("/") ? `${inside}index.html` : inside)),
    );
    try {
      if (!file.startsWith(folder + sep)) throw new Error("outside the folder");
      const body = await readFile(file);
      sent.add(file);
      response.setHeader("content-type", TYPES[extname(file)] ?? "application/octet-stream");
      const isWorker = /\bworker-[^/]*\.js$/.test(file);
      response.end(isWorker && workerScript ? workerScript + body : body);
    } catch {
      response.statusCode = 404;
      response.end("not found");
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  // A test that failed before it closed its server ends all the same.
  server.unref();
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    url: `http://127.0.0.1:${address.port}${prefix}/`,
    /** The files that were asked for. */
    sent,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

/**
 * Starts the browser that `CHROME` names. Without one the tests fail: they never skip.
 * @param {{ webgpu?: boolean }} [options] whether it has its software GPU; it has if left out
 */
export async function launch({ webgpu = true } = {}) {
  const executablePath = process.env.CHROME;
  if (!executablePath) {
    throw new Error("CHROME is not set: run the browser tests with `cargo xtask test browser`");
  }
  return await chromium.launch({
    executablePath,
    args: [
      ...(webgpu
        ? [
            "--enable-unsafe-webgpu",
            "--use-webgpu-adapter=swiftshader",
            // It unrolls the zeroing of workgroup memory, and then compiles that for seconds.
            "--disable-dawn-features=use_vulkan_zero_initialize_workgroup_memory_extension",
          ]
        : []),
      "--no-sandbox",
      "--disable-dev-shm-usage",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--disable-quic",
    ],
  });
}

/**
 * The page as it is delivered, and a browser to open it in, for all tests of a file; both end
 * after the last.
 */
export async function builtPage() {
  const site = await serve();
  const browser = await launch();
  after(async () => {
    await browser.close();
    await site.close();
  });
  return { site, browser };
}

/**
 * A new page that collects everything that must not happen: errors, warnings on the
 * console, failed requests, and requests to any other host.
 * @param {import("playwright-core").Browser} browser
 * @param {import("playwright-core").BrowserContextOptions} [options]
 */
export async function openPage(browser, options) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(PAGE_MS);
  /** @type {string[]} */
  const problems = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on("requestfailed", (request) => {
    // A page that is left drops what it was fetching.
    if (request.failure()?.errorText === "net::ERR_ABORTED") return;
    problems.push(`failed: ${request.url()}`);
  });
  page.on("request", (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol.startsWith("http") && hostname !== "127.0.0.1") {
      problems.push(`third party: ${request.url()}`);
    }
  });
  return { page, problems };
}

/**
 * Pictures of the page as different readers see it: light, dark, and 320 pixels wide.
 * @param {import("playwright-core").Page} page
 * @param {string} name
 */
export async function takeShots(page, name) {
  await mkdir(SHOTS, { recursive: true });
  const before = page.viewportSize();
  const shot = (/** @type {string} */ kind) =>
    page.screenshot({ path: join(SHOTS, `${name}-${kind}.png`), fullPage: true });
  await page.emulateMedia({ colorScheme: "light" });
  await shot("light");
  await page.emulateMedia({ colorScheme: "dark" });
  await shot("dark");
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 320, height: 640 });
  await shot("narrow");
  if (before) await page.setViewportSize(before);
}

/**
 * What axe finds wrong with the page as it stands, and how many of its rules hold.
 * @param {import("playwright-core").Page} page
 */
export async function accessibility(page) {
  return await page.evaluate(async (axe) => {
    // biome-ignore lint/security/noGlobalEval: a script of the test, as a tag would load it
    globalThis.eval(axe);
    const { violations, passes } = await /** @type {any} */ (globalThis).axe.run();
    const faults = violations.map((/** @type {any} */ { id, help, nodes }) => ({
      id,
      help,
      where: nodes.map((/** @type {any} */ node) => node.html.slice(0, 120)),
    }));
    return { faults, rules: passes.length };
  }, AXE);
}
