import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, openPage, serve, takeShots } from "./harness.js";
import { distribution, tokenCount } from "./reader.js";

const STATE =
  "#v=1&p=The+dog+ran+to+the&pl=temperature(t=2)+|+top_p(p=0.9)+|+categorical()&s=5&n=2";

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

test("two orders of temperature and top-p keep different sets, and the stage is named", async () => {
  const { page, problems } = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  await page.goto(site.url + STATE);
  await distribution(page);
  await tokenCount(page, 2);
  await page.getByText("Compare pipelines").click();

  // The first suggestion is the other order of the page's own stages.
  const other = page.getByLabel("Pipeline B", { exact: true });
  assert.match(await other.inputValue(), /^top_p\(.*\) \| temperature\(t=2\) \| categorical/);
  await page.getByText(/It parts from A at Top-p, where A has Temperature/).waitFor();
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
  await page.getByText(/It parts from A at Min-p/).waitFor();
  await page.getByRole("button", { name: "Add a pipeline" }).click();
  const fourth = page.getByLabel("Pipeline D", { exact: true });
  await fourth.fill("top_p(p=2)");
  await fourth.press("Enter");
  await page.getByText("top_p.p is 2, but must be in 0..=1").waitFor();
  assert.equal(await page.getByRole("button", { name: "Add a pipeline" }).count(), 0);
  await page.getByLabel("Remove pipeline D").click();
  await takeShots(page, "compare");

  // The comparison is part of the link.
  await page.waitForURL(/&c2=min_p/);
  const again = await openPage(browser);
  await again.page.goto(page.url());
  await again.page.getByText(/It parts from A at Min-p/).waitFor();
  assert.deepEqual([...problems, ...again.problems], []);
});
