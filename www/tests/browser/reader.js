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
