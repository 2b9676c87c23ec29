// A row of logits, worked out as a person would write it down.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { dieBar } from "../charts/die-roll.js";
import { count, place, scientific } from "../format.js";
import { numberIn, turning } from "../numbers.js";
import { rivalsView } from "./compare.js";
import { draft } from "./draft.js";

/**
 * @import { ByHand } from "../by-hand.js"
 * @import { LogitScope } from "../logit-scope.js"
 * @import { Chance, Mark } from "../by-hand.js"
 * @import { StageTrace, Sum, Worksheet } from "../types.js"
 */

/** @param {LogitScope} host */
export function byHandView(host) {
  const { bench } = host.desk;
  return html`
    <details class="by-hand" ?open=${bench !== null} @toggle=${(/** @type {Event} */ event) =>
      toggle(host, /** @type {HTMLDetailsElement} */ (event.target).open)}>
      <summary><h2>By hand</h2></summary>
      ${bench ? html`<div class="rivals">${benchView(host, bench)}</div>` : nothing}
    </details>
  `;
}

/**
 * @param {LogitScope} host
 * @param {boolean} open
 */
function toggle({ desk }, open) {
  if (open !== (desk.bench !== null)) desk.openBench(open);
}

/**
 * @param {LogitScope} host
 * @param {ByHand} bench
 */
function benchView(host, bench) {
  const { sheet, error } = bench;
  const hidden = bench.predicting && !bench.revealed;
  return html`
    <p class="legend">
      A few tokens with their scores, one a line, or any row of logits pasted as JSON, CSV or
      text; the whole calculation stands below.
    </p>
    <div class="bench">
      <label class="row-text">
        <span>Scores</span>
        <textarea
          rows="3"
          spellcheck="false"
          aria-invalid=${error?.param === "logits" ? "true" : "false"}
          .value=${draft(bench.text)}
          @change=${(/** @type {Event} */ event) => bench.set({ text: written(event) })}
        ></textarea>
      </label>
      <div class="bench-fields">
        <label class="bench-pipeline">
          <span>Pipeline by hand</span>
          <input
            type="text"
            spellcheck="false"
            .value=${draft(bench.pipeline)}
            aria-invalid=${error && !FIELDS.includes(error.param ?? "") ? "true" : "false"}
            @change=${(/** @type {Event} */ event) => bench.set({ pipeline: written(event) })}
          />
        </label>
        ${numberField(bench, "multiply", "Multiply every score by", 0.5)}
        ${numberField(bench, "add", "Add to every score", 1)}
        ${numberField(bench, "u", "u", 0.05)}
        ${
          host.play.model
            ? html`<button @click=${() => host.desk.takeStep()}>Take this step's tokens</button>`
            : nothing
        }
        <label class="check">
          <input
            type="checkbox"
            .checked=${live(bench.predicting)}
            @change=${(/** @type {Event} */ event) => bench.predict(/** @type {HTMLInputElement} */ (event.target).checked)}
          />
          Predict first
        </label>
      </div>
    </div>
    ${error ? html`<p class="fault" role="alert">${error.message}</p>` : nothing}
    ${sheet && bench.predicting ? questionsView(bench, sheet) : nothing}
    ${sheet && !hidden ? [sheetView(bench, sheet), comparisonView(bench)] : nothing}
  `;
}

/** What other pipelines make of the row. @param {ByHand} bench */
function comparisonView(bench) {
  const { comparison, labels } = bench;
  const words = {
    piece: (/** @type {number} */ token) => labels[token] ?? `#${token}`,
    suffix: " by hand",
  };
  return html`
    <details class="compare" ?open=${comparison !== null} @toggle=${(
      /** @type {Event} */ event,
    ) => {
      const { open } = /** @type {HTMLDetailsElement} */ (event.target);
      if (open === (bench.comparison !== null)) return;
      bench.compare(open ? [] : null);
      bench.comparison?.add();
    }}>
      <summary><h3>Other pipelines on these scores</h3></summary>
      ${comparison ? html`<div class="rivals">${rivalsView(comparison, words)}</div>` : nothing}
    </details>
  `;
}

/**
 * What multiplying and adding did, in words.
 * @param {ByHand} bench
 * @param {Worksheet} sheet
 */
