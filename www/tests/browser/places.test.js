// Where the stages run: the page says it, the reader may change it, and the tokens stay.

import assert from "node:assert/strict";
import { test } from "node:test";
import { builtPage, GPU_MS, launch, openPage, takeShots } from "./harness.js";
import { button, distribution, STATE, tokenCount, tokens } from "./reader.js";

const { site, browser } = await builtPage();

test("a software GPU is not used unless chosen, and then gives the same tokens", async () => {
  const { page, problems } = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  /** @type {string[]} */
  const fetched = [];
  page.on("request", (request) => fetched.push(request.url()));
  await page.goto(`${site.url}${STATE}&n=3`);
  await distribution(page);
  await tokenCount(page, 3);
  const wanted = await tokens(page);
  await page.getByText("Every stage runs on the CPU").click();
  await page.getByText("The browser's GPU is software").waitFor();
  assert.deepEqual(
    fetched.filter((url) => url.includes("logitscope_gpu")),
    [],
    "the larger engine was fetched for nothing",
  );

  await page.getByLabel("Compute on").selectOption({ label: "The GPU, where it can" });
  await page.getByText("4 of 4 stages run on the GPU").waitFor({ timeout: GPU_MS });
  await page.getByText("its logits are the CPU's, bit for bit").waitFor();
  await tokenCount(page, 3);
  assert.deepEqual(await tokens(page), wanted);
  await button(page, "Step").click();
  await tokenCount(page, 4);
  const onGpu = await tokens(page);
  await takeShots(page, "places");

  await page.getByLabel("Compute on").selectOption({ label: "The CPU" });
  await page.getByText("You chose the CPU.").waitFor();
  await tokenCount(page, 4);
  assert.deepEqual(await tokens(page), onGpu);
  assert.deepEqual(problems, []);
});

test("the page says for which token it holds, and a stage that only now and then needs the CPU is told", async () => {
  const { page, problems } = await openPage(browser, { viewport: { width: 320, height: 640 } });
  // The end is held back, after a temperature, for three tokens.
  const pipeline =
    "temperature(t=0.8)+|+min_new_tokens(n=3,+eos=[1])+|+top_k(k=40)+|+categorical()";
  await page.goto(`${site.url}#v=1&p=The+dog+ran+to+the&pl=${pipeline}&s=7&n=2`);
  await distribution(page);
  await tokenCount(page, 2);
  await page.getByText("Every stage runs on the CPU").click();
  await page.getByLabel("Compute on").selectOption({ label: "The GPU, where it can" });
  await page
    .getByText("Token 3, the next: every stage runs on the CPU")
    .waitFor({ timeout: GPU_MS });
  await page.getByText("min_new_tokens before it runs on the CPU").first().waitFor();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 320, `${wide} pixels wide`);
  await button(page, "Step").click();
  await page.getByText("Token 4, the next: 4 of 4 stages run on the GPU").waitFor();
  assert.deepEqual(problems, []);
  await page.close();
});

test("without WebGPU the CPU computes, and the page says so", async () => {
  const plain = await launch({ webgpu: false });
  try {
    const { page, problems } = await openPage(plain);
    await page.goto(site.url + STATE);
    await distribution(page);
    await page.getByText("Every stage runs on the CPU").click();
    await page.getByText(/no WebGPU here|found no GPU/).waitFor();
    assert.deepEqual(problems, []);
  } finally {
    await plain.close();
  }
});
