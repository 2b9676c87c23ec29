// The custom element: attributes in, events out, and the page between.
//
// It owns no decoding and no state of a run (see playground.js); it renders, and turns what
// a reader does into calls.

import { html, LitElement, nothing } from "lit";
import { ByHand } from "./by-hand.js";
import { dieRoll } from "./charts/die-roll.js";
import { rankPlot } from "./charts/rank-plot.js";
import { engine } from "./client.js";
import { Comparison } from "./compare.js";
import { errorData, isAbort } from "./errors.js";
import { finished, probability, spoken, visible } from "./format.js";
import { Playground } from "./playground.js";
import { Profiles } from "./profiles.js";
import { fromFragment, seed, toFragment } from "./state.js";
import { styles } from "./styles/element.js";
import { byHandView } from "./views/by-hand.js";
import { compareView } from "./views/compare.js";
import { outView, promptView, runView } from "./views/controls.js";
import { editsView } from "./views/edits.js";
import { finderView } from "./views/finder.js";
import { faultView, hintView, loadingView } from "./views/notices.js";
import { pipelineText } from "./views/pipeline-text.js";
import { profilesView } from "./views/profiles.js";
import { stagesView } from "./views/stages.js";
import { textView } from "./views/text.js";

/**
 * @import { Wanted } from "./protocol.js"
 * @import { Found, Ranks, Step, StepTrace } from "./types.js"
 */

/** The model that ships with the page. */
const DEFAULT_MODEL = new URL("../../models/default.gguf", import.meta.url).href;
const DEFAULT_PROMPT = "Once upon a time there was a little";
const DEFAULT_PIPELINE = "temperature(t=0.8) | top_k(k=40) | top_p(p=0.9) | categorical()";

/** Remembers that the first hint was read. */
const HINT_KEY = "logitscope.hint";
/** How long a reader's typing must rest before the address of the page follows. */
const REST_MS = 300;
/** How long the stages must rest before the whole vocabulary follows. */
const GLANCE_MS = 60;
/** How many tokens of a step are taken to the bench. */
const BENCH_TOKENS = 8;

/**
 * A playground: `<logit-scope prompt="Once" pipeline="top_p(p=0.9)" lock="prompt seed">`.
 *
 * `lock` lists what a reader may not change: `prompt`, `pipeline` (all of it), `stages` (their
 * choice and order), `sampler`, a stage such as `temperature`, a parameter such as `top_p.p`,
 * `seed`, `force`, `run`. `linked` keeps the state in the address of the page. `view="text"`
 * shows the text and its buttons only.
 *
 * Fires `step` (detail: the step with its trace), `finish` (reason and text) and `error`
 * (code, stage, param, position, message).
 */
export class LogitScope extends LitElement {
  static styles = styles;
  static properties = {
    src: { type: String },
    prompt: { type: String },
    pipeline: { type: String },
    seed: { type: String },
    view: { type: String },
    lock: { type: String },
    linked: { type: Boolean },
    stage: { state: true },
    dragging: { state: true },
    hint: { state: true },
    width: { state: true },
    ranks: { state: true },
    said: { state: true },
    unfolded: { state: true },
    comparison: { state: true },
    bench: { state: true },
    profiles: { state: true },
    pins: { state: true },
    ledger: { state: true },
    found: { state: true },
  };

