// What a reader writes wrongly is refused beside its control, as it was written, and the text
// that was generated stays.

import assert from "node:assert/strict";
import { test } from "node:test";
import { builtPage, openPage } from "./harness.js";
import { button, distribution, STATE, tokenCount, tokens } from "./reader.js";

const { site, browser } = await builtPage();

/** A page with three tokens. @param {string} [state] */
async function openWithText(state = STATE) {
  const opened = await openPage(browser);
  await opened.page.goto(`${site.url}${state}&n=3`);
  await tokenCount(opened.page, 3);
  return { ...opened, text: await tokens(opened.page) };
}

test("a number is read as a whole or refused as it was written", async () => {
  const { page, problems, text } = await openWithText();
  const t = page.getByRole("spinbutton", { name: "Temperature: t" });
  for (const written of ["0,8", "0.8.1", "abc", "", "1e309"]) {
    await t.fill(written);
    await t.press("Enter");
    await page.getByText(`temperature.t is "${written}", but must be a number`).waitFor();
    assert.equal(await t.inputValue(), written);
    assert.equal(await t.getAttribute("aria-invalid"), "true");
    assert.deepEqual(await tokens(page), text);
    assert.match(page.url(), /temperature\(t=0\.8\)/);
  }
  await t.fill("0.8");
  await t.press("Enter");
  await page.locator(".param .fault").waitFor({ state: "detached" });
  await t.press("ArrowUp");
  await page.waitForURL(/temperature\(t=0\.81\)/);
  await t.press("ArrowDown");
  await page.waitForURL(/temperature\(t=0\.8[,)]/);
  await tokenCount(page, 3);
  assert.deepEqual(await tokens(page), text);
  assert.deepEqual(problems, []);
});

test("what only the model can refuse is refused at its control too, and the text stays", async () => {
  const { page, problems, text } = await openWithText(
    STATE.replace("temperature", "suppress(ids=[9])+|+temperature"),
  );
  const ids = page.getByLabel("Suppress: ids");
  await ids.fill("[99999]");
  await ids.press("Enter");
  await page.getByText("suppress.ids names token 99999, which is not in a vocabulary of").waitFor();
  assert.equal(await ids.getAttribute("aria-invalid"), "true");
  assert.equal(await ids.inputValue(), "[99999]");
  await tokenCount(page, 3);
  assert.deepEqual(await tokens(page), text);

  // As text, and where a step fails rather than the reading.
  const pipeline = page.getByLabel("Pipeline, as text");
  for (const [written, message] of /** @type {const} */ ([
    ['forced_tokens(at={"1": 99999})', "forced_tokens.at names token 99999"],
    ["temperature(t=1e-308) | temperature(t=1e-308)", "temperature 1e-308 after 1e-308"],
  ])) {
    await pipeline.fill(written);
    await pipeline.press("Enter");
    await page.locator("#pipeline-fault").getByText(message).waitFor();
    assert.equal(await pipeline.inputValue(), written);
    await tokenCount(page, 3);
    assert.deepEqual(await tokens(page), text);
  }
  // The refused changes left nothing to take back.
  assert.equal(await button(page, "Undo").isDisabled(), true);
  await page.reload();
  await tokenCount(page, 3);
  assert.deepEqual(await tokens(page), text);
  // Leaving the field applies what stands in it, and what is pressed comes upon that.
  await pipeline.fill("suppress(ids=[99999])");
  await button(page, "Step").click();
  await page.locator("#pipeline-fault").getByText("suppress.ids names token 99999").waitFor();
  await page.locator(".body:not([data-busy])").waitFor();
  assert.deepEqual((await tokens(page)).slice(0, 3), text);
  await page.reload();
  await distribution(page);
  assert.deepEqual((await tokens(page)).slice(0, 3), text);

  // What was refused once is not asked again by leaving the field, so Step is what it says.
  const before = (await tokens(page)).length;
  await pipeline.fill("top_p(p=7)");
  await pipeline.press("Enter");
  await page.locator("#pipeline-fault").waitFor();
  await button(page, "Step").click();
  await tokenCount(page, before + 1);
  assert.deepEqual(problems, []);
});

