import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { test } from "node:test";
import { brotliCompressSync } from "node:zlib";
import { DIST, launch, openPage, serve } from "./harness.js";
import { distribution } from "./reader.js";

/** What a reader downloads on the first visit besides the model, compressed: the project's promise. */
const BUDGET = 500_000;

test("the first visit is small, and what is used later comes later", async (context) => {
  const site = await serve();
  const browser = await launch();
  try {
    const { page } = await openPage(browser);
    await page.goto(site.url);
    await distribution(page);
    await page.waitForLoadState("networkidle");
    let total = 0;
    for (const file of site.sent) {
      if (extname(file) === ".gguf") continue;
      const bytes = readFileSync(file);
      const compressed = brotliCompressSync(bytes).length;
      total += compressed;
      context.diagnostic(`${basename(file)}: ${bytes.length} bytes, ${compressed} with brotli`);
    }
    context.diagnostic(
      `the first visit without the model: ${total} bytes with brotli, of ${BUDGET}`,
    );
    const names = [...site.sent].map((file) => basename(file));
    assert.ok(
      names.some((name) => /^logitscope_bg.*\.wasm$/.test(name)),
      "no engine was loaded",
    );
    assert.ok(!names.some((name) => /^logitscope_(sequences|gpu)/.test(name)), String(names));
    assert.ok(total <= BUDGET, `${total} bytes with brotli, but at most ${BUDGET} are promised`);

    // Where there is a GPU, another engine takes the place of the plain one.
    const size = (/** @type {string} */ file) => brotliCompressSync(readFileSync(file)).length;
    const sum = (/** @type {string[]} */ files) => files.reduce((all, file) => all + size(file), 0);
    const plain = [...site.sent].filter((file) => /^logitscope(-|_bg)/.test(basename(file)));
    const assets = readdirSync(join(DIST, "assets")).filter((name) => /^logitscope_gpu/.test(name));
    const withGpu = total - sum(plain) + sum(assets.map((name) => join(DIST, "assets", name)));
    context.diagnostic(`where there is a GPU: ${withGpu} bytes with brotli`);
    assert.ok(withGpu > total, "the engine with the device path is missing");
    assert.ok(withGpu <= BUDGET, `${withGpu} bytes with brotli where there is a GPU`);

    // The engine of the Sequences area comes when that is first used.
    await page.getByText("Sequences", { exact: true }).click();
    await page.getByRole("button", { name: "Write", exact: true }).click();
    await page.locator(".written").waitFor();
    const later = [...site.sent].filter((file) => /logitscope_sequences.*\.wasm$/.test(file));
    assert.equal(later.length, 1);
    const bytes = later.map((file) => readFileSync(file).length);
    context.diagnostic(`the engine of the Sequences area: ${bytes} bytes, on first use`);
  } finally {
    await browser.close();
    await site.close();
  }
});
