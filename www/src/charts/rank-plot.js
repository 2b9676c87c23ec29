// The whole vocabulary of one step: probability against rank, both logarithmic, with the
// tokens that are still alive filled and the cuts of the stages drawn.

import { html, nothing, svg } from "lit";
import { count, plural, probability } from "../format.js";
import { logScale, powersOfTen, roundRanks } from "./scale.js";

/**
 * @import { Ranks, StepTrace } from "../types.js"
 */

const HEIGHT = 190;
const LEFT = 46;
const RIGHT = 10;
const TOP = 16;
const BOTTOM = 30;

/**
 * @param {object} plot
 * @param {Ranks} plot.ranks
 * @param {StepTrace} plot.trace
 * @param {number} plot.stage the stage after which tokens are alive or not
 * @param {number} plot.width in pixels
 */
export function rankPlot({ ranks, trace, stage, width }) {
  const total = ranks.probability.length;
  const label = trace.stages[stage]?.label ?? "";
  const alive = trace.stages[stage]?.alive ?? 0;
  return html`
    <figure class="ranks">
      ${plotSvg(ranks, trace, stage, width)}
      <figcaption>
        All ${plural(total, "token")} in the order of the raw row. Height: probability in the raw row.
        Filled: the ${count(alive)} alive after <b>${label}</b>.
      </figcaption>
      <details class="twin">
        <summary>Table</summary>
        ${rankTable(ranks, label)}
      </details>
    </figure>
  `;
}

/**
 * @param {Ranks} ranks
 * @param {StepTrace} trace
 * @param {number} stage
 * @param {number} width
 */
function plotSvg({ probability: raw, alive }, trace, stage, width) {
  const total = raw.length;
  const plotWidth = Math.max(120, width - LEFT - RIGHT);
  const plotHeight = HEIGHT - TOP - BOTTOM;
  const floor = lowest(raw);
  const x = logScale(1, total + 1, plotWidth);
  const up = logScale(floor, 1, plotHeight);
  const y = (/** @type {number} */ value) => plotHeight - up(Math.max(value, floor));
  const cuts = cutsOf(trace, stage, total);
  const xTicks = powersOfTen(1, total, 7);
  const yTicks = powersOfTen(floor, 1, 5);
  const summary = `Rank plot: ${plural(total, "token")}; ${cuts.map((cut) => cut.label).join("; ") || "no cut"}.`;
  return html`
    <svg viewBox="0 0 ${plotWidth + LEFT + RIGHT} ${HEIGHT}" role="img" aria-label=${summary}>
      <g transform="translate(${LEFT} ${TOP})">
        ${yTicks.map(
          (power) => svg`
            <line class="grid" x1="0" x2=${plotWidth} y1=${y(10 ** power)} y2=${y(10 ** power)} />
            <text class="tick" x="-6" y=${y(10 ** power) + 4} text-anchor="end">${powerText(power)}</text>`,
        )}
        ${xTicks.map(
          (power) => svg`
            <text class="tick" x=${x(10 ** power)} y=${plotHeight + 14} text-anchor="middle">${count(10 ** power)}</text>`,
        )}
        <text class="tick" x=${plotWidth} y=${plotHeight + 27} text-anchor="end">rank</text>
        <path class="dead" d=${area(raw, alive, 0, x, y, plotHeight)} />
        <path class="alive" d=${area(raw, alive, 1, x, y, plotHeight)} />
        ${cuts.map((cut, index) => cutLine(cut, x(cut.count + 1), index, plotWidth, plotHeight))}
      </g>
    </svg>
  `;
}

/**
 * The columns of tokens that are alive, or dead, as one path: ranks that share a pixel share
 * a column.
 * @param {ArrayLike<number>} raw
 * @param {ArrayLike<number>} alive
 * @param {0 | 1} wanted
 * @param {(rank: number) => number} x
 * @param {(value: number) => number} y
 * @param {number} bottom
 */
function area(raw, alive, wanted, x, y, bottom) {
  let path = "";
  let index = 0;
  while (index < raw.length) {
    const from = x(index + 1);
    let next = index + 1;
    let found = alive[index] === wanted;
    while (next < raw.length && x(next + 1) - from < 1) {
      found ||= alive[next] === wanted;
      next += 1;
    }
    if (found) {
      const top = y(raw[index] ?? 0).toFixed(1);
      path += `M${from.toFixed(1)} ${bottom}V${top}H${x(next + 1).toFixed(1)}V${bottom}Z`;
    }
    index = next;
  }
  return path;
}

/**
 * @param {{ label: string }} cut
 * @param {number} at
 * @param {number} index
 * @param {number} width
 * @param {number} height
 */
function cutLine({ label }, at, index, width, height) {
  // A label stands on the side of its line that has room, each a line lower than the last.
  const left = at > width - 120;
  return svg`
    <line class="cut" x1=${at} x2=${at} y1="-8" y2=${height} />
    <text class="cut-label" x=${left ? at - 5 : at + 5} y=${2 + index * 15}
      text-anchor=${left ? "end" : "start"}>${label}</text>`;
}

/**
 * @param {StepTrace} trace
 * @param {number} stage
 * @param {number} total
 */
function cutsOf(trace, stage, total) {
  return trace.stages.slice(0, stage + 1).flatMap(({ cut, label }) => {
    if (!cut || cut.count >= total) return [];
    return [{ count: cut.count, label: `${label}: ${count(cut.count)}` }];
  });
}

/** The lowest probability above zero, at most a millionth so that axes compare. @param {ArrayLike<number>} raw */
function lowest(raw) {
  for (let index = raw.length - 1; index >= 0; index -= 1) {
    const value = raw[index] ?? 0;
    if (value > 0) return Math.min(value, 1e-6);
  }
  return 1e-6;
}

/** @param {number} power */
function powerText(power) {
  return power >= -2 ? String(10 ** power) : svg`10<tspan dy="-5" font-size="8">${power}</tspan>`;
}

/**
 * @param {Ranks} ranks
 * @param {string} label
 */
function rankTable({ probability: raw, alive }, label) {
  const total = raw.length;
  if (total === 0) return nothing;
  return html`
    <table>
      <caption>Probability in the raw row at some ranks</caption>
      <thead>
        <tr><th scope="col">Rank</th><th scope="col">Raw probability</th><th scope="col">After ${label}</th></tr>
      </thead>
      <tbody>
        ${roundRanks(total).map(
          (rank) => html`
            <tr>
              <th scope="row">${count(rank)}</th>
              <td>${probability(raw[rank - 1] ?? 0)}</td>
              <td>${alive[rank - 1] ? "alive" : "removed"}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  `;
}