  constructor() {
    super();
    /** @type {string | undefined} */
    this.src = undefined;
    /** @type {string | undefined} */
    this.prompt = undefined;
    /** @type {string | undefined} */
    this.pipeline = undefined;
    /** @type {string | undefined} */
    this.seed = undefined;
    this.view = "";
    this.lock = "";
    this.linked = false;
    /** The column whose survivors the rank plot shows; null for the last. @type {number | null} */
    this.stage = null;
    /** The stage being dragged. @type {number | null} */
    this.dragging = null;
    this.hint = false;
    this.width = 640;
    /** What the rank plot draws, and of which step. @type {{ ranks: Ranks, trace: StepTrace, stage: number } | null} */
    this.ranks = null;
    /** Other pipelines on the same row, if a reader compares. @type {Comparison | null} */
    this.comparison = null;
    /** The bench for calculating by hand, if it is open. @type {ByHand | null} */
    this.bench = null;
    /** Other frameworks' settings, if a reader looks. @type {Profiles | null} */
    this.profiles = null;
    /** Tokens kept in the table wherever they stand. @type {number[]} */
    this.pins = [];
    /** The way of those, and of others that matter, through the step in view. @type {StepTrace | null} */
    this.ledger = null;
    /** Tokens found by the last search. @type {Found[] | null} */
    this.found = null;
    /** Whether all tokens in view are shown. */
    this.unfolded = false;
    /** What a screen reader is told. */
    this.said = "";
    /** @type {Playground} */
    this.play = new Playground(engine, this.#attributes());
    this.#resize = new ResizeObserver(([entry]) => {
      if (entry) this.width = Math.round(entry.contentRect.width);
    });
  }

  #resize;
  #rest = 0;
  #glance = 0;
  #sought = 0;
  #looking = new AbortController();
  /** The step that `ranks` were asked for. @type {string} */
  #looked = "";
  #written = "";
  #onHash = () => this.#followAddress();
  #onRestart = () => {
    this.play.notice = "The engine had to be restarted. Nothing was lost.";
    this.requestUpdate();
  };

  connectedCallback() {
    super.connectedCallback();
    this.#resize.observe(this);
    engine.addEventListener("restart", this.#onRestart);
    if (this.linked) {
      window.addEventListener("hashchange", this.#onHash);
      this.hint = !remembered();
    }
    this.#begin();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.#resize.disconnect();
    clearTimeout(this.#rest);
    clearTimeout(this.#glance);
    this.#looking.abort();
    engine.removeEventListener("restart", this.#onRestart);
    window.removeEventListener("hashchange", this.#onHash);
    this.play.close();
    this.#compare(null);
  }

  /** @param {Map<PropertyKey, unknown>} changed */
  willUpdate(changed) {
    if (!this.hasUpdated) return;
    const state = ["src", "prompt", "pipeline", "seed"];
    if (state.some((name) => changed.has(name))) this.#begin();
  }

  // --- For pages that embed it --------------------------------------------------------------

  /** Takes one token. @returns {Promise<Step | null>} it, or null when finished */
  step() {
    return this.play.step();
  }

  /** Takes tokens until the end, or at most so many. @param {number} [count] */
  run(count) {
    return this.play.run(count);
  }

  /** Forgets every generated token. */
  reset() {
    return this.play.reset();
  }

  /** The trace file of the run: everything needed to replay it, as JSON. */
  exportTrace() {
    return this.play.exportTrace();
  }

  // --- State and address --------------------------------------------------------------------

  /** @returns {Wanted} */
  #attributes() {
    return {
      src: this.src ? new URL(this.src, document.baseURI).href : DEFAULT_MODEL,
      prompt: this.prompt ?? DEFAULT_PROMPT,
      pipeline: this.pipeline ?? DEFAULT_PIPELINE,
      seed: this.seed ?? null,
      forced: {},
      length: 0,
    };
  }

  /** Starts from the attributes, and from the address of the page where that is wanted. */
  #begin() {
    this.play.close();
    const attributes = this.#attributes();
    /** @type {unknown} */
    let refused = null;
    /** @type {Partial<Wanted>} */
    let linked = {};
    /** @type {string[] | null} */
    let compared = this.view === "compare" ? [] : null;
    if (this.linked) {
      try {
        const { compared: texts, ...state } = this.#addressed();
        linked = state;
        compared = texts ?? compared;
      } catch (error) {
        refused = error;
      }
    }
    const play = new Playground(engine, { ...attributes, ...linked });
    this.play = play;
    play.addEventListener("change", () => this.#follow());
    for (const name of ["step", "finish", "error"]) {
      play.addEventListener(name, (event) => {
        const { detail } = /** @type {CustomEvent} */ (event);
        this.#say(name, detail);
        this.dispatchEvent(new CustomEvent(name, { detail }));
      });
    }
    this.#compare(compared);
    void play.start();
    if (refused) {
      play.fault = { where: "link", error: errorData(refused) };
      this.requestUpdate();
    }
  }

  /** What the address of the page says. */
  #addressed() {
    const state = fromFragment(location.hash);
    if (state.src) state.src = new URL(state.src, document.baseURI).href;
    if (state.length !== undefined) state.forced ??= {};
    return state;
  }

  /** Goes where a pasted address leads. */
  #followAddress() {
    if (location.hash.slice(1) === this.#written) return;
    this.#begin();
  }

  /** After every change of the playground. */
  #follow() {
    this.requestUpdate();
    if (this.play.busy === null) {
      // The whole vocabulary is much to ask for while a slider moves.
      clearTimeout(this.#glance);
      this.#glance = window.setTimeout(() => {
        void this.#look();
        void this.comparison?.update();
        void this.profiles?.copy(this.play.state.pipeline);
      }, GLANCE_MS);
    }
    if (!this.linked || this.play.model === null || this.play.busy === "running") return;
    clearTimeout(this.#rest);
    this.#rest = window.setTimeout(() => this.#write(), REST_MS);
  }

  #write() {
    const fragment = toFragment(this.play.state, DEFAULT_MODEL, this.comparison?.texts);
    history.replaceState(history.state, "", `#${fragment}`);
    // Browsers escape what they must, so the address is what they made of it.
    this.#written = location.hash.slice(1);
  }

  /** Begins or ends a comparison. @param {string[] | null} texts the other pipelines */
  #compare(texts) {
    this.comparison?.close();
    this.comparison = texts && new Comparison(engine, this.play, texts);
    this.comparison?.addEventListener("change", () => this.#follow());
  }

  /** Asks for the whole vocabulary of the step in view. */
  async #look() {
    const { play } = this;
    const trace = play.trace;
    if (!trace || this.view === "text") return;
    const stage = Math.min(this.stage ?? trace.stages.length - 1, trace.stages.length - 1);
    const looked = JSON.stringify([play.state, play.selected, stage, this.pins]);
    if (looked === this.#looked) return;
    this.#looked = looked;
    this.#looking.abort();
    this.#looking = new AbortController();
    const { signal } = this.#looking;
    try {
      const followed = [...new Set([...this.pins, ...outOfView(trace)])];
      this.ledger = followed.length > 0 ? await play.ledger(followed, signal) : null;
      this.ranks = { ranks: await play.ranks(play.selected, stage, signal), trace, stage };
    } catch (error) {
      if (!isAbort(error)) this.#looked = "";
    }
  }

  /**
   * Tells a screen reader what happened; runs are told once, at their end.
   * @param {string} name
   * @param {any} detail
   */
  #say(name, detail) {
    if (name === "finish") {
      this.said = `${finished(detail)} ${detail.text}`;
    } else if (name === "step" && this.play.busy !== "running") {
      const draw = detail.trace.draw;
      const how = draw ? `, drawn with probability ${probability(draw.probability)}` : "";
      this.said = `Token ${detail.index + 1}: ${spoken(detail.piece)}${draw?.forced ? ", forced" : how}`;
    }
  }

  // --- What a reader does -------------------------------------------------------------------

  /** Whether any of these controls is locked. @param {...string} names */
  isLocked(...names) {
    const locked = (this.lock ?? "").split(/[\s,]+/);
    return names.some((name) => locked.includes(name));
  }

  pressStep() {
    void this.play.step();
  }

  /** @param {number} token */
  force(token) {
    if (!this.isLocked("force")) void this.play.force(this.play.selected, token);
  }

  /** @param {number} column */
  showStage(column) {
    this.stage = column;
    void this.#look();
  }

  /** @param {string} prompt */
  typePrompt(prompt) {
    void this.play.setPrompt(prompt);
  }

  /** @param {string} text */
  typeSeed(text) {
    try {
      void this.play.setSeed(seed(text.trim()));
    } catch (error) {
      this.play.fault = { where: "seed", error: errorData(error), draft: text };
      this.requestUpdate();
    }
  }

  /** @param {SubmitEvent} event */
  addStage(event) {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    void this.play.addStage(String(form.get("stage")));
  }

  /** Moves a stage and keeps the focus on its button. @param {number} from @param {number} to */
  async moveStage(from, to) {
    const moved = this.renderRoot.querySelectorAll(".tools")[from];
    const focused = /** @type {ShadowRoot} */ (this.renderRoot).activeElement;
    const button = [...(moved?.querySelectorAll("button") ?? [])].indexOf(
      /** @type {HTMLButtonElement} */ (focused),
    );
    await this.play.moveStage(from, to);
    await this.updateComplete;
    const there = this.renderRoot.querySelectorAll(".tools")[to];
    const buttons = [...(there?.querySelectorAll("button") ?? [])];
    const again = buttons[button];
    if (again && !again.disabled) again.focus();
    else buttons.find((other) => !other.disabled)?.focus();
  }

  /** @param {DragEvent} event @param {number} index */
  dragStart(event, index) {
    this.dragging = index;
    event.dataTransfer?.setData("text/plain", String(index));
  }

  /** @param {DragEvent} event @param {number} index */
  dragOver(event, index) {
    if (this.dragging !== null && index < this.play.stages.length - 1) event.preventDefault();
  }

  /** @param {DragEvent} event @param {number} index */
  drop(event, index) {
    event.preventDefault();
    if (this.dragging !== null) void this.play.moveStage(this.dragging, index);
    this.dragging = null;
  }

  unfold() {
    this.unfolded = !this.unfolded;
  }

  dragEnd() {
    this.dragging = null;
  }

  /** @param {boolean} open */
  toggleBench(open) {
    if (open === (this.bench !== null)) return;
    if (!open) {
      this.bench = null;
      return;
    }
    const bench = new ByHand(engine);
    bench.addEventListener("change", () => this.requestUpdate());
    bench.addEventListener("answer", (event) => {
      const { detail } = /** @type {CustomEvent} */ (event);
      this.dispatchEvent(new CustomEvent("answer", { detail }));
    });
    this.bench = bench;
    void bench.work();
  }

  /** @param {boolean} open */
  toggleProfiles(open) {
    if (open === (this.profiles !== null)) return;
    this.profiles = open ? new Profiles(engine) : null;
    this.profiles?.addEventListener("change", () => this.requestUpdate());
    void this.profiles?.open();
    void this.profiles?.copy(this.play.state.pipeline);
  }

  /** Adds a pipeline to the comparison. @param {string} pipeline */
  compareWith(pipeline) {
    if (this.comparison) this.comparison.add(pipeline);
    else this.#compare([pipeline]);
    this.#follow();
  }

  /** @param {string} text */
  async copyText(text) {
    try {
      await navigator.clipboard.writeText(text);
      this.play.notice = "Copied.";
    } catch {
      this.play.notice = "The browser does not let this page copy.";
    }
    this.requestUpdate();
  }

  /** Takes the likeliest tokens of the step in view to the bench. */
  takeStepByHand() {
    const rows = this.play.trace?.stages[0]?.rows.slice(0, BENCH_TOKENS) ?? [];
    const scores = rows.map(({ token, score }) => [visible(this.play.piece(token)), score]);
    void this.bench?.set({ text: JSON.stringify(scores) });
  }

  /** @param {string} text */
  async find(text) {
    const sought = ++this.#sought;
    try {
      const found = text === "" ? null : await this.play.search(text);
      if (sought === this.#sought) this.found = found;
    } catch (error) {
      this.play.fault = { where: "engine", error: errorData(error) };
      this.requestUpdate();
    }
  }

  /** Keeps a token in the table, or no longer. @param {number} token @param {string} piece */
  pin(token, piece) {
    engine.pieces(this.play.state.src).set(token, piece);
    const kept = this.pins.includes(token);
    this.pins = kept ? this.pins.filter((other) => other !== token) : [...this.pins, token];
    void this.#look();
  }

  /** @param {boolean} open */
  toggleComparison(open) {
    if (open === (this.comparison !== null)) return;
    this.#compare(open ? [this.anotherPipeline()] : null);
    this.#follow();
  }

  /** A pipeline to begin a comparison with: that of the page with its first stages swapped. */
  anotherPipeline() {
    const stages = this.play.state.pipeline.split(" | ");
    const [first, second, ...others] = stages;
    if (!first || !second || others.length === 0) return this.play.state.pipeline;
    return [second, first, ...others].join(" | ");
  }

  dismissHint() {
    this.hint = false;
    try {
      localStorage.setItem(HINT_KEY, "read");
    } catch {
      // Without storage the hint comes back, which harms nobody.
    }
  }

  async copyLink() {
    this.#write();
    await this.copyText(location.href);
  }

  async saveTrace() {
    try {
      const file = new Blob([await this.exportTrace()], { type: "application/json" });
      const link = document.createElement("a");
      link.href = URL.createObjectURL(file);
      link.download = "logitscope-trace.json";
      link.click();
      URL.revokeObjectURL(link.href);
    } catch (error) {
      this.play.fault = { where: "engine", error: errorData(error) };
      this.requestUpdate();
    }
  }

  // --- What it looks like -------------------------------------------------------------------

  render() {
    const { play } = this;
    const full = this.view !== "text";
    return html`
      <div
        class="body"
        aria-busy=${play.busy === "loading" ? "true" : "false"}
        data-busy=${play.busy ?? nothing}
        data-tokens=${play.steps.length}
      >
        ${hintView(this)} ${faultView(this)}
        <div>${promptView(this)}</div>
        ${loadingView(this)}
        <div>${runView(this)}</div>
        <div>${textView(this)}</div>
        ${full && play.model ? this.#inspector() : nothing}
        ${play.notice ? html`<p class="notice" role="status">${play.notice}</p>` : nothing}
        <p class="hidden" role="status" aria-live="polite">${this.said}</p>
      </div>
    `;
  }

  #inspector() {
    const { play } = this;
    const trace = play.trace;
    return html`
      <div>${pipelineText(this)}</div>
      <section>
        <h2>${play.taken ? `Step ${play.selected + 1}, stage by stage` : "The next step, stage by stage"}</h2>
        ${stagesView(this)} ${finderView(this)} ${editsView(this)}
      </section>
      <div class="charts">
        <section>
          <h2>The die roll</h2>
          ${
            trace?.draw
              ? dieRoll({
                  draw: trace.draw,
                  sampler: trace.stages.at(-1)?.label ?? "",
                  taken: play.taken,
                  piece: (token) => play.piece(token),
                  force: this.isLocked("force") ? null : (token) => this.force(token),
                })
              : nothing
          }
        </section>
        <section>
          <h2>The whole vocabulary</h2>
          ${this.ranks ? rankPlot({ ...this.ranks, width: this.width }) : nothing}
        </section>
      </div>
      ${compareView(this)} ${profilesView(this)} ${byHandView(this)} ${outView(this)}
    `;
  }
}

/** Tokens that matter to a step though they may not be among the likeliest. @param {StepTrace} trace */
function outOfView({ stages, draw }) {
  const edited = stages.flatMap(({ edits }) => edits.map(({ token }) => token));
  return draw ? [...edited, draw.token] : edited;
}

/** Whether the hint was read before. */
function remembered() {
  try {
    return localStorage.getItem(HINT_KEY) !== null;
  } catch {
    return false;
  }
}

customElements.define("logit-scope", LogitScope);
