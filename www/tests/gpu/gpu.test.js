// The device path in a real browser: the page that readers run on their own GPU.

import assert from "node:assert/strict";
import { test } from "node:test";
import { accessibility, builtPage, openPage, takeShots } from "../browser/harness.js";

const { site, browser } = await builtPage();

test("every integer from the GPU equals the CPU's", { timeout: 900_000 }, async (context) => {
  const started = performance.now();
  const { page, problems } = await openPage(browser);
  await page.goto(`${site.url}gpu.html`);
  await page.locator("#full:enabled").click({ timeout: 60_000 });
  const failure = page.locator("#adapter").filter({ hasText: "No check is possible" });
  await page.locator("#save:enabled").or(failure).waitFor({ timeout: 840_000 });
  assert.equal(await failure.count(), 0, (await page.locator("#adapter").textContent()) ?? "");
  const line = (await page.locator("#progress").textContent()) ?? "";
  const report = (await page.locator("#report").textContent()) ?? "";
  const faults = await page.locator("#faults li").allTextContents();
  assert.deepEqual(faults, []);
  assert.match(report, /every integer equal/);
  assert.match(report, /the published one/);
  assert.match(line, /^[1-9]\d* comparisons on .+, \d+ mutants rejected$/);
  const rejected = Number(/(\d+) mutants rejected/.exec(line)?.[1]);
  assert.ok(rejected >= 8, line);
  assert.deepEqual(problems, []);
  await takeShots(page, "gpu");
  context.diagnostic(`${Math.round((performance.now() - started) / 1000)} s`);
  context.diagnostic(line);
});

test("the benchmark fills its table", { timeout: 300_000 }, async () => {
  const { page, problems } = await openPage(browser);
  await page.goto(`${site.url}gpu.html#brief`);
  await page.locator("#bench:enabled").click({ timeout: 60_000 });
  await page.locator("#save:enabled").waitFor({ timeout: 240_000 });
  const rows = await page.locator("#lines tr").count();
  assert.ok(rows >= 1, `${rows} rows`);
  const [saved] = await Promise.all([page.waitForEvent("download"), page.locator("#save").click()]);
  const text = await (await saved.createReadStream()).toArray();
  const result = JSON.parse(Buffer.concat(text).toString());
  assert.equal(result.lines.length, rows);
  const { faults, rules } = await accessibility(page);
  assert.ok(rules > 15, `axe looked at ${rules} rules`);
  assert.deepEqual(faults, []);
  await page.setViewportSize({ width: 320, height: 640 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 320, `${wide} pixels wide`);
  assert.deepEqual(problems, []);
});
