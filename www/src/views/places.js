// Which stage runs where, and why; and the reader's say in it.

import { html, nothing } from "lit";

/**
 * @import { LogitScope } from "../logit-scope.js"
 * @import { Choice, Place } from "../protocol.js"
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
  const onGpu = places.stages?.filter((stage) => stage.device).length ?? 0;
  return html`
    <details class="places">
      <summary>
        ${
          onGpu === 0
            ? "Every stage runs on the CPU"
            : `${onGpu} of ${places.stages?.length} stages run on the GPU`
        }
      </summary>
      <p>
        The tokens are the same wherever they are computed, and the numbers above are always the
        CPU's account of the step.
        ${places.why} ${places.adapter ? `The GPU: ${places.adapter}.` : nothing}
        ${places.measured ? `Measured: ${places.measured}.` : nothing}
        ${
          places.logits?.device
            ? "The model's last matrix is on the GPU too: its logits are the CPU's, bit for bit."
            : nothing
        }
      </p>
      ${places.logits && places.stages ? table([places.logits, ...places.stages]) : nothing}
      <label>
        Compute on
        <select
          @change=${(/** @type {Event} */ event) => {
            const { value } = /** @type {HTMLSelectElement} */ (event.target);
            host.play.choose(/** @type {Choice} */ (value));
          }}
        >
          ${CHOICES.map(
            ([choice, label]) =>
              html`<option value=${choice} ?selected=${choice === places.choice}>${label}</option>`,
          )}
        </select>
      </label>
    </details>
  `;
}

/** @param {Place[]} stages */
function table(stages) {
  return html`
    <table>
      <thead>
        <tr><th scope="col">Stage</th><th scope="col">Runs on</th><th scope="col">Why</th></tr>
      </thead>
      <tbody>
        ${stages.map(
          ({ stage, device, why }) => html`
            <tr>
              <th scope="row">${stage}</th>
              <td>${device ? "GPU" : "CPU"}</td>
              <td>${why || "it has a kernel"}</td>
            </tr>
          `,
        )}
      </tbody>
    </table>
  `;
}
