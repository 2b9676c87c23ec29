// A run that ended since no token was left to draw: which stage did it, and a way back.

import { html, nothing } from "lit";
import { visible } from "../format.js";

/**
 * @import { LogitSequences } from "./element.js"
 * @import { Options, Run } from "./protocol.js"
 */

/**
 * Nothing for a run that ended otherwise.
 * @param {LogitSequences} host
 * @param {{ run: Run, options: Options }} last
 * @param {(options: Options) => void} start runs with other options
 */
export function deadEnd(host, { run, options }, start) {
  const { finish, last_fork, steps } = run;
  if (finish?.reason !== "constraint_unsatisfiable") return nothing;
  const fork = last_fork === null ? undefined : steps[last_fork];
  const other = fork?.others.find((share) => share.token !== fork.token);
  return html`<div class="warning">
    <p>No token was left to draw from${finish.stage ? html`: <code>${finish.stage}</code> removed the last` : ""}. Nothing was appended.</p>
    ${
      fork && other && last_fork !== null
        ? html`<button aria-disabled=${host.resting ? "false" : "true"} @click=${() =>
            start({
              ...options,
              forced: new Map(steps.slice(0, last_fork).map((step, at) => [at, step.token])).set(
                last_fork,
                other.token,
              ),
            })}>Go back to step ${last_fork + 1} and take ${visible(host.piece(other.token))}</button>`
        : html`<p>There was no step with another choice, so there is nowhere to go back to.</p>`
    }
  </div>`;
}
