import assert from "node:assert/strict";
import { test } from "node:test";
import { accessibility, builtPage, DIST, openPage, serve, takeShots } from "./harness.js";
import { distribution, STATE } from "./reader.js";

const { site, browser } = await builtPage();

/** By then an address follows what it tells of, in milliseconds. */
const ADDRESS_MS = 700;

/** Opens a tab of the Sequences area. @param {string} tab @param {string} [url] */
async function openTab(tab, url = site.url) {
  const opened = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  const { page } = opened;
  await page.goto(url + STATE);
  await distribution(page);
  await page.getByText("Sequences", { exact: true }).click();
  await page.getByRole("tab", { name: tab, exact: true }).click();
  return { ...opened, area: page.locator("logit-sequences") };
}

/** The rows of a table as texts. @param {import("playwright-core").Locator} area @param {string} caption */
async function rows(area, caption) {
  const found = area.locator(`table:has(caption:text-is("${caption}")) tbody tr`);
  return await found.evaluateAll((all) =>
    all.map((row) => [...row.children].map((cell) => cell.textContent?.trim() ?? "")),
  );
}

/** Waits until nothing runs. @param {import("playwright-core").Locator} area */
async function rest(area) {
  await area.locator(".panel:not([data-busy])").waitFor();
}

test("a constraint shows what it allowed, and a mistake its place", async () => {
  const { page, problems, area } = await openTab("Constraint");
  await area.getByLabel("Kind").selectOption("regex");
  await area.getByLabel("Source").fill("[a-z(");
  await area.getByLabel("Source").blur();
  await area.getByRole("button", { name: "Write", exact: true }).click();
  await area.getByText(/Line 1, character 1/).waitFor();
  assert.equal(await area.getByLabel("Source").getAttribute("aria-invalid"), "true");

  await area.getByLabel("Source").fill("[a-z]{3} [0-9]{2}");
  await area.getByLabel("Check of the finished text").fill('regex(".* 1.*")');
  await area.getByLabel("Check of the finished text").blur();
  await area.getByRole("button", { name: "Write", exact: true }).click();
  await area.getByText("the grammar allows nothing more").waitFor();
  await rest(area);
  const text = (await area.locator(".written").textContent()) ?? "";
  assert.match(text, /^[a-z]{3} [0-9]{2}$/);
  await area.getByText("✓ yes", { exact: true }).first().waitFor();
  await area
    .getByText(/[0-9]/.test(text[4] ?? "") && text[4] === "1" ? "✓ passed" : "✗ failed")
    .waitFor();

  // Every step in the table twin: fewer tokens allowed than there are, and mass removed.
  await area.getByText("Table of all steps").click();
  const steps = await rows(area, "What the constraint did at each step");
  assert.ok(steps.length >= 2);
  for (const step of steps) assert.ok(Number(step[2]?.replaceAll(/\D/g, "")) > 0, String(step));
  // By keyboard: a step of the chart shows its numbers.
  await area.getByRole("button", { name: /^Step 2,/ }).focus();
  await page.keyboard.press("Enter");
  await area.getByText(/^2, took/).waitFor();

  // The schema's example is an object with the two keys.
  await area.getByLabel("Kind").selectOption("json_schema");
  await area.getByRole("button", { name: "Write", exact: true }).click();
  await area.locator(".written", { hasText: "{" }).waitFor();
  await rest(area);
  await takeShots(page, "constraint");
  assert.deepEqual(problems, []);
});

test("every kind of constraint is accepted as it stands in the form", async () => {
  const { problems, area } = await openTab("Constraint");
  const kinds = await area
    .getByLabel("Kind")
    .locator("option")
    .evaluateAll((all) => all.map((option) => /** @type {HTMLOptionElement} */ (option).value));
  assert.equal(kinds.length, 10);
  await area.getByLabel("Tokens at most").fill("6");
  await area.getByLabel("Tokens at most").blur();
  for (const kind of kinds) {
    await area.getByLabel("Kind").selectOption(kind);
    await area.getByRole("button", { name: "Write", exact: true }).click();
    await area.locator(".written, .fault").first().waitFor();
    await rest(area);
    assert.deepEqual(await area.locator(".fault").allTextContents(), [], kind);
  }
  assert.deepEqual(problems, []);
});

