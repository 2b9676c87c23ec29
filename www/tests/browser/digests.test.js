import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { launch, serve } from "./harness.js";

const ROOT = join(import.meta.dirname, "../../..");

test("traces in the browser are those of the native engine, byte for byte", async () => {
  const site = await serve(ROOT);
  const browser = await launch();
  try {
    const page = await browser.newPage();
    await page.goto(`${site.url}www/index.html`);
    const { cases } = JSON.parse(readFileSync(join(ROOT, "tests/digests.json"), "utf8"));
    const results = await page.evaluate(async (cases) => {
      // As a text, because only the page knows these addresses.
      const load = (/** @type {string} */ address) => import(address);
      const engine = await load("/www/pkg/logitscope.js");
      const { traceAll } = await load("/www/tests/digests.js");
      await engine.default({ module_or_path: "/www/pkg/logitscope_bg.wasm" });
      const model = await fetch("/models/default.gguf");
      return traceAll(engine, new Uint8Array(await model.arrayBuffer()), cases);
    }, cases);
    assert.ok(results.length >= 3);
    const recorded = cases.map((/** @type {any} */ { tokens, digest }) => ({ tokens, digest }));
    assert.deepEqual(results, recorded);
  } finally {
    await browser.close();
    await site.close();
  }
});
