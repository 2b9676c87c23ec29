import assert from "node:assert/strict";
import { test } from "node:test";
import { builtPage, openPage, takeShots } from "./harness.js";
import { button, distribution, tokenCount, tokens } from "./reader.js";

const { site, browser } = await builtPage();

test("a course page with two elements has one engine, one model, and no more script tags", async () => {
  const { page, problems } = await openPage(browser);
  /** @type {string[]} */
  const requests = [];
  page.on("request", (request) => requests.push(new URL(request.url()).pathname));
  await page.goto(`${site.url}embed.html`);
  const first = page.locator("#temperature");
  const second = page.locator("#nucleus");
  await distribution(first);
  await distribution(second);
  assert.equal(page.workers().length, 1);
  assert.equal(requests.filter((path) => path.endsWith(".gguf")).length, 1);
  assert.equal(requests.filter((path) => path.endsWith(".wasm")).length, 1);
  assert.equal(await page.locator("script").count(), 1);

  // The presets and the locks.
  assert.equal(await first.getByLabel("Prompt").inputValue(), "The dog ran to the");
  assert.equal(await first.getByLabel("Prompt").isDisabled(), true);
  assert.equal(await first.getByRole("spinbutton", { name: "Temperature: t" }).isDisabled(), false);
  assert.equal(await first.getByRole("button", { name: "Add stage" }).count(), 0);
  assert.equal(await first.getByLabel("Seed", { exact: true }).isDisabled(), true);

  // Each goes its own way, and the address belongs to the page.
  await button(first, "Step").click();
  await tokenCount(first, 1);
  await tokenCount(second, 0);
  await button(second, "Step").click();
  await tokenCount(second, 1);
  assert.equal((await tokens(first)).length, 1);
  assert.equal(new URL(page.url()).hash, "");
  await takeShots(page, "embed");
  assert.deepEqual(problems, []);
});

test("the element's methods and events", async () => {
  const { page, problems } = await openPage(browser);
  await page.goto(`${site.url}embed.html`);
  await distribution(page.locator("#nucleus"));
  const seen = await page.evaluate(async () => {
    const scope = /** @type {any} */ (document.querySelector("#nucleus"));
    /** @type {string[]} */
    const events = [];
    scope.addEventListener("step", (/** @type {CustomEvent} */ event) =>
      events.push(`step ${event.detail.index} ${event.detail.trace.stages.length}`),
    );
    scope.addEventListener("error", (/** @type {CustomEvent} */ event) =>
      events.push(`error ${event.detail.code} ${event.detail.stage} ${event.detail.position}`),
    );
    const step = await scope.step();
    await scope.run(2);
    const trace = JSON.parse(await scope.exportTrace());
    scope.setAttribute("pipeline", "top_p(p=7)");
    await new Promise((resolve) => scope.addEventListener("error", resolve, { once: true }));
    scope.setAttribute("pipeline", "greedy()");
    await new Promise((resolve) => setTimeout(resolve, 100));
    await scope.reset();
    return { events, first: step.index, format: trace.format, tokens: trace.tokens.length };
  });
  assert.deepEqual(seen, {
    events: ["step 0 4", "step 1 4", "step 2 4", "error out_of_range top_p 6"],
    first: 0,
    format: "logitscope-trace",
    tokens: 3,
  });
  assert.deepEqual(problems, []);
});

test("a view shows its part of the page, and loads no more than that needs", async () => {
  const { page, problems } = await openPage(browser);
  await page.goto(`${site.url}embed.html`);
  // An element that goes away ends its download, which is no fault, but would look like one.
  await distribution(page);
  await page.evaluate(() => {
    document.querySelector("main")?.replaceChildren(
      ...["hand", "text", "compare"].map((view) => {
        const scope = document.createElement("logit-scope");
        scope.setAttribute("view", view);
        scope.id = view;
        return scope;
      }),
    );
  });
  await page.locator("#hand").getByRole("heading", { name: "The scores as they are" }).waitFor();
  assert.equal(await page.locator("#hand").getByLabel("Prompt", { exact: true }).count(), 0);
  const text = page.locator("#text");
  await button(text, "Step").click();
  await tokenCount(text, 1);
  assert.equal(await text.locator("table.stages").count(), 0);
  await page.locator("#compare").getByRole("button", { name: "Add a pipeline" }).waitFor();
  assert.deepEqual(problems, []);
});