test("beams show their tree, what was pruned, and sampling beside it", async () => {
  const { page, problems, area } = await openTab("Beams");
  await area.getByLabel("Tokens at most").fill("6");
  await area.getByLabel("Tokens at most").blur();
  await area.getByRole("button", { name: "Search", exact: true }).click();
  await area.getByText("nucleus, p = 0.9, sample 3").waitFor();
  await rest(area);
  await area.getByText("Table of every candidate").click();
  const nodes = await rows(area.locator(".panel"), "Every candidate, oldest first");
  assert.equal(nodes.filter((node) => node[0] === "1").length, 8);
  assert.ok(nodes.some((node) => node.at(-1) === "pruned"));
  assert.equal(nodes.filter((node) => node[0] === "2" && node.at(-1) === "runs on").length, 4);
  assert.equal(await area.locator(".tree .node").count(), nodes.length);

  // Beam search finds at least as likely a text as greedy does.
  const beside = await rows(area, "The same prompt, found in other ways");
  const logprob = (/** @type {string} */ how) =>
    Number(beside.find(([name]) => name === how)?.[3]?.replace("−", "-"));
  assert.ok(logprob("the best beam") >= logprob("greedy"), String(beside));

  // The tree as it stood earlier, by keyboard.
  await area.getByLabel(/Shown up to step/).focus();
  await page.keyboard.press("Home");
  await area.getByText("After step 1 4 beams of 4 run on").waitFor();
  assert.equal(await area.locator(".tree .node").count(), 8);
  await page.keyboard.press("End");

  await area.getByRole("button", { name: "Compare widths" }).click();
  await area.locator('table:has(caption:text-is("Cost by width")) tbody tr').nth(3).waitFor();
  await rest(area);
  const widths = await rows(area, "Cost by width");
  assert.deepEqual(
    widths.map(([width]) => width),
    ["1", "2", "4", "8"],
  );
  await takeShots(page, "beams");
  assert.deepEqual(problems, []);
});

