import assert from "node:assert/strict";
import { test } from "node:test";
import { builtPage, openPage, takeShots } from "./harness.js";
import { distribution, STATE } from "./reader.js";

const { site, browser } = await builtPage();

/** Opens the bench. */
async function openBench() {
  const opened = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  await opened.page.goto(site.url + STATE);
  await distribution(opened.page);
  await opened.page.getByText("By hand", { exact: true }).click();
  await opened.page.getByRole("heading", { name: "The scores as they are" }).waitFor();
  return opened;
}

/**
 * The cells of a calculation, without the reasons.
 * @param {import("playwright-core").Page} page
 * @param {string} name
 */
async function sheet(page, name) {
  const rows = page.getByRole("group", { name: `Calculation: ${name}` }).locator("tbody tr");
  return await rows.evaluateAll((all) =>
    all.map((row) => [...row.children].slice(0, 7).map((cell) => cell.textContent?.trim() ?? "")),
  );
}

test("the lesson's numbers are shown to the printed digit", async () => {
  const { page, problems } = await openBench();
  assert.deepEqual(await sheet(page, "The scores as they are"), [
    ["cat", "2.00", "7.39", "0.00", "1.0000", "0.665", "0.000"],
    ["dog", "1.00", "2.72", "−1.00", "0.3679", "0.245", "0.665"],
    ["fish", "0.00", "1.00", "−2.00", "0.1353", "0.090", "0.910"],
    ["sum", "", "11.11", "", "1.5032", ""],
  ]);
  const hot = await sheet(page, "Temperature");
  assert.deepEqual(
    hot.slice(0, 3).map((row) => row[5]),
    ["0.506", "0.307", "0.186"],
  );
  assert.equal(hot[3]?.[2], "5.37");

  // A constant added changes no probability; a factor sharpens.
  await page.getByLabel("Add to every score").fill("5");
  await page.getByLabel("Add to every score").press("Enter");
  await page.getByRole("cell", { name: "7.00" }).first().waitFor();
  const changed = "The scores, multiplied and added to";
  assert.equal((await sheet(page, changed))[0]?.[5], "0.665");
  await page.getByText(/Adding 5 to every score changes no probability/).waitFor();
  await page.getByLabel("Multiply every score by").fill("2");
  await page.getByLabel("Multiply every score by").press("Enter");
  await page.getByRole("cell", { name: "9.00" }).first().waitFor();
  await page.getByText(/Multiplying by 2 widens every gap, so it sharpens/).waitFor();
  // Beside it stands what the scores as typed have.
  assert.deepEqual((await sheet(page, changed))[0]?.slice(5, 7), ["0.867", "0.665"]);
  await takeShots(page, "by-hand");

  // What cannot be read is refused, and stays to be mended.
  await page.getByLabel("Scores", { exact: true }).fill("cat two");
  await page.getByLabel("Scores", { exact: true }).blur();
  await page.getByText(/but must be a number or -inf/).waitFor();
  assert.equal(await page.getByLabel("Scores", { exact: true }).inputValue(), "cat two");
  assert.deepEqual(problems, []);
});

test("predictions are marked with the right numbers", async () => {
  const { page, problems } = await openBench();
  await page.locator("logit-scope").evaluate((scope) => {
    const answers = /** @type {any} */ (window).answers ?? [];
    /** @type {any} */ (window).answers = answers;
    scope.addEventListener("answer", (event) =>
      answers.push(/** @type {CustomEvent} */ (event).detail),
    );
  });
  await page.getByLabel("Predict first").check();
  assert.equal(await page.getByRole("heading", { name: "The scores as they are" }).count(), 0);
  // temperature(t=2) | top_p(p=0.8): 0.506, then 0.813 with dog.
  await page.getByRole("checkbox", { name: "cat" }).check();
  await page.getByRole("checkbox", { name: "dog" }).check();
  await page.getByLabel(/What is p\(dog\) at T = 2/).fill("0.31");
  await page.getByLabel(/What is p\(dog\) after Top-p/).fill("0.31");
  await page.getByRole("button", { name: "Reveal" }).click();
  await page.getByText("✓ Right: cat, dog.").waitFor();
  await page.getByText("✓ Right: 0.307.").waitFor();
  await page.getByText("✗ Not quite. Right is 0.378.").waitFor();
  await page.getByRole("heading", { name: "The scores as they are" }).waitFor();
  const answers = await page.evaluate(() => /** @type {any} */ (window).answers);
  assert.deepEqual(
    answers.map((/** @type {any} */ { question, correct }) => [question, correct]),
    [
      ["survivors", true],
      ["probability", true],
      ["probability", false],
    ],
  );
  assert.deepEqual(problems, []);
});

test("a wrong set of survivors is marked, with the right one", async () => {
  const { page, problems } = await openBench();
  await page.getByLabel("Predict first").check();
  await page.getByRole("checkbox", { name: "fish" }).check();
  await page.getByRole("button", { name: "Reveal" }).click();
  await page.getByText("✗ Not quite. Right is cat, dog.").waitFor();
  // No answer is neither right nor wrong, and its number is told.
  await page.getByText("Not answered. Right is 0.307.").waitFor();
  assert.equal(await page.locator(".mark.wrong").count(), 1);
  assert.equal(await page.locator(".mark.right").count(), 0);
  assert.deepEqual(problems, []);
});

test("a row of any length can be pasted in any of three forms", async () => {
  const { page, problems } = await openBench();
  const scores = page.getByLabel("Scores", { exact: true });
  for (const [pasted, highest] of [
    ['[{"token": " the", "logprob": -0.5}, {"token": " a", "logprob": -1.5}]', "0.731"],
    ["token,logit\n the,3\n a,2", "0.731"],
    [Array.from({ length: 300 }, () => "0").join(" "), "0.003"],
  ]) {
    await scores.fill(pasted ?? "");
    await scores.blur();
    await page.getByRole("cell", { name: highest }).first().waitFor();
  }
  await page.getByRole("rowheader", { name: "236 more" }).first().waitFor();
  assert.deepEqual(problems, []);
});

test("any token can be found and followed through the stages", async () => {
  const { page, problems } = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  await page.goto(site.url + STATE);
  await distribution(page);
  await page.getByLabel("Find a token, by its text or id, and keep it in the table").fill("mother");
  await page
    .getByRole("button", { name: /Keep mother in the table/ })
    .first()
    .click();
  const pinned = page.locator("tr.pinned");
  await pinned.getByText(/its rank was \d+ > 40/).waitFor();
  await pinned.getByRole("button", { name: /No longer keep/ }).click();
  await pinned.waitFor({ state: "detached" });
  assert.deepEqual(problems, []);
});
