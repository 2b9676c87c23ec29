// The step inspector: one column a stage, from the raw row to the draw, one line a token.
// It is a table, so it needs no twin: what it shows is what a screen reader reads.

import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { ceiling } from "../charts/scale.js";
import { count, nats, probability, spoken, visible } from "../format.js";
import { cell, column } from "./cells.js";
import { stageControls, stageName } from "./stage-head.js";
import { dragging, dropping } from "./stage-order.js";

/**
 * @import { LogitScope } from "../logit-scope.js"
 * @import { StageSpec, StageTrace, StepTrace } from "../types.js"
 * @import { Column } from "./cells.js"
 */

/** How many tokens are shown before a reader asks for all that are in view. */
const FOLDED_ROWS = 12;

/** @param {LogitScope} host */
export function stagesView(host) {
  const { play } = host;
  const trace = play.trace;
  const specs = play.stages.map(({ stage }) => play.catalogue.find(({ id }) => id === stage));
  const columns = columnsOf(trace, specs);
  const known = columns.flatMap((column) => (column ? [column.trace] : []));
  const full = ceiling(highest(known));
  const drawn = trace?.draw?.token;
  const followed = withLedger(columns, host.lookout.ledger, drawn);
  const tokens = tokensOf(known, drawn);
  const folded = host.unfolded ? [] : tokens.slice(FOLDED_ROWS).filter((token) => token !== drawn);
  const shown = tokens.filter((token) => !folded.includes(token));
  const drop = dropping(host);
  return html`
    <div
      class="scroller"
      tabindex="0"
      role="group"
      aria-label="The stages of this step, from the raw row to the draw"
      @keydown=${walk}
    >
      <table class="stages" @dragover=${drop.over} @drop=${drop.drop}>
        <caption class="hidden">${caption(host)}</caption>
        <thead>
          <tr class="names">
            <td class="corner"></td>
            <th scope="col">${stageName(host, 0, "Raw")}</th>
            ${specs.map((spec, index) => header(host, index, spec))}
          </tr>
          <tr class="controls">
            <td class="corner"></td>
            <td><p class="summary">What the model said: a score for every token, as probabilities.</p></td>
            ${specs.map((spec, index) => html`<td>${controls(host, index, spec)}</td>`)}
          </tr>
          <tr class="stats">
            <th scope="row">Alive<br />Removed<br />Entropy</th>
            ${columns.map((column, at) => html`<td>${column ? stats(column.trace, specs[at - 1]?.kind === "edit") : nothing}</td>`)}
          </tr>
        </thead>
        <tbody>
          ${repeat(
            shown,
            (token) => token,
            (token) => html`
              <tr class=${token === drawn ? "drawn" : ""}>
                <th scope="row">${tokenButton(host, token, token === drawn)}</th>
                ${columns.map((_, at) =>
                  cell({
                    columns: followed,
                    at,
                    token,
                    ceiling: full,
                    draw: token === drawn ? trace?.draw : null,
                    kept: false,
                  }),
                )}
              </tr>`,
          )}
          ${tokens.length > FOLDED_ROWS ? unfoldRow(host, folded.length) : nothing}
          ${pinnedRows(host, specs, full)}
          <tr class="rest">
            <th scope="row">all others</th>
            ${columns.map((column) =>
              column
                ? html`<td class="cell">${others(column.trace)}</td>`
                : html`<td class="cell"></td>`,
            )}
          </tr>
        </tbody>
      </table>
    </div>
    <p class="legend">
      Every number is the token's probability after the stage above it; a full bar is ${full}.
      ${host.isLocked("force") ? nothing : "Press a token to take it instead of the one drawn."}
    </p>
  `;
}

/**
 * Tokens that the reader keeps in the table, wherever they stand.
 * @param {LogitScope} host
 * @param {(StageSpec | undefined)[]} specs
 * @param {number} full
 */
function pinnedRows(host, specs, full) {
  const { ledger, pins } = host.lookout;
  if (!ledger || pins.length === 0) return nothing;
  const columns = columnsOf(ledger, specs);
  return pins.map((token) => {
    const piece = host.play.piece(token);
    const draw = ledger.draw?.token === token ? ledger.draw : null;
    return html`<tr class="pinned">
      <th scope="row">
        ${tokenButton(host, token, draw !== null)}<button
          class="tool"
          aria-label="No longer keep ${spoken(piece)} in the table"
          title="No longer keep it in the table"
          @click=${() => host.lookout.pin(token)}
        ><span aria-hidden="true">×</span></button>
      </th>
      ${columns.map((_, at) => cell({ columns, at, token, ceiling: full, draw, kept: true }))}
    </tr>`;
  });
}

/** The mass out of view; none where all that live are in view. @param {StageTrace} trace */
function others({ alive, rows, rest_mass }) {
  const inView = rows.filter((row) => row.alive).length;
  return alive === inView ? "none" : probability(rest_mass);
}

/** Arrow keys go from token to token. @param {KeyboardEvent} event */
function walk(event) {
  /** @type {Record<string, number>} */
  const moves = { ArrowUp: -1, ArrowDown: 1 };
  const move = moves[event.key];
  const target = /** @type {HTMLElement} */ (event.target);
  if (move === undefined || !target.classList.contains("token")) return;
  const tokens = [
    .../** @type {HTMLElement} */ (event.currentTarget).querySelectorAll("button.token"),
  ];
  const next = tokens[tokens.indexOf(target) + move];
  if (!(next instanceof HTMLButtonElement)) return;
  event.preventDefault();
  next.focus();
}

