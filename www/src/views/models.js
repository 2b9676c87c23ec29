// The model on the page, others that may be opened, and what the browser keeps of them.

import { html, nothing } from "lit";
import { arrived, count, megabytes, plural, unescaped } from "../format.js";
import { SUGGESTED } from "../models/suggested.js";
import { progressBar } from "./notices.js";

/**
 * @import { LogitScope } from "../logit-scope.js"
 * @import { Shelf } from "../shelf.js"
 * @import { Kept, ModelInfo } from "../types.js"
 */

/** The control that a fault concerns: how much may be kept. */
const BUDGET = "budget";

/** A link's wish for a model of another host: nothing is fetched before the reader agrees. @param {LogitScope} host */
export function askedView(host) {
  const { asked } = host.shelf;
  if (!asked) return nothing;
  return html`
    <div class="banner" role="alert">
      <p>This link uses a model that is not on this device yet: <code class="own">${asked}</code></p>
      <div class="actions">
        <button class="primary" @click=${() => host.agreeToModel()}>Load it</button>
        <button @click=${() => host.useModel(null)}>Use this page's own model</button>
      </div>
    </div>
  `;
}

/** @param {LogitScope} host */
export function modelView(host) {
  const { model } = host.play;
  const about = model ? described(model) : "";
  if (host.isLocked("model")) return html`<p class="legend model">${about}</p>`;
  const { shelf } = host;
  return html`
    <p class="legend model">${about}</p>
    <details class="models" @toggle=${(/** @type {Event} */ event) => toggled(event, shelf)}>
      <summary><h2>Other models</h2></summary>
      ${openView(host)} ${loadingView(shelf)} ${suggestedView(host)} ${keptView(host)}
    </details>
  `;
}

/**
 * @param {Event} event
 * @param {Shelf} shelf
 */
function toggled(event, shelf) {
  if (/** @type {HTMLDetailsElement} */ (event.target).open) void shelf.look();
}

/** @param {ModelInfo} model */
function described({ name, architecture, parameters, vocabulary_size, context_length, sha256 }) {
  return html`
    Model: ${name ?? "without a name"}, ${architecture}, ${plural(parameters, "parameter")},
    ${plural(vocabulary_size, "token")} in its vocabulary, a context of ${count(context_length)}.
    ${sha256 ? html`<span class="hash">SHA-256 <code class="own">${sha256}</code></span>` : nothing}
  `;
}

/** By file and by address. @param {LogitScope} host */
function openView(host) {
  const { shelf } = host;
  return html`
    <label class="file">
      <span>Open another model, a GGUF file on this device:</span>
      <input
        type="file"
        accept=".gguf"
        @change=${(/** @type {Event} */ event) => {
          const [file] = /** @type {HTMLInputElement} */ (event.target).files ?? [];
          if (file) void shelf.openFile(file);
        }}
      />
    </label>
    <form
      class="actions"
      @submit=${(/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        const form = /** @type {HTMLFormElement} */ (event.target);
        host.loadModel(String(new FormData(form).get("address")).trim());
      }}
    >
      <label class="address">
        <span>or the address of one:</span>
        <input
          name="address"
          type="text"
          inputmode="url"
          autocomplete="off"
          spellcheck="false"
          placeholder="https://"
          aria-invalid=${shelf.fault && !isOfBudget(shelf) ? "true" : "false"}
          aria-describedby=${shelf.fault && !isOfBudget(shelf) ? "model-fault" : nothing}
        />
      </label>
      <button>Load</button>
    </form>
  `;
}

/** @param {Shelf} shelf */
function loadingView(shelf) {
  const { loading } = shelf;
  if (loading) {
    return html`
      <div class="loading" role="status">
        <p>Loading ${short(loading.src)}${loading.progress ? `: ${arrived(loading.progress)}` : ""} …</p>
        ${progressBar(loading.progress)}
        <button @click=${() => shelf.cancel()}>Cancel</button>
      </div>
    `;
  }
  return isOfBudget(shelf) ? nothing : faultView(shelf, "model-fault");
}

/** Whether what went wrong concerns how much may be kept. @param {Shelf} shelf */
function isOfBudget({ fault }) {
  return fault?.param === BUDGET;
}

