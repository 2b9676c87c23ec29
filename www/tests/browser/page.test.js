import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { builtPage, openPage, serve, takeShots } from "./harness.js";
import {
  button,
  columnCells,
  distribution,
  firstMoments,
  listedTokens,
  STATE,
  tokenCount,
  tokens,
} from "./reader.js";

const { site, browser } = await builtPage();

/** By then an address follows what it tells of, in milliseconds. */
const ADDRESS_MS = 700;

/** A page that shows a known state. @param {string} [fragment] */
async function openState(fragment = STATE) {
  const opened = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  await opened.page.goto(site.url + fragment);
  await distribution(opened.page);
  return opened;
}

test("the first distribution is on screen soon after navigation", async (context) => {
  // Each without anything kept from before. The first one also waits for the browser's own start.
  for (let visit = 1; visit < 5; visit++) {
    const { page } = await openPage(browser);
    for (const [what, moment] of Object.entries(await firstMoments(page, site.url))) {
      context.diagnostic(`visit ${visit}: first ${what} ${Math.round(moment)} ms after navigation`);
    }
    await page.context().close();
  }
  const { page, problems } = await openPage(browser);
  await page.goto(site.url);
  await distribution(page);
  assert.equal(await page.getByText("A language model does not write.").count(), 1);
  await takeShots(page, "first");
  assert.deepEqual(problems, []);
});

test("a reader types, steps, reads, chooses, reloads, and finds the same tokens", async () => {
  const { page, problems } = await openState();
  await page.getByLabel("Prompt").fill("The cat sat on the");
  await page.getByText("The next step, stage by stage").waitFor();
  await button(page, "Step").click();
  await tokenCount(page, 1);
  await page.getByText("Step 1, stage by stage").waitFor();

  const [drawn] = await tokens(page);
  const listed = await listedTokens(page);
  assert.ok(listed.length >= 10, `only ${listed.length} tokens are listed`);
  const raw = await columnCells(page, 0);
  assert.match(raw[0] ?? "", /^\s*0\.\d/, "the raw column begins with the highest probability");
  await page.getByText(/The uniform number u = 0\.\d{4} fell into the slice of/).waitFor();

  // Another token than the drawn one: the text branches, and says so.
  const other = listed.find((token) => token !== drawn?.replace(" ", "␣")) ?? "";
  await page.locator("tbody button.token").filter({ hasText: other }).first().click();
  await page.locator(".chip.forced").waitFor();
  await page.getByText(/was forced/).waitFor();
  await tokenCount(page, 1);

  for (const count of [2, 3, 4]) {
    await button(page, "Step").click();
    await tokenCount(page, count);
  }
  const before = await tokens(page);
  assert.equal(before[0]?.trim(), other.replace("␣", "").trim());

  // Temperature: the forced token stays, the address follows.
  const temperature = page.getByRole("spinbutton", { name: "Temperature: t" });
  await temperature.fill("1.4");
  await temperature.press("Enter");
  await page.waitForURL(/temperature\(t=1\.4\)/);
  await tokenCount(page, 4);
  const changed = await tokens(page);
  assert.equal(changed[0], before[0]);

  const again = await openPage(browser);
  await again.page.goto(page.url());
  await tokenCount(again.page, 4);
  assert.deepEqual(await tokens(again.page), changed);
  await page.reload();
  await tokenCount(page, 4);
  assert.deepEqual(await tokens(page), changed);
  await takeShots(page, "stepped");
  assert.deepEqual([...problems, ...again.problems], []);
});

test("Run, Stop, Undo and Reset", async () => {
  const { page, problems } = await openState();
  await button(page, "Step").click();
  await tokenCount(page, 1);
  const first = await tokens(page);
  // Stop is pressed as soon as a few tokens are there; from here it might be too late.
  const stop = await button(page, "Stop").elementHandle();
  await page.locator("logit-scope").evaluate((scope, pressed) => {
    scope.addEventListener("step", (event) => {
      const { index } = /** @type {CustomEvent} */ (event).detail;
      if (index === 4) /** @type {HTMLElement} */ (pressed).click();
    });
  }, stop);
  await button(page, "Run").click();
  await page.locator(".chip:not(.next)").nth(3).waitFor();
  await page.locator(".body:not([data-busy])").waitFor();
  const stopped = await tokens(page);
  assert.ok(stopped.length >= 4 && stopped.length < 65, `${stopped.length} tokens after Stop`);
  assert.deepEqual(stopped.slice(0, 1), first);
  await button(page, "Undo").click();
  await tokenCount(page, 1);
  assert.deepEqual(await tokens(page), first);
  await button(page, "Reset").click();
  await tokenCount(page, 0);
  await button(page, "Undo").click();
  await tokenCount(page, 1);
  assert.deepEqual(await tokens(page), first);
  assert.deepEqual(problems, []);
});

