// What each penalty looked at, and what it did: the history with what it saw in relief, and
// every token whose score it moved.

import { html, nothing } from "lit";
import { nats, plural, spoken, visible } from "../format.js";

/**
 * @import { LogitScope } from "../logit-scope.js"
 * @import { Penalised, PenaltyView, Places } from "../types.js"
 */

/** More tokens than this are folded. */
const OPEN_ROWS = 12;

/** @param {LogitScope} host */
export function penaltiesView(host) {
  const { play, lookout } = host;
  const stages = play.trace?.stages ?? [];
  // They may lag behind a slider.
  const current = lookout.penalties.filter(({ stage }) => stages.some((at) => at.stage === stage));
  if (current.length === 0) return nothing;
  const history = [
    ...play.promptTokens.pieces,
    ...play.steps.slice(0, play.selected).map(({ piece }) => piece),
  ];
  return html`
    <section class="penalties">
      <h2>What the penalties saw</h2>
      ${current.map((penalty) => {
        const label = stages.find((at) => at.stage === penalty.stage)?.label ?? penalty.id;
        return penaltyView(host, penalty, label, history);
      })}
    </section>
  `;
}

/**
 * @param {LogitScope} host
 * @param {PenaltyView} penalty
 * @param {string} label
 * @param {string[]} history
 */
function penaltyView(host, penalty, label, history) {
  const { view, tokens, breaker, warnings } = penalty;
  const longest = longestOf(tokens);
  const followed = tokens.find(({ token }) => token === host.followed) ?? longest;
  return html`
    <section>
      <h3>${label} <code>${penalty.stage}</code></h3>
      ${warnings.map(({ message }) => html`<p class="warning" role="status">${message}.</p>`)}
      <p class="history" aria-label="The history; what ${label} looked at is in relief">${history.map(
        (piece, place) => historyToken(piece, place, penalty, followed?.repetition ?? null),
      )}</p>
      <p class="legend">${seen(view, history.length)} ${
        breaker === null
          ? nothing
          : html`Before the breaker <q class="token">${visible(history[breaker] ?? "")}</q> at token ${breaker + 1} nothing is matched.`
      } ${tokens.length === 0 ? "It changes no score here." : nothing}</p>
      ${tokens.length > 0 ? table(host, penalty, label, history, followed) : nothing}
    </section>
  `;
}

/** The token whose repetition is the longest. @param {Penalised[]} tokens */
function longestOf(tokens) {
  return tokens.reduce(
    (/** @type {Penalised | undefined} */ longest, token) =>
      (token.repetition?.length ?? 0) > (longest?.repetition?.length ?? 0) ? token : longest,
    undefined,
  );
}

/**
 * The part of the history in view, in words.
 * @param {Places} view
 * @param {number} length
 */
function seen({ start, end }, length) {
  if (start >= end) return "It looks at no token yet.";
  if (start === 0 && end === length) return `It looks at all ${plural(length, "token")} so far.`;
  return `It looks at ${plural(end - start, "token")}, from ${start + 1} to ${end} of ${length}.`;
}

/**
 * @param {string} piece
 * @param {number} place
 * @param {PenaltyView} penalty
 * @param {Penalised["repetition"]} repetition
 */
function historyToken(piece, place, { view, breaker }, repetition) {
  const inside = ({ start, end } = view) => place >= start && place < end;
  const marks = [
    /^<.+>$/.test(piece) ? "special" : "",
    inside() ? "in-view" : "",
    repetition && inside(repetition.earlier) ? "earlier" : "",
    repetition && inside(repetition.now) ? "now" : "",
    place === breaker ? "breaker" : "",
  ];
  return html`<span class=${marks.filter(Boolean).join(" ") || nothing} title="token ${place + 1}">${piece.replaceAll("\n", "⏎")}</span>`;
}

/**
 * @param {LogitScope} host
 * @param {PenaltyView} penalty
 * @param {string} label
 * @param {string[]} history
 * @param {Penalised | undefined} followed
 */
function table(host, { tokens }, label, history, followed) {
  const spans = tokens.some(({ repetition }) => repetition !== null);
  return html`
    <details class="twin penalised" ?open=${tokens.length <= OPEN_ROWS}>
      <summary>${label} touched ${plural(tokens.length, "token")}</summary>
      <div class="scroller" tabindex="0" role="group" aria-label="What ${label} did">
      <table class="plain">
        <caption>Scores in nats before and after ${label}</caption>
        <thead>
          <tr>
            <th scope="col">Token</th><th scope="col">Seen</th><th scope="col">Before</th><th scope="col">After</th>
            <th scope="col">Which way</th>
            ${spans ? html`<th scope="col">L</th><th scope="col">Penalty</th><th scope="col">What it would repeat</th>` : nothing}
          </tr>
        </thead>
        <tbody>
          ${tokens.map((token) => {
            const piece = host.play.piece(token.token);
            return html`<tr>
              <th scope="row"><span aria-label=${spoken(piece)}>${visible(piece)}</span></th>
              <td>${token.count}×</td>
              <td>${nats(token.before)}</td>
              <td>${token.after === null ? "removed" : nats(token.after)}</td>
              <td class="words">${way(token)}</td>
              ${spans ? spanCells(host, token, history, followed) : nothing}
            </tr>`;
          })}
        </tbody>
      </table>
      </div>
    </details>
  `;
}

/**
 * @param {LogitScope} host
 * @param {Penalised} token
 * @param {string[]} history
 * @param {Penalised | undefined} followed
 */
function spanCells(host, { token, repetition }, history, followed) {
  if (!repetition) return html`<td></td><td></td><td></td>`;
  const { earlier, length, penalty } = repetition;
  const words = history.slice(earlier.start, earlier.end).map(visible).join("");
  return html`
    <td>${length}</td>
    <td>${nats(penalty)}</td>
    <td class="words">
      <button
        class="token"
        aria-pressed=${followed?.token === token ? "true" : "false"}
        title="Show it in the text above"
        @click=${() => {
          host.followed = token;
        }}
      >${words}</button> at ${earlier.start + 1} to ${earlier.end}
    </td>
  `;
}

/** Which way a score moved, and what that means. @param {Penalised} token */
function way({ direction, before }) {
  const sign = before < 0 ? "a negative score, " : "";
  if (direction === "removed") return "removed";
  if (direction === "same") return "stays: a score of 0 times anything is 0";
  return direction === "down" ? `↓ ${sign}down: less likely` : `↑ ${sign}up: more likely`;
}
