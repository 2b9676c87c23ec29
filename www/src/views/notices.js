// What is not content: loading, failures of the engine, and a word to first-time visitors.

import { html, nothing } from "lit";
import { arrived } from "../format.js";

/** @import { LogitScope } from "../logit-scope.js" */

/** @param {LogitScope} host */
export function loadingView({ play }) {
  if (play.model || play.busy !== "loading") return nothing;
  return html`
    <div class="loading" role="status">
      <p>Loading the model${play.progress ? `, ${arrived(play.progress)}` : ""} …</p>
      ${progressBar(play.progress)}
      ${play.progress?.left != null ? html`<button @click=${() => play.cancelLoading()}>Cancel</button>` : nothing}
    </div>
  `;
}

/** @param {import("../types.js").Progress | null} progress */
export function progressBar(progress) {
  const { loaded = 0, total = 0 } = progress ?? {};
  return html`<progress aria-label="Loading the model" .max=${total || 1} .value=${total > 0 ? loaded : 0}></progress>`;
}

/** @param {LogitScope} host */
export function faultView({ play }) {
  const { fault } = play;
  if (fault?.where !== "engine" && fault?.where !== "link") return nothing;
  return html`
    <div class="fault banner" role="alert">
      <p>${fault.error.message}</p>
      ${fault.where === "engine" ? html`<button @click=${() => play.retry()}>Try again</button>` : nothing}
    </div>
  `;
}

/** @param {LogitScope} host */
export function hintView(host) {
  if (!host.hint) return nothing;
  return html`
    <aside class="hint" aria-label="How to begin">
      <p>
        A language model does not write. It gives every token a score, and something else turns
        the scores into text. Below, each column is one stage of that way, from the model's
        scores on the left to the token drawn on the right.
      </p>
      <p>
        Press <b>Step</b> to take one token. Move a slider and watch which tokens live or die.
        Press any token in the table to take it instead.
      </p>
      <button @click=${() => host.dismissHint()}>Got it</button>
    </aside>
  `;
}