test("speculation shows each judgement, and the laboratory finds wrong rules out", async () => {
  const { page, problems, area } = await openTab("Speculation");
  await area.getByLabel("Tokens in all").fill("16");
  await area.getByLabel("Tokens in all").blur();
  await area.getByRole("button", { name: "Speculate", exact: true }).click();
  await area.getByRole("heading", { name: "Block 1", exact: true }).waitFor();
  await rest(area);
  await area.getByText("Table of all blocks").click();
  const drafted = await rows(area, "Every block");
  const judged = drafted.filter((row) => /^[✓✕]/.test(row[6] ?? ""));
  assert.ok(judged.length > 0);
  for (const [, , p, q, ratio, u, verdict] of judged) {
    assert.ok(p && q && ratio && u);
    // As printed, the verdict must be that of u ≤ p/q.
    if (Math.abs(Number(u) - Number(ratio)) > 0.01) {
      assert.equal(Number(u) <= Number(ratio), verdict?.includes("accepted"), `${u} ${ratio}`);
    }
  }
  await area
    .getByRole("button", { name: /^[✓✕+]/ })
    .last()
    .press("Enter");

  await area.getByRole("button", { name: "Count with every mistake" }).click();
  await area
    .locator(
      'table:has(caption:text-is("Held to the model’s own distribution")), table:has(caption:text-is("Held to the model\'s own distribution"))',
    )
    .locator("tbody tr")
    .nth(3)
    .waitFor({ timeout: 120_000 });
  await rest(area);
  const verdicts = await area
    .locator("table:has(caption:has-text('own distribution')) tbody tr td:nth-child(2)")
    .allTextContents();
  assert.match(verdicts[0] ?? "", /the model's/);
  for (const verdict of verdicts.slice(1)) assert.match(verdict, /another distribution/);
  await takeShots(page, "speculation");
  assert.deepEqual(problems, []);
});

test("a run says why it ended, and the scrubber shows what is held back", async () => {
  const { page, problems, area } = await openTab("Stop conditions");
  await area.getByLabel("Stop strings, one a line", { exact: true }).fill("a");
  await area.getByLabel("Stop strings, one a line", { exact: true }).blur();
  await area.getByRole("button", { name: "Run to the end" }).click();
  await area.getByText("a stop string appeared (“a”)").first().waitFor();
  await rest(area);
  assert.ok(!(await area.locator(".written").textContent())?.includes("a"));
  await area.getByLabel("The stop string is").selectOption("false");
  await area.getByRole("button", { name: "Run to the end" }).click();
  await area.locator(".written", { hasText: /a$/ }).waitFor();

  // A wrong end of sequence is said, and the reader can judge.
  await area.getByLabel("Ids that end it").fill("5");
  await area.getByLabel("Ids that end it").blur();
  await area.getByRole("button", { name: "Run to the end" }).click();
  await area.getByText(/but the model's file names/).waitFor();
  await area.getByLabel("Your verdict on run 1").selectOption("no");

  // Nothing left to draw: the constraint wants what the pipeline removes.
  await area.getByLabel("Ids that end it").fill("");
  await area.getByLabel("Constraint", { exact: true }).fill('regex("[0-9]{8}")');
  await area.getByLabel("Constraint", { exact: true }).blur();
  await area.getByRole("button", { name: "Run to the end" }).click();
  await area.getByText("the grammar allows nothing more").first().waitFor();

  await area.getByRole("button", { name: "Cut into chunks" }).click();
  const slider = area.getByLabel(/After chunk|Nothing more comes/);
  await slider.focus();
  for (let press = 0; press < 14; press++) await page.keyboard.press("ArrowRight");
  await area.locator(".stream .held", { hasText: /^own$/ }).waitFor();
  for (let press = 0; press < 8; press++) await page.keyboard.press("ArrowRight");
  await area.locator(".stream .partial", { hasText: "⟨f0⟩⟨9f⟩⟨a6⟩" }).waitFor();
  await page.keyboard.press("End");
  await area.locator(".stream .matched", { hasText: "🦊 says" }).waitFor();
  await takeShots(page, "stops");
  assert.deepEqual(problems, []);
});

test("a dead end names the stage that made it, and offers the last fork", async () => {
  const { page, problems } = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  await page.goto(site.url + STATE);
  await distribution(page);
  // After x or w only b may follow, and the pipeline removes it.
  const found = await page
    .locator("logit-scope")
    .evaluate((scope) => /** @type {any} */ (scope).play.search("b"));
  const { id } = found.find((/** @type {any} */ { piece }) => piece === "b");
  await page.goto(`${site.url}#v=1&p=The&pl=suppress(ids=[${id}])+|+categorical()&s=7`);
  await page.reload();
  await distribution(page);
  await page.getByText("Sequences", { exact: true }).click();
  await page.getByRole("tab", { name: "Stop conditions" }).click();
  const area = page.locator("logit-sequences");
  await area.getByLabel("Constraint", { exact: true }).fill('regex("(x|w)b")');
  await area.getByLabel("Constraint", { exact: true }).blur();
  await area.getByRole("button", { name: "Run to the end" }).click();
  await area.locator(".warning code", { hasText: "suppress" }).waitFor();
  const first = (await area.locator(".written").textContent()) ?? "";
  assert.match(first, /^[xw]$/);
  await area.getByText("✗ no: the parser is still at").first().waitFor();
  const other = first === "x" ? "w" : "x";
  await area.getByRole("button", { name: `Go back to step 1 and take ${other}` }).press("Enter");
  await area.locator(".written", { hasText: other }).waitFor();

  // The tab of the constraint says the same, and goes back too.
  await area.getByRole("tab", { name: "Constraint", exact: true }).click();
  await area.getByLabel("Kind").selectOption("text");
  await area.getByLabel("Source").fill('regex("(x|w)b")');
  await area.getByRole("button", { name: "Write", exact: true }).click();
  await area.locator(".warning code", { hasText: "suppress" }).waitFor();
  await area.getByRole("button", { name: `Go back to step 1 and take ${other}` }).press("Enter");
  await area.locator(".written", { hasText: other }).waitFor();
  assert.deepEqual(problems, []);
});

test("branches grow a tree, fork at a token, and are compared", async () => {
  const { page, problems, area } = await openTab("Branches");
  await area.getByLabel("Continuations").fill("3");
  await area.getByLabel("Tokens each, at most").fill("8");
  await area.getByLabel("Tokens each, at most").blur();
  await area.getByRole("button", { name: "Sample side by side" }).click();
  await area.getByRole("heading", { name: "Sample 3" }).waitFor();
  await rest(area);
  await area
    .getByRole("button", { name: /^Token 1:/ })
    .first()
    .press("Enter");
  await area
    .getByRole("button", { name: /^Go on with/ })
    .first()
    .press("Enter");
  await area.getByText("They share 0 tokens, then part.").waitFor();
  await rest(area);
  await area.getByText("Table of all branches").click();
  const branches = await rows(area, "Every branch");
  assert.equal(branches.length, 4);
  assert.equal(branches[3]?.[1], "Fork at token 1");
  const parted = await rows(area, "Where they part");
  assert.equal(parted.length, 2);
  assert.notEqual(parted[0]?.[1], parted[1]?.[1]);
  await takeShots(page, "branches");
  assert.deepEqual(problems, []);
});

test("tabs are moved through with the arrow keys", async () => {
  const { page, problems, area } = await openTab("Constraint");
  await area.getByRole("tab", { selected: true }).focus();
  await page.keyboard.press("ArrowRight");
  await area.getByRole("tab", { name: "Beams", selected: true }).waitFor();
  await page.keyboard.press("End");
  await area.getByRole("tab", { name: "Branches", selected: true }).waitFor();
  await page.keyboard.press("ArrowRight");
  await area.getByRole("tab", { name: "Constraint", selected: true }).waitFor();
  assert.deepEqual(problems, []);
});

test("every tab is accessible as far as a machine can tell, and fits a phone", async () => {
  const { page, area } = await openTab("Constraint");
  const tabs = {
    Constraint: "Write",
    Beams: "Search",
    Speculation: "Speculate",
    "Stop conditions": "Run to the end",
    Branches: "Sample side by side",
  };
  for (const [tab, button] of Object.entries(tabs)) {
    await area.getByRole("tab", { name: tab, exact: true }).click();
    if (tab === "Speculation") {
      // A block wider than a phone.
      await area.getByLabel("Tokens a block").first().fill("12");
      await area.getByLabel("Tokens a block").first().blur();
    }
    await area.getByRole("button", { name: button, exact: true }).click();
    await area.locator("table, .side-by-side").first().waitFor({ state: "attached" });
    await rest(area);
    for (const twin of await area.locator(".twin > summary").all()) await twin.click();
    const { faults, rules } = await accessibility(page);
    assert.ok(rules > 30, "axe looked at nearly nothing");
    assert.deepEqual(faults, [], tab);
    await page.setViewportSize({ width: 320, height: 640 });
    const [scroll, client] = await page.evaluate(() => [
      document.documentElement.scrollWidth,
      document.documentElement.clientWidth,
    ]);
    assert.equal(scroll, client, `${tab} scrolls sideways`);
    await page.setViewportSize({ width: 1280, height: 900 });
  }
});

test("an element begins with the constraint and the strategy that the page gives", async () => {
  const { page, problems } = await openPage(browser, { viewport: { width: 1000, height: 900 } });
  await page.goto(`${site.url}embed.html`);
  await distribution(page.locator("#nucleus"));
  await page.locator("#nucleus").evaluate((scope) => {
    const other = document.createElement("logit-scope");
    other.id = "given";
    other.setAttribute("prompt", "The dog");
    other.setAttribute("view", "sequences");
    other.setAttribute("constraint", 'choice(["cat", "dog"])');
    other.setAttribute("strategy", "beam(width=2)");
    scope.after(other);
  });
  const area = page.locator("#given logit-sequences");
  await area.getByRole("tab", { name: "Beams", selected: true }).waitFor();
  await area.getByRole("button", { name: "Search", exact: true }).click();
  await area.getByText("nucleus, p = 0.9, sample 3").waitFor();
  await rest(area);
  assert.equal((await rows(area, "Sequences found, best first")).length, 2);
  await area.getByRole("tab", { name: "Constraint", exact: true }).click();
  await area.getByRole("button", { name: "Write", exact: true }).click();
  await area.locator(".written", { hasText: /^(cat|dog)$/ }).waitFor();
  assert.deepEqual(problems, []);
});

test("a link carries the tab and what is written in it", async () => {
  const { page, problems, area } = await openTab("Beams");
  await area.getByLabel("Width", { exact: true }).fill("3");
  await area.getByLabel("Width", { exact: true }).blur();
  await page.waitForURL(/&q=beams&q\.width=3$/);
  await area.getByRole("tab", { name: "Constraint", exact: true }).click();
  await page.waitForURL(/&q=constraint$/);
  await area.getByLabel("Kind").selectOption("choice");
  await area.getByLabel("Source").fill("cat & dog\nfox");
  await area.getByLabel("Source").blur();
  await page.waitForURL(/&q=constraint&q\.kind=choice&q\.source=cat\+%26\+dog%0Afox$/);

  const again = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  await again.page.goto(page.url());
  const linked = again.page.locator("logit-sequences");
  await linked.getByRole("tab", { name: "Constraint", selected: true }).waitFor();
  await linked.getByText('choice(["cat & dog","fox"])').waitFor();
  await linked.getByRole("button", { name: "Write", exact: true }).click();
  await linked.locator(".written", { hasText: /^(cat & dog|fox)$/ }).waitFor();
  await rest(linked);
  // An area that is folded up is in no link; unfolded, it is as it was.
  await again.page.getByText("Sequences", { exact: true }).click();
  await again.page.waitForURL(/&s=7$/);
  await again.page.getByText("Sequences", { exact: true }).click();
  await again.page.waitForURL(/&q=constraint/);
  await linked.locator(".written", { hasText: /^(cat & dog|fox)$/ }).waitFor();

  // Another link that is gone to is followed; what it gets wrong is said where it belongs.
  /** @type {[string, string][]} */
  const links = [
    ["q=beams&q.width=0", "Needs a whole number from 1 to"],
    ["q=beams&q.breadth=2", "field “q.breadth” of “2”, which means nothing here"],
    ["q=constraint&q.kind=toString", "field “q.kind” of “toString”, which means nothing here"],
    ["q=stops&q.eos=five", "field “q.eos” of “five”, which means nothing here"],
    ["q=beam", "a tab “beam”, but there is none of this name"],
  ];
  for (const [said, fault] of links) {
    await again.page.goto(`${site.url}${STATE}&${said}`);
    await linked.getByText(fault).waitFor();
  }
  assert.deepEqual([...problems, ...again.problems], []);
});

test("a run that is stopped is kept as far as it had come, and no old verdict stands under it", async () => {
  const { page, problems, area } = await openTab("Stop conditions");
  await area.getByLabel("Stop strings, one a line", { exact: true }).fill("");
  await area.getByLabel("Token budget").fill("3");
  await area.getByRole("button", { name: "Run to the end" }).click();
  await area.getByText("Finished: the agreed number of tokens is reached.").waitFor();
  await rest(area);
  await area.getByLabel("Token budget").fill("50000");
  await area.getByLabel("Token budget").blur();
  await area.getByRole("button", { name: "Run to the end" }).press("Enter");
  // What had come is there while the rest is written.
  await area.getByText("It has not ended.").waitFor();
  await area.getByRole("button", { name: "Stop", exact: true }).press("Enter");
  await area.getByText("Finished: it was cancelled.").waitFor();
  const text = (await area.locator(".written").textContent()) ?? "";
  assert.ok(text.length > 3, text);
  assert.deepEqual(await area.locator(".outcome dd").allTextContents(), [
    "Finished: it was cancelled.",
    "no constraint",
    "not known: it was cancelled",
  ]);
  const kept = await rows(area, "Every run so far");
  assert.deepEqual(
    kept.map((row) => row[2]),
    ["the agreed number of tokens is reached", "it was cancelled"],
  );
  assert.equal(kept[1]?.[1], text.slice(0, 80).trim());
  // The focus is where it was, not at the top of the page.
  const focused = await area.evaluate((host) => host.shadowRoot?.activeElement?.textContent);
  assert.equal(focused, "Run to the end");

  await takeShots(page, "cancelled");

  // A number that cannot be is said beside it, and nothing stands under that.
  await area.getByLabel("Token budget").fill("-5");
  await area.getByLabel("Token budget").blur();
  await area.getByText("Needs a whole number from 0 to").waitFor();
  await area.getByRole("button", { name: "Run to the end" }).click();
  assert.equal(await area.getByLabel("Token budget").getAttribute("aria-invalid"), "true");
  assert.equal(await area.locator(".written").count(), 0);
  await area.getByLabel("Token budget").fill("5");
  await area.getByLabel("Ids that end it").fill("abc");
  await area.getByLabel("Ids that end it").blur();
  await area.getByText("Needs ids of tokens").waitFor();

  await area.getByRole("tab", { name: "Branches", exact: true }).click();
  for (const wrong of ["0", "-1", "2.5", ""]) {
    await area.getByLabel("Continuations").fill(wrong);
    await area.getByLabel("Continuations").blur();
    await area.getByText("Needs a whole number from 1 to 100.").waitFor();
  }
  assert.deepEqual(problems, []);
});

/** Makes every step of a search or a speculation take its time. */
const SLOW = `
const { get } = Object.getOwnPropertyDescriptor(WebAssembly.Instance.prototype, "exports");
Object.defineProperty(WebAssembly.Instance.prototype, "exports", {
  get() {
    const all = get.call(this);
    const slow = (step) => (...given) => {
      const end = performance.now() + 60;
      while (performance.now() < end);
      return step(...given);
    };
    return { ...all, beams_step: slow(all.beams_step), speculation_step: slow(all.speculation_step) };
  },
});
`;

test("beams and blocks are shown as they come, and stay when stopped", async () => {
  const slow = await serve(DIST, "", SLOW);
  try {
    const { page, problems, area } = await openTab("Beams", slow.url);
    await area.getByLabel("Tokens at most").fill("400");
    await area.getByLabel("Tokens at most").blur();
    await area.getByRole("button", { name: "Search", exact: true }).click();
    await area.locator(".tree .node").nth(20).waitFor();
    // However much comes, Stop is in view beside the button that began it.
    await page.setViewportSize({ width: 320, height: 640 });
    await area.getByRole("button", { name: "Search", exact: true }).scrollIntoViewIfNeeded();
    const stop = area.getByRole("button", { name: "Stop", exact: true });
    const place = await stop.boundingBox();
    assert.ok(place && place.y > 0 && place.y + place.height <= 640, JSON.stringify(place));
    await page.setViewportSize({ width: 1280, height: 900 });
    await stop.click();
    await area.getByText("It was cancelled.").waitFor();
    const nodes = await area.locator(".tree .node").count();
    await area.getByText("Table of every candidate").click();
    const listed = await rows(area.locator(".panel"), "Every candidate, oldest first");
    assert.equal(listed.length, nodes);
    assert.equal(listed.filter((node) => node[0] === "2" && node.at(-1) === "runs on").length, 4);
    assert.equal((await rows(area, "Sequences found, best first")).length, 0);

    await area.getByRole("tab", { name: "Speculation", exact: true }).click();
    await area.getByLabel("Tokens in all").fill("400");
    await area.getByLabel("Tokens in all").blur();
    await area.getByRole("button", { name: "Speculate", exact: true }).click();
    await area.locator(".blocks .block").nth(2).waitFor();
    await area.getByRole("button", { name: "Stop", exact: true }).click();
    await area.getByText("It was cancelled.").waitFor();
    assert.ok((await area.locator(".blocks .block").count()) >= 3);
    assert.equal(await area.getByText("On this device").count(), 0, "half a run has no time");
    await takeShots(page, "stopped-speculation");
    await page.close();
    assert.deepEqual(problems, []);
  } finally {
    await slow.close();
  }
});

test("an engine that dies is replaced, and the next search works", async () => {
  // The search of width 7 traps, as one does that asks for more memory than there is.
  const dying = await serve(
    DIST,
    "",
    `let dies = false;
    self.addEventListener("message", ({ data }) => { dies = data.args?.strategy?.includes("width=7"); });
    const { get } = Object.getOwnPropertyDescriptor(WebAssembly.Instance.prototype, "exports");
    Object.defineProperty(WebAssembly.Instance.prototype, "exports", {
      get() {
        const all = get.call(this);
        const trap = () => { throw new WebAssembly.RuntimeError("unreachable"); };
        return { ...all, beams_step: (...given) => (dies ? trap() : all.beams_step(...given)) };
      },
    });`,
  );
  try {
    const { page, problems, area } = await openTab("Beams", dying.url);
    await area.getByLabel("Tokens at most").fill("4");
    await area.getByLabel("Width", { exact: true }).fill("7");
    await area.getByRole("button", { name: "Search", exact: true }).click();
    await area.getByText(/The engine stopped.*unreachable/).waitFor();
    await area.getByLabel("Width", { exact: true }).fill("2");
    await area.getByRole("button", { name: "Search", exact: true }).click();
    await area.getByText("nucleus, p = 0.9, sample 3").waitFor();
    const found = await rows(area, "Sequences found, best first");
    assert.deepEqual(
      found.map((row) => row[4]),
      ["the agreed number of tokens is reached", "the agreed number of tokens is reached"],
    );
    assert.equal(await area.locator(".fault").count(), 0);
    await page.close();
    assert.deepEqual(problems, []);
  } finally {
    await dying.close();
  }
});

test("beams and blocks of no token say so", async () => {
  const { page, problems, area } = await openTab("Beams");
  await area.getByLabel("Tokens at most").fill("0");
  await area.getByLabel("Tokens at most").blur();
  await area.getByRole("button", { name: "Search", exact: true }).click();
  await area.getByText("No step was taken.").waitFor();
  await rest(area);
  assert.equal(await area.locator(".scrub").count(), 0);
  await page.goto(`${site.url}${STATE}&q=speculation&q.length=0`);
  await area.getByRole("button", { name: "Speculate", exact: true }).click();
  await area.getByText("Nothing was drafted.").waitFor();
  await rest(area);
  assert.equal(await area.getByText("On this device").count(), 0);
  assert.deepEqual(problems, []);
});

test("the laboratory says when there is nothing to test", async () => {
  const { problems, area } = await openTab("Speculation");
  for (const [tokens, sequences] of [
    ["0", "100"],
    ["2", "0"],
    ["2", "1"],
  ]) {
    await area.getByLabel("Tokens a sequence").fill(tokens ?? "");
    await area.getByRole("spinbutton", { name: "Sequences" }).fill(sequences ?? "");
    await area.getByRole("button", { name: "Count", exact: true }).click();
    await rest(area);
    const [row] = await rows(area, "Held to the model's own distribution");
    assert.equal(row?.[1], "nothing to test", `${tokens} ${sequences}`);
    assert.ok(!row?.join().includes("NaN"));
  }
  await area.getByRole("spinbutton", { name: "Sequences" }).fill("100");
  await area.getByLabel("Rule").nth(1).selectOption("match");
  await area.getByRole("button", { name: "Count", exact: true }).click();
  await area.getByText("no mistake about q can matter").waitFor();
  await rest(area);
  await area.getByRole("spinbutton", { name: "Sequences" }).fill("1000000");
  await area.getByRole("button", { name: "Count", exact: true }).click();
  await area.getByRole("button", { name: "Stop", exact: true }).click();
  await area.getByText("It was cancelled.").waitFor();
  assert.equal((await rows(area, "Held to the model's own distribution")).length, 0);
  assert.deepEqual(problems, []);
});

test("what is open stays in the link, whatever link is followed", async () => {
  const { page, problems, area } = await openTab("Beams");
  await area.getByLabel("Width", { exact: true }).fill("3");
  await area.getByLabel("Width", { exact: true }).blur();
  await page.waitForURL(/&q=beams&q\.width=3$/);
  // A link without a tab leaves the area as it is, so the address goes on telling of it.
  const other = STATE.replace("dog", "cat");
  await page.goto(site.url + other);
  await page.waitForURL(/The\+cat.*&q=beams&q\.width=3$/);
  // Folded up it stays folded, and in no link, unless a link names a tab.
  await page.getByText("Sequences", { exact: true }).click();
  await page.waitForURL(/&s=7$/);
  await page.goto(site.url + STATE);
  await page.waitForTimeout(ADDRESS_MS);
  assert.match(page.url(), /The\+dog.*&s=7$/);
  assert.equal(await area.getByRole("tablist").isVisible(), false);
  await page.goto(`${site.url}${STATE}&q=stops&q.tokens=5`);
  await area.getByRole("tab", { name: "Stop conditions", selected: true }).waitFor();
  assert.equal(await area.getByLabel("Token budget").inputValue(), "5");
  await page.waitForTimeout(ADDRESS_MS);
  assert.match(page.url(), /&q=stops&q\.tokens=5$/);
  await page.goBack();
  await page.waitForURL(/&s=7(&|$)/);
  await page.goForward();
  await page.waitForURL(/&q=stops&q\.tokens=5$/);
  await area.getByRole("tab", { name: "Stop conditions", selected: true }).waitFor();
  assert.deepEqual(problems, []);
});

test("an area that does not arrive stays in the link", async () => {
  const { page } = await openPage(browser);
  await page.route(/element-[^/]*\.js$/, (route) => route.abort());
  await page.goto(`${site.url}${STATE}&q=beams&q.width=3`);
  await page.getByText("This part of the page could not be loaded.").waitFor();
  await distribution(page);
  await page.getByRole("button", { name: "Step", exact: true }).click();
  await page.waitForURL(/&n=1/);
  assert.match(page.url(), /&q=beams&q\.width=3$/);
});

test("a link says what differs from what the page begins with", async () => {
  const { page, problems } = await openPage(browser, { viewport: { width: 1000, height: 900 } });
  const area = page.locator("logit-sequences");
  const given = async (/** @type {string} */ address) => {
    await page.goto("about:blank");
    await page.goto(address);
    await page.locator("logit-scope").evaluate((scope) => {
      const own = document.createElement("logit-scope");
      own.setAttribute("linked", "");
      own.setAttribute("view", "sequences");
      own.setAttribute("constraint", 'choice(["cat", "dog"])');
      scope.replaceWith(own);
    });
    await area.getByRole("tab", { name: "Constraint", selected: true }).waitFor();
  };
  await given(site.url);
  await area.getByText('As text: choice(["cat", "dog"])').waitFor();
  await page.waitForURL(/&q=constraint$/);
  await area.getByLabel("Kind").selectOption("regex");
  await page.waitForURL(/&q=constraint&q\.kind=regex/);
  const text = await area.locator(".as-text").textContent();
  await given(page.url());
  assert.equal(await area.locator(".as-text").textContent(), text);
  assert.deepEqual(problems, []);
});

test("words that no field offers are refused", async () => {
  const { page, problems, area } = await openTab("Beams");
  const links = [
    "q=beams&q.early=maybe",
    "q=beams&q.counts=7",
    "q=speculation&q.drafter=me",
    "q=speculation&q.rule=none",
    "q=stops&q.trim=perhaps",
  ];
  for (const said of links) {
    await page.goto(`${site.url}${STATE}&${said}`);
    const name = said.match(/q\.\w+/)?.[0];
    await area.getByText(`field “${name}”`).waitFor();
    const chosen = await area
      .locator("select")
      .evaluateAll((all) => all.map((select) => /** @type {HTMLSelectElement} */ (select).value));
    assert.ok(!chosen.includes(""), said);
  }
  assert.deepEqual(problems, []);
});

test("a reader who looks back stays there while beams come, and hears of the end", async () => {
  const slow = await serve(DIST, "", SLOW);
  try {
    const { page, problems, area } = await openTab("Beams", slow.url);
    await area.getByLabel("Tokens at most").fill("200");
    await area.getByLabel("Tokens at most").blur();
    await area.getByRole("button", { name: "Search", exact: true }).click();
    await area.getByText(/Shown up to step \d+ of \d+$/).waitFor();
    await area.locator(".scrub input").fill("2");
    const then = await area.getByText(/Shown up to step 2 of \d+$/).textContent();
    await area
      .getByText(/Shown up to step 2 of \d+$/)
      .and(area.locator(`:not(:text-is("${then}"))`))
      .waitFor();
    await area.getByRole("button", { name: "Stop", exact: true }).waitFor();
    await area.getByRole("tab", { name: "Stop conditions", exact: true }).click();
    await area.getByRole("tab", { name: "Beams", exact: true }).click();
    await area.getByText("nucleus, p = 0.9, sample 3").waitFor();
    await rest(area);
    await area.getByText(/Shown up to step 2 of \d+$/).waitFor();
    await area.getByRole("status").getByText("Searching: done.").waitFor();
    // The next search is followed to its end.
    await area.getByLabel("Tokens at most").fill("5");
    await area.getByLabel("Tokens at most").blur();
    await area.getByRole("button", { name: "Search", exact: true }).click();
    await area.getByText("Shown up to step 5 of 5").waitFor();
    await page.close();
    assert.deepEqual(problems, []);
  } finally {
    await slow.close();
  }
});

test("a wide search leaves the page free: no more is drawn than can be seen", async () => {
  const { page, problems, area } = await openTab("Beams");
  await area.getByLabel("Width", { exact: true }).fill("300");
  await area.getByLabel("Tokens at most").fill("6");
  await area.getByLabel("Tokens at most").blur();
  await area.getByRole("button", { name: "Search", exact: true }).click();
  await area.getByText("nucleus, p = 0.9, sample 3").waitFor();
  await rest(area);
  // 600 candidates a step: the picture shows the last three, the table all once it is unfolded.
  await area.getByText("it begins with step 4").waitFor();
  assert.equal(await area.locator(".tree .node").count(), 1800);
  assert.equal(await area.locator(".twin tr").count(), 0);
  await area.locator(".scrub input").fill("2");
  assert.equal(await area.locator(".tree .node").count(), 1200);
  await area.getByText("Table of every candidate").click();
  await area.locator(".twin tbody tr").nth(1199).waitFor();
  await page.close();
  assert.deepEqual(problems, []);
});
