// Finding any token of the vocabulary, and pinning it to the table: why did it live or die?

import { html, nothing } from "lit";
import { spoken, visible } from "../format.js";

/** @import { LogitScope } from "../logit-scope.js" */

/** @param {LogitScope} host */
export function finderView(host) {
  const { play, lookout } = host;
  const { found } = lookout;
  return html`
    <div class="finder">
      <label>
        <span>Find a token, by its text or id, and keep it in the table</span>
        <input
          type="search"
          autocomplete="off"
          spellcheck="false"
          placeholder="the"
          @input=${(/** @type {Event} */ event) => lookout.find(/** @type {HTMLInputElement} */ (event.target).value)}
        />
      </label>
      <div class="found" role="group" aria-label="Tokens found">
        ${
          found === null
            ? nothing
            : found.length === 0
              ? html`<p class="legend" role="status">No token contains this.</p>`
              : found.map(
                  ({ id, piece }) => html`<button
                    class="token"
                    title="id ${id}"
                    aria-label="Keep ${spoken(piece)} in the table"
                    aria-pressed=${lookout.pins.includes(id) ? "true" : "false"}
                    @click=${() => {
                      play.name(id, piece);
                      lookout.pin(id);
                    }}
                  >${visible(piece)}</button>`,
                )
        }
      </div>
    </div>
  `;
}
