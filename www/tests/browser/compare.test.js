import assert from "node:assert/strict";
import { test } from "node:test";
import { accessibility, builtPage, openPage, takeShots } from "./harness.js";
import { distribution, tokenCount } from "./reader.js";

const STATE =
  "#v=1&p=The+dog+ran+to+the&pl=temperature(t=2)+|+top_p(p=0.9)+|+categorical()&s=5&n=2";

const { site, browser } = await builtPage();

test("two orders of temperature and top-p keep different sets, and the stage is named", async () => {
  const { page, problems } = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  await page.goto(site.url + STATE);
  await distribution(page);
  await tokenCount(page, 2);
  await page.getByText("Compare pipelines").click();

  // The first suggestion is the other order of the page's own stages.
  const other = page.getByLabel("Pipeline B", { exact: true });
  assert.match(await other.inputValue(), /^top_p\(.*\) \| temperature\(t=2\) \| categorical/);
  await page
    .getByText(/A and B part at stage 1: A has temperature\(t=2\), B has top_p\(/)
    .waitFor();
  await page.getByText(/In the end A can draw \d+ tokens, B \d+\./).waitFor();
  // The order that cuts first is warned about, with the reason.
  await page
    .getByText(/temperature\(t=2\) comes after top_p\(.*the cut was made on/)
    .first()
    .waitFor();
  const texts = await page.locator(".rival .legend").allTextContents();
  const kept = texts.map((text) =>
    Number(text.replace(/\u202f/g, "").match(/Keeps (\d+) token/)?.[1]),
  );
  assert.equal(kept.length, 2);
  assert.ok((kept[0] ?? 0) > (kept[1] ?? 0), `temperature first keeps more at t=2: ${kept}`);

  // Up to four; a bad one is refused beside its field while the others stay.
  await page.getByRole("button", { name: "Add a pipeline" }).click();
  const third = page.getByLabel("Pipeline C", { exact: true });
  await third.fill("min_p(m=0.1) | greedy()");
  await third.press("Enter");
  await page.getByText(/A and C part at stage 1: .*C has min_p\(/).waitFor();
  await page.getByRole("button", { name: "Add a pipeline" }).click();
  const fourth = page.getByLabel("Pipeline D", { exact: true });
  await fourth.fill("top_p(p=2)");
  await fourth.press("Enter");
  await page.getByText("top_p.p is 2, but must be from 0 to 1").waitFor();
  assert.equal(await page.getByRole("button", { name: "Add a pipeline" }).count(), 0);
  await page.getByLabel("Remove pipeline D").click();
  await takeShots(page, "compare");

  // The comparison is part of the link.
  await page.waitForURL(/&c2=min_p/);
  const again = await openPage(browser);
  await again.page.goto(page.url());
  await again.page.getByText(/A and C part at stage 1: .*C has min_p\(/).waitFor();
  assert.deepEqual([...problems, ...again.problems], []);
});

test("what each truncation keeps alone, and all of them, stands beside what they keep in order", async () => {
  const { page, problems } = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  const truncations = "top_k(k=5) | min_p(m=0.02) | categorical()";
  await page.goto(`${site.url}#v=1&p=The+dog+ran+to+the&pl=${truncations}&s=5&c1=greedy()`);
  await distribution(page);
  await page.getByText(/Alone, Top-k would keep 5, Min-p would keep \d+; all of them \d+/).click();
  const table = page.getByRole("table", { name: /What each truncation keeps without the others/ });
  const kept = async (/** @type {RegExp} */ name) => {
    const row = table.getByRole("row", { name });
    return Number(await row.getByRole("cell").first().textContent());
  };
  const [first, second] = [await kept(/^top_k/), await kept(/^min_p/)];
  assert.equal(first, 5);
  assert.ok((await kept(/kept by every one alone/)) <= Math.min(first, second));
  assert.ok((await kept(/kept one after the other/)) >= 1);
  assert.deepEqual(problems, []);
});

test("worked number 1: the two orders of temperature keep different sets of a row by hand", async () => {
  const { page, problems } = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  const bench = "h=a+3%0Ab+2%0Ac+1&hp=top_p(p=0.8)+|+temperature(t=0.5)+|+categorical()&hu=0.9";
  await page.goto(`${site.url}${STATE}&${bench}`);
  await page.getByRole("heading", { name: "The scores as they are" }).waitFor();
  await page.getByText("Other pipelines on these scores").click();
  const other = page.getByLabel("Pipeline B by hand", { exact: true });
  assert.match(await other.inputValue(), /^temperature\(t=0\.5\) \| top_p\(p=0\.8\)/);
  const words = page.locator(".by-hand .parting");
  await words.waitFor();
  assert.equal(
    await words.textContent(),
    "A and B part at stage 1: A has top_p(p=0.8), B has temperature(t=0.5). " +
      "top_p(p=0.8) keeps 2 tokens in A and 1 in B. In the end A can draw 2 tokens, B 1. " +
      "Only A can draw “b”. A draws “b”, B draws “a”.",
  );
  const kept = page.locator(".by-hand .rival .legend");
  assert.match((await kept.nth(0).textContent()) ?? "", /Keeps 2 tokens/);
  assert.match((await kept.nth(1).textContent()) ?? "", /Keeps 1 token,/);
  const table = page.getByRole("group", { name: "Final probabilities by pipeline by hand" });
  const row = table.getByRole("row", { name: /^b/ });
  // e^2 / (e^3 + e^2 + e^1), then sharpened; the other order has removed it.
  assert.match((await row.getByRole("cell").nth(0).textContent()) ?? "", /0\.245/);
  assert.match((await row.getByRole("cell").nth(1).textContent()) ?? "", /0\.119/);
  assert.match((await row.getByRole("cell").nth(2).textContent()) ?? "", /Top-p/);
  assert.deepEqual((await accessibility(page)).faults, []);

  // The bench and its comparison are part of the link.
  await page.waitForURL(/&h1=temperature/);
  const again = await openPage(browser);
  await again.page.goto(page.url());
  await again.page.locator(".by-hand .parting").waitFor();
  assert.deepEqual([...problems, ...again.problems], []);
});
