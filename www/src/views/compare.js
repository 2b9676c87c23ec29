// Pipelines side by side: what each keeps of the same row, and what the same uniform number
// draws from it.

import { html, nothing } from "lit";
import { dieBar } from "../charts/die-roll.js";
import { ceiling } from "../charts/scale.js";
import { death, NAMES, parting } from "../compare.js";
import { nats, plural, probability, spoken, visible } from "../format.js";
import { draft } from "./draft.js";

/**
 * @import { Rival } from "../compare.js"
 * @import { LogitScope } from "../logit-scope.js"
 * @import { StepTrace } from "../types.js"
 */

/** How many tokens the table shows. */
const ROWS = 12;

/** @param {LogitScope} host */
export function compareView(host) {
  const { comparison } = host.desk;
  return html`
    <details class="compare" ?open=${comparison !== null} @toggle=${(/** @type {Event} */ event) =>
      toggle(host, /** @type {HTMLDetailsElement} */ (event.target).open)}>
      <summary><h2>Compare pipelines</h2></summary>
      ${comparison ? html`<div class="rivals">${rivalsView(host, comparison.rivals)}</div>` : nothing}
    </details>
  `;
}

/**
 * @param {LogitScope} host
 * @param {boolean} open
 */
function toggle({ desk }, open) {
  if (open !== (desk.comparison !== null)) desk.compare(open ? [desk.suggestion()] : null);
}

/**
 * @param {LogitScope} host
 * @param {Rival[]} rivals
 */
function rivalsView(host, rivals) {
  const { play } = host;
  const step = play.taken ? `step ${play.selected + 1}` : "the next step";
  return html`
    <p class="legend">The same scores of ${step} and the same uniform number u, decoded by each pipeline.</p>
    ${rivals.map((rival, index) => rivalView(host, rival, index, rivals[0]))}
    ${
      rivals.length < NAMES.length
        ? html`<button @click=${() => host.desk.compareWith(host.desk.suggestion())}>Add a pipeline</button>`
        : nothing
    }
    ${tableView(host, rivals)}
  `;
}

/**
 * @param {LogitScope} host
 * @param {Rival} rival
 * @param {number} index
 * @param {Rival | undefined} own
 */
function rivalView(host, rival, index, own) {
  const { trace, error, text } = rival;
  const name = NAMES[index] ?? "";
  const last = trace?.stages.at(-1);
  const id = `rival-${index}`;
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
                aria-label="Pipeline ${name}"
                aria-invalid=${error ? "true" : "false"}
                aria-describedby=${error ? id : nothing}
                .value=${draft(text)}
                @keydown=${apply}
                @change=${(/** @type {Event} */ event) =>
                  host.desk.comparison?.set(
                    index,
                    /** @type {HTMLTextAreaElement} */ (event.target).value,
                  )}
              ></textarea>
              <button class="tool" aria-label="Remove pipeline ${name}" @click=${() => host.desk.comparison?.remove(index)}>
                <span aria-hidden="true">×</span>
              </button>`
        }
      </div>
      ${error ? html`<p class="fault" id=${id} role="alert">${error.message}</p>` : nothing}
      ${
        trace?.draw && last && !error
          ? html`
              ${dieBar(trace.draw, (token) => host.play.piece(token), null)}
              <p class="legend">
                Keeps ${plural(last.alive, "token")}, entropy ${nats(last.entropy)} nats; takes
                <q class="token">${visible(host.play.piece(trace.draw.token))}</q>.
                ${index > 0 && own?.trace ? partingWords(host, own.trace, trace, name) : nothing}
              </p>`
          : nothing
      }
    </section>
  `;
}

/** Enter applies. @param {KeyboardEvent} event */
function apply(event) {
  if (event.key !== "Enter") return;
  event.preventDefault();
  /** @type {HTMLTextAreaElement} */ (event.target).dispatchEvent(new Event("change"));
}

/**
 * @param {LogitScope} host
 * @param {StepTrace} own
 * @param {StepTrace} other
 * @param {string} name
 */
function partingWords(host, own, other, name) {
  const found = parting(own, other);
  if (!found) return "It does the same as A.";
  const { a, b, onlyA, onlyB, sameToken } = found;
  return html`<span class="parting"
    >It parts from A at <b>${b.label}</b>${a.label === b.label ? "" : html`, where A has <b>${a.label}</b>`}.
    ${alone(host, "A", onlyA)} ${alone(host, name, onlyB)}
    ${onlyA.length + onlyB.length === 0 ? "Of the tokens in view both keep the same." : nothing}
    ${sameToken ? "Both take the same token." : "They take different tokens."}</span
  >`;
}

/**
 * @param {LogitScope} host
 * @param {string} name
 * @param {number[]} tokens
 */
function alone({ play }, name, tokens) {
  if (tokens.length === 0) return nothing;
  const shown = tokens.slice(0, 5).map((token) => `“${visible(play.piece(token))}”`);
  const more = tokens.length > 5 ? ` and ${tokens.length - 5} more` : "";
  return `Of the tokens in view, only ${name} keeps ${shown.join(", ")}${more}.`;
}

/**
 * @param {LogitScope} host
 * @param {Rival[]} rivals
 */
function tableView(host, rivals) {
  const traces = rivals.flatMap(({ trace, error }, index) =>
    trace && !error ? [{ trace, name: NAMES[index] ?? "" }] : [],
  );
  if (traces.length === 0) return nothing;
  const finals = traces.map(({ trace }) => trace.stages.at(-1));
  const seen = new Set(
    traces.flatMap(({ trace }) => (trace.stages[0]?.rows ?? []).map((row) => row.token)),
  );
  const tokens = [...seen].slice(0, ROWS);
  const full = ceiling(
    Math.max(0, ...finals.flatMap((stage) => stage?.rows.map((row) => row.probability) ?? [])),
  );
  return html`
    <div class="scroller" tabindex="0" role="group" aria-label="Final probabilities by pipeline">
      <table class="stages">
        <caption class="hidden">Final probability of each token, by pipeline</caption>
        <thead>
          <tr class="names">
            <td class="corner"></td>
            ${traces.map(({ name }) => html`<th scope="col"><b>${name}</b>, final</th>`)}
          </tr>
        </thead>
        <tbody>
          ${tokens.map((token) => {
            const piece = host.play.piece(token);
            return html`<tr>
              <th scope="row"><span class="token" aria-label=${spoken(piece)}>${visible(piece)}</span></th>
              ${traces.map(({ trace }) => finalCell(trace, token, full))}
            </tr>`;
          })}
        </tbody>
      </table>
    </div>
  `;
}

/**
 * @param {StepTrace} trace
 * @param {number} token
 * @param {number} full
 */
function finalCell(trace, token, full) {
  const row = trace.stages.at(-1)?.rows.find((row) => row.token === token);
  if (row?.alive) {
    return html`<td class="cell live ${trace.draw?.token === token ? "drawn" : ""}">
      <span class="bar" style="width:${Math.min(100, (row.probability / full) * 100)}%"></span>
      <span class="value">${probability(row.probability)}</span>
    </td>`;
  }
  const died = death(trace, token);
  return died
    ? html`<td class="cell dead"><s>${died.stage.label}</s><span class="reason">${died.row.verdict?.reason ?? ""}</span></td>`
    : html`<td class="cell unseen" title="not among the tokens in view">·</td>`;
}