/**
 * @param {LogitScope} host
 * @param {number} folded
 */
function unfoldRow(host, folded) {
  return html`<tr class="unfold">
    <th scope="row">
      <button aria-expanded=${folded === 0 ? "true" : "false"} @click=${() => {
        host.unfolded = !host.unfolded;
      }}>
        ${folded === 0 ? "fewer" : `${folded} more`}
      </button>
    </th>
  </tr>`;
}

/** @param {LogitScope} host */
function caption({ play }) {
  return play.taken
    ? `Step ${play.selected + 1}: how each stage changed the probabilities`
    : "The next step: how each stage changes the probabilities";
}

/**
 * Traces for the columns; null while the engine has not yet answered for a changed pipeline.
 * @param {StepTrace | null} trace
 * @param {(StageSpec | undefined)[]} specs
 * @returns {(Column | null)[]}
 */
function columnsOf(trace, specs) {
  return ["raw", ...specs.map((spec) => spec?.id)].map((id, index) => {
    const stage = trace?.stages[index];
    return stage && stage.id === id ? column(stage) : null;
  });
}

/**
 * Columns that know tokens out of view as well, from the ledger: those that were edited or
 * drawn. It may lag behind, and says nothing then.
 * @param {(Column | null)[]} columns
 * @param {StepTrace | null} ledger
 * @param {number | undefined} drawn
 */
function withLedger(columns, ledger, drawn) {
  if (!ledger || ledger.draw?.token !== drawn) return columns;
  return columns.map((known, at) => {
    const more = ledger.stages[at];
    if (!known || more?.stage !== known.trace.stage) return known;
    const rows = new Map(more.rows.map((row) => [row.token, row]));
    for (const [token, row] of known.rows) rows.set(token, row);
    return { ...known, rows };
  });
}

/**
 * Tokens in the order of the raw row, then those that came into view later, the drawn one at
 * the latest.
 * @param {StageTrace[]} stages
 * @param {number | undefined} drawn
 */
function tokensOf(stages, drawn) {
  const tokens = new Set(stages.flatMap((stage) => stage.rows.map((row) => row.token)));
  if (drawn !== undefined && stages.length > 0) tokens.add(drawn);
  return [...tokens];
}

/** @param {StageTrace[]} stages */
function highest(stages) {
  return Math.max(0, ...stages.flatMap((stage) => stage.rows.map((row) => row.probability)));
}

/**
 * @param {LogitScope} host
 * @param {number} index
 * @param {StageSpec | undefined} spec
 */
function header(host, index, spec) {
  if (!spec) return html`<th scope="col"></th>`;
  const sampler = spec.kind === "sampler";
  const drag = dragging(host, index);
  const movable = !sampler && !host.isLocked("pipeline", "stages");
  return html`<th
    scope="col"
    class="${sampler ? "sampler" : ""} ${host.dragging === index ? "dragging" : ""}"
    draggable=${movable ? "true" : "false"}
    @dragstart=${drag.start}
    @dragover=${drag.over}
    @dragend=${drag.end}
  >
    ${stageName(host, index + 1, spec.label)}
  </th>`;
}

/**
 * @param {LogitScope} host
 * @param {number} index
 * @param {StageSpec | undefined} spec
 */
function controls(host, index, spec) {
  if (!spec) return nothing;
  return html`
    ${spec.kind === "sampler" ? samplerChoice(host, spec) : nothing}
    ${stageControls(host, index, spec)}
  `;
}

/**
 * @param {LogitScope} host
 * @param {StageSpec} spec
 */
function samplerChoice(host, spec) {
  const { play } = host;
  const samplers = play.catalogue.filter(({ kind }) => kind === "sampler");
  const choose = (/** @type {Event} */ event) =>
    play.setSampler(/** @type {HTMLSelectElement} */ (event.target).value);
  return html`<select aria-label="Sampler" ?disabled=${host.isLocked("pipeline", "sampler")} @change=${choose}>
    ${samplers.map(({ id, label }) => html`<option value=${id} .selected=${id === spec.id}>${label}</option>`)}
  </select>`;
}

/**
 * @param {StageTrace} trace
 * @param {boolean} edits whether the stage edits single scores, and so has no limit to hold them to
 */
function stats({ alive, alive_before, removed_mass, entropy, limit, id }, edits) {
  const removed = alive_before > alive;
  return html`
    <span class="stat"><b>${count(alive)}</b>${removed ? ` of ${count(alive_before)}` : ""}</span><br />
    <span class="stat ${removed ? "lost" : ""}">${removed ? `${probability(removed_mass)} of the mass` : id === "raw" ? "–" : "nothing"}</span><br />
    <span class="stat">${nats(entropy)} nats</span>
    ${limit == null || edits ? nothing : html`<br /><span class="stat">limit ${Number.isInteger(limit) ? count(limit) : limit.toPrecision(4)}</span>`}
  `;
}

/**
 * @param {LogitScope} host
 * @param {number} token
 * @param {boolean} drawn
 */
function tokenButton(host, token, drawn) {
  const { play } = host;
  const piece = play.piece(token);
  const words = `${spoken(piece)}${drawn ? (play.taken ? ", taken" : ", next") : ""}. Take this token.`;
  return html`<button
    class="token"
    ?disabled=${host.isLocked("force")}
    title="Take this token (id ${token})"
    aria-label=${words}
    @click=${() => host.force(token)}
  >${visible(piece)}</button>`;
}