test("a bad pipeline is refused beside its control, and nothing is lost", async () => {
  const { page, problems } = await openState();
  await button(page, "Step").click();
  await tokenCount(page, 1);
  const before = await tokens(page);

  const text = page.getByLabel("Pipeline, as text");
  await text.fill("temperature(t=0.8) | top_q(p=0.9)");
  await text.press("Enter");
  const fault = page.locator("#pipeline-fault");
  await fault.getByText(/there is no stage `top_q`; did you mean `top_.`/).waitFor();
  assert.equal(await fault.locator("mark").textContent(), "t");
  assert.equal(await text.inputValue(), "temperature(t=0.8) | top_q(p=0.9)");
  assert.deepEqual(await tokens(page), before);

  await text.fill("temperature(t=0.8) | top_p(p=0.9)");
  await text.press("Enter");
  await fault.waitFor({ state: "detached" });
  await tokenCount(page, 1);

  const p = page.getByRole("spinbutton", { name: "Top-p: p" });
  await p.fill("1.5");
  await p.press("Enter");
  await page.getByText("top_p.p is 1.5, but must be from 0 to 1").waitFor();
  assert.equal(await p.getAttribute("aria-invalid"), "true");
  assert.equal((await tokens(page)).length, 1);
  await takeShots(page, "refused");

  const seed = page.getByLabel("Seed", { exact: true });
  await seed.fill("seven");
  await seed.press("Enter");
  await page.getByText(/The seed is “seven”/).waitFor();
  assert.equal((await tokens(page)).length, 1);
  assert.deepEqual(problems, []);
});

test("a repaint keeps what a reader is typing", async () => {
  const { page, problems } = await openState(`${STATE}&pl=suppress(ids=[9]) | temperature(t=0.8)`);
  /** Repaints the whole page, as every new token does. */
  const repaint = () =>
    page.locator("logit-scope").evaluate(async (scope) => {
      const element = /** @type {import("../../src/logit-scope.js").LogitScope} */ (scope);
      element.requestUpdate();
      await element.updateComplete;
    });
  const fields = [
    [page.getByRole("spinbutton", { name: "Temperature: t" }), "1.25"],
    [page.getByLabel("Suppress: ids"), "[9, 1"],
    [page.getByLabel("Pipeline, as text"), "temperature(t=0.6) | gree"],
    [page.getByLabel("Seed", { exact: true }), "41"],
  ];
  for (const [field, text] of /** @type {[import("playwright-core").Locator, string][]} */ (
    fields
  )) {
    const before = await field.inputValue();
    await field.fill(text);
    await repaint();
    assert.equal(await field.inputValue(), text);
    // Left as it was found, the field follows the state again.
    await field.fill(before);
    await field.blur();
  }
  const temperature = page.getByRole("spinbutton", { name: "Temperature: t" });
  await temperature.fill("1.25");
  await repaint();
  await temperature.press("Enter");
  await page.waitForURL(/temperature\(t=1\.25\)/);
  await button(page, "Undo").click();
  await page.waitForURL(/temperature\(t=0\.8\)/);
  assert.equal(await temperature.inputValue(), "0.8");
  assert.deepEqual(problems, []);
});

