// A GPU that fails, refuses or is not there: the page goes on with the same tokens, and says why.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { builtPage, DIST, GPU_MS, openPage, serve } from "./harness.js";
import { button, distribution, tokenCount, tokens } from "./reader.js";

/** Every token depends on those before it. */
const STATE =
  "#v=1&p=The+dog+ran+to+the&pl=repetition_penalty(r=1.2)+|+temperature(t=0.9)+|+top_k(k=40)+|+top_p(p=0.95)+|+categorical()&s=7";
/** More than any test here takes. */
const TOKENS = 60;
/** A step must not take longer, whatever happens to the GPU. */
const LIMIT_MS = 2_000;

const { site, browser } = await builtPage();
/** The tokens of the CPU. @type {string[]} */
let wanted;

before(async () => {
  const { page } = await openPage(browser);
  await page.goto(`${site.url}${STATE}&n=${TOKENS}`);
  await tokenCount(page, TOKENS);
  wanted = await tokens(page);
  await page.close();
});

/** @typedef {import("playwright-core").Page} Page */

/** The page with a few tokens, and its GPU chosen, which is software. @param {string} url */
async function onGpu(url) {
  const { page, problems } = await openPage(browser);
  await page.goto(`${url}${STATE}&n=2`);
  await distribution(page);
  await tokenCount(page, 2);
  await page.getByText("Every stage runs on the CPU").click();
  await page.getByLabel("Compute on").selectOption({ label: "The GPU, where it can" });
  return { page, problems };
}

/** Takes one more token, which must be the CPU's, and in time. @param {Page} page */
async function step(page) {
  const before = (await tokens(page)).length;
  const start = performance.now();
  await button(page, "Step").click();
  await tokenCount(page, before + 1);
  const took = performance.now() - start;
  assert.deepEqual(await tokens(page), wanted.slice(0, before + 1));
  assert.ok(took < LIMIT_MS, `a step took ${Math.round(took)} ms`);
}

/** Why the CPU computes, as the page says it. @param {Page} page @param {RegExp} why */
function reason(page, why) {
  return page.locator(".places p").filter({ hasText: why });
}

/** @param {Page} page */
function workerOf(page) {
  const worker = page.workers().at(-1);
  assert.ok(worker, "the page has no worker");
  return worker;
}

/** How often results were read back from a GPU, from when it is first asked. @param {Page} page */
async function launches(page) {
  return await workerOf(page).evaluate(() => {
    const scope = /** @type {any} */ (self);
    if (scope.launches === undefined) {
      scope.launches = 0;
      const { prototype } = scope.GPUBuffer;
      const { mapAsync } = prototype;
      prototype.mapAsync = function (/** @type {any[]} */ ...args) {
        scope.launches += 1;
        return mapAsync.apply(this, args);
      };
    }
    return scope.launches;
  });
}

/** Loses the GPU at a moment of the next step on it. @param {Page} page @param {string} moment */
async function loseAt(page, moment) {
  await workerOf(page).evaluate((moment) => {
    const scope = /** @type {any} */ (self);
    scope.lost = "";
    const { GPUBuffer, GPUDevice, GPUOutOfMemoryError, GPUQueue } = scope;
    /** @param {any} prototype @param {string} name @param {(own: any) => any} act */
    const once = (prototype, name, act) => {
      const original = prototype[name];
      prototype[name] = function (/** @type {any[]} */ ...args) {
        prototype[name] = original;
        const instead = act(this);
        const result = original.apply(this, args);
        return instead ?? result;
      };
    };
    if (moment === "for want of memory") {
      once(GPUDevice.prototype, "popErrorScope", () => {
        scope.lost = moment;
        return Promise.resolve(new GPUOutOfMemoryError("no room"));
      });
      return;
    }
    const [prototype, name] = {
      "before its commands were submitted": [GPUQueue.prototype, "submit"],
      "before its result was mapped": [GPUBuffer.prototype, "mapAsync"],
      "while its result was mapped": [GPUBuffer.prototype, "getMappedRange"],
    }[moment] ?? [GPUDevice.prototype, "unknown"];
    // A step encodes first, which tells the device.
    once(GPUDevice.prototype, "createCommandEncoder", (device) => {
      once(prototype, name, () => {
        scope.lost = moment;
        device.destroy();
      });
    });
  }, moment);
}

