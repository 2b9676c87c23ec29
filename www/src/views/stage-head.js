// The head of a stage's column: its name, its place in the order, and its controls, all
// generated from the catalogue.

import { html, nothing } from "lit";
import { paramControl } from "./param.js";
import { moveStage } from "./stage-order.js";

/**
 * @import { LogitScope } from "../logit-scope.js"
 * @import { ParamSpec, StageArgs, StageSpec } from "../types.js"
 */

/**
 * The name of a column. Pressing it shows the whole vocabulary after that stage.
 * @param {LogitScope} host
 * @param {number} column 0 is the raw row
 * @param {string} label
 */
export function stageName(host, column, label) {
  return html`<button
    class="stage-name"
    aria-pressed=${host.lookout.stage === column}
    title="Show the whole vocabulary after this stage"
    @click=${() => host.lookout.showStage(column)}
  >${label}</button>`;
}

/**
 * Buttons that move a stage or take it out; the same by keyboard as dragging is by mouse.
 * @param {LogitScope} host
 * @param {number} index in the pipeline
 * @param {StageSpec} spec
 */
function stageTools(host, index, spec) {
  const { play } = host;
  const last = play.stages.length - 2;
  const button = (
    /** @type {string} */ words,
    /** @type {string} */ sign,
    /** @type {boolean} */ off,
    /** @type {() => unknown} */ act,
  ) => html`<button class="tool" aria-label="${words} ${spec.label}" title=${words} ?disabled=${off} @click=${act}>
    <span aria-hidden="true">${sign}</span>
  </button>`;
  if (host.isLocked("pipeline", "stages")) return nothing;
  return html`<span class="tools">
    ${button("Move left:", "←", index === 0, () => moveStage(host, index, index - 1))}
    ${button("Move right:", "→", index >= last, () => moveStage(host, index, index + 1))}
    ${button("Remove", "×", false, () => play.removeStage(index))}
  </span>`;
}

/**
 * A stage's summary and controls. The first parameter is always in view; the others, the
 * formula and the source are behind “more”.
 * @param {LogitScope} host
 * @param {number} index in the pipeline
 * @param {StageSpec} spec
 */
export function stageControls(host, index, spec) {
  const args = host.play.stages[index];
  if (!args) return nothing;
  // The seed belongs to the whole run, and is shown there.
  const [first, ...others] = spec.params.filter((param) => param.type !== "seed");
  const changed = others.filter((param) => isChanged(param, args));
  const fault = others.some((param) => faultOf(host, index, param));
  return html`
    <p class="summary">${spec.summary}</p>
    ${first ? control(host, index, spec, args, first) : nothing}
    <div class="foot">
    ${spec.kind === "sampler" ? nothing : stageTools(host, index, spec)}
    <details class="more" ?open=${fault}>
      <summary>${changed.length > 0 ? changed.map((param) => `${param.name}=${written(args[param.name])}`).join(", ") : "more"}</summary>
      ${first ? help(first) : nothing}
      ${others.map((param) => [control(host, index, spec, args, param), help(param)])}
      <p class="formula"><code>${spec.formula}</code></p>
      ${spec.source ? html`<p class="source">${source(spec.source)}</p>` : nothing}
    </details>
    </div>
  `;
}

/** @param {ParamSpec} param */
function help({ help, name, unit }) {
  return html`<p class="help"><b>${name}</b>${unit ? ` (${unit})` : ""}: ${help}</p>`;
}

/**
 * @param {LogitScope} host
 * @param {number} index
 * @param {StageSpec} spec
 * @param {StageArgs} args
 * @param {ParamSpec} param
 */
function control(host, index, spec, args, param) {
  return paramControl({
    id: `param-${index}-${param.name}`,
    stage: spec.label,
    spec: param,
    value: args[param.name] ?? param.default ?? "",
    fault: faultOf(host, index, param),
    locked: host.isLocked("pipeline", spec.id, `${spec.id}.${param.name}`),
    set: (value, draft) => host.play.setParam(index, param.name, value, draft),
    refuse: (draft, message) => host.play.refuse(index, param.name, draft, message),
  });
}

/**
 * @param {LogitScope} host
 * @param {number} index
 * @param {ParamSpec} param
 */
function faultOf({ play: { fault } }, index, { name }) {
  return fault?.where === "param" && fault.index === index && fault.name === name ? fault : null;
}

/**
 * @param {ParamSpec} param
 * @param {StageArgs} args
 */
function isChanged(param, args) {
  const value = args[param.name];
  if (value === undefined || param.default === null || param.default === undefined) return false;
  const text = written(value);
  return text !== param.default && text !== JSON.stringify(tryParse(param.default));
}

/** A value as the text form writes it. @param {unknown} value */
function written(value) {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** @param {string} text */
function tryParse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A source with its address as a link. @param {string} text */
function source(text) {
  const address = text.match(/https:\/\/\S+/)?.[0];
  if (!address) return text;
  const [before, after] = text.split(address);
  return html`${before}<a href=${address} target="_blank" rel="noreferrer">${address.replace("https://", "")}</a>${after}`;
}
