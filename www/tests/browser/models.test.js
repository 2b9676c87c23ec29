import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { builtPage, openPage, takeShots } from "./harness.js";
import { hostModels } from "./model-host.js";
import { button, distribution, STATE, tokenCount, tokens } from "./reader.js";

const MODEL = join(import.meta.dirname, "../../../models/default.gguf");

const { site, browser } = await builtPage();
/** @type {Awaited<ReturnType<typeof hostModels>>} */
let host;
let sha256 = "";

before(async () => {
  host = await hostModels();
  sha256 = createHash("sha256")
    .update(await readFile(MODEL))
    .digest("hex");
});

beforeEach(() => {
  host.asked.length = 0;
  host.up = true;
});

after(async () => {
  await host?.close();
});

/** A page with one generated token, and its part about models open. @param {string} [fragment] */
async function openModels(fragment = STATE) {
  const { page } = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  await page.goto(site.url + fragment);
  await distribution(page);
  await button(page, "Step").click();
  await tokenCount(page, 1);
  await page.getByText("Other models").click();
  await page.getByText(/Kept on this device:/).waitFor();
  return page;
}

/**
 * @param {import("playwright-core").Page} page
 * @param {string} name
 */
async function loadFrom(page, name) {
  await page.getByLabel("or the address of one:").fill(`${host.url}/${name}`);
  await button(page, "Load").click();
}

/** The model of the host is on the page. @param {import("playwright-core").Page} page */
async function opened(page) {
  await page.getByText(`SHA-256 ${sha256}`).waitFor();
  await tokenCount(page, 0);
  await distribution(page);
}

/** What of a file was fetched. @param {string} path */
const fetched = (path) =>
  host.asked
    .filter((asked) => asked.path === path && asked.method === "GET")
    .map(({ range }) => range);

test("a model is loaded from an address, kept, and found again without the network", async () => {
  const page = await openModels();
  const before = await tokens(page);
  await loadFrom(page, "good.gguf");
  await opened(page);
  await button(page, "Step").click();
  await tokenCount(page, 1);
  assert.deepEqual(await tokens(page), before, "the same model draws the same token");
  await page.waitForURL(/m=http:\/\/127.*&n=1/);
  assert.deepEqual(fetched("/good.gguf"), [null]);

  await page.reload();
  await page.getByText(`SHA-256 ${sha256}`).waitFor();
  await tokenCount(page, 1);
  assert.deepEqual(fetched("/good.gguf"), [null], "the second time it comes out of the store");

  await page.getByText("Other models").click();
  await page.getByText("Models that this browser keeps.").waitFor();
  await takeShots(page, "models");
  await page.goBack();
  await page.getByText(`SHA-256 ${sha256}`).waitFor({ state: "detached" });
  await tokenCount(page, 1);
  await button(page, "Remove all").click();
  await page.getByText("Models that this browser keeps.").waitFor({ state: "detached" });
  await page.getByText(/Kept on this device: 0\.0 MB/).waitFor();
});

test("a download that breaks off goes on where it stopped", async () => {
  const page = await openModels();
  await loadFrom(page, "breaks.gguf");
  await opened(page);
  const [first, second] = fetched("/breaks.gguf");
  assert.equal(first, null);
  const from = Number(/^bytes=(\d+)-$/.exec(second ?? "")?.[1]);
  assert.ok(from > 100_000, `it went on at ${second}`);
});

test("a host that sends whole files only is asked for one once more, not twice", async () => {
  const page = await openModels();
  await loadFrom(page, "whole.gguf");
  await opened(page);
  const [first, second, ...others] = fetched("/whole.gguf");
  assert.equal(first, null);
  assert.match(second ?? "", /^bytes=\d{5,}-$/, "it was asked for the rest, and sent everything");
  assert.deepEqual(others, []);
});

test("a host that compresses on the way tells a wrong size, and the model is loaded all the same", async () => {
  const page = await openModels();
  await loadFrom(page, "packed.gguf");
  await opened(page);
});

test("an address whose escapes are damaged is loaded, kept and shown", async () => {
  const page = await openModels();
  await loadFrom(page, "100%.gguf");
  await opened(page);
  await page.getByRole("button", { name: "Open 100%.gguf" }).waitFor();
});