function changeView({ multiply, add }, { before, rounding }) {
  if (before.length === 0 && rounding === null) return nothing;
  const factor = Number(multiply);
  /** @type {string[]} */
  const words = [];
  if (rounding !== null) {
    words.push(
      `Scores are 32-bit floats, and numbers as large as these were rounded by up to ${digits(rounding, 3)} nats, so probabilities differ from those of exact arithmetic.`,
    );
  } else if (Number(add) !== 0) {
    words.push(
      `Adding ${add} to every score changes no probability: the highest grows by the same, so every “z − highest” stays.`,
    );
  }
  if (factor > 1) {
    words.push(
      `Multiplying by ${multiply} widens every gap, so it sharpens, as a temperature below 1 does.`,
    );
  } else if (factor > 0 && factor < 1) {
    words.push(
      `Multiplying by ${multiply} narrows every gap, so it flattens, as a temperature above 1 does.`,
    );
  } else if (factor === 0) {
    words.push("Multiplying by 0 makes all scores equal: every token is as likely as any other.");
  } else if (factor < 0) {
    words.push(
      "Multiplying by a negative number turns the order around: the last become the first.",
    );
  }
  return html`<p class="changed">${words.join(" ")}</p>`;
}

/** @param {Event} event */
function written(event) {
  return /** @type {HTMLInputElement} */ (event.target).value;
}

/** What an error of the bench may concern beside the pipeline. */
const FIELDS = ["logits", "multiply", "add", "u"];

/**
 * @param {ByHand} bench
 * @param {"multiply" | "add" | "u"} name
 * @param {string} label
 * @param {number} step what an arrow key turns it by
 */
function numberField(bench, name, label, step) {
  return html`<label>
    <span>${label}</span>
    <input
      type="text"
      role="spinbutton"
      inputmode="decimal"
      autocomplete="off"
      class="short"
      .value=${draft(bench[name])}
      aria-valuenow=${typeof numberIn(bench[name]) === "number" ? bench[name] : nothing}
      aria-invalid=${bench.error?.param === name ? "true" : "false"}
      @change=${(/** @type {Event} */ event) => bench.set({ [name]: written(event) })}
      @keydown=${turning({ step })}
    />
  </label>`;
}

/**
 * @param {ByHand} bench
 * @param {Worksheet} sheet
 */
function sheetView(bench, sheet) {
  const { trace, sums } = sheet;
  const label = (/** @type {number} */ token) => bench.labels[token] ?? `#${token}`;
  return html`
    ${changeView(bench, sheet)}
    ${trace.stages.map((stage, index) => {
      const sum = sums[index];
      return sum ? stageSheet(stage, sum, index === 0 ? sheet.before : [], label) : nothing;
    })}
    ${
      trace.draw
        ? html`<section>
            <h3>The draw</h3>
            ${dieBar(trace.draw, label, null)}
            <p class="legend">
              ${
                trace.draw.random
                  ? html`u = ${place(trace.draw.u)} lies in [${place(trace.draw.low)}, ${place(trace.draw.high)}), which is`
                  : "The highest is"
              }
              <q class="token">${label(trace.draw.token)}</q>.
            </p>
          </section>`
        : nothing
    }
  `;
}

/**
 * @param {StageTrace} stage
 * @param {Sum} sum
 * @param {Worksheet["before"]} before
 * @param {(token: number) => string} label
 */
