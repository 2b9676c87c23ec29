// One token's fate in a sentence, and that of its family: the same word in another case, with
// or without a space before it, or in pieces.

import { html, nothing } from "lit";
import { death } from "../compare.js";
import { plural, probability, spoken, visible } from "../format.js";

/**
 * @import { LogitScope } from "../logit-scope.js"
 * @import { Family, StepTrace } from "../types.js"
 */

/** How a token is related to the one that was looked for. @type {Record<string, string>} */
const KINSHIP = {
  itself: "this token",
  space: "other spacing",
  case: "other case",
  fragment: "beginning of the word",
};

/** @param {LogitScope} host */
export function familyView(host) {
  const { family, pins } = host.lookout;
  const [own] = family?.relatives ?? [];
  if (!family || !own || own.token !== pins.at(-1)) return nothing;
  return html`
    <section class="family">
      <h3>Why <q class="token">${visible(own.piece)}</q> ${family.trace.draw?.token === own.token ? "was taken" : death(family.trace, own.token) ? "was removed" : "lives"}</h3>
      <p class="fate">${fate(family.trace, own.token)} ${together(family)}</p>
      <div class="scroller" tabindex="0" role="group" aria-label="The family of ${spoken(own.piece)}">
      <table class="plain">
        <caption>Its family: the same word in other tokens</caption>
        <thead>
          <tr>
            <th scope="col">Token</th><th scope="col">Id</th><th scope="col">Relation</th>
            <th scope="col">Raw</th><th scope="col">Final</th><th scope="col">What became of it</th>
          </tr>
        </thead>
        <tbody>${family.relatives.map((relative) => relativeRow(host, family.trace, relative))}</tbody>
      </table>
      </div>
      ${family.left_out > 0 ? html`<p class="legend">And ${plural(family.left_out, "fragment")} more.</p>` : nothing}
    </section>
  `;
}

/** How much of the probability the word has, however it is spelled. @param {Family} family */
function together({ relatives, raw_mass, final_mass }) {
  const whole = relatives.filter(({ kinship }) => kinship !== "fragment").length;
  if (whole < 2) return nothing;
  return html`The ${whole} tokens that spell the whole word have ${probability(raw_mass)} of the
    raw probability together, and ${probability(final_mass)} in the end.`;
}

/**
 * @param {LogitScope} host
 * @param {StepTrace} trace
 * @param {Family["relatives"][number]} relative
 */
function relativeRow({ lookout }, trace, { token, kinship, piece }) {
  const at = (/** @type {number} */ stage) =>
    trace.stages.at(stage)?.rows.find((row) => row.token === token);
  const followed = lookout.pins.includes(token);
  return html`<tr>
    <th scope="row">
      <button
        class="token"
        aria-pressed=${followed ? "true" : "false"}
        aria-label="Keep ${spoken(piece)} in the table"
        title="Keep it in the table (id ${token})"
        @click=${() => lookout.pin(token)}
      >${visible(piece)}</button>
    </th>
    <td>${token}</td>
    <td>${KINSHIP[kinship] ?? kinship}</td>
    <td>${probability(at(0)?.probability ?? 0)}</td>
    <td>${probability(at(-1)?.probability ?? 0)}</td>
    <td class="words">${fate(trace, token)}</td>
  </tr>`;
}

/**
 * What became of a token, in a sentence.
 * @param {StepTrace} trace
 * @param {number} token
 */
function fate(trace, token) {
  const died = death(trace, token);
  if (died) {
    const why = died.row.verdict?.reason;
    return html`Removed by <b>${died.stage.label}</b>${why ? `: ${why}` : ""}.`;
  }
  if (trace.draw?.token === token)
    return html`Taken${trace.draw.forced ? ", because it was forced" : ""}.`;
  const last = trace.stages.at(-1)?.rows.find((row) => row.token === token);
  return last ? html`Alive to the end, not drawn.` : nothing;
}
