// How generation ends: rules, every run with why it ended, and a laboratory for text that
// arrives in chunks.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { because } from "../format.js";
import { deadEnd } from "./dead-end.js";
import { Form, MOST_TOKENS, whole, word } from "./form.js";
import {
  cancelledView,
  checked,
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
 * @import { Kept, LogitSequences } from "./element.js"
 * @import { Moment, Options, Run } from "./protocol.js"
 */

/** Ids of tokens, or a word for none. @type {import("./form.js").Rule} */
const IDS = {
  wanted: "ids of tokens, such as “5, 17”; nothing for the model's own; or “none”",
  takes: (value) => value === "none" || /^(\d{1,9}([\s,]+\d{1,9})*,?)?$/.test(value),
};

/** What becomes of a stop string. */
const TRIM = { true: "left out of the text", false: "kept in the text" };

/** The tab. */
export class Stops {
  name = "stops";
  title = "Stop conditions";
  /** @type {{ run: Run, options: Options } | null} */
  last = null;
  /** @type {Moment[]} */
  moments = [];
  /** How many chunks have come. */
  arrived = 0;
  #host;
  form = new Form(
    {
      stops: ".\nand",
      trim: "true",
      eos: "",
      tokens: "48",
      constraint: "",
      check: 'regex("[^.]{10,}")',
    },
    { tokens: whole(0, MOST_TOKENS), trim: word(TRIM), eos: IDS },
    () => {
      this.last = null;
    },
  );
  #laboratory = new Form(
    { text: "The quick brown fox 🦊 says: own it!", stops: "own goal\n🦊 says", size: "1" },
    {},
    () => {
      this.moments = [];
    },
  );

  /** @param {LogitSequences} host */
  constructor(host) {
    this.#host = host;
  }

  #changed = () => {
    this.form.error = null;
    this.#host.requestUpdate();
  };

  /** @returns {Options} */
  #options() {
    const { stops = "", trim, eos = "", tokens, constraint = "" } = this.form.fields;
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
    return this.#host.work(this.form, "Running", async () => {
      const check = this.form.fields.check || undefined;
      const show = (/** @type {Run} */ run) => {
        this.last = { run, options };
      };
      await this.#host.run("Stop conditions", options, { check, show });
    });
  }

  /** Feeds the text of the laboratory in chunks. */
  #feed = () =>
    this.#host.work(this.#laboratory, "Cutting", async () => {
      const { text = "", stops, size } = this.#laboratory.fields;
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
    const f = this.form;
    return html`
      <p class="legend">
        What ends a sequence, and what of it is shown. When several reasons hold at once, the first of
        grammar, end of sequence, stop string, budget, context is reported, and the others are listed.
      </p>
      <div class="form">
        ${textField(f, "stops", "Stop strings, one a line", { changed })}
        ${field(f, "trim", "The stop string is", { changed, options: TRIM })}
        ${field(f, "tokens", "Token budget", { changed })}
        ${field(f, "eos", "Ids that end it", { changed, placeholder: "the model's own; or none" })}
        ${field(f, "constraint", "Constraint", { changed, wide: true, placeholder: 'regex("…"), or nothing' })}
        ${field(f, "check", "Check of the finished text, a constraint", { changed, wide: true })}
      </div>
      ${refusal(this.form.error, "stops-fault")}
      <button class="primary" aria-disabled=${this.#host.resting ? "false" : "true"} @click=${() => this.#start(this.#options())}>Run to the end</button>
      ${cancelledView(this.form)}
      ${this.last ? this.#lastView(this.last) : nothing}
      ${this.#host.kept.length > 0 ? this.#keptView() : nothing}
      ${this.#laboratoryView()}
    `;
  }

  /** @param {{ run: Run, options: Options }} last */
  #lastView(last) {
    const { run } = last;
    return html`
      <p class="written" aria-label="The text">${run.text || "∅"}</p>
      ${outcome(run)}
      ${notesView(run.notes)}
      ${deadEnd(this.#host, last, (options) => this.#start(options))}
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
          kept.run.finish ? because(kept.run.finish) : "",
          parsed(kept.run),
          checked(kept.run),
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
    const t = this.#laboratory;
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
      <button aria-disabled=${this.#host.resting ? "false" : "true"} @click=${this.#feed}>Cut into chunks</button>
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
