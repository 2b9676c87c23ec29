import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, openPage, serve, takeShots } from "./harness.js";

/** @type {Awaited<ReturnType<typeof serve>>} */
let site;
/** @type {Awaited<ReturnType<typeof launch>>} */
let browser;

before(async () => {
  site = await serve();
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await site?.close();
});

test("the page loads and its worker answers", async () => {
  const { page, problems } = await openPage(browser);
  await page.goto(site.url);
  await page.getByText(/Engine \d+\.\d+\.\d+/).waitFor();
  await takeShots(page, "index");
  assert.deepEqual(problems, []);
});

test("the page works from any folder of a host", async () => {
  const elsewhere = await serve(undefined, "/course/week-3");
  const { page, problems } = await openPage(browser);
  await page.goto(elsewhere.url);
  await page.getByText(/Engine \d+\.\d+\.\d+/).waitFor();
  assert.deepEqual(problems, []);
  await elsewhere.close();
});
