// What stands beside a step: penalties and what they saw, the family of a token, a held text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { accessibility, builtPage, openPage, takeShots } from "./harness.js";
import { button, columnCells, distribution, STATE, tokenCount, tokens } from "./reader.js";

const { site, browser } = await builtPage();

/** @param {string} fragment */
async function open(fragment) {
  const opened = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  await opened.page.goto(site.url + fragment);
  await distribution(opened.page);
  return opened;
}

/** Holds the page as it stands to axe. @param {import("playwright-core").Page} page */
async function isAccessible(page) {
  const { faults, rules } = await accessibility(page);
  assert.ok(rules > 30, "axe looked at nearly nothing");
  assert.deepEqual(faults, []);
}

test("a penalty shows what it looked at, how often, and which way scores moved", async () => {
  const text = "repetition_penalty(r=1.3, window=4) | categorical()";
  const { page, problems } = await open(`#v=1&p=The+dog+and+the+dog+and+the&pl=${text}&s=5`);
  await page.getByRole("heading", { name: "What the penalties saw" }).waitFor();
  await page.getByText(/It looks at 4 tokens, from \d+ to \d+ of \d+\./).waitFor();
  assert.equal(await page.locator(".history .in-view").count(), 4);
  const table = page.getByRole("table", { name: /Scores in nats before and after Repetition/ });
  const row = table.getByRole("row", { name: /and/ });
  assert.equal(await row.getByRole("cell").first().textContent(), "1×");
  const rows = await table.locator("tbody tr").count();
  assert.ok(rows >= 2 && rows <= 4, `${rows} tokens among the last four`);
  assert.ok((await table.getByText(/less likely/).count()) > 0);
  await isAccessible(page);
  assert.deepEqual(problems, []);
});

test("DRY shows the repetition, its length, its penalty, and the breaker", async () => {
  const text = 'dry(multiplier=0.8, breakers=["."]) | categorical()';
  const prompt = "Stop.+The+dog+saw+the+cat+and+the+dog+saw+the";
  const { page, problems } = await open(`#v=1&p=${prompt}&pl=${encodeURIComponent(text)}&s=5`);
  const table = page.getByRole("table", { name: /Scores in nats before and after DRY/ });
  const row = table.getByRole("row", { name: /cat/ });
  // " dog saw the" comes before " cat" and at the end.
  const cells = await row.getByRole("cell").allTextContents();
  const length = Number(cells[4]);
  assert.ok(length >= 3, `L is ${cells[4]}`);
  assert.equal(cells[5], (0.8 * 1.75 ** (length - 2)).toFixed(2));
  assert.match(cells[6] ?? "", /␣dog␣saw␣the/);
  assert.equal(await page.locator(".history .earlier").count(), length);
  assert.equal(await page.locator(".history .now").count(), length);
  await page.getByText(/Before the breaker \. at token \d+ nothing is matched\./).waitFor();
  // What differs from the defaults is written as in the text form.
  await page.locator(".more summary").filter({ hasText: 'breakers=["."]' }).waitFor();
  await takeShots(page, "penalties");
  await isAccessible(page);
  assert.deepEqual(problems, []);
});

test("a penalty on braces, quotes or digits is warned about", async () => {
  const text = "frequency_penalty(f=0.5, scope=context) | categorical()";
  const { page, problems } = await open(`#v=1&p=1,+2,+3,+1,+2,+3&pl=${text}&s=5`);
  await page.getByText(/frequency_penalty makes .* less likely: JSON, code and numbers/).waitFor();
  await page.getByLabel("Prompt").fill("The dog ran to the");
  await page.getByText(/frequency_penalty makes/).waitFor({ state: "detached" });
  assert.deepEqual(problems, []);
});

test("why a token was removed, and its family, by keyboard; the link carries it", async () => {
  const { page, problems } = await open(STATE);
  await page.getByLabel(/Find a token, by its text or id/).fill("␣mother");
  const found = page.getByRole("button", { name: /^Keep mother in the table/ }).first();
  await found.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Why ␣mother was removed" }).waitFor();
  await page
    .getByText(/Removed by Top-k: its rank was \d+ > 40\./)
    .first()
    .waitFor();
  const family = page.getByRole("table", { name: /the same word in other tokens/ });
  const own = family.getByRole("row", { name: /this token/ });
  assert.match((await own.getByRole("cell").allTextContents()).join(" "), /this token/);
  await takeShots(page, "family");
  await isAccessible(page);

  // In any case, and the margin by which a kept token lives is told.
  await page.getByLabel(/Find a token, by its text or id/).fill("␣MOTHER");
  await page
    .getByRole("button", { name: /^Keep mother in the table/ })
    .first()
    .waitFor();

  // By id, the token that is sure to be taken.
  const top = Number(
    (await page.locator("tbody button.token").first().getAttribute("title"))?.match(
      /id (\d+)/,
    )?.[1],
  );
  await page.getByLabel(/Find a token, by its text or id/).fill(String(top));
  await page.getByRole("group", { name: "Tokens found" }).locator(`[title="id ${top}"]`).click();
  await page.getByRole("heading", { name: /Why .* (lives|was taken)/ }).waitFor();
  assert.match((await page.locator("tr.pinned").last().textContent()) ?? "", /kept: .*≤ 40/);
  await page.waitForURL(new RegExp(`&k=\\d+,${top}(&|$)`));
  const again = await openPage(browser);
  await again.page.goto(page.url());
  await again.page.getByRole("heading", { name: /Why .* (lives|was taken)/ }).waitFor();
  assert.equal(await again.page.locator("tr.pinned").count(), 2);

  // A token that the model does not have is said, and nothing else is lost.
  const wrong = await open(`${STATE}&k=99999999`);
  await wrong.page.getByText(/token 99999999 is not in a vocabulary of \d+; no token/).waitFor();
  await wrong.page.locator("figure.ranks svg").waitFor();
  assert.deepEqual([...problems, ...again.problems], []);
});

test("a held text stays while the stages change, and is drawn again when let go", async () => {
  const { page, problems } = await open(`${STATE}&n=6&at=3`);
  await tokenCount(page, 6);
  const before = await tokens(page);
  const column = await columnCells(page, 1);
  await page.getByLabel("Hold the text while I change stages").check();
  const temperature = page.getByRole("spinbutton", { name: "Temperature: t" });
  await temperature.fill("1.9");
  await temperature.press("Enter");
  await page.waitForURL(/temperature\(t=1\.9\).*&f=0:/);
  await tokenCount(page, 6);
  assert.deepEqual(await tokens(page), before);
  await page.getByRole("heading", { name: "Step 4, stage by stage" }).waitFor();
  assert.notDeepEqual(await columnCells(page, 1), column);
  await page.getByLabel("Hold the text while I change stages").uncheck();
  await page.waitForURL((url) => !url.hash.includes("&f="));
  await tokenCount(page, 6);
  assert.notDeepEqual(await tokens(page), before);
  await button(page, "Undo").click();
  await tokenCount(page, 6);
  assert.deepEqual(await tokens(page), before);
  assert.deepEqual(problems, []);
});