/** Goes on until the GPU computes again. @param {Page} page */
async function untilOnGpu(page) {
  const found = page.getByText("5 of 5 stages run on the GPU");
  for (let turn = 0; turn < 20; turn++) {
    if (await found.isVisible()) return;
    await page.waitForTimeout(1_000);
    await step(page);
  }
  assert.fail("the GPU did not come back");
}

/** @param {Page} page @param {string} moment @param {RegExp} why */
async function survives(page, moment, why) {
  await loseAt(page, moment);
  await step(page);
  assert.equal(await workerOf(page).evaluate(() => /** @type {any} */ (self).lost), moment);
  await page.getByText("Every stage runs on the CPU").waitFor();
  await reason(page, why).waitFor();
  await step(page);
}

test("a GPU that is lost at any moment of a step costs no token", {
  timeout: 480_000,
}, async () => {
  const { page } = await onGpu(site.url);
  await page.getByText("5 of 5 stages run on the GPU").waitFor({ timeout: GPU_MS });
  await launches(page);
  await step(page);
  await step(page);
  assert.ok((await launches(page)) >= 2, "the steps were not on the GPU");

  await survives(page, "before its commands were submitted", /the GPU was lost/);
  await untilOnGpu(page);
  await survives(page, "before its result was mapped", /the GPU was lost/);
  await untilOnGpu(page);
  await survives(page, "while its result was mapped", /the GPU was lost/);
  assert.equal(page.workers().length, 1);
  await page.close();
});

test("a GPU out of memory costs no token", { timeout: 300_000 }, async () => {
  const { page } = await onGpu(site.url);
  await page.getByText("5 of 5 stages run on the GPU").waitFor({ timeout: GPU_MS });
  await survives(page, "for want of memory", /out of memory/);
  await page.close();
});

/** What a worker finds in place of a GPU, and what the page says then. @type {[string, string, RegExp][]} */
const MISSING = [
  [
    "without WebGPU",
    'Object.defineProperty(WorkerNavigator.prototype, "gpu", { get: () => undefined });',
    /no WebGPU here/,
  ],
  ["without an adapter", "GPU.prototype.requestAdapter = async () => null;", /found no GPU/],
  [
    "when the adapter is refused",
    'GPU.prototype.requestAdapter = async () => { throw new Error("blocked by a policy"); };',
    /gave no GPU: blocked by a policy/,
  ],
  [
    "when no adapter ever comes",
    "GPU.prototype.requestAdapter = () => new Promise(() => {});",
    /gave no GPU: it did not answer/,
  ],
  [
    "when the device is refused",
    'GPUAdapter.prototype.requestDevice = async () => { throw new Error("refused"); };',
    /does not let Logitscope use the GPU/,
  ],
  [
    "when no device ever comes",
    "GPUAdapter.prototype.requestDevice = () => new Promise(() => {});",
    /did not say within 5 seconds/,
  ],
  [
    "when the limits are too low",
    'Object.defineProperty(GPUSupportedLimits.prototype, "maxComputeInvocationsPerWorkgroup", { get: () => 16 });',
    /offers less than every WebGPU device must/,
  ],
];

for (const [name, script, why] of MISSING) {
  test(`the CPU computes ${name}`, { timeout: 120_000 }, async () => {
    const own = await serve(DIST, "", `${script}\n`);
    try {
      const { page, problems } = await onGpu(own.url);
      await reason(page, why).waitFor({ timeout: 60_000 });
      await page.getByText("Every stage runs on the CPU").waitFor();
      await step(page);
      assert.deepEqual(problems, []);
      await page.close();
    } finally {
      await own.close();
    }
  });
}
