// Pipelines side by side: what each keeps of the same row, and what the same uniform number
// draws from it.

import { html, nothing } from "lit";
import { dieBar } from "../charts/die-roll.js";
import { ceiling } from "../charts/scale.js";
import { death, NAMES } from "../compare.js";
import { nats, plural, probability, spoken, visible } from "../format.js";
import { draft } from "./draft.js";

/**
 * @import { Comparison, Rival } from "../compare.js"
 * @import { LogitScope } from "../logit-scope.js"
 * @import { Compared, Side } from "../types.js"
 */

/**
 * @typedef {object} Words how the rows of a comparison are called
 * @property {(token: number) => string} piece
 * @property {string} suffix what tells its fields from those of another comparison
 */

/** @param {LogitScope} host */
export function compareView(host) {
  const { desk, play } = host;
  const { comparison } = desk;
  const step = play.taken ? `step ${play.selected + 1}` : "the next step";
  const words = { piece: (/** @type {number} */ token) => play.piece(token), suffix: "" };
  return html`
    <details class="compare" ?open=${comparison !== null} @toggle=${(
      /** @type {Event} */ event,
    ) => {
      const { open } = /** @type {HTMLDetailsElement} */ (event.target);
      if (open !== (desk.comparison !== null)) desk.openComparison(open);
    }}>
      <summary><h2>Compare pipelines</h2></summary>
      ${
        comparison
          ? html`<div class="rivals">
              <p class="legend">The same scores of ${step} and the same uniform number u, decoded by each pipeline.</p>
              ${rivalsView(comparison, words)}
            </div>`
          : nothing
      }
    </details>
  `;
}

/**
 * @param {Comparison} comparison
 * @param {Words} words
 */
export function rivalsView(comparison, words) {
  const { rivals } = comparison;
  return html`
    ${rivals.map((rival, index) => rivalView(comparison, rival, index, words))}
    ${
      rivals.length < NAMES.length
        ? html`<button @click=${() => comparison.add()}>Add a pipeline${words.suffix}</button>`
        : nothing
    }
    ${tableView(comparison, words)}
  `;
}

/**
 * @param {Comparison} comparison
 * @param {Rival} rival
 * @param {number} index
 * @param {Words} words
 */
function rivalView(comparison, rival, index, words) {
  const { side, error, text, notes, parting } = rival;
  const name = NAMES[index] ?? "";
  const id = `rival-${index}${words.suffix.replaceAll(" ", "-")}`;
  return html`
    <section class="rival">
      <div class="rival-head">
        <b>${name}</b>
        ${
          index === 0
            ? html`<code class="own">${text}</code>`
            : html`<textarea
                rows="1"
                spellcheck="false"
                aria-label="Pipeline ${name}${words.suffix}"
                aria-invalid=${error ? "true" : "false"}
                aria-describedby=${error ? id : nothing}
                .value=${draft(text)}
                @keydown=${apply}
                @change=${(/** @type {Event} */ event) =>
                  comparison.set(
                    index,
                    /** @type {HTMLTextAreaElement} */ (event.target).value.trim(),
                  )}
              ></textarea>
              <button class="tool" aria-label="Remove pipeline ${name}${words.suffix}" @click=${() => comparison.remove(index)}>
                <span aria-hidden="true">×</span>
              </button>`
        }
      </div>
      ${error ? html`<p class="fault" id=${id} role="alert">${error.message}</p>` : nothing}
      ${side && !error ? sideView(side, words) : nothing}
      ${side && !error && parting ? html`<p class="parting">${inCode(parting.words)}</p>` : nothing}
      ${error ? nothing : notes.map(({ message }) => html`<p class="warning">${message}.</p>`)}
    </section>
  `;
}

/** Enter applies. @param {KeyboardEvent} event */
function apply(event) {
  if (event.key !== "Enter") return;
  event.preventDefault();
  /** @type {HTMLTextAreaElement} */ (event.target).dispatchEvent(new Event("change"));
}

