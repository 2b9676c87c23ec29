// One token after one stage: its probability as a bar and a number, what an edit did to its
// score, or why it was removed.

import { html, nothing } from "lit";
import { nats, probability } from "../format.js";

/**
 * @import { DrawTrace, Row, StageTrace } from "../types.js"
 */

/**
 * @typedef {object} Column a stage's trace, ready to be looked up by token
 * @property {StageTrace} trace
 * @property {Map<number, Row>} rows
 * @property {Map<number, { score?: number | null, why: string }>} edits
 */

/** @param {StageTrace} trace @returns {Column} */
export function column(trace) {
  return {
    trace,
    rows: new Map(trace.rows.map((row) => [row.token, row])),
    edits: new Map(trace.edits.map((edit) => [edit.token, edit])),
  };
}

/**
 * @param {object} cell
 * @param {(Column | null)[]} cell.columns from raw to drawn
 * @param {number} cell.at which of them
 * @param {number} cell.token
 * @param {number} cell.ceiling the probability of a full bar
 * @param {DrawTrace | null | undefined} cell.draw the draw, if this token was taken
 * @param {boolean} cell.kept whether the table tells why a token was kept, too
 */
export function cell({ columns, at, token, ceiling, draw, kept }) {
  const here = columns[at];
  if (!here) return html`<td class="cell"></td>`;
  const row = here.rows.get(token);
  const last = at === columns.length - 1;
  if (!row && last && draw) return live(draw.probability, ceiling, "drawn");
  if (!row) {
    const died = columns.slice(0, at).some((earlier) => earlier?.rows.get(token)?.alive === false);
    return died
      ? html`<td class="cell gone"><span class="hidden">removed before</span></td>`
      : html`<td class="cell unseen" title="not among the tokens in view">·</td>`;
  }
  if (!row.alive) return removed(row);
  const edit = here.edits.get(token);
  const before = columns[at - 1]?.rows.get(token)?.score;
  const cut = here.trace.cut?.token === token && here.trace.removed_mass > 0;
  const marks = `${cut ? "cut" : ""} ${last && draw ? "drawn" : ""}`;
  const note = edit ? editNote(edit, before) : score(here.trace, row);
  return live(row.probability, ceiling, marks, note, row.verdict?.reason, kept);
}

/**
 * @param {number} value
 * @param {number} ceiling
 * @param {string} marks
 * @param {unknown} [note]
 * @param {string} [reason] why the token was kept
 * @param {boolean} [told] whether that stands in the cell
 */
function live(value, ceiling, marks, note = nothing, reason = undefined, told = false) {
  return html`<td class="cell live ${marks}" title=${reason ? `kept: ${reason}` : nothing}>
    <span class="bar" style="width:${Math.min(100, (value / ceiling) * 100)}%"></span>
    <span class="value">${probability(value)}</span>
    ${note}
    ${reason && told ? html`<span class="reason">kept: ${reason}</span>` : nothing}
  </td>`;
}

/** @param {Row} row */
function removed(row) {
  const before = row.probability_before;
  return html`<td class="cell dead">
    <s><span class="hidden">removed, before </span>${before == null ? "removed" : probability(before)}</s>
    ${row.verdict ? html`<span class="reason">${row.verdict.reason}</span>` : nothing}
  </td>`;
}

/**
 * @param {{ score?: number | null, why: string }} edit
 * @param {number | undefined} before
 */
function editNote({ score, why }, before) {
  const change = before != null && score != null ? `${nats(before)} → ${nats(score)}, ` : "";
  return html`<span class="reason">${change}${why}</span>`;
}

/** Scores where a stage made them what they are. @param {StageTrace} trace @param {Row} row */
function score(trace, row) {
  return trace.id === "raw" || trace.id === "temperature"
    ? html`<span class="score" title="score in nats">${nats(row.score)}</span>`
    : nothing;
}