/**
 * @param {Shelf} shelf
 * @param {string} id
 */
function faultView({ fault }, id) {
  return fault ? html`<p class="fault" id=${id} role="alert">${fault.message}</p>` : nothing;
}

/** @param {LogitScope} host */
function suggestedView(host) {
  return html`
    <div class="twin">
      <table>
        <caption>Models that run well here. Each is fetched only when you press Load.</caption>
        <thead>
          <tr><th scope="col">Model</th><th scope="col">Size</th><th scope="col">Licence</th><td></td></tr>
        </thead>
        <tbody>
          ${SUGGESTED.map(
            ({ name, src, bytes, license, what, sha256 }) => html`<tr>
              <th scope="row">${name}<small>${what}; from ${new URL(src).hostname}</small></th>
              <td>${megabytes(bytes)}</td>
              <td>${license}</td>
              <td><button aria-label="Load ${name}" @click=${() => host.loadModel(src, sha256)}>Load</button></td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  `;
}

/** @param {LogitScope} host */
function keptView(host) {
  const { shelf } = host;
  const { kept } = shelf;
  if (!kept)
    return html`<p class="legend">This browser keeps nothing for this page: a model is loaded anew each time.</p>`;
  return html`
    <div class="twin">
      ${kept.models.length > 0 ? keptTable(host, kept.models) : nothing}
      <div class="actions">
        <label>
          Kept on this device: ${megabytes(kept.used)} of at most
          <input
            class="short"
            type="number"
            min="0"
            step="100"
            aria-label="Megabytes that may be kept"
            .value=${String(kept.budget / 1e6)}
            aria-invalid=${isOfBudget(shelf) ? "true" : "false"}
            aria-describedby=${isOfBudget(shelf) ? "budget-fault" : nothing}
            @change=${(/** @type {Event} */ event) => setBudget(event, shelf)}
          />
          MB
        </label>
        <button ?disabled=${kept.models.length === 0} @click=${() => shelf.forgetAll()}>Remove all</button>
      </div>
      ${isOfBudget(shelf) ? faultView(shelf, "budget-fault") : nothing}
    </div>
  `;
}

/**
 * @param {Event} event
 * @param {Shelf} shelf
 */
function setBudget(event, shelf) {
  const { valueAsNumber } = /** @type {HTMLInputElement} */ (event.target);
  if (valueAsNumber >= 0) return void shelf.setBudget(valueAsNumber * 1e6);
  const what = Number.isNaN(valueAsNumber) ? "What stands here" : String(valueAsNumber);
  const message = `${what} is not how many megabytes may be kept: 0 or more.`;
  shelf.refuse({ code: "out_of_range", param: BUDGET, message });
}

/**
 * @param {LogitScope} host
 * @param {Kept[]} models
 */
function keptTable(host, models) {
  return html`
    <table>
      <caption>Models that this browser keeps.</caption>
      <tbody>
        ${models.map(
          ({ src, size, loaded, sha256 }) => html`<tr>
            <th scope="row">${short(src)}</th>
            <td>${sha256 ? megabytes(loaded) : `${megabytes(loaded)} of ${size ? megabytes(size) : "an unknown size"}`}</td>
            <td>${sha256 || !src.startsWith("file:") ? openButton(host, src, sha256 ? "Open" : "Go on") : nothing}</td>
            <td><button aria-label="Remove ${short(src)}" @click=${() => host.shelf.forget(src)}>Remove</button></td>
          </tr>`,
        )}
        <tr>
          <th scope="row">This page's own</th>
          <td></td>
          <td><button @click=${() => host.useModel(null)}>Open</button></td>
          <td></td>
        </tr>
      </tbody>
    </table>
  `;
}

/**
 * @param {LogitScope} host
 * @param {string} src
 * @param {string} what
 */
function openButton(host, src, what) {
  return html`<button aria-label="Open ${short(src)}" @click=${() => host.loadModel(src)}>${what}</button>`;
}

/** The file's name in an address. @param {string} src */
function short(src) {
  return unescaped(src.split("/").at(-1) ?? src);
}