test("stages are added, moved and removed by keyboard", async () => {
  const { page, problems } = await openState();
  const names = () => page.locator("button.stage-name").allTextContents();
  assert.deepEqual(await names(), ["Raw", "Temperature", "Top-k", "Top-p", "Categorical"]);
  await page.getByLabel("Stage to add").selectOption("min_p");
  await button(page, "Add stage").press("Enter");
  await page.getByRole("button", { name: "Min-p", exact: true }).waitFor();
  await page.getByLabel("Move left: Min-p").press("Enter");
  await page.getByLabel("Move left: Min-p").press("Enter");
  await page.waitForFunction(() => {
    const scope = document.querySelector("logit-scope")?.shadowRoot;
    return scope?.querySelectorAll("button.stage-name")[2]?.textContent === "Min-p";
  });
  await page.getByLabel("Remove Top-k").press("Enter");
  await page.getByRole("button", { name: "Top-k", exact: true }).waitFor({ state: "detached" });
  assert.deepEqual(await names(), ["Raw", "Temperature", "Min-p", "Top-p", "Categorical"]);
  await page.waitForURL(/min_p\(m=0\)|min_p\(/);
  assert.deepEqual(problems, []);
});

test("a slider repaints the stages while it moves", async () => {
  const { page, problems } = await openState();
  const before = await columnCells(page, 1);
  await page.getByRole("slider", { name: "Temperature: t" }).focus();
  for (let press = 0; press < 10; press += 1) await page.keyboard.press("ArrowRight");
  await page.waitForURL(/temperature\(t=(0\.9|1)\)/);
  await tokenCount(page, 0);
  assert.notDeepEqual(await columnCells(page, 1), before);
  await button(page, "Undo").click();
  await page.waitForURL(/temperature\(t=0\.8\)/);
  await tokenCount(page, 0);
  assert.deepEqual(await columnCells(page, 1), before);
  assert.deepEqual(problems, []);
});

test("a worker that dies is replaced, and nothing is lost", async () => {
  const { page, problems } = await openState();
  await button(page, "Step").click();
  await tokenCount(page, 1);
  const before = await tokens(page);
  const [worker] = page.workers();
  await worker?.evaluate(() => {
    setTimeout(() => {
      throw new Error("an accident for the test");
    });
  });
  await page.getByText("The engine had to be restarted. Nothing was lost.").waitFor();
  await button(page, "Step").click();
  await tokenCount(page, 2);
  assert.deepEqual((await tokens(page)).slice(0, 1), before);
  assert.equal(page.workers().length, 1);
  const unexpected = problems.filter((problem) => !problem.includes("an accident for the test"));
  assert.deepEqual(unexpected, []);
});

test("a model that is missing is an error with a way on", async () => {
  const { page } = await openPage(browser);
  await page.goto(`${site.url}${STATE}&m=missing.gguf`);
  await page.getByText(/missing\.gguf could not be loaded: the server answered 404/).waitFor();
  await button(page, "Try again").waitFor();
});

test("a reader brings a model, and what is no model is refused", async () => {
  const { page, problems } = await openState();
  await button(page, "Step").click();
  await tokenCount(page, 1);
  const [before] = await tokens(page);
  const file = page.getByLabel("Open another model, a GGUF file on this device:");
  await file.setInputFiles(join(import.meta.dirname, "../../../models/default.gguf"));
  await tokenCount(page, 0);
  await distribution(page);
  await button(page, "Step").click();
  await tokenCount(page, 1);
  assert.deepEqual(await tokens(page), [before]);
  assert.doesNotMatch(page.url(), /blob/);

  const text = { name: "notes.gguf", mimeType: "text/plain", buffer: Buffer.from("no model") };
  await file.setInputFiles(text);
  await page.locator("#model-fault").waitFor({ state: "attached" });
  assert.deepEqual(await tokens(page), [before], "a refusal costs nothing");
  assert.deepEqual(problems, []);
});

test("a damaged link is an error, and the page still works", async () => {
  const { page, problems } = await openPage(browser);
  await page.goto(`${site.url}#v=1&n=many`);
  await page
    .getByText("The field “n” of the link is “many”, but must be a whole number.")
    .waitFor();
  await distribution(page);
  // It stays, to be mended, until the reader does something else.
  await page.waitForTimeout(ADDRESS_MS);
  assert.match(page.url(), /#v=1&n=many$/);
  await button(page, "Step").click();
  await page.waitForURL(/&n=1$/);
  await page.goto(`${site.url}#v=1&m=http://[`);
  await page.getByText("The field “m” of the link is “http://[”, which is no address.").waitFor();
  assert.deepEqual(problems, []);
});

test("a link is copied whole, though it is longer than an address may be", async () => {
  const context = await browser.newContext();
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  await page.goto(`${site.url}${STATE}`);
  await distribution(page);
  const long = "cat ".repeat(800_000);
  await page.locator("logit-scope").evaluate((scope, source) => {
    const { desk } = /** @type {any} */ (scope);
    desk.sequences = "open";
    desk.keep({ tab: "constraint", fields: { source } });
  }, long);
  await button(page, "Copy link to this state").click();
  await page.getByText("Copied.").waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(new URLSearchParams(new URL(copied).hash.slice(1)).get("q.source"), long);
  await context.close();
});

test("an address that a reader goes to is followed, though the old one was to be written", async () => {
  for (const waits of [0, 1000]) {
    const { page, problems } = await openState();
    await page.locator("logit-scope").evaluate((scope, time) => {
      const replaceState = history.replaceState.bind(history);
      Object.assign(globalThis, { written: [] });
      history.replaceState = (data, unused, url) => {
        /** @type {any} */ (globalThis).written.push(String(url));
        replaceState(data, unused, url);
      };
      /** @type {any} */ (scope).play.dispatchEvent(new Event("change"));
      // After so long the writing is due before the browser says where the reader went.
      const end = performance.now() + time;
      while (performance.now() < end);
      location.hash = "v=1&p=A+cat&pl=temperature(t=2)+|+categorical()&s=7";
    }, waits);
    await page.waitForFunction(() => /** @type {any} */ (globalThis).written.length > 0);
    await distribution(page);
    const written = await page.evaluate(() => /** @type {any} */ (globalThis).written);
    for (const url of written) assert.match(url, /p=A\+cat&pl=temperature\(t=2\)/);
    assert.deepEqual(problems, []);
  }
});

test("the address keeps its page, whatever base the page sets for its links", async () => {
  const { page, problems } = await openState(`index.html${STATE}`);
  await page.evaluate(() => {
    const base = document.createElement("base");
    base.href = "/course/week-3/";
    document.head.append(base);
  });
  await button(page, "Step").click();
  await page.waitForURL(/&n=1$/);
  assert.equal(new URL(page.url()).pathname, "/index.html");
  assert.deepEqual(problems, []);
});

test("a link whose token the model lacks shows the text before it", async () => {
  for (const [forced, length] of /** @type {const} */ ([
    ["0:999999", 0],
    ["1:5,2:2048", 2],
  ])) {
    const { page, problems } = await openState(`${STATE}&n=4&f=${forced}`);
    await page.getByText("but the model has only 2048 tokens. The text ends before it.").waitFor();
    await tokenCount(page, length);
    await button(page, "Step").click();
    await tokenCount(page, length + 1);
    assert.equal(await page.getByText("but the model has only").count(), 0);
    assert.deepEqual(problems, []);
  }
});

test("a page whose script does not arrive says so", async () => {
  const { page } = await openPage(browser);
  await page.route("**/logit-scope.js", (route) => route.abort());
  await page.goto(site.url);
  const words = page.getByText("load the page again");
  await words.waitFor();
  await page.unroute("**/logit-scope.js");
  await page.reload();
  await distribution(page);
  assert.equal(await words.isVisible(), false);
});

test("the page works from any folder of a host", async () => {
  const elsewhere = await serve(undefined, "/course/week-3");
  const { page, problems } = await openPage(browser);
  await page.goto(elsewhere.url);
  await distribution(page);
  assert.deepEqual(problems, []);
  await elsewhere.close();
});

test("a stage that is dragged moves at once, and what is kept with it", async () => {
  const pipeline = "top_p(p=0.8)+|+temperature(t=2)+|+categorical()";
  const { page, problems } = await openState(`#v=1&p=The+dog+ran+to+the&pl=${pipeline}&s=7`);
  const names = () => page.locator("button.stage-name").allTextContents();
  const heads = page.locator("tr.names th");
  const kept = async () => (await page.locator("tr.stats td").nth(2).textContent()) ?? "";
  const before = await kept();
  const grab = async (/** @type {number} */ index) => {
    const box = await heads.nth(index).boundingBox();
    assert.ok(box);
    return { left: box.x + 3, right: box.x + box.width - 3, y: box.y + 3 };
  };
  let [topP, temperature] = [await grab(1), await grab(2)];
  await page.mouse.move(topP.left, topP.y);
  await page.mouse.down();
  await page.mouse.move(temperature.left, temperature.y, { steps: 4 });
  assert.equal((await names())[1], "Top-p", "not before the middle");
  await page.mouse.move(temperature.right, temperature.y, { steps: 4 });
  await page.waitForURL(/pl=temperature\(t=2\).*top_p/);
  await page.waitForFunction((old) => {
    const root = document.querySelector("logit-scope")?.shadowRoot;
    return root?.querySelectorAll("tr.stats td")[2]?.textContent !== old;
  }, before);
  // Still held. Given up, the order is what it was.
  await page.keyboard.press("Escape");
  await page.mouse.up();
  await page.waitForURL(/pl=top_p.*temperature\(t=2\)/);
  await distribution(page);
  [topP, temperature] = [await grab(1), await grab(2)];
  await page.mouse.move(topP.left, topP.y);
  await page.mouse.down();
  await page.mouse.move(temperature.right, temperature.y, { steps: 6 });
  await page.mouse.up();
  await page.waitForURL(/pl=temperature\(t=2\).*top_p/);
  assert.deepEqual(problems, []);
});
