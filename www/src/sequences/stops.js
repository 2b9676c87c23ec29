// How generation ends: rules, every run with why it ended, and a laboratory for text that
// arrives in chunks.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { finished, visible } from "../format.js";
import {
  field,
  lines,
  notesView,
  outcome,
  parsed,
  refusal,
  table,
  textField,
  token,
  twin,
  written,
} from "./parts.js";

/**
 * @import { ErrorData } from "../types.js"
 * @import { Kept, LogitSequences } from "./element.js"
 * @import { Moment, Options, Run } from "./protocol.js"
 */

/** The tab. */
export class Stops {
  title = "Stop conditions";
  /** @type {ErrorData | null} */
  error = null;
  /** @type {{ run: Run, options: Options } | null} */
  last = null;
  /** @type {Moment[]} */
  moments = [];
  /** How many chunks have come. */
  arrived = 0;
  #host;
  #laboratory = { error: /** @type {ErrorData | null} */ (null) };
  #fields = {
    stops: ".\nand",
    trim: "true",
    eos: "",
    tokens: "48",
    constraint: "",
    check: 'regex("[^.]{10,}")',
  };
  #trial = { text: "The quick brown fox 🦊 says: own it!", stops: "own goal\n🦊 says", size: "1" };

  /** @param {LogitSequences} host */
  constructor(host) {
    this.#host = host;
  }

  #changed = () => {
    this.error = null;
    this.#host.requestUpdate();
  };

  /** @returns {Options} */
  #options() {
    const { stops, trim, eos, tokens, constraint } = this.#fields;
    const ids = eos.trim() === "none" ? [] : eos.split(/[\s,]+/).filter((id) => id !== "");
    return {
      ...this.#host.options(),
      stop: lines(stops),
      trim: trim === "true",
      maxTokens: Number(tokens),
      ...(eos.trim() === "" ? {} : { eos: ids.map(Number) }),
      ...(constraint === "" ? {} : { constraint }),
    };
  }

  /** @param {Options} options */
  #start(options) {
    return this.#host.work(this, "Running", async () => {
      const { check } = this.#fields;
      this.last = {
        run: await this.#host.run("Stop conditions", options, check || undefined),
        options,
      };
    });
  }

  /** Feeds the text of the laboratory in chunks. */
  #feed = () =>
    this.#host.work(this.#laboratory, "Cutting", async () => {
      const { text, stops, size } = this.#trial;
      this.moments = await this.#host.ask("watch", {
        src: this.#host.src,
        text,
        size: Number(size),
        stops: lines(stops),
      });
      this.arrived = Math.min(this.arrived || 1, this.moments.length);
    });

  render() {
    const changed = this.#changed;
    const f = this.#fields;
    return html`
      <p class="legend">
        What ends a sequence, and what of it is shown. When several reasons hold at once, the first of
        grammar, end of sequence, stop string, budget, context is reported, and the others are listed.
      </p>
      <div class="form">
        ${textField(f, "stops", "Stop strings, one a line", { changed })}
        ${field(f, "trim", "The stop string is", { changed, options: { true: "left out of the text", false: "kept in the text" } })}
        ${field(f, "tokens", "Token budget", { changed, min: "0" })}
        ${field(f, "eos", "Ids that end it", { changed, type: "text", placeholder: "the model's own; or none" })}
        ${field(f, "constraint", "Constraint", { changed, type: "text", wide: true, placeholder: 'regex("…"), or nothing' })}
        ${field(f, "check", "Check of the finished text, a constraint", { changed, type: "text", wide: true })}
      </div>
      ${refusal(this.error, "stops-fault")}
      <button class="primary" ?disabled=${this.#host.busy !== ""} @click=${() => this.#start(this.#options())}>Run to the end</button>
      ${this.last ? this.#lastView(this.last) : nothing}
      ${this.#host.kept.length > 0 ? this.#keptView() : nothing}
      ${this.#laboratoryView()}
    `;
  }

  /** @param {{ run: Run, options: Options }} last */
  #lastView({ run, options }) {
    return html`
      <p class="written" aria-label="The text">${run.text || "∅"}</p>
      ${outcome(run)}
      ${notesView(run.notes)}
      ${run.finish?.reason === "constraint_unsatisfiable" ? this.#deadEnd(run, options) : nothing}
      ${twin(
        table(
          "What could be shown after each token",
          ["Step", "Token", "Shown", "Held back", "Unfinished character"],
          run.steps.map((step, index) => [
            index + 1,
            token(this.#host.piece(step.token)),
            step.text.slice(-40),
            step.held_back ? token(step.held_back) : "",
            step.partial,
          ]),
        ),
        "Table of what was shown, token by token",
      )}
    `;
  }

  /**
   * No token was left: which stage did it, and a way back.
   * @param {Run} run
   * @param {Options} options
   */
  #deadEnd(run, options) {
    const { finish, last_fork, steps } = run;
    const fork = last_fork === null ? undefined : steps[last_fork];
    const other = fork?.others.find((share) => share.token !== fork.token);
    return html`<div class="warning">
      <p>No token was left to draw from${finish?.stage ? html`: <code>${finish.stage}</code> removed the last` : ""}. Nothing was appended.</p>
      ${
        fork && other && last_fork !== null
          ? html`<button ?disabled=${this.#host.busy !== ""} @click=${() => {
              const forced = new Map(
                steps.slice(0, last_fork).map((step, at) => [at, step.token]),
              ).set(last_fork, other.token);
              return this.#start({ ...options, forced });
            }}>Go back to step ${last_fork + 1} and take ${visible(this.#host.piece(other.token))}</button>`
          : html`<p>There was no step with another choice, so there is nowhere to go back to.</p>`
      }
    </div>`;
  }

  /** Every run so far, with the three things recorded apart, and the reader's own verdict. */
  #keptView() {
    return html`
      <h3>Every run so far</h3>
      ${table(
        "Every run so far",
        ["Run", "Text", "Why it ended", "Parsed", "Content check", "Your verdict"],
        this.#host.kept.map((kept, index) => [
          `${index + 1}, ${kept.from}`,
          kept.run.text.slice(0, 80),
          kept.run.finish ? finished(kept.run.finish).replace("Finished: ", "") : "",
          kept.run.standing ? parsed(kept.run.standing) : "",
          kept.run.check === null ? "" : kept.run.check ? "✓ passed" : "✗ failed",
          this.#verdict(kept, index),
        ]),
      )}
    `;
  }

  /**
   * @param {Kept} kept
   * @param {number} index
   */
  #verdict(kept, index) {
    return html`<select
      aria-label="Your verdict on run ${index + 1}"
      @change=${(/** @type {Event} */ event) => {
        kept.verdict = /** @type {Kept["verdict"]} */ (written(event));
        this.#changed();
      }}
    >
      ${[
        ["", "not judged"],
        ["yes", "✓ good"],
        ["no", "✗ bad"],
      ].map(
        ([value, words]) =>
          html`<option value=${value ?? ""} ?selected=${value === kept.verdict}>${words}</option>`,
      )}
    </select>`;
  }

  #laboratoryView() {
    const t = this.#trial;
    const changed = this.#changed;
    const sizes = {
      0: "as the model's tokens",
      1: "one byte at a time",
      2: "two bytes at a time",
      3: "three bytes at a time",
      5: "five bytes at a time",
    };
    return html`
      <h3>Text in chunks: a laboratory</h3>
      <p class="legend">
        Text arrives in pieces that need not end where characters or stop strings do. Only what could still
        become a stop string, or is half a character, is held back.
      </p>
      <div class="form">
        ${textField(t, "text", "Text that arrives", { changed })}
        ${textField(t, "stops", "Its stop strings, one a line", { changed })}
        ${field(t, "size", "Chunks", { changed, options: sizes })}
      </div>
      ${refusal(this.#laboratory.error, "chunks-fault")}
      <button ?disabled=${this.#host.busy !== ""} @click=${this.#feed}>Cut into chunks</button>
      ${this.moments.length > 0 ? this.#momentsView() : nothing}
    `;
  }

  /** What is shown and what is not, without space between. @param {Moment} moment */
  #stream({ text, held_back, partial, matched }) {
    return [
      text,
      held_back ? html`<span class="held" title="held back">${held_back}</span>` : nothing,
      partial.length > 0
        ? html`<span class="partial" title="bytes of an unfinished character">${partial.map(hex)}</span>`
        : nothing,
      matched ? html`<span class="matched">⏹ ${matched}</span>` : nothing,
    ];
  }

  #momentsView() {
    const moment = this.moments[this.arrived - 1];
    if (!moment) return nothing;
    const over = moment.chunk.length === 0;
    return html`
      <label class="scrub">
        <span>${over ? "Nothing more comes" : `After chunk ${this.arrived}`}, of ${this.moments.length}</span>
        <input
          type="range"
          min="1"
          max=${this.moments.length}
          .value=${live(String(this.arrived))}
          aria-valuetext="Shown: ${moment.text}; held back: ${moment.held_back}"
          @input=${(/** @type {Event} */ event) => {
            this.arrived = Number(written(event));
            this.#host.requestUpdate();
          }}
        />
      </label>
      <p class="stream">${this.#stream(moment)}</p>
      <p class="legend">
        Plain: shown. <span class="held">Held back</span>: may become a stop string.
        <span class="partial">⟨⟩</span>: bytes of an unfinished character. <span class="matched">⏹</span>: the stop
        string that ended it.
      </p>
      ${twin(
        table(
          "After each chunk",
          ["Chunk", "Bytes", "Shown", "Held back", "Unfinished character", "Stop string"],
          this.moments.map(({ chunk, text, held_back, partial, matched }, index) => [
            index + 1,
            chunk.length > 0 ? chunk.map(hex).join("") : "nothing more",
            text,
            held_back ? token(held_back) : "",
            partial.map(hex).join(""),
            matched ? token(matched) : "",
          ]),
          { marked: this.arrived - 1 },
        ),
        "Table of all chunks",
      )}
    `;
  }
}

/** @param {number} byte */
function hex(byte) {
  return `⟨${byte.toString(16).padStart(2, "0")}⟩`;
}
