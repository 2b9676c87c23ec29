// Which stage runs where, and why; and the reader's say in it.

import { html, nothing } from "lit";

/**
 * @import { LogitScope } from "../logit-scope.js"
 * @import { Choice, DeviceState, Place, Places, Share } from "../protocol.js"
 */

/** @type {[Choice, string][]} */
const CHOICES = [
  ["measured", "Whichever is faster here"],
  ["cpu", "The CPU"],
  ["gpu", "The GPU, where it can"],
];

/** @param {LogitScope} host */
export function placesView(host) {
  const { places } = host.play;
  if (!places) return nothing;
  const { logits, stages, choice } = places;
  return html`
    <details class="places">
      <summary>${summary(places, host.play.finish !== null)}</summary>
      <p>
        The tokens are the same wherever they are computed, and the numbers above are always the
        CPU's account of the step. ${deviceWords(places)}
        ${
          logits?.device
            ? "The model's last matrix is on the GPU too: its logits are the CPU's, bit for bit."
            : nothing
        }
      </p>
      ${logits && stages ? placesTable([logits, ...stages]) : nothing}
      <label>
        Compute on
        <select
          @change=${(/** @type {Event} */ event) => {
            const { value } = /** @type {HTMLSelectElement} */ (event.target);
            host.play.choose(/** @type {Choice} */ (value));
          }}
        >
          ${CHOICES.map(
            ([word, label]) =>
              html`<option value=${word} ?selected=${word === choice}>${label}</option>`,
          )}
        </select>
      </label>
    </details>
  `;
}

/**
 * How many stages a GPU runs, and for which token that holds: the next, or after the end the last.
 * @param {Places} places
 * @param {boolean} ended
 */
function summary({ step, stages }, ended) {
  if (step === null || stages === null) return "Every stage runs on the CPU";
  const there = stages.filter((stage) => stage.device).length;
  const where =
    there === 0
      ? "every stage runs on the CPU"
      : `${there} of ${stages.length} stages run on the GPU`;
  return `Token ${step + 1}, ${ended ? "drawn anew" : "the next"}: ${where}`;
}

/** The GPU, and why the CPU computes. @param {DeviceState} state */
export function deviceWords({ adapter, measured, why }) {
  return html`${why} ${adapter ? `The GPU: ${adapter}.` : nothing}
    ${measured ? `Measured: ${measured}.` : nothing}`;
}

/**
 * Where each stage ran, and why; of a whole run with the rows it did there.
 * @param {(Place | Share)[]} stages
 */
export function placesTable(stages) {
  return html`
    <table>
      <thead>
        <tr><th scope="col">Stage</th><th scope="col">Runs on</th><th scope="col">Why</th></tr>
      </thead>
      <tbody>
        ${stages.map(
          (place) => html`
            <tr>
              <th scope="row">${place.stage}</th>
              <td>${place.device ? "GPU" : "CPU"}${"rows" in place ? `, ${place.rows} of ${place.of} rows` : nothing}</td>
              <td>${place.why || "the GPU can do it"}</td>
            </tr>
          `,
        )}
      </tbody>
    </table>
  `;
}
