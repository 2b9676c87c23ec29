// What a reader may press: the prompt, Step, Run, Stop, Undo, Reset, the seed, and ways out.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { count, endedBy, finished, plural } from "../format.js";
import { RUN_LENGTH } from "../playground.js";
import { draft } from "./draft.js";

/** @import { LogitScope } from "../logit-scope.js" */

/** @param {LogitScope} host */
export function promptView(host) {
  const { play } = host;
  const tokens = play.promptTokens.ids.length;
  const fault = play.fault?.where === "prompt" ? play.fault : null;
  return html`
    <label class="prompt">
      <span>Prompt <small>${tokens > 0 ? plural(tokens, "token") : nothing}</small></span>
      <textarea
        rows="2"
        spellcheck="false"
        .value=${live(String(fault?.draft ?? play.state.prompt))}
        ?disabled=${host.isLocked("prompt")}
        aria-invalid=${fault ? "true" : "false"}
        aria-describedby=${fault ? "prompt-fault" : nothing}
        @input=${(/** @type {Event} */ event) => play.setPrompt(/** @type {HTMLTextAreaElement} */ (event.target).value)}
      ></textarea>
    </label>
    ${fault ? html`<p class="fault" id="prompt-fault" role="alert">${fault.error.message}</p>` : nothing}
    ${chatView(host)}
  `;
}

/** @param {LogitScope} host */
export function runView(host) {
  const { play } = host;
  const running = play.busy === "running";
  const locked = host.isLocked("run");
  const off = play.busy === "loading" || play.model === null || locked;
  return html`
    <div class="run" role="toolbar" aria-label="Generation">
      <button class="primary" ?disabled=${off || running || play.finish !== null} @click=${() => play.step()}>Step</button>
      <button ?disabled=${off || running || play.finish !== null} title="Takes up to ${RUN_LENGTH} tokens" @click=${() => play.run()}>Run</button>
      <button class="stop" ?disabled=${!running} @click=${() => play.stop()}>Stop</button>
      <button ?disabled=${!play.canUndo} @click=${() => play.undo()}>Undo</button>
      <button ?disabled=${off || !play.canReset} @click=${() => play.reset()}>Reset</button>
      ${seedView(host)}
    </div>
    ${play.finish ? html`<p class="finish">${finished(play.finish)} ${slideButton(host)}</p>` : nothing}
    ${forgottenView(host)}
  `;
}

/** A way on where the context is full. @param {LogitScope} host */
function slideButton({ play }) {
  if (!play.finish || endedBy(play.finish) !== "context_full") return nothing;
  return html`<button
    title="The model forgets the oldest half of its context each time it is full"
    @click=${() => play.slide()}
  >Go on, forgetting the beginning</button>`;
}

/** What the model no longer saw at the step in view. @param {LogitScope} host */
function forgottenView({ play }) {
  const { forgotten = 0 } = play.steps[play.selected] ?? play.steps.at(-1) ?? {};
  if (forgotten === 0) return nothing;
  return html`<p class="note" role="status">
    The context is full, so it slides: of all tokens the first ${count(forgotten)} are forgotten
    at this step. What the model says no longer depends on them.
  </p>`;
}

/** The model's own way to write a conversation, and the prompt in it if the reader likes. @param {LogitScope} host */
function chatView(host) {
  const template = host.play.model?.chat_template;
  if (!template || host.isLocked("prompt")) return nothing;
  return html`
    <details class="twin chat">
      <summary>Chat template</summary>
      <p class="legend">
        This model was taught to answer messages that are written in a certain way. Its file says
        how, as a template:
      </p>
      <pre>${template}</pre>
      <button @click=${() => host.play.wrapPrompt()}>Write the prompt as a message</button>
    </details>
  `;
}

/** Keeps the tokens while the stages change. @param {LogitScope} host */
export function holdView(host) {
  const { play } = host;
  if (host.isLocked("force") || (play.state.length === 0 && !play.holding)) return nothing;
  return html`
    <label class="check hold" title="Every token so far is forced, so only the probabilities change">
      <input
        type="checkbox"
        .checked=${live(play.holding)}
        @change=${(/** @type {Event} */ event) => play.hold(/** @type {HTMLInputElement} */ (event.target).checked)}
      />
      Hold the text while I change stages
    </label>
  `;
}

/** @param {LogitScope} host */
function seedView(host) {
  const { play } = host;
  const locked = host.isLocked("seed");
  const fault = play.fault?.where === "seed" ? play.fault : null;
  return html`
    <span class="seed">
      <label for="seed" title="The die rolls of this run; the same seed gives the same text">Seed</label>
      <input
        id="seed"
        type="text"
        inputmode="numeric"
        autocomplete="off"
        spellcheck="false"
        size="12"
        .value=${draft(String(fault?.draft ?? play.state.seed ?? ""))}
        ?disabled=${locked}
        aria-invalid=${fault ? "true" : "false"}
        aria-describedby=${fault ? "seed-fault" : nothing}
        @change=${(/** @type {Event} */ event) => host.typeSeed(/** @type {HTMLInputElement} */ (event.target).value)}
      />
      <button ?disabled=${locked || play.model === null} title="Draw another seed" @click=${() => play.redraw()}>New seed</button>
      ${fault ? html`<span class="fault" id="seed-fault" role="alert">${fault.error.message}</span>` : nothing}
    </span>
  `;
}

/** Links and files that lead out of the page. @param {LogitScope} host */
export function outView(host) {
  return html`
    <div class="out">
      ${host.linked ? html`<button @click=${() => host.copyLink()}>Copy link to this state</button>` : nothing}
      <button @click=${() => host.saveTrace()}>Save trace</button>
    </div>
  `;
}
