// The Sequences area: tabs that go from one step to a finished sequence.
//
// An element of its own, loaded when a reader opens it. Each tab is a class that holds its
// form and its results and renders them; this element gives them the worker and the texts of
// tokens, and keeps every run that was made, which is what the tree of branches shows.

import { html, LitElement, nothing } from "lit";
import { errorData, isAbort } from "../errors.js";
import { styles } from "../styles/element.js";
import { Beams } from "./beams.js";
import { Branches } from "./branches.js";
import { Client } from "./client.js";
import { Constraints } from "./constraints.js";
import { Speculations } from "./speculation.js";
import { Stops } from "./stops.js";
import { sequenceStyles } from "./styles.js";

/**
 * @import { Playground } from "../playground.js"
 * @import { ErrorData } from "../types.js"
 * @import { Calls, Options, Run } from "./protocol.js"
 */

/**
 * @typedef {object} Kept a run that was made, and where it came from
 * @property {string} from
 * @property {Options} options
 * @property {Run} run
 * @property {"" | "yes" | "no"} verdict the reader's own
 */

/** The draft model that ships with the page. */
const DRAFT = new URL("../../../models/draft.gguf", import.meta.url).href;

/** See the module. */
export class LogitSequences extends LitElement {
  static styles = [styles, sequenceStyles];
  static properties = {
    play: { attribute: false },
    constraint: { type: String },
    strategy: { type: String },
    open: { state: true },
    busy: { state: true },
  };

  constructor() {
    super();
    /** @type {Playground | null} */
    this.play = null;
    /** What the page begins with, as texts. */
    this.constraint = "";
    this.strategy = "";
    this.open = 0;
    /** What runs, in words. */
    this.busy = "";
    /** Every run that was made with the prompt. @type {Kept[]} */
    this.kept = [];
    /** @type {(Constraints | Beams | Speculations | Stops | Branches)[]} */
    this.tabs = [];
  }

  #client = new Client((pieces) => {
    for (const [token, piece] of pieces) this.play?.name(token, piece);
  });

  connectedCallback() {
    super.connectedCallback();
    // A nested element must not look like one that stands alone in a page.
    this.setAttribute("linked", "");
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.#client.stop();
    this.play?.removeEventListener("change", this.#follow);
  }

  /** The run of the page is one of the branches. */
  #follow = () => {
    if (this.play?.busy === null) this.requestUpdate();
  };

  /** @param {Map<PropertyKey, unknown>} changed */
  willUpdate(changed) {
    const before = /** @type {Playground | null | undefined} */ (changed.get("play"));
    if (changed.has("play")) {
      before?.removeEventListener("change", this.#follow);
      this.play?.addEventListener("change", this.#follow);
    }
    // Another model has other tokens, so nothing that was found with the old one holds.
    const otherModel = before && before.state.src !== this.play?.state.src;
    if (otherModel || changed.has("constraint") || changed.has("strategy")) this.#begin();
  }

  /** Starts with empty tabs, and with what the page gives. */
  #begin() {
    this.#client.stop();
    this.kept = [];
    const constraints = new Constraints(this);
    const beams = new Beams(this);
    const speculations = new Speculations(this);
    this.tabs = [constraints, beams, speculations, new Stops(this), new Branches(this)];
    if (this.constraint) constraints.give(this.constraint);
    const strategy = this.strategy.trim();
    if (!strategy) return;
    const tab = /^(diverse_)?beam\b/.test(strategy) ? beams : speculations;
    tab.give(strategy);
    this.open = this.tabs.indexOf(tab);
  }

  /** The model's address. */
  get src() {
    return this.play?.state.src ?? "";
  }

  /** The draft model's address. */
  get draft() {
    return DRAFT;
  }

  /** @param {number} token */
  piece(token) {
    return this.play?.piece(token) ?? `#${token}`;
  }

  /**
   * What the page says a sequence starts from.
   * @returns {Options}
   */
  options() {
    const { prompt = "", pipeline = "", seed } = this.play?.state ?? {};
    return { prompt, pipeline, ...(seed ? { seed } : {}) };
  }

  /**
   * @template {keyof Calls} C
   * @param {C} call
   * @param {Calls[C]["args"]} args
   */
  ask(call, args) {
    return this.#client.ask(call, args);
  }

  /**
   * Does what a button of a tab says, and shows what is refused.
   * @param {{ error: ErrorData | null }} tab
   * @param {string} what in words, such as "Searching"
   * @param {() => Promise<void>} work
   */
  async work(tab, what, work) {
    if (this.busy) return;
    tab.error = null;
    this.busy = what;
    try {
      await work();
    } catch (error) {
      if (!isAbort(error)) tab.error = errorData(error);
    } finally {
      this.busy = "";
      this.requestUpdate();
    }
  }

  /**
   * Runs to the end and keeps the run.
   * @param {string} from
   * @param {Options} options
   * @param {string} [check]
   */
  async run(from, options, check) {
    const run = await this.ask("run", { src: this.src, options, check });
    this.kept = [...this.kept, { from, options, run, verdict: "" }];
    return run;
  }

  stop() {
    this.#client.stop();
  }

  /**
   * Opens a tab and moves the focus there.
   * @param {number} index
   */
  #select(index) {
    this.open = (index + this.tabs.length) % this.tabs.length;
    void this.updateComplete.then(() =>
      /** @type {HTMLElement | null | undefined} */ (
        this.renderRoot.querySelector('[role="tab"][aria-selected="true"]')
      )?.focus(),
    );
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    /** @type {Record<string, number>} */
    const targets = {
      ArrowRight: this.open + 1,
      ArrowLeft: this.open - 1,
      Home: 0,
      End: this.tabs.length - 1,
    };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.#select(target);
  }

  render() {
    const tab = this.tabs[this.open];
    if (!this.play || !tab) return nothing;
    return html`
      <div class="tabs" role="tablist" aria-label="Sequences" @keydown=${this.#onKey}>
        ${this.tabs.map(
          ({ title }, index) => html`<button
            role="tab"
            id="tab-${index}"
            aria-controls="panel"
            aria-selected=${index === this.open ? "true" : "false"}
            tabindex=${index === this.open ? 0 : -1}
            @click=${() => this.#select(index)}
          >${title}</button>`,
        )}
      </div>
      <div id="panel" class="panel" role="tabpanel" aria-labelledby="tab-${this.open}" tabindex="-1" data-busy=${this.busy || nothing}>
        ${tab.render()}
      </div>
      <p class="working" role="status">
        ${this.busy ? html`${this.busy} … <button class="stop" @click=${() => this.stop()}>Stop</button>` : nothing}
      </p>
    `;
  }
}

customElements.define("logit-sequences", LogitSequences);
