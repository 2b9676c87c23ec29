// The draw: [0, 1) cut into the survivors' slices, with the uniform number in it.

import { html, nothing } from "lit";
import { place, probability, spoken, visible } from "../format.js";

/**
 * @import { DrawTrace } from "../types.js"
 */

/**
 * The slices as a bar, with the uniform number marked.
 * @param {DrawTrace} draw
 * @param {(token: number) => string} piece
 * @param {((token: number) => void) | null} force
 */
export function dieBar(draw, piece, force) {
  const end = draw.slices.at(-1)?.high ?? 0;
  return html`
      <div class="die-bar">
        ${
          end < 0.9995
            ? html`<span class="slice others" style="left:${end * 100}%;width:${(1 - end) * 100}%"
                title="the other survivors: ${place(end)} to 1"><span>others</span></span>`
            : nothing
        }
        ${slicesOf(draw).map((slice, index) => {
          const width = slice.high - slice.low;
          const drawn = slice.token === draw.token;
          return html`<button
            class="slice ${index % 2 ? "odd" : ""} ${drawn ? "drawn" : ""}"
            style="left:${slice.low * 100}%;width:${width * 100}%"
            tabindex="-1"
            aria-hidden="true"
            ?disabled=${!force}
            title="“${piece(slice.token)}”: ${place(slice.low)} to ${place(slice.high)}"
            @click=${() => force?.(slice.token)}
          ><span>${visible(piece(slice.token))}</span></button>`;
        })}
        ${rolls(draw) ? html`<span class="u" style="left:${draw.u * 100}%"></span>` : nothing}
      </div>
  `;
}

/** Whether one uniform number decides by the slice that it falls into. @param {DrawTrace} draw */
function rolls(draw) {
  return draw.random && !draw.noise;
}

/** The slices in view, and that of the token if it is not among them. @param {DrawTrace} draw */
function slicesOf(draw) {
  return draw.slices.some(({ token }) => token === draw.token)
    ? draw.slices
    : [...draw.slices, { token: draw.token, low: draw.low, high: draw.high }];
}

/**
 * @param {object} roll
 * @param {DrawTrace} roll.draw
 * @param {string} roll.sampler what drew
 * @param {boolean} roll.taken
 * @param {(token: number) => string} roll.piece
 * @param {((token: number) => void) | null} roll.force
 */
export function dieRoll({ draw, sampler, taken, piece, force }) {
  const slices = slicesOf(draw);
  return html`
    <figure class="die">
      ${dieBar(draw, piece, force)}
      <div class="die-scale" aria-hidden="true">
        <span>0</span>
        ${
          rolls(draw)
            ? html`<span class="u-label" style="left:clamp(2.7rem, ${draw.u * 100}%, calc(100% - 2.7rem))">u = ${place(draw.u)}</span>`
            : nothing
        }
        <span>1</span>
      </div>
      <figcaption>${sentence(draw, sampler, taken, piece(draw.token))}</figcaption>
      <details class="twin">
        <summary>Table</summary>
        <table>
          <caption>Slices of [0, 1) after the last truncation, likeliest first</caption>
          <thead>
            <tr><th scope="col">Token</th><th scope="col">From</th><th scope="col">To, excluded</th><th scope="col">Result</th></tr>
          </thead>
          <tbody>
            ${slices.map(
              (slice) => html`
                <tr>
                  <th scope="row"><span aria-label=${spoken(piece(slice.token))}>${visible(piece(slice.token))}</span></th>
                  <td>${place(slice.low)}</td>
                  <td>${place(slice.high)}</td>
                  <td>${slice.token === draw.token ? (draw.forced ? "forced" : "drawn") : ""}</td>
                </tr>`,
            )}
          </tbody>
        </table>
      </details>
    </figure>
  `;
}

/**
 * @param {DrawTrace} draw
 * @param {string} sampler
 * @param {boolean} taken
 * @param {string} piece
 */
function sentence(draw, sampler, taken, piece) {
  const token = html`<q class="token">${visible(piece)}</q>`;
  const slice = html`[${place(draw.low)}, ${place(draw.high)})`;
  if (draw.forced) {
    if (!rolls(draw)) return html`${token} was forced, whatever ${sampler} would have taken.`;
    return draw.margin < 0
      ? html`${token} was forced: u = ${place(draw.u)} lies outside its slice ${slice}.`
      : html`${token} was forced, and u = ${place(draw.u)} would have drawn it too: its slice is ${slice}.`;
  }
  if (!draw.random) {
    return html`${sampler} takes the highest token, ${token}. No die is rolled.`;
  }
  if (draw.noise) {
    return html`No single die decides. ${sampler} adds noise to every score and takes the highest,
      ${token}. Over many draws each token comes as often as its slice is wide; that of ${token} is
      ${slice}, its final probability ${probability(draw.probability)}.`;
  }
  return html`The uniform number u = ${place(draw.u)} ${taken ? "fell" : "will fall"} into the slice of ${token},
    ${slice}, which is as wide as its final probability ${probability(draw.probability)}. The nearest
    boundary is ${place(draw.margin)} away.`;
}
