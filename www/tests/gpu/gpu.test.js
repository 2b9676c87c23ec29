// The device path in a real browser: the page that readers run on their own GPU.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  accessibility,
  builtPage,
  DIST,
  GPU_MS,
  openPage,
  serve,
  takeShots,
} from "../browser/harness.js";

const { site, browser } = await builtPage();

test("every integer from the GPU equals the CPU's", { timeout: 900_000 }, async (context) => {
  const started = performance.now();
  const { page, problems } = await openPage(browser);
  await page.goto(`${site.url}gpu.html`);
  await page.locator("#full:enabled").click({ timeout: GPU_MS });
  const failure = page.locator("#adapter").filter({ hasText: "No check is possible" });
  await page.locator("#save:enabled").or(failure).waitFor({ timeout: 840_000 });
  assert.equal(await failure.count(), 0, (await page.locator("#adapter").textContent()) ?? "");
  const line = (await page.locator("#progress").textContent()) ?? "";
  const report = (await page.locator("#report").textContent()) ?? "";
  const faults = await page.locator("#faults li").allTextContents();
  assert.deepEqual(faults, []);
  assert.match(report, /every integer equal/);
  assert.match(report, /\(the published one\)/);
  assert.match(line, /^[1-9]\d* comparisons on .+, \d+ mutants rejected$/);
  const rejected = Number(/(\d+) mutants rejected/.exec(line)?.[1]);
  assert.ok(rejected >= 8, line);
  assert.deepEqual(problems, []);
  await takeShots(page, "gpu");
  context.diagnostic(`${Math.round((performance.now() - started) / 1000)} s`);
  context.diagnostic(line);
});

test("the benchmark fills its table", { timeout: 600_000 }, async () => {
  const { page, problems } = await openPage(browser);
  await page.goto(`${site.url}gpu.html#brief`);
  await page.locator("#bench:enabled").click({ timeout: GPU_MS });
  await page.locator("#save:enabled").waitFor({ timeout: 400_000 });
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

/** Loses the first GPU at its third result. */
const LOSING = `
const { requestDevice } = GPUAdapter.prototype;
GPUAdapter.prototype.requestDevice = async function (...args) {
  const device = await requestDevice.apply(this, args);
  self.first ??= device;
  return device;
};
const { mapAsync } = GPUBuffer.prototype;
let results = 0;
GPUBuffer.prototype.mapAsync = function (...args) {
  results += 1;
  if (results === 3) self.first.destroy();
  return mapAsync.apply(this, args);
};
`;

test("a check that loses its GPU says so, keeps nothing, and can be tried again", {
  timeout: 600_000,
}, async () => {
  const own = await serve(DIST, "", LOSING);
  try {
    const { page } = await openPage(browser);
    await page.goto(`${own.url}gpu.html`);
    await page.locator("#quick:enabled").click({ timeout: GPU_MS });
    const said =
      "The check stopped before its end, because the GPU was lost: it stopped, or its driver was " +
      "restarted. Close other programs that use the GPU and try again.";
    const broken = page.getByRole("alert").filter({ hasText: said });
    await broken.waitFor({ timeout: GPU_MS });
    assert.match((await page.locator("#adapter").textContent()) ?? "", /^Your GPU: /);
    assert.equal(await page.locator("#progress").textContent(), "");
    assert.ok(await page.locator("#save").isDisabled(), "half a check can be saved");
    await page.locator("#quick:enabled").click();
    await page.locator("#progress:not(:empty)").waitFor({ timeout: GPU_MS });
    assert.equal(await broken.count(), 0);
    await page.close();
  } finally {
    await own.close();
  }
});

test("a browser in which the thread does not run is told so", { timeout: 120_000 }, async () => {
  const own = await serve(DIST, "", "this is no script;");
  try {
    const { page } = await openPage(browser);
    await page.goto(`${own.url}gpu.html`);
    await page.getByText("No check is possible here, because its script did not load").waitFor();
    await page.close();
  } finally {
    await own.close();
  }
});