test("a budget that is none is refused beside its control", async () => {
  const page = await openModels();
  const budget = page.getByLabel("Megabytes that may be kept");
  await budget.fill("-5");
  await budget.press("Enter");
  await page
    .locator("#budget-fault")
    .getByText("-5 is not how many megabytes may be kept")
    .waitFor();
  assert.equal(await budget.getAttribute("aria-invalid"), "true");
  assert.equal(await page.locator("#model-fault").count(), 0);
  await budget.fill("500");
  await budget.press("Enter");
  await page.locator("#budget-fault").waitFor({ state: "detached" });
});

test("a model's own name cannot push the page apart", async () => {
  const page = await openModels();
  await page.setViewportSize({ width: 320, height: 640 });
  await loadFrom(page, "long.gguf");
  await page.getByText(/Model: N{100}/).waitFor();
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 320, `the page is ${width} pixels wide`);
});

test("a server that goes down leaves the text as it was, and what arrived is used later", async () => {
  const page = await openModels();
  const before = await tokens(page);
  await loadFrom(page, "down.gguf");
  const fault = page.locator("#model-fault");
  await fault.getByText(/of 1\.\d MB arrived\): the server answered 503/).waitFor();
  assert.deepEqual(await tokens(page), before);
  await takeShots(page, "models-down");
  host.up = true;
  // Another visit, after the tab was closed: the part is still there.
  await page.reload();
  await tokenCount(page, 1);
  await page.getByText("Other models").click();
  await page.getByRole("button", { name: "Open down.gguf" }).click();
  await opened(page);
  assert.match(fetched("/down.gguf").at(-1) ?? "", /^bytes=\d{5,}-$/);
});

test("a model that will not fit is refused with the numbers before it is fetched", async () => {
  const page = await openModels();
  const before = await tokens(page);
  await loadFrom(page, "huge.gguf");
  const fault = page.locator("#model-fault");
  await fault.getByText(/The model has 5000\.0 MB, but the engine can hold 2147\.5 MB/).waitFor();
  assert.deepEqual(fetched("/huge.gguf"), []);

  await page.getByLabel("Megabytes that may be kept").fill("1");
  await page.getByLabel("Megabytes that may be kept").press("Enter");
  await page.getByText(/Kept on this device: 0\.0 MB/).waitFor();
  await loadFrom(page, "good.gguf");
  await fault.getByText(/of the 1\.0 MB that may be kept 0\.0 MB are in use/).waitFor();
  assert.deepEqual(fetched("/good.gguf"), []);
  assert.deepEqual(await tokens(page), before);
});

test("what is no model is refused beside its control, and is not kept", async () => {
  const page = await openModels();
  const before = await tokens(page);
  const fault = page.locator("#model-fault");
  await loadFrom(page, "lies.gguf");
  await fault.getByText(/the model file is malformed: 1152921504606846976 tensors/).waitFor();
  await loadFrom(page, "page.gguf");
  await fault.getByText(/it does not begin with "GGUF"/).waitFor();
  await loadFrom(page, "none.gguf");
  await fault.getByText(/the server answered 404/).waitFor();
  await page.getByLabel("or the address of one:").fill("ftp://example.org/x.gguf");
  await button(page, "Load").click();
  await fault.getByText("is not the address of a file on the web").waitFor();
  await page.getByText(/Kept on this device: 0\.0 MB/).waitFor();
  assert.deepEqual(await tokens(page), before);
});

test("an architecture that cannot run is refused before the file has arrived", async () => {
  const page = await openModels();
  await loadFrom(page, "foreign.gguf");
  await page
    .locator("#model-fault")
    .getByText(/architecture is "bloom"/)
    .waitFor();
  const { size } = await stat(MODEL);
  assert.ok(host.sent > 0 && host.sent < size / 2, `${host.sent} of ${size} bytes were sent`);
});

