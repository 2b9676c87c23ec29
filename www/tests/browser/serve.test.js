import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { createServer } from "vite";
import { launch, openPage } from "./harness.js";

test("what `cargo xtask serve` serves works as dist does", async () => {
  const root = join(import.meta.dirname, "../..");
  // The browser first: a server without one would keep a failed test waiting.
  const browser = await launch();
  const server = await createServer({ root, logLevel: "error", server: { host: "127.0.0.1" } });
  try {
    await server.listen();
    const { page, problems } = await openPage(browser);
    await page.goto(server.resolvedUrls?.local[0] ?? "no address");
    await page.locator("td.cell.live").first().waitFor();
    // Lit says so once in its development build, which only this server loads.
    const ours = problems.filter((problem) => !problem.includes("Lit is in dev mode"));
    assert.deepEqual(ours, []);
  } finally {
    await browser.close();
    await server.close();
  }
});