/** A sentence whose parts in backticks are pipeline text. @param {string} words */
function inCode(words) {
  const sentence = words.replaceAll("“ ", "“␣");
  return sentence.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));
}

/**
 * @param {Side} side
 * @param {Words} words
 */
function sideView({ trace, alone, intersection, kept }, { piece }) {
  const last = trace.stages.at(-1);
  const label = (/** @type {string} */ text) =>
    trace.stages.find(({ stage }) => stage === text)?.label ?? text;
  return html`
    ${trace.draw ? dieBar(trace.draw, piece, null) : nothing}
    <p class="legend">
      Keeps ${plural(kept, "token")}${last ? `, entropy ${nats(last.entropy)} nats` : ""}${
        trace.draw
          ? html`; takes <q class="token">${visible(piece(trace.draw.token))}</q>`
          : nothing
      }.
    </p>
    ${
      alone.length > 1
        ? html`<details class="twin">
            <summary>
              Alone, ${alone.map(({ stage, kept }) => `${label(stage)} would keep ${kept}`).join(", ")}; all of them ${intersection}
            </summary>
            <table class="plain">
              <caption>What each truncation keeps without the others, after the edits and temperatures before it</caption>
              <thead><tr><th scope="col">Truncation</th><th scope="col">Keeps</th><th scope="col">Least likely kept</th></tr></thead>
              <tbody>
                ${alone.map(
                  ({ stage, kept, least }) => html`<tr>
                    <th scope="row"><code>${stage}</code></th>
                    <td>${kept}</td>
                    <td class="words">${least === null ? nothing : visible(piece(least))}</td>
                  </tr>`,
                )}
                <tr><th scope="row">kept by every one alone</th><td>${intersection}</td><td></td></tr>
                <tr><th scope="row">kept one after the other</th><td>${kept}</td><td></td></tr>
              </tbody>
            </table>
          </details>`
        : nothing
    }
  `;
}

/**
 * @param {Comparison} comparison
 * @param {Words} words
 */
function tableView({ rivals, tokens }, words) {
  const sides = rivals.flatMap(({ side, error, place }, index) =>
    side && !error ? [{ side, place, name: NAMES[index] ?? "" }] : [],
  );
  if (sides.length === 0) return nothing;
  const full = ceiling(
    Math.max(0, ...tokens.flatMap(({ raw, sides }) => [raw, ...sides.map(Number)])),
  );
  return html`
    <div class="scroller" tabindex="0" role="group" aria-label="Final probabilities by pipeline${words.suffix}">
      <table class="stages">
        <caption class="hidden">Raw probability of each token, and the final one by pipeline</caption>
        <thead>
          <tr class="names">
            <td class="corner"></td>
            <th scope="col">Raw</th>
            ${sides.map(({ name }) => html`<th scope="col"><b>${name}</b>, final</th>`)}
          </tr>
        </thead>
        <tbody>
          ${tokens.map((compared) => {
            const piece = words.piece(compared.token);
            return html`<tr>
              <th scope="row"><span class="token" aria-label=${spoken(piece)}>${visible(piece)}</span></th>
              ${alive(compared.raw, full, false)}
              ${sides.map(({ side, place }) => finalCell(side, compared, place, full))}
            </tr>`;
          })}
        </tbody>
      </table>
    </div>
  `;
}

/**
 * @param {Side} side
 * @param {Compared} compared
 * @param {number} place of the side
 * @param {number} full
 */
function finalCell({ trace }, { token, sides }, place, full) {
  const value = sides[place];
  if (value != null) return alive(value, full, trace.draw?.token === token);
  const died = death(trace, token);
  return html`<td class="cell dead">
    <s>${died?.stage.label ?? "removed"}</s><span class="reason">${died?.row.verdict?.reason ?? ""}</span>
  </td>`;
}

/** @param {number} value @param {number} full @param {boolean} drawn */
function alive(value, full, drawn) {
  return html`<td class="cell live ${drawn ? "drawn" : ""}">
    <span class="bar" style="width:${Math.min(100, (value / full) * 100)}%"></span>
    <span class="value">${probability(value)}</span>
  </td>`;
}
