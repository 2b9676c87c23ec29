// What the tabs of the Sequences area are put together from.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { because, finished, probability, REASONS, spoken, visible } from "../format.js";
import { numberIn, turning } from "../numbers.js";
import { draft } from "../views/draft.js";
import { deviceWords, placesTable } from "../views/places.js";

/**
 * @import { Computed } from "../protocol.js"
 * @import { ErrorData, Note } from "../types.js"
 * @import { Form } from "./form.js"
 * @import { Run } from "./protocol.js"
 */

/** @param {Event} event */
export function written(event) {
  return /** @type {HTMLInputElement} */ (event.target).value;
}

/**
 * A form's field, of a number, of text or of words to choose from; what its rule refuses is
 * said below it.
 * @param {Form} form
 * @param {string} name
 * @param {string} label
 * @param {{ changed: () => void, options?: Record<string, string>, wide?: boolean,
 *   placeholder?: string }} how
 */
export function field(form, name, label, { changed, options, wide, placeholder }) {
  const { fields } = form;
  const set = (/** @type {Event} */ event) => {
    fields[name] = written(event);
    changed();
  };
  const value = fields[name] ?? "";
  const number = form.rules[name]?.number;
  const fault = form.fault(name);
  const id = `fault-${form.number}-${name}`;
  return html`<div class=${wide ? "wide" : ""}><label>
    <span>${label}</span>
    ${
      options
        ? html`<select .value=${live(value)} @change=${set}>
            ${Object.entries(options).map(([word, text]) => html`<option value=${word} ?selected=${word === value}>${text}</option>`)}
          </select>`
        : html`<input
            name=${name}
            type="text"
            role=${number ? "spinbutton" : nothing}
            inputmode=${number ? "decimal" : nothing}
            aria-valuenow=${number && typeof numberIn(value) === "number" ? value : nothing}
            @keydown=${number ? turning(number) : nothing}
            spellcheck="false"
            placeholder=${placeholder ?? nothing}
            aria-invalid=${fault ? "true" : "false"}
            aria-describedby=${fault ? id : nothing}
            .value=${draft(value)}
            @change=${set}
          />`
    }
  </label>
    ${fault ? html`<span class="fault" id=${id} role="alert">${fault}</span>` : nothing}
  </div>`;
}

/**
 * A field of several lines.
 * @param {Form} form
 * @param {string} name
 * @param {string} label
 * @param {{ changed: () => void, invalid?: boolean, describedBy?: string, rows?: number }} how
 */
export function textField({ fields }, name, label, { changed, invalid, describedBy, rows = 2 }) {
  return html`<label class="wide">
    <span>${label}</span>
    <textarea
      rows=${rows}
      spellcheck="false"
      aria-invalid=${invalid ? "true" : "false"}
      aria-describedby=${describedBy ?? nothing}
      .value=${draft(fields[name] ?? "")}
      @change=${(/** @type {Event} */ event) => {
        fields[name] = written(event);
        changed();
      }}
    ></textarea>
  </label>`;
}

/** Lines with something in them. @param {string | undefined} text */
export function lines(text) {
  return (text ?? "").split("\n").filter((line) => line !== "");
}

/**
 * A token's text.
 * @param {string} piece
 */
export function token(piece) {
  return html`<span class="token" aria-label=${spoken(piece)}>${visible(piece)}</span>`;
}

/**
 * A table with a caption; rows are lists of cells, the first of which is the row's head.
 * @param {string} caption
 * @param {string[]} heads
 * @param {unknown[][]} rows
 * @param {{ marked?: number }} [how] the row that stands out
 */
