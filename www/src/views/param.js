// One control for one parameter, generated from its declaration in the catalogue, with the
// error that concerns it beside it.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { numberIn, turning } from "../numbers.js";
import { draft } from "./draft.js";

/**
 * @import { Fault } from "../playground.js"
 * @import { ParamSpec } from "../types.js"
 */

/**
 * @typedef {object} Param
 * @property {string} id unique in the element
 * @property {string} stage label of the stage
 * @property {ParamSpec} spec
 * @property {unknown} value
 * @property {Fault | null} fault if it concerns this parameter
 * @property {boolean} locked
 * @property {(value: unknown, draft?: string) => void} set the value, and what was written for it
 * @property {(draft: unknown, message: string) => void} refuse
 */

/** @param {Param} param */
export function paramControl(param) {
  const { id, spec, fault } = param;
  return html`
    <div class="param ${fault ? "invalid" : ""}">
      <label for=${id} title=${spec.help}>${spec.name}</label>
      ${field(param)}
      ${fault ? html`<p class="fault" id="${id}-fault" role="alert">${fault.error.message}</p>` : nothing}
    </div>
  `;
}

/** @param {Param} param */
function field(param) {
  switch (param.spec.type) {
    case "number":
    case "integer":
      return numberField(param);
    case "word":
      return wordField(param);
    default:
      return jsonField(param);
  }
}

/** @param {Param} param */
function numberField(param) {
  const { id, stage, spec, fault, locked } = param;
  const shown = String(fault ? fault.draft : param.value);
  const read = (/** @type {Event} */ event) => {
    const text = /** @type {HTMLInputElement} */ (event.target).value;
    param.set(numberIn(text), text);
  };
  const step = spec.slider?.[2] ?? (spec.type === "integer" ? 1 : 0.1);
  return html`
    <input
      id=${id}
      class="number"
      type="text"
      role="spinbutton"
      inputmode="decimal"
      autocomplete="off"
      spellcheck="false"
      aria-label="${stage}: ${spec.name}"
      aria-valuenow=${Number.isFinite(Number(shown)) ? shown : nothing}
      .value=${draft(shown)}
      ?disabled=${locked}
      aria-invalid=${fault ? "true" : "false"}
      aria-describedby=${fault ? `${id}-fault` : nothing}
      @change=${read}
      @keydown=${turning({ ...spec, step })}
    />
    ${
      spec.slider
        ? html`<input
            class="slider"
            type="range"
            min=${spec.slider[0]}
            max=${spec.slider[1]}
            step=${spec.slider[2]}
            .value=${live(typeof numberIn(shown) === "number" ? shown : String(param.value))}
            ?disabled=${locked}
            aria-label="${stage}: ${spec.name}"
            @input=${read}
          />`
        : nothing
    }
  `;
}

/** @param {Param} param */
function wordField({ id, stage, spec, value, locked, set }) {
  return html`
    <select
      id=${id}
      aria-label="${stage}: ${spec.name}"
      ?disabled=${locked}
      @change=${(/** @type {Event} */ event) => set(/** @type {HTMLSelectElement} */ (event.target).value)}
    >
      ${(spec.words ?? []).map((word) => html`<option .selected=${live(word === value)}>${word}</option>`)}
    </select>
  `;
}

/** @param {Param} param */
function jsonField({ id, stage, spec, value, fault, locked, set, refuse }) {
  const read = (/** @type {Event} */ event) => {
    const text = /** @type {HTMLInputElement} */ (event.target).value;
    try {
      set(JSON.parse(text), text);
    } catch {
      refuse(text, `${spec.name} is “${text}”, but must be JSON, such as ${spec.default ?? "[]"}.`);
    }
  };
  const refused = fault?.draft;
  const shown = typeof refused === "string" ? refused : JSON.stringify(refused ?? value ?? null);
  return html`
    <input
      id=${id}
      class="json"
      aria-label="${stage}: ${spec.name}"
      type="text"
      spellcheck="false"
      autocapitalize="off"
      .value=${draft(shown)}
      ?disabled=${locked}
      aria-invalid=${fault ? "true" : "false"}
      aria-describedby=${fault ? `${id}-fault` : nothing}
      @change=${read}
    />
  `;
}
