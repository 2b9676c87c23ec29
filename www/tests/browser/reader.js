// What a reader of the page does and sees, for the browser tests.

/**
 * @import { Locator, Page } from "playwright-core"
 */

/** A seed under which the tests know nothing but that it stays. */
export const STATE =
  "#v=1&p=The+dog+ran+to+the&pl=temperature(t=0.8)+|+top_k(k=40)+|+top_p(p=0.9)+|+categorical()&s=7";

/** Waits until the distribution of the step in view is on screen. @param {Page | Locator} where */
export async function distribution(where) {
  await where.locator("td.cell.live").first().waitFor();
}

/** The generated tokens as the page shows them. @param {Page | Locator} where */
export async function tokens(where) {
  return await where.locator(".chip:not(.next):not(.levels .chip):not(.stale)").allTextContents();
}

/** Waits until there are so many tokens, and nothing is still being decoded. @param {Page | Locator} where @param {number} count */
export async function tokenCount(where, count) {
  await where.locator(`.body[data-tokens="${count}"]:not([data-busy])`).waitFor();
}

/** The tokens of the table, likeliest in the raw row first. @param {Page | Locator} where */
export async function listedTokens(where) {
  return await where.locator("tbody button.token").allTextContents();
}

/**
 * The cells of one column of the table, 0 for the raw row.
 * @param {Page | Locator} where
 * @param {number} column
 */
export async function columnCells(where, column) {
  return await where.locator(`tbody tr:not(.unfold) td:nth-child(${column + 2})`).allTextContents();
}

/** @param {Page | Locator} where @param {string} name */
export function button(where, name) {
  return where.getByRole("button", { name, exact: true });
}

/**
 * Opens an address afresh and presses Step as soon as there is something to see. Answers when
 * the first distribution and the first token had been painted, in milliseconds after navigation.
 * The page itself takes the time: a driver's questions would take longer than the answer.
 * @param {Page} page
 * @param {string} url
 * @returns {Promise<{ distribution: number, token: number }>}
 */
export async function firstMoments(page, url) {
  await page.addInitScript(() => {
    /** @param {() => unknown} found */
    const painted = (found) =>
      new Promise((resolve) => {
        const look = () => {
          if (!found()) return requestAnimationFrame(look);
          // A message waits until the frame that shows it is done.
          const { port1, port2 } = new MessageChannel();
          port1.onmessage = () => resolve(performance.now());
          port2.postMessage(null);
        };
        requestAnimationFrame(look);
      });
    const inside = () => document.querySelector("logit-scope")?.shadowRoot;
    const moments = async () => {
      const distribution = await painted(() => inside()?.querySelector("td.cell.live"));
      const buttons = [...(inside()?.querySelectorAll("button") ?? [])];
      buttons.find(({ textContent }) => textContent?.trim() === "Step")?.click();
      const token = await painted(() => inside()?.querySelector('.body[data-tokens="1"]'));
      return { distribution, token };
    };
    Object.assign(globalThis, { moments: moments() });
  });
  await page.goto(url);
  return await page.evaluate(() => /** @type {any} */ (globalThis).moments);
}
