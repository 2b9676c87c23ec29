// The pipeline as text: the same line that links, files and the command line use. What the
// reader typed stays until it is right; an error points at its place.

import { html, nothing } from "lit";
import { draft } from "./draft.js";

/**
 * @import { LogitScope } from "../logit-scope.js"
 * @import { Fault } from "../playground.js"
 */

/** @param {LogitScope} host */
export function pipelineText(host) {
  const { play } = host;
  const fault = play.fault?.where === "pipeline" ? play.fault : null;
  const text = String(fault?.draft ?? play.state.pipeline);
  const locked = host.isLocked("pipeline");
  return html`
    <div class="pipeline-row">
    <label class="pipeline">
      <span>Pipeline, as text</span>
      <textarea
        rows="1"
        spellcheck="false"
        autocapitalize="off"
        .value=${draft(text)}
        ?disabled=${locked}
        aria-invalid=${fault ? "true" : "false"}
        aria-describedby=${fault ? "pipeline-fault" : nothing}
        @keydown=${apply}
        @change=${(/** @type {Event} */ event) => host.setPipeline(/** @type {HTMLTextAreaElement} */ (event.target).value)}
      ></textarea>
    </label>
    ${locked || host.isLocked("stages") ? nothing : addStage(host)}
    </div>
    ${fault ? faultView(fault, text) : nothing}
    ${play.notes.map((note) => html`<p class="warning" role="status">${note.message}</p>`)}
  `;
}

/** Enter applies; the text is one line, however it wraps. @param {KeyboardEvent} event */
function apply(event) {
  if (event.key !== "Enter") return;
  event.preventDefault();
  /** @type {HTMLTextAreaElement} */ (event.target).dispatchEvent(new Event("change"));
}

/**
 * @param {Fault} fault
 * @param {string} text
 */
function faultView({ error }, text) {
  const at = error.position == null ? null : characterAt(text, error.position);
  return html`
    <div class="fault" id="pipeline-fault" role="alert">
      <p>${error.message}</p>
      ${
        at === null
          ? nothing
          : html`<p class="where"><code>${text.slice(0, at)}<mark>${text.slice(at, at + 1) || "⌄"}</mark>${text.slice(at + 1)}</code></p>`
      }
    </div>
  `;
}

/** Positions count bytes of UTF-8; texts count in units of their own. @param {string} text @param {number} position */
function characterAt(text, position) {
  return new TextDecoder().decode(new TextEncoder().encode(text).slice(0, position)).length;
}

/** @param {LogitScope} host */
function addStage(host) {
  const kinds = { edit: "Edit scores", reshape: "Reshape", truncate: "Remove tokens" };
  return html`
    <form class="add" @submit=${(/** @type {SubmitEvent} */ event) => add(host, event)}>
      <label>
        <span class="hidden">Stage to add</span>
        <select name="stage">
          ${Object.entries(kinds).map(
            ([kind, label]) => html`<optgroup label=${label}>
              ${host.play.catalogue
                .filter((spec) => spec.kind === kind)
                .map(
                  (spec) =>
                    html`<option value=${spec.id} title=${spec.summary}>${spec.label}</option>`,
                )}
            </optgroup>`,
          )}
        </select>
      </label>
      <button>Add stage</button>
    </form>
  `;
}

/**
 * @param {LogitScope} host
 * @param {SubmitEvent} event
 */
function add({ play }, event) {
  event.preventDefault();
  const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
  void play.addStage(String(form.get("stage")));
}
