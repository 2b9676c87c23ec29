// The whole element: what stands where.

import { html, nothing } from "lit";
import { dieRoll } from "../charts/die-roll.js";
import { rankPlot } from "../charts/rank-plot.js";
import { byHandView } from "./by-hand.js";
import { compareView } from "./compare.js";
import { holdView, outView, promptView, runView } from "./controls.js";
import { editsView } from "./edits.js";
import { familyView } from "./family.js";
import { finderView } from "./finder.js";
import { askedView, modelView } from "./models.js";
import { faultView, hintView, loadingView } from "./notices.js";
import { penaltiesView } from "./penalties.js";
import { pipelineText } from "./pipeline-text.js";
import { placesView } from "./places.js";
import { profilesView } from "./profiles.js";
import { sequencesView } from "./sequences.js";
import { stagesView } from "./stages.js";
import { textView } from "./text.js";

/** @import { LogitScope } from "../logit-scope.js" */

/** @param {LogitScope} host */
export function pageView(host) {
  const { play } = host;
  return html`
    <div
      class="body"
      aria-busy=${play.busy === "loading" ? "true" : "false"}
      data-busy=${play.busy ?? nothing}
      data-tokens=${play.steps.length}
    >
      ${faultView(host)} ${askedView(host)} ${host.shows("text") ? textPart(host) : nothing}
      ${host.shows("stages") && play.model ? stagesPart(host) : nothing}
      ${host.shows("compare") && play.model ? compareView(host) : nothing}
      ${host.shows("sequences") && play.model ? sequencesView(host) : nothing}
      ${host.shows("frameworks") ? profilesView(host) : nothing}
      ${host.shows("hand") ? byHandView(host) : nothing}
      ${host.shows("text") ? [placesView(host), outView(host), modelView(host)] : nothing}
      ${play.notice ? html`<p class="notice" role="status">${play.notice}</p>` : nothing}
      <p class="hidden" role="status" aria-live="polite">${host.said}</p>
    </div>
  `;
}

/** @param {LogitScope} host */
function textPart(host) {
  return html`
    ${hintView(host)}
    <div>${promptView(host)}</div>
    ${loadingView(host)}
    <div>${runView(host)}</div>
    <div>${textView(host)}</div>
  `;
}

/** @param {LogitScope} host */
function stagesPart(host) {
  const { play, lookout } = host;
  return html`
    <div>${pipelineText(host)}</div>
    <section>
      <h2>${play.taken ? `Step ${play.selected + 1}, stage by stage` : "The next step, stage by stage"}</h2>
      ${holdView(host)} ${stagesView(host)} ${finderView(host)} ${familyView(host)} ${editsView(host)}
    </section>
    ${penaltiesView(host)}
    <section>
      <h2>The die roll</h2>
      ${drawPart(host)}
    </section>
    <section>
      <h2>The whole vocabulary</h2>
      ${lookout.plot ? rankPlot({ ...lookout.plot, width: host.width }) : nothing}
    </section>
  `;
}

/** @param {LogitScope} host */
function drawPart(host) {
  const { play } = host;
  const { draw, stages } = play.trace ?? {};
  if (!draw) return html`<p class="legend">No token is left to draw from.</p>`;
  return dieRoll({
    draw,
    sampler: stages?.at(-1)?.label ?? "",
    taken: play.taken,
    piece: (token) => play.piece(token),
    force: host.isLocked("force") ? null : (token) => host.force(token),
  });
}
