// From one step to a finished sequence: an area of its own, loaded when it is opened.

import { html, nothing } from "lit";

/** @import { LogitScope } from "../logit-scope.js" */

/** @param {LogitScope} host */
export function sequencesView(host) {
  const { sequences, folded } = host.desk;
  return html`
    <details class="sequences" ?open=${sequences !== "closed" && !folded} @toggle=${(
      /** @type {Event} */ event,
    ) => host.desk.openSequences(/** @type {HTMLDetailsElement} */ (event.target).open)}>
      <summary><h2>Sequences</h2></summary>
      ${
        sequences === "open"
          ? html`<logit-sequences
            .play=${host.play}
            .constraint=${host.constraint}
            .strategy=${host.strategy}
            .begins=${host.desk.begins}
            @settings=${(/** @type {CustomEvent} */ { detail }) => host.desk.keep(detail)}
          ></logit-sequences>`
          : nothing
      }
      ${sequences === "loading" ? html`<p role="status">Loading …</p>` : nothing}
      ${sequences === "failed" ? html`<p class="fault" role="alert">This part of the page could not be loaded. Close it and open it again.</p>` : nothing}
    </details>
  `;
}
