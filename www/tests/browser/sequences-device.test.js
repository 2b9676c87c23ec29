// The Sequences area with a GPU: rows that step together go there together, the results are the
// CPU's, and the area says where each row was computed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { builtPage, DIST, GPU_MS, openPage, serve } from "./harness.js";
import { distribution } from "./reader.js";

const { browser } = await builtPage();

const STATE =
  "#v=1&p=The+dog+ran+to+the+house.+The+dog+ran&pl=temperature(t=0.8)+|+top_k(k=40)+|+categorical()&s=7&n=1";

/** Counts in every thread how often results were read back from a GPU. */
const COUNTING = `
self.launches = 0;
if (self.GPUBuffer) {
  const { mapAsync } = GPUBuffer.prototype;
  GPUBuffer.prototype.mapAsync = function (...args) {
    self.launches += 1;
    return mapAsync.apply(this, args);
  };
}
`;

/** @typedef {import("playwright-core").Locator} Locator */
/** @typedef {import("playwright-core").Page} Page */

/** The cells of every table but those of where it was computed. @param {Locator} area */
async function findings(area) {
  const texts = await area
    .locator("table.plain :is(th, td), .written, .block")
    .evaluateAll((all) => all.map((cell) => cell.textContent?.trim() ?? ""));
  assert.ok(texts.length > 10, "nothing was found");
  return texts;
}

/** @type {{ tab: string, begin: string, fill: [string, string][], choose: [string, string][], drawsThere: boolean }[]} */
const TABS = [
  {
    tab: "Constraint",
    begin: "Write",
    fill: [["Tokens at most", "12"]],
    choose: [],
    drawsThere: false,
  },
  { tab: "Beams", begin: "Search", fill: [["Tokens at most", "4"]], choose: [], drawsThere: false },
  {
    tab: "Speculation",
    begin: "Speculate",
    fill: [["Tokens in all", "12"]],
    choose: [["Rule", "match"]],
    drawsThere: true,
  },
];

/**
 * Does the work of a tab; what it found, how often a GPU gave something back for it, and what the
 * area says of that.
 * @param {Page} page
 * @param {(typeof TABS)[number]} work
 */
async function done(page, { tab, begin, fill, choose }) {
  const area = page.locator("logit-sequences");
  await area.getByRole("tab", { name: tab, exact: true }).click();
  for (const [label, value] of choose) {
    await area.getByLabel(label).first().selectOption(value);
  }
  for (const [label, value] of fill) {
    await area.getByLabel(label).fill(value);
    await area.getByLabel(label).blur();
  }
  const before = await launches(page);
  await area.getByRole("button", { name: begin, exact: true }).click();
  await area.locator("details.places").first().waitFor({ state: "attached", timeout: GPU_MS });
  await area.locator(".panel:not([data-busy])").waitFor({ timeout: GPU_MS });
  assert.deepEqual(await area.locator(".fault").allTextContents(), []);
  const places = area.locator("details.places").first();
  return {
    found: await findings(area),
    launched: (await launches(page)) - before,
    summary: (await places.locator("summary").textContent())?.trim(),
    words: (await places.locator("p").textContent()) ?? "",
    stages: await places
      .locator("tbody tr")
      .evaluateAll((all) =>
        all.map((row) => [...row.children].map((cell) => cell.textContent?.trim() ?? "")),
      ),
  };
}

/** Launches of the area's own thread, which is the second; none before it starts. @param {Page} page */
async function launches(page) {
  const [, own] = page.workers();
  return (await own?.evaluate(() => /** @type {any} */ (self).launches)) ?? 0;
}

test("the Sequences area computes on a GPU, finds the same, and says where", {
  timeout: 600_000,
}, async () => {
  const own = await serve(DIST, "", COUNTING);
  try {
    const { page, problems } = await openPage(browser, { viewport: { width: 1280, height: 900 } });
    await page.goto(`${own.url}${STATE}`);
    await distribution(page);
    await page.getByText("Sequences", { exact: true }).click();
    const wanted = [];
    for (const work of TABS) {
      const cpu = await done(page, work);
      assert.equal(cpu.launched, 0, work.tab);
      assert.equal(cpu.summary, "Computed on the CPU");
      assert.match(cpu.words, /The browser's GPU is software/);
      assert.deepEqual(cpu.stages, []);
      wanted.push(cpu.found);
    }

    await page.getByText("Every stage runs on the CPU").click();
    await page.getByLabel("Compute on").selectOption({ label: "The GPU, where it can" });
    await page.getByText("3 of 3 stages run on the GPU").waitFor({ timeout: GPU_MS });
    for (const [index, work] of TABS.entries()) {
      const gpu = await done(page, work);
      assert.deepEqual(gpu.found, wanted[index], work.tab);
      assert.ok(gpu.launched > 0, `${work.tab}: nothing came from the GPU`);
      assert.equal(gpu.summary, "Computed with the GPU");
      // A draft model's rows are the CPU's; all others are told apart from them.
      const drafted = gpu.stages.filter(([, , why]) => why?.includes("draft model"));
      const [logits, ...stages] = gpu.stages.filter((row) => !drafted.includes(row));
      assert.equal(logits?.[0], "logits");
      const [, part, whole] = /^GPU, (\d+) of (\d+) rows$/.exec(logits?.[1] ?? "") ?? [];
      const [, drafts] = /^CPU, (\d+) of/.exec(drafted[0]?.[1] ?? "") ?? [];
      assert.equal(drafted.length, work.tab === "Speculation" ? 1 + stages.length : 0);
      assert.equal(Number(part) + Number(drafts ?? 0), Number(whole), String(gpu.stages));
      assert.ok(Number(part) > 1, String(logits));
      assert.ok(stages.length > 0);
      for (const [stage, where, why] of stages) {
        assert.match(where ?? "", work.drawsThere ? /^GPU/ : /^CPU/, `${work.tab}, ${stage}`);
        assert.ok(why, `${work.tab}, ${stage}: no reason`);
      }
    }

    const before = await launches(page);
    const area = page.locator("logit-sequences");
    await area.getByText("All of this is computed on the CPU").waitFor();
    await area.getByRole("button", { name: "Count", exact: true }).click();
    await area.getByText("Held to the model's own distribution").waitFor({ timeout: GPU_MS });
    assert.equal(await launches(page), before, "the laboratory");
    assert.deepEqual(problems, []);
    await page.close();
  } finally {
    await own.close();
  }
});