test("a prompt that does not fit is refused beside it, and the text stays", async () => {
  const { page, problems, text } = await openWithText();
  const prompt = page.getByRole("textbox", { name: /^Prompt/ });
  const long = "word ".repeat(300);
  await prompt.fill(long);
  await page.getByText(/the prompt has \d+ tokens, but the context holds 256/).waitFor();
  assert.equal(await prompt.inputValue(), long);
  assert.equal(await prompt.getAttribute("aria-invalid"), "true");
  await tokenCount(page, 3);
  assert.deepEqual(await tokens(page), text);
  await prompt.fill("The dog ran to the");
  await page.locator("#prompt-fault").waitFor({ state: "detached" });
  await tokenCount(page, 3);
  assert.deepEqual(await tokens(page), text);
  assert.deepEqual(problems, []);
});

test("a link with a mistake keeps its tokens until it is right", async () => {
  const { page } = await openPage(browser);
  await page.goto(`${site.url}${STATE.replace("k=40", "k=-40")}&n=3`);
  await page.getByText("top_k.k is -40").waitFor();
  const pipeline = page.getByLabel("Pipeline, as text");
  await pipeline.fill((await pipeline.inputValue()).replace("-40", "40"));
  await pipeline.press("Enter");
  await tokenCount(page, 3);
});

test("what is locked cannot be changed by the pipeline's text either", async () => {
  const { page, problems } = await openPage(browser);
  await page.goto(`${site.url}embed.html`);
  const scope = page.locator("#temperature");
  await distribution(scope);
  const pipeline = scope.getByLabel("Pipeline, as text");
  for (const [written, lock] of /** @type {const} */ ([
    ["temperature(t=1) | top_k(k=2) | categorical(seed=3)", "stages"],
    ["temperature(t=1) | greedy()", "sampler"],
    ["temperature(t=1) | categorical(seed=4)", "seed"],
    ["temperature(t=0) | categorical(seed=3)", "stages"],
  ])) {
    await pipeline.fill(written);
    await pipeline.press("Enter");
    await scope.getByText(`“${lock}” is locked here`).waitFor();
    assert.equal(await pipeline.inputValue(), written);
    assert.equal(await scope.getByRole("columnheader").count(), 3, "Raw, Temperature, Categorical");
  }
  await pipeline.fill("temperature(t=2) | categorical()");
  await pipeline.press("Enter");
  await scope.locator("#pipeline-fault").waitFor({ state: "detached" });
  assert.equal(await scope.getByRole("spinbutton", { name: "Temperature: t" }).inputValue(), "2");
  assert.deepEqual(problems, []);
});

test("noise on every score is not told as one die", async () => {
  const { page, problems } = await openPage(browser);
  await page.goto(`${site.url}#v=1&p=The+dog+ran+to+the&pl=gumbel_max()&s=7&n=1`);
  await page.getByText(/No single die decides\. Gumbel-max adds noise to every score/).waitFor();
  assert.equal(await page.locator(".die-bar .u").count(), 0, "no u is marked");
  assert.equal(await page.getByText("The nearest boundary").count(), 0);
  assert.deepEqual(problems, []);
});

test("an engine that could not be loaded is loaded when the reader tries again", async () => {
  const { page } = await openPage(browser);
  /** @type {string[]} */
  const uncaught = [];
  page.on("pageerror", (error) => uncaught.push(error.message));
  await page.route("**/*.wasm", (route) => route.abort());
  await page.goto(`${site.url}${STATE}&n=3`);
  await page.getByText(/The engine stopped: it could not be loaded/).waitFor();
  await page.unroute("**/*.wasm");
  await button(page, "Try again").click();
  await tokenCount(page, 3);
  assert.deepEqual(uncaught, []);
});
