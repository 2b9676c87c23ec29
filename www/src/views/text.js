// The text so far: the prompt as the model reads it, then the generated tokens, each tinted
// and underlined by how likely it was, each a button that opens its step.

import { html, nothing } from "lit";
import { LEVELS, level, probability, spoken, visible } from "../format.js";

/**
 * @import { LogitScope } from "../logit-scope.js"
 * @import { Step } from "../types.js"
 */

/** @param {LogitScope} host */
export function textView(host) {
  const { play } = host;
  const fresh = play.steps.length;
  const steps =
    play.stale.length > fresh ? [...play.steps, ...play.stale.slice(fresh)] : play.steps;
  return html`
    <div class="text" role="group" aria-label="The text so far" @keydown=${walk}>
      <span class="prompt-tokens">${play.promptTokens.pieces.map(
        (piece) =>
          html`<span class="prompt-token ${/^<.+>$/.test(piece) ? "special" : ""}">${shown(piece)}</span>`,
      )}</span>${steps.map((step, index) => tokenChip(host, step, index, index >= fresh))}${
        play.finish || play.busy === "loading" ? nothing : nextChip(host, fresh)
      }
    </div>
    ${steps.length > 0 ? legend() : nothing}
  `;
}

/**
 * @param {LogitScope} host
 * @param {Step} step
 * @param {number} index
 * @param {boolean} stale
 */
function tokenChip({ play }, step, index, stale) {
  const draw = step.trace.draw;
  const grade = draw ? level(draw.raw_logprob) : 0;
  const selected = index === play.selected;
  const drawn = draw ? `drawn with ${probability(draw.probability)}` : "";
  const how = draw?.forced ? "forced" : drawn;
  return html`<button
    class="chip level-${grade} ${stale ? "stale" : ""} ${draw?.forced ? "forced" : ""}"
    tabindex=${selected ? 0 : -1}
    aria-current=${selected ? "step" : "false"}
    aria-label="Token ${index + 1}: ${spoken(step.piece)}; ${how}; raw probability ${LEVELS[grade]?.label}"
    title="Token ${index + 1}: ${how}; raw probability ${LEVELS[grade]?.label}"
    @click=${() => play.select(index)}
  >${shown(step.piece)}</button>${step.piece.includes("\n") ? html`<br />` : nothing}`;
}

/**
 * @param {LogitScope} host
 * @param {number} index
 */
function nextChip({ play }, index) {
  const selected = play.selected >= index;
  return html`<button
    class="chip next"
    tabindex=${selected ? 0 : -1}
    aria-current=${selected ? "step" : "false"}
    aria-label="The next token, not taken yet"
    title="The next token, not taken yet"
    @click=${() => play.select(index)}
  >next</button>`;
}

function legend() {
  return html`<p class="legend levels" aria-hidden="true">
    Raw probability:
    ${LEVELS.map(({ label }, index) => html`<span class="chip level-${index}">${label}</span> `)}
  </p>`;
}

/** Arrow keys go from token to token. @param {KeyboardEvent} event */
function walk(event) {
  const chips = [
    .../** @type {HTMLElement} */ (event.currentTarget).querySelectorAll("button.chip"),
  ];
  const at = chips.indexOf(/** @type {Element} */ (event.target));
  /** @type {Record<string, number>} */
  const moves = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: chips.length - 1 };
  const chip = chips[moves[event.key] ?? -1];
  if (!(chip instanceof HTMLButtonElement) || at < 0) return;
  event.preventDefault();
  chip.focus();
  chip.click();
}

/** Spaces stay spaces in running text; what would be invisible is drawn. @param {string} piece */
function shown(piece) {
  return piece.trim() === "" ? visible(piece) : piece.replaceAll("\n", "⏎");
}
