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
 * @import { Form } from "./form.js"
 * @import { Settings } from "../state.js"
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

/** A run that was stopped before anything of it had come. @type {Run} */
const NOTHING = {
  steps: [],
  text: "",
  finish: null,
  standing: null,
  check: null,
  raw_logprob: 0,
  final_logprob: 0,
  repetition: 0,
  last_fork: null,
  notes: [],
  pipeline: "",
  seed: "",
  computed: null,
};

/** How often the reader hears how long something takes, in milliseconds. */
const TICK_MS = 1000;

/** See the module. */
export class LogitSequences extends LitElement {
  static styles = [styles, sequenceStyles];
  static properties = {
    play: { attribute: false },
    constraint: { type: String },
    strategy: { type: String },
    begins: { attribute: false },
    open: { state: true },
    busy: { state: true },
    seconds: { state: true },
  };

  constructor() {
    super();
    /** @type {Playground | null} */
    this.play = null;
    /** What the page begins with, as texts. */
    this.constraint = "";
    this.strategy = "";
    /** What a link says of the tabs. @type {Settings | undefined} */
    this.begins = undefined;
    this.open = 0;
    /** What runs, in words. */
    this.busy = "";
    /** For how long it has run. */
    this.seconds = 0;
    /** How it ended, for whoever does not see it. */
    this.ended = "";
    /** Every run that was made with the prompt. @type {Kept[]} */
    this.kept = [];
    /** @type {(Constraints | Beams | Speculations | Stops | Branches)[]} */
    this.tabs = [];
  }

  /** What the page was told of the tabs last. */
  #told = "";
  #client = new Client({
    learn: (pieces) => {
      for (const [token, piece] of pieces) this.play?.name(token, piece);
    },
    choice: () => this.play?.choice ?? "measured",
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
    if (otherModel || ["constraint", "strategy", "begins"].some((name) => changed.has(name))) {
      this.#begin();
      if (this.begins && changed.has("begins")) this.#take(this.begins);
    }
  }

  /** Tells the page what a link must say to show the tab as it stands. */
  updated() {
    const tab = this.tabs[this.open];
    if (!tab) return;
    /** @type {Settings} */
    const settings = { tab: tab.name, fields: tab.form.written };
    const told = JSON.stringify(settings);
    if (told === this.#told) return;
    this.#told = told;
    this.dispatchEvent(new CustomEvent("settings", { detail: settings }));
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
    if (strategy) {
      const tab = /^(diverse_)?beam\b/.test(strategy) ? beams : speculations;
      tab.give(strategy);
      this.open = this.tabs.indexOf(tab);
    }
  }

  /** @param {Settings} settings of a link */
  #take({ tab, fields }) {
    const named = this.tabs.findIndex(({ name }) => name === tab);
    if (named >= 0) this.open = named;
    const { form } = /** @type {Constraints} */ (this.tabs[this.open]);
    if (named >= 0) form.take(fields);
    else form.refuse(`The link names a tab “${tab}”, but there is none of this name.`);
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

  /** Whether nothing runs, so that a button does what it says. */
  get resting() {
    return this.busy === "";
  }

  /**
   * @template {keyof Calls} C
   * @param {C} call
   * @param {Calls[C]["args"]} args
   * @param {(part: Calls[C]["result"]) => void} [onPart]
   */
  ask(call, args, onPart) {
    return this.#client.ask(call, args, onPart);
  }

  /**
   * Does what a button of a form says, and shows what is refused. What the form found before
   * is forgotten first, so that it stands neither under other work nor under a refusal.
   * @param {Form} form
   * @param {string} what in words, such as "Searching"
   * @param {() => Promise<void>} work
   */
  async work(form, what, work) {
    if (!this.resting) return;
    const focused = /** @type {ShadowRoot} */ (this.renderRoot).activeElement;
    form.begin();
    this.requestUpdate();
    // A field that is not shown does not count.
    if (form.faulty.some((name) => this.#focus(`[name="${name}"][aria-invalid="true"]`))) return;
    this.busy = what;
    this.seconds = 0;
    const clock = setInterval(() => {
      this.seconds += TICK_MS / 1000;
    }, TICK_MS);
    try {
      await work();
      this.ended = `${what}: done.`;
    } catch (error) {
      if (isAbort(error)) form.cancelled = true;
      else form.error = errorData(error);
      // What is refused is said where it stands.
      this.ended = isAbort(error) ? `${what}: cancelled.` : "";
    } finally {
      clearInterval(clock);
      this.busy = "";
      this.requestUpdate();
      await this.updateComplete;
      if (focused && document.activeElement === document.body) this.#restore(focused);
    }
  }

  /** Gives the focus back to what had it, or to the panel if that is gone. @param {Element} focused */
  #restore(focused) {
    const panel = this.renderRoot.querySelector("#panel");
    const target = /** @type {HTMLElement | null} */ (focused.isConnected ? focused : panel);
    // Whoever reads elsewhere in the meantime goes on reading there.
    target?.focus({ preventScroll: true });
  }

  /** Whether there is what was to be focused. @param {string} selector */
  #focus(selector) {
    const found = /** @type {HTMLElement | null} */ (this.renderRoot.querySelector(selector));
    found?.focus();
    return found !== null;
  }

  /**
   * Runs to the end and keeps the run; one that is cut short is kept as far as it had come.
   * @param {string} from
   * @param {Options} options
   * @param {{ check?: string, show?: (run: Run) => void }} [how] `show` sees it grow
   */
  async run(from, options, { check, show = () => {} } = {}) {
    const { src } = this;
    /** @type {Run} */
    let run = { ...NOTHING, pipeline: options.pipeline, seed: options.seed ?? "" };
    const grow = (/** @type {Run} */ part) => {
      run = { ...part, finish: null, check: null };
      show(run);
      this.requestUpdate();
    };
    try {
      run = await this.ask("run", { src, options, check }, grow);
    } catch (error) {
      const { message } = errorData(error);
      if (isAbort(error)) run = { ...run, finish: { reason: "cancelled" } };
      else if (run.steps.length > 0) run = { ...run, finish: { reason: "error", message } };
      throw error;
    } finally {
      // Another model has begun anew.
      if (run.finish && src === this.src) {
        this.kept = [...this.kept, { from, options, run, verdict: "" }];
        show(run);
      }
    }
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
    void this.updateComplete.then(() => this.#focus('[role="tab"][aria-selected="true"]'));
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
      <p class="working ${this.resting ? "" : "busy"}" role="status">
        ${
          this.resting
            ? html`<span class="hidden">${this.ended}</span>`
            : html`${this.busy} … <span aria-hidden="true">${this.seconds > 0 ? `${this.seconds} s` : nothing}</span>
                <button class="stop" @click=${() => this.stop()}>Stop</button>`
        }
      </p>
    `;
  }
}

customElements.define("logit-sequences", LogitSequences);
