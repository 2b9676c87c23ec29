import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { launch, openPage, serve } from "./harness.js";
import { distribution } from "./reader.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const STATE =
  "#v=1&p=The+dog+ran+to+the&pl=repetition_penalty(r=1.3)+|+temperature(t=1.2)+|+min_p(m=0.1)+|+categorical()&s=11&n=3";

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
    const report = await page.evaluate(async (axe) => {
      for (const scope of document.querySelectorAll("logit-scope")) {
        for (const part of scope.shadowRoot?.querySelectorAll("details") ?? []) part.open = true;
      }
      // biome-ignore lint/security/noGlobalEval: a script of the test, as a tag would load it
      globalThis.eval(axe);
      const { violations, passes } = await /** @type {any} */ (globalThis).axe.run();
      const faults = violations.map((/** @type {any} */ { id, help, nodes }) => ({
        id,
        help,
        where: nodes.map((/** @type {any} */ node) => node.html.slice(0, 120)),
      }));
      return { faults, rules: passes.length };
    }, AXE);
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
