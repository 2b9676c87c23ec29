import assert from "node:assert/strict";
import { test } from "node:test";
import { accessibility, builtPage, openPage } from "./harness.js";
import { distribution } from "./reader.js";

const STATE =
  "#v=1&p=The+dog+ran+to+the&pl=repetition_penalty(r=1.3)+|+temperature(t=1.2)+|+min_p(m=0.1)+|+categorical()&s=11&n=3";

const { site, browser } = await builtPage();

for (const [path, colorScheme] of /** @type {const} */ ([
  [STATE, "light"],
  [STATE, "dark"],
  ["embed.html", "light"],
])) {
  test(`${path.split("#")[0] || "the page"} is accessible as far as a machine can tell, ${colorScheme}`, async (context) => {
    const { page } = await openPage(browser, { colorScheme });
    await page.goto(site.url + path);
    await distribution(page);
    await page.locator("logit-scope svg").first().waitFor();
    await page.evaluate(() => {
      for (const scope of document.querySelectorAll("logit-scope")) {
        for (const part of scope.shadowRoot?.querySelectorAll("details") ?? []) part.open = true;
      }
    });
    const report = await accessibility(page);
    context.diagnostic(`${report.rules} rules hold`);
    assert.ok(report.rules > 30, "axe looked at nearly nothing");
    assert.deepEqual(report.faults, []);
  });
}

test("nothing is wider than a phone of 320 pixels", async () => {
  const { page } = await openPage(browser, { viewport: { width: 320, height: 640 } });
  for (const path of [STATE, "embed.html"]) {
    await page.goto(site.url + path);
    await distribution(page);
    const { scroll, client } = await page.evaluate(() => ({
      scroll: document.documentElement.scrollWidth,
      client: document.documentElement.clientWidth,
    }));
    assert.equal(scroll, client, `${path} scrolls sideways`);
  }
});

test("what has no place to break at widens nothing", async () => {
  const ids = `[${"1,".repeat(300)}9]`;
  for (const width of [320, 1280]) {
    const { page } = await openPage(browser, { viewport: { width, height: 640 } });
    await page.goto(site.url + STATE);
    await distribution(page);
    const pipeline = page.getByLabel("Pipeline, as text");
    for (const written of [
      `top_p(p=${"9".repeat(300)}x)`,
      `nothing${"x".repeat(300)}()`,
      `suppress(ids=${ids}`,
      `temperature(t=3) | top_k(k=9) | suppress(ids=${ids}) | temperature(t=2)`,
    ]) {
      await pipeline.fill(written);
      await pipeline.press("Enter");
      await page.locator("#pipeline-fault, p.warning").first().waitFor();
      const scroll = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.equal(scroll, width, `${written.slice(0, 20)} scrolls sideways at ${width}`);
    }
    // The edits that a stage made name the stage, and their table keeps to the page too.
    await page.locator("details.edits summary").first().waitFor();
    const scroll = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.equal(scroll, width, `the edits scroll sideways at ${width}`);
  }
});