export function table(caption, heads, rows, { marked } = {}) {
  return html`
    <div class="scroller" tabindex="0" role="group" aria-label=${caption}>
      <table class="plain">
        <caption class="hidden">${caption}</caption>
        <thead>
          <tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr>
        </thead>
        <tbody>
          ${rows.map(
            ([first, ...cells], index) => html`<tr class=${index === marked ? "marked" : ""}>
              <th scope="row">${first}</th>
              ${cells.map((cell) => html`<td>${cell}</td>`)}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  `;
}

/**
 * A table that can be unfolded below a chart.
 * @param {ReturnType<typeof table>} inner
 * @param {string} [summary]
 */
export function twin(inner, summary = "Table") {
  return html`<details class="twin"><summary>${summary}</summary>${inner}</details>`;
}

/**
 * A refusal, with the place in what the reader wrote.
 * @param {ErrorData | null} error
 * @param {string} id
 * @param {string} [source] the text that its position is a byte offset of
 */
export function refusal(error, id, source) {
  if (!error) return nothing;
  const { message, position, param } = error;
  const place = position != null && source !== undefined ? placed(source, position) : null;
  return html`<div class="fault" id=${id} role="alert">
    <p>${message}</p>
    ${
      place
        ? html`<p>Line ${place.line}, character ${place.column}: <code>${place.before}<mark>${place.at || "end"}</mark>${place.after}</code></p>`
        : nothing
    }
    ${param?.startsWith("#") ? html`<p>In the schema at <code>${param}</code>.</p>` : nothing}
  </div>`;
}

/**
 * The line around a byte offset.
 * @param {string} source
 * @param {number} position bytes
 */
export function placed(source, position) {
  const bytes = new TextEncoder().encode(source);
  const before = new TextDecoder().decode(bytes.slice(0, position));
  const rows = before.split("\n");
  const start = rows.at(-1) ?? "";
  const rest = source.slice(before.length).split("\n")[0] ?? "";
  const at = [...rest][0] ?? "";
  return {
    line: rows.length,
    column: [...start].length + 1,
    before: start,
    at,
    after: rest.slice(at.length),
  };
}

/** @param {Note[]} notes */
export function notesView(notes) {
  if (notes.length === 0) return nothing;
  return html`<ul class="notes">${notes.map(({ message }) => html`<li>${message}</li>`)}</ul>`;
}

/**
 * What a run that was cut short says of what is known only at its end.
 * @param {Run} run
 */
function unknown({ finish }) {
  return finish && CUT.includes(finish.reason) ? `not known: ${because(finish)}` : "";
}

/** Reasons that cut a run short. */
const CUT = ["cancelled", "error"];

/**
 * Whether the parser accepts what was written, in words.
 * @param {Run} run
 */
export function parsed(run) {
  const { standing, steps } = run;
  if (standing) {
    return standing.accepting ? "✓ yes" : `✗ no: the parser is still at ${standing.inside}`;
  }
  return (steps.length === 0 && unknown(run)) || "no constraint";
}

/**
 * Whether the check passed, in words.
 * @param {Run} run
 */
export function checked(run) {
  const { check } = run;
  if (check == null) return unknown(run) || "none";
  return check ? "✓ passed" : "✗ failed";
}

/**
 * Says that the last work was stopped.
 * @param {Form} form
 */
export function cancelledView({ cancelled }) {
  return cancelled
    ? html`<p class="warning">It was cancelled. What it had found by then stands below, if anything.</p>`
    : nothing;
}

/**
 * The three things recorded of every run, apart from each other.
 * @param {Run} run
 */
export function outcome(run) {
  const { finish } = run;
  return html`
    <dl class="outcome">
      <div><dt>Why it ended</dt><dd>${finish ? finished(finish) : "It has not ended."}${also(finish?.also)}</dd></div>
      <div><dt>Parsed</dt><dd>${parsed(run)}</dd></div>
      <div><dt>Content check</dt><dd>${checked(run)}</dd></div>
    </dl>
    ${computedView(run.computed)}
  `;
}

/** @param {string[] | undefined} reasons */
function also(reasons) {
  return reasons?.length
    ? ` At the same step also: ${reasons.map((reason) => REASONS[reason] ?? reason).join("; ")}.`
    : "";
}

/**
 * Where the rows of what was found were computed, and why.
 * @param {Computed | null} computed
 */
export function computedView(computed) {
  if (!computed) return nothing;
  const { places } = computed;
  const onGpu = places.some((place) => place.device);
  return html`<details class="places">
    <summary>${onGpu ? "Computed with the GPU" : "Computed on the CPU"}</summary>
    <p>
      Wherever it is computed, the tokens are the same. A row is the logits after one token of one
      sequence. ${deviceWords(computed)}
    </p>
    ${places.length > 0 ? placesTable(places) : nothing}
  </details>`;
}

/** An amount of memory. @param {number} bytes */
export function size(bytes) {
  return `${(bytes / 1024).toFixed(1)} KiB`;
}

/** A share as a bar with its number. @param {number} share */
export function bar(share) {
  return html`<span class="share"><span class="share-bar" style="width:${share * 100}%"></span></span> ${probability(share)}`;
}