test("weights that are no numbers are told as the file's fault, not the pipeline's", async () => {
  const page = await openModels();
  const before = await tokens(page);
  await loadFrom(page, "broken.gguf");
  await page
    .getByRole("alert")
    .getByText('number 127 of tensor "output_norm.weight" is NaN')
    .waitFor();
  assert.deepEqual(await tokens(page), before, "the model before it is still there");
  // What no loading sees is told at the step that it spoils.
  await loadFrom(page, "damaged.gguf");
  const fault = page
    .getByRole("alert")
    .getByText("at step 0: the logit of token 0 is NaN, as the model gave it");
  await fault.waitFor();
  const pipeline = page.getByLabel("Pipeline, as text");
  assert.equal(await pipeline.getAttribute("aria-invalid"), "false");
  await page
    .getByRole("row", { name: /This page's own/ })
    .getByRole("button")
    .click();
  await fault.waitFor({ state: "detached" });
  await distribution(page);
});

test("loading tells how far it is, can be cancelled, and goes on later", async () => {
  const page = await openModels();
  const before = await tokens(page);
  await loadFrom(page, "slow.gguf");
  await page
    .getByText(/Loading slow\.gguf: 0\.\d MB of 1\.\d MB, about \d+ seconds? left/)
    .waitFor();
  // Nothing else has to wait for it.
  await button(page, "Step").click();
  await tokenCount(page, 2);
  await takeShots(page, "models-loading");
  await button(page, "Cancel").click();
  await page.getByRole("button", { name: "Open slow.gguf" }).waitFor();
  assert.deepEqual((await tokens(page)).slice(0, 1), before);
  await page.getByRole("button", { name: "Open slow.gguf" }).click();
  await opened(page);
  assert.match(fetched("/slow.gguf").at(-1) ?? "", /^bytes=\d{5,}-$/);
});

test("a link to another host's model fetches nothing before the reader agrees", async () => {
  const { page } = await openPage(browser);
  await page.goto(`${site.url}${STATE}&m=${host.url}/good.gguf`);
  await page.getByText("This link uses a model that is not on this device yet").waitFor();
  assert.deepEqual(host.asked, []);
  await button(page, "Load it").click();
  await opened(page);
});

test("a file of the reader's own is kept under its name", async () => {
  const page = await openModels();
  const file = page.getByLabel("Open another model, a GGUF file on this device:");
  await file.setInputFiles(MODEL);
  await opened(page);
  assert.match(page.url(), /m=file:\/\/\/default\.gguf/);
  await page.reload();
  await page.getByText(`SHA-256 ${sha256}`).waitFor();
});

test("no suggested model is fetched without a click", async () => {
  const { page, problems } = await openPage(browser);
  await page.goto(site.url);
  await distribution(page);
  await page.getByText("Other models").click();
  await page.getByText("SmolLM2 135M Instruct, Q8_0").waitFor();
  // The harness notes every request to another host.
  assert.deepEqual(problems, []);
});

test("a chat template is shown, and applied when the reader asks", async () => {
  const page = await openModels();
  assert.equal(await page.getByText("Chat template").count(), 0, "this model has none");
  await loadFrom(page, "chat.gguf");
  await page.getByText("Chat template").click();
  await page.getByText("{{ bos_token }}{% for m in messages %}").waitFor();
  await takeShots(page, "chat");
  await button(page, "Write the prompt as a message").click();
  const prompt = page.getByLabel("Prompt");
  await page.waitForURL(/p=%3Cuser%3E/);
  // As the command line writes it; see tests/chat.rs. The mark of the beginning is the tokenizer's.
  assert.match(await prompt.inputValue(), /^<user> The dog ran to the<\|endoftext\|> <reply>/);
  await button(page, "Undo").click();
  await page.waitForURL(/p=The/);
  assert.equal(await prompt.inputValue(), "The dog ran to the");
});

test("a full context ends the text, or slides if the reader likes", async () => {
  const { page, problems } = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  const prompt = "The dog ran to the house and the cat sat down. ".repeat(20).replaceAll(" ", "+");
  // Without the end of sequence, so that nothing but the context ends the text.
  const pipeline = "suppress(ids=[0])+|+temperature(t=0.8)+|+categorical()";
  await page.goto(`${site.url}#v=1&p=${prompt}&pl=${pipeline}&s=7`);
  await distribution(page);
  await button(page, "Run").click();
  await page.locator(".finish").getByText("Finished: the model's context is full.").waitFor();
  const before = await tokens(page);
  await button(page, "Go on, forgetting the beginning").click();
  // The last token that the whole context was seen for, then the first that was not.
  await tokenCount(page, before.length + 1);
  await button(page, "Step").click();
  await tokenCount(page, before.length + 2);
  await page.getByText(/of all tokens the first 128 are forgotten/).waitFor();
  await takeShots(page, "slides");
  const after = await tokens(page);
  assert.deepEqual(after.slice(0, before.length), before);
  await page.waitForURL(/w=slide/);
  await page.reload();
  await tokenCount(page, after.length);
  assert.deepEqual(await tokens(page), after);
  assert.deepEqual(problems, []);
});
