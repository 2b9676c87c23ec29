// What the stages that edit single scores did: every token they touched, in view or not.

import { html, nothing } from "lit";
import { nats, plural, spoken, visible } from "../format.js";
import { PENALTIES } from "../lookout.js";

/**
 * @import { LogitScope } from "../logit-scope.js"
 * @import { StageTrace } from "../types.js"
 */

/** @param {LogitScope} host */
export function editsView(host) {
  const stages = host.play.trace?.stages ?? [];
  // The ledger knows edited tokens that are not among the likeliest; it may lag behind a slider.
  const ledger = host.lookout.ledger?.stages ?? [];
  return stages.map((stage, index) => {
    // What a penalty did stands with what it saw.
    if (PENALTIES.includes(stage.id)) return nothing;
    const current = ledger[index]?.stage === stage.stage ? ledger[index - 1] : undefined;
    return stage.edits.length > 0 ? editsOf(host, stage, current ?? stages[index - 1]) : nothing;
  });
}

/**
 * @param {LogitScope} host
 * @param {StageTrace} stage
 * @param {StageTrace | undefined} before
 */
function editsOf({ play }, { label, stage: text, edits }, before) {
  const scores = new Map(before?.rows.map((row) => [row.token, row.score]));
  return html`
    <details class="twin edits">
      <summary>${label} touched ${plural(edits.length, "token")}</summary>
      <table>
        <caption>Scores in nats before and after <code>${text}</code></caption>
        <thead>
          <tr><th scope="col">Token</th><th scope="col">Before</th><th scope="col">After</th><th scope="col">Why</th></tr>
        </thead>
        <tbody>
          ${edits.map(({ token, score, why }) => {
            const piece = play.piece(token);
            const known = scores.get(token);
            return html`<tr>
              <th scope="row"><span aria-label=${spoken(piece)}>${visible(piece)}</span></th>
              <td>${known === undefined ? html`<span title="not among the tokens in view">·</span>` : nats(known)}</td>
              <td>${score == null ? "removed" : `${nats(score)} ${direction(known, score)}`}</td>
              <td>${why}</td>
            </tr>`;
          })}
        </tbody>
      </table>
    </details>
  `;
}

/** Which way a score moved, as an arrow. @param {number | undefined} before @param {number} after */
function direction(before, after) {
  if (before === undefined || before === after) return "";
  return after < before ? "↓" : "↑";
}
