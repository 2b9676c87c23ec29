import assert from "node:assert/strict";
import { test } from "node:test";
import { builtPage, openPage, takeShots } from "./harness.js";
import { distribution, STATE } from "./reader.js";

const { site, browser } = await builtPage();

test("another framework's settings become a pipeline, and the pipeline becomes code", async () => {
  const { page, problems } = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  await page.goto(site.url + STATE);
  await distribution(page);
  await page.getByText("As other frameworks do it").click();

  // llama.cpp's defaults, whose temperature comes last.
  await page.getByText("top_k 40 is on by default.").waitFor();
  const settings = page.getByLabel("Its settings, as JSON");
  await settings.fill('{"temperature": 0.5, "top_k": 0, "min_p": 0.0}');
  await settings.blur();
  await page.getByText(/^top_p\(p=0\.95.*\| temperature\(t=0\.5\) \| categorical/).waitFor();
  await settings.fill('{"temprature": 0.5}');
  await settings.blur();
  await page
    .locator(".frameworks .fault")
    .getByText(/temprature/)
    .waitFor();
  assert.equal(await settings.inputValue(), '{"temprature": 0.5}');
  await settings.fill('{"temperature": 0.5, "top_k": 0, "min_p": 0.0}');
  await settings.blur();
  await page.getByRole("button", { name: "Compare with it" }).click();
  await page
    .getByText(/A and B part at stage 1: A has temperature\(t=0\.8\), B has top_p\(p=0\.95\)/)
    .waitFor();

  // A framework that masks after it has cut is warned about.
  await settings.fill('{"grammar": "root ::= \\"yes\\""}');
  await settings.blur();
  await page.getByText(/cuts before the grammar masks: if the grammar allows none/).waitFor();
  await settings.fill('{"temperature": 0.5, "top_k": 0, "min_p": 0.0}');
  await settings.blur();
  await page.getByText(/cuts before the grammar masks/).waitFor({ state: "detached" });

  await page.getByLabel("Form of the code").selectOption("vllm_python");
  await page
    .locator("pre")
    .getByText(/^SamplingParams\(temperature=0\.8, top_k=40, top_p=0\.9, seed=7\)/)
    .waitFor();
  await takeShots(page, "frameworks");

  await page.getByRole("button", { name: "Use this pipeline" }).click();
  await page.waitForURL(/pl=top_p\(p=0\.95/);

  // Which comes first is not documented there, so both orders are offered.
  await page.getByLabel("Framework").selectOption("openai");
  await settings.fill('{"temperature": 0.5, "top_p": 0.8}');
  await settings.blur();
  await page.getByText("Or, as its documents allow as well:").waitFor();
  assert.equal(await page.getByRole("button", { name: "Use this pipeline" }).count(), 2);
  assert.deepEqual(problems, []);
});
