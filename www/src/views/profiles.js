// What another framework would do with its own settings, and the present pipeline as code.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { targetLabel } from "../profiles.js";
import { draft } from "./draft.js";

/**
 * @import { LogitScope } from "../logit-scope.js"
 * @import { Profiles } from "../profiles.js"
 * @import { ProfileNote } from "../types.js"
 */

/** @param {LogitScope} host */
export function profilesView(host) {
  const { profiles } = host.desk;
  return html`
    <details class="frameworks" ?open=${profiles !== null} @toggle=${(/** @type {Event} */ event) =>
      toggle(host, /** @type {HTMLDetailsElement} */ (event.target).open)}>
      <summary><h2>As other frameworks do it</h2></summary>
      ${profiles ? html`<div class="rivals">${fromView(host, profiles)} ${toView(host, profiles)}</div>` : nothing}
    </details>
  `;
}

/**
 * @param {LogitScope} host
 * @param {boolean} open
 */
function toggle({ desk }, open) {
  if (open !== (desk.profiles !== null)) desk.openProfiles(open);
}

/**
 * @param {LogitScope} host
 * @param {Profiles} profiles
 */
function fromView(host, profiles) {
  const { all, name, params, translation, error } = profiles;
  const profile = all.find((one) => one.name === name);
  if (all.length === 0 && !error) return html`<p role="status">Fetching what frameworks do…</p>`;
  return html`
    <section>
      <h3>Run as</h3>
      <div class="rival-head framework">
        <select
          aria-label="Framework"
          @change=${(/** @type {Event} */ event) => profiles.set({ name: valueIn(event) })}
        >
          ${all.map((one) => html`<option .selected=${live(one.name === name)}>${one.name}</option>`)}
        </select>
        <textarea
          rows="1"
          spellcheck="false"
          aria-label="Its settings, as JSON"
          aria-invalid=${error ? "true" : "false"}
          .value=${draft(params)}
          @change=${(/** @type {Event} */ event) => profiles.set({ params: valueIn(event) })}
        ></textarea>
      </div>
      ${profile ? knows(profile) : nothing}
      ${error ? html`<p class="fault" role="alert">${error.message}</p>` : nothing}
      ${
        translation && !error
          ? html`
              ${pipelineView(host, translation.pipeline)} ${notesView(translation.notes)}
              ${translation.alternatives.map(
                (other) => html`<p>Or, as its documents allow as well:</p>
                  ${pipelineView(host, other)}`,
              )}`
          : nothing
      }
    </section>
  `;
}

/**
 * A pipeline that a framework's settings mean, and what can be done with it.
 * @param {LogitScope} host
 * @param {string} pipeline
 */
function pipelineView(host, pipeline) {
  const { desk, play } = host;
  return html`<p><code class="own">${pipeline}</code></p>
    <div class="actions">
      <button
        ?disabled=${host.isLocked("pipeline", "stages")}
        @click=${() => host.setPipeline(pipeline)}
      >Use this pipeline</button>
      ${
        play.model && host.shows("compare")
          ? html`<button @click=${() => desk.compareWith(pipeline)}>Compare with it</button>`
          : nothing
      }
      ${
        desk.bench
          ? html`<button @click=${() => desk.bench?.compareWith(pipeline)}>Compare by hand</button>`
          : nothing
      }
    </div>`;
}

/** @param {import("../types.js").Profile} profile */
function knows({ version, parameters }) {
  const list = parameters.map(({ name, default: value }) =>
    value === null ? name : `${name}=${JSON.stringify(value)}`,
  );
  return html`<details class="twin">
    <summary>Version ${version}; its parameters and their defaults</summary>
    <p class="help">${list.join(", ")}</p>
  </details>`;
}

/**
 * @param {LogitScope} host
 * @param {Profiles} profiles
 */
function toView(host, profiles) {
  const { target, targets, copied } = profiles;
  if (targets.length === 0) return nothing;
  return html`
    <section>
      <h3>This pipeline as code</h3>
      <select
        aria-label="Form of the code"
        @change=${(/** @type {Event} */ event) => profiles.copy(host.play.state.pipeline, valueIn(event))}
      >
        ${targets.map(
          (id) =>
            html`<option value=${id} .selected=${live(id === target)}>${targetLabel(id)}</option>`,
        )}
      </select>
      ${
        copied
          ? html`<pre tabindex="0"><code>${copied.text}</code></pre>
              ${notesView(copied.warnings)}
              <button @click=${() => host.copyText(copied.text)}>Copy the code</button>`
          : nothing
      }
    </section>
  `;
}

/** @param {ProfileNote[]} notes */
function notesView(notes) {
  return notes.length === 0
    ? nothing
    : html`<ul class="notes">
        ${notes.map(({ message }) => html`<li>${message}</li>`)}
      </ul>`;
}

/** @param {Event} event */
function valueIn(event) {
  return /** @type {HTMLInputElement} */ (event.target).value;
}