function stageSheet(stage, sum, before, label) {
  const terms = new Map(sum.terms.map((term) => [term.token, term]));
  const earlier = new Map(before.map(({ token, probability }) => [token, probability]));
  const name =
    stage.id !== "raw"
      ? stage.label
      : before.length > 0
        ? "The scores, multiplied and added to"
        : "The scores as they are";
  return html`
    <section class="sheet">
      <h3>${name} ${stage.id === "raw" ? nothing : html`<code>${stage.stage}</code>`}</h3>
      <div class="scroller" tabindex="0" role="group" aria-label="Calculation: ${name}">
        <table>
          <caption class="hidden">Calculation after ${name}</caption>
          <thead>
            <tr>
              <th scope="col">Token</th>
              <th scope="col">score z</th>
              <th scope="col">e<sup>z</sup></th>
              <th scope="col">z − highest</th>
              <th scope="col">e<sup>z − highest</sup></th>
              <th scope="col">÷ sum = p</th>
              ${before.length > 0 ? html`<th scope="col">p as typed</th>` : nothing}
              <th scope="col">mass before</th>
              <th scope="col" class="why">why</th>
            </tr>
          </thead>
          <tbody>
            ${stage.rows.map((row) => {
              const term = terms.get(row.token);
              if (!row.alive || !term) {
                return html`<tr class="removed">
                  <th scope="row"><s>${label(row.token)}</s></th>
                  <td>${digits(row.score, 2)}</td>
                  <td colspan="5"></td>
                  <td class="why">${row.verdict?.reason ?? "removed"}</td>
                </tr>`;
              }
              return html`<tr>
                <th scope="row">${label(row.token)}</th>
                <td>${digits(row.score, 2)}</td>
                <td>${term.plain == null ? "too large" : digits(term.plain, 2)}</td>
                <td>${digits(term.below, 2)}</td>
                <td>${digits(term.exponential, 4)}</td>
                <td><b>${digits(row.probability, 3)}</b></td>
                ${before.length > 0 ? html`<td>${digits(earlier.get(row.token) ?? 0, 3)}</td>` : nothing}
                <td>${digits(row.mass_before, 3)}</td>
                <td class="why">${row.verdict ? `kept: ${row.verdict.reason}` : ""}</td>
              </tr>`;
            })}
            ${
              sum.others > 0
                ? html`<tr>
                    <th scope="row">${count(sum.others)} more</th>
                    <td colspan="3"></td>
                    <td>${digits(sum.others_total, 4)}</td>
                    <td colspan="3"></td>
                  </tr>`
                : nothing
            }
            <tr class="sum">
              <th scope="row">sum</th>
              <td></td>
              <td>${sum.plain_total == null ? "too large" : digits(sum.plain_total, 2)}</td>
              <td></td>
              <td>${digits(sum.total, 4)}</td>
              <td colspan="3"></td>
            </tr>
          </tbody>
        </table>
      </div>
    </section>
  `;
}

/** @param {number} value @param {number} decimals */
function digits(value, decimals) {
  if (Math.abs(value) >= 1e7) return scientific(value, 2).replace("-", "−");
  return value.toFixed(decimals).replace("-", "−");
}

/**
 * @param {ByHand} bench
 * @param {Worksheet} sheet
 */
function questionsView(bench, sheet) {
  const questions = bench.questions();
  if (!questions) return nothing;
  const [survivors, ...chances] = bench.marks();
  const raw = sheet.trace.stages[0]?.rows ?? [];
  const label = (/** @type {number} */ token) => bench.labels[token] ?? `#${token}`;
  return html`
    <section class="questions">
      <fieldset>
        <legend>Which tokens survive to the draw?</legend>
        ${raw.map(
          ({ token }) => html`<label class="check">
            <input
              type="checkbox"
              .checked=${live(bench.guessed.has(token))}
              @change=${(/** @type {Event} */ event) => bench.guessSurvivor(token, /** @type {HTMLInputElement} */ (event.target).checked)}
            />
            ${label(token)}
          </label>`,
        )}
        ${
          bench.revealed && survivors
            ? verdict(survivors, questions.survivors.map(label).join(", "))
            : nothing
        }
      </fieldset>
      ${questions.chances.map(
        (chance, at) => html`
          <label class="chance">
            What is p(${label(chance.row.token)}) ${after(chance)}, to two decimals?
            <input
              type="text"
              inputmode="decimal"
              autocomplete="off"
              class="short"
              .value=${live(bench.guesses[at] ?? "")}
              @input=${(/** @type {Event} */ event) => {
                bench.guesses[at] = written(event);
              }}
            />
          </label>
          ${
            bench.revealed && chances[at]
              ? verdict(chances[at], digits(chance.row.probability, 3))
              : nothing
          }`,
      )}
      <button ?disabled=${bench.revealed} @click=${() => bench.reveal()}>Reveal</button>
    </section>
  `;
}

/** Where in the calculation a probability is asked for. @param {Chance} chance */
function after({ stage }) {
  if (stage.id === "temperature") return `at T = ${stage.temperature}`;
  return stage.id === "raw" ? "as the scores are" : `after ${stage.label}`;
}

/** @param {Mark} mark @param {string} key the right answer */
function verdict({ correct, answered }, key) {
  if (!answered) return html`<p class="mark" role="status">Not answered. Right is ${key}.</p>`;
  return html`<p class="mark ${correct ? "right" : "wrong"}" role="status">
    ${correct ? "✓ Right:" : "✗ Not quite. Right is"} ${key}.
  </p>`;
}
