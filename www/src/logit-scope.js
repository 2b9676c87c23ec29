// The custom element: attributes in, events out, and the page between.
//
// It owns no decoding and no state of a run (see playground.js). It puts together what does,
// and renders after every change (see views/page.js).

import { LitElement } from "lit";
import { Address } from "./address.js";
import { engine } from "./client.js";
import { Desk } from "./desk.js";
import { errorData } from "./errors.js";
import { finished, probability, spoken } from "./format.js";
import { locksOf } from "./locks.js";
import { Lookout } from "./lookout.js";
import { Playground } from "./playground.js";
import { Shelf } from "./shelf.js";
import { seed } from "./state.js";
import { styles } from "./styles/element.js";
import { pageView } from "./views/page.js";

/**
 * @import { Wanted } from "./protocol.js"
 * @import { Step } from "./types.js"
 */

/** The model that ships with the page. */
const DEFAULT_MODEL = new URL("../../models/default.gguf", import.meta.url).href;
const DEFAULT_PROMPT = "Once upon a time there was a little";
const DEFAULT_PIPELINE = "temperature(t=0.8) | top_k(k=40) | top_p(p=0.9) | categorical()";

/** Remembers that the first hint was read. */
const HINT_KEY = "logitscope.hint";

/** What each view shows. @type {Record<string, string[]>} */
const VIEWS = {
  all: ["text", "stages", "compare", "sequences", "frameworks", "hand"],
  steps: ["text", "stages"],
  text: ["text"],
  compare: ["text", "stages", "compare"],
  sequences: ["text", "sequences"],
  hand: ["hand"],
};

/**
 * A playground: `<logit-scope prompt="Once" pipeline="top_p(p=0.9)" lock="prompt seed">`.
 *
 * `view` says what is shown: `steps` (text and stages; the default in other people's pages),
 * `text`, `compare`, `sequences`, `hand` (only the bench), `all` (the default of the full page).
 *
 * `constraint` and `strategy` are what the Sequences area begins with, as texts.
 *
 * `lock` lists what a reader may not change: `prompt`, `pipeline` (all of it), `stages` (their
 * choice and order), `sampler`, a stage such as `temperature`, a parameter such as `top_p.p`,
 * `seed`, `force`, `run`, `model`. `linked` keeps the state in the address of the page.
 *
 * Fires `step` (detail: the step with its trace), `finish` (reason and text), `error` (code,
 * stage, param, position, message), and `answer` when a prediction was marked.
 */
export class LogitScope extends LitElement {
  static styles = styles;
  static properties = {
    src: { type: String },
    prompt: { type: String },
    pipeline: { type: String },
    seed: { type: String },
    constraint: { type: String },
    strategy: { type: String },
    view: { type: String },
    lock: { type: String },
    linked: { type: Boolean },
    dragging: { state: true },
    hint: { state: true },
    width: { state: true },
    said: { state: true },
    unfolded: { state: true },
    followed: { state: true },
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
    /** What the Sequences area begins with: `regex("[a-z]+")`, `beam(width=4)`. */
    this.constraint = "";
    this.strategy = "";
    this.view = "";
    this.lock = "";
    this.linked = false;
    /** Where the stage that is being dragged stands now. @type {number | null} */
    this.dragging = null;
    /** Where it stood before. */
    this.draggedFrom = 0;
    this.hint = false;
    this.width = 640;
    /** Whether all tokens in view are shown. */
    this.unfolded = false;
    /** The token whose repetition is shown in the history. @type {number | null} */
    this.followed = null;
    /** What a screen reader is told. */
    this.said = "";
    this.play = new Playground(engine, this.#attributes());
    this.lookout = new Lookout(this.play);
    this.desk = new Desk(engine, this.play);
    this.shelf = new Shelf(engine);
    this.shelf.addEventListener("change", () => this.requestUpdate());
    this.shelf.addEventListener("opened", (event) =>
      this.useModel(/** @type {CustomEvent} */ (event).detail),
    );
  }

  /** @type {Address | null} */
  #address = null;
  /** Models of other hosts that the reader chose. @type {Set<string>} */
  #agreed = new Set();
  #resize = new ResizeObserver(([entry]) => {
    if (entry) this.width = Math.round(entry.contentRect.width);
  });
  #onRestart = () => {
    this.play.notice = "The engine had to be restarted. Nothing was lost.";
    this.requestUpdate();
  };

  #onChoice = () => void this.play.retry();

  connectedCallback() {
    super.connectedCallback();
    this.#resize.observe(this);
    engine.addEventListener("restart", this.#onRestart);
    engine.addEventListener("choice", this.#onChoice);
    if (this.linked) {
      this.#address = new Address(DEFAULT_MODEL, () => this.#begin());
      this.hint = !remembered();
    }
    this.#begin();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.#resize.disconnect();
    engine.removeEventListener("restart", this.#onRestart);
    engine.removeEventListener("choice", this.#onChoice);
    this.#address?.close();
    this.#address = null;
    this.#end();
  }

  /** The engine starts first: it takes longer than drawing, and both together longer still. */
  async scheduleUpdate() {
    if (!this.hasUpdated) await engine.awake;
    super.scheduleUpdate();
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

  // --- What it is put together from ---------------------------------------------------------

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
    this.#end();
    /** @type {unknown} */
    let refused = null;
    /** @type {ReturnType<Address["read"]>} */
    let addressed = {};
    try {
      addressed = this.#address?.read() ?? {};
    } catch (error) {
      refused = error;
    }
    const { compared, selected = 0, pins, bench, sequences: begins, ...state } = addressed;
    this.play = new Playground(engine, { ...this.#attributes(), ...state });
    this.play.selected = selected;
    this.lookout = new Lookout(this.play, pins);
    const { sequences, settings, folded } = this.desk;
    this.desk = new Desk(engine, this.play, begins ?? settings);
    // What is open stays open, and what is folded up stays so unless a link names it.
    if (sequences === "open") this.desk.sequences = sequences;
    this.desk.folded = folded && !begins;
    this.play.addEventListener("change", () => this.#follow());
    this.lookout.addEventListener("change", () => this.#follow());
    this.desk.addEventListener("change", () => this.#follow());
    this.#pass(this.play, ["step", "finish", "error"]);
    this.#pass(this.desk, ["answer"]);
    if (compared || this.view === "compare") this.desk.compare(compared ?? []);
    if (bench || this.view === "hand") this.desk.openBench(true, bench);
    if (this.view !== "hand") void this.#start(this.play, addressed.src);
    const opens = begins || this.view === "sequences" || sequences === "loading";
    if (opens && !this.desk.folded) void this.desk.openSequences(true);
    if (refused) this.refuse("link", refused);
  }

  /**
   * Starts a playground, but asks the reader before a link makes the page fetch a model from
   * another host.
   * @param {Playground} play
   * @param {string} [linked] the model that the address of the page names
   */
  async #start(play, linked) {
    this.shelf.asked = null;
    const { protocol, origin } = new URL(linked ?? document.baseURI);
    const foreign = protocol.startsWith("http") && origin !== location.origin;
    if (linked && foreign && !this.#agreed.has(linked) && !(await this.shelf.has(linked))) {
      if (this.play !== play) return;
      this.shelf.asked = linked;
      this.requestUpdate();
    } else if (this.play === play) {
      await play.start();
    }
  }

  #end() {
    this.lookout.close();
    this.desk.close();
    this.play.close();
  }

  /**
   * Events of a part are events of the element.
   * @param {EventTarget} part
   * @param {string[]} names
   */
  #pass(part, names) {
    for (const name of names) {
      part.addEventListener(name, (event) => {
        const { detail } = /** @type {CustomEvent} */ (event);
        this.#say(name, detail);
        this.dispatchEvent(new CustomEvent(name, { detail }));
      });
    }
  }

  /** After every change. */
  #follow() {
    const { play } = this;
    this.requestUpdate();
    if (play.model === null || play.busy === "running") return;
    // A link that could not be followed stays for the reader to mend, until something is done.
    if (play.fault?.where !== "link") this.#address?.writeSoon(play.state, this.#beside);
    if (play.busy !== null) return;
    if (this.shows("stages")) this.lookout.lookSoon();
    this.desk.follow();
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
      const { draw } = detail.trace;
      const how = draw ? `, drawn with probability ${probability(draw.probability)}` : "";
      this.said = `Token ${detail.index + 1}: ${spoken(detail.piece)}${draw?.forced ? ", forced" : how}`;
    }
  }

  /** What a link shows beside the state. */
  get #beside() {
    const { bench, comparison, folded, sequences, settings } = this.desk;
    return {
      compared: comparison?.texts ?? [],
      selected: this.play.selected,
      pins: this.lookout.pins,
      ...(bench ? { bench: bench.written } : {}),
      ...(sequences !== "closed" && !folded ? { sequences: settings } : {}),
    };
  }

  // --- For the views ------------------------------------------------------------------------

  /** Whether a part of the page is shown. @param {string} part */
  shows(part) {
    const view = VIEWS[this.view] ?? VIEWS[this.linked ? "all" : "steps"];
    return view?.includes(part) ?? false;
  }

  /** Whether any of these controls is locked. @param {...string} names */
  isLocked(...names) {
    const locked = locksOf(this.lock);
    return names.some((name) => locked.includes(name));
  }

  /** Replaces the pipeline, but for what is locked. @param {string} text */
  setPipeline(text) {
    return this.play.setPipeline(text, locksOf(this.lock));
  }

  /** Takes a token at the step in view. @param {number} token */
  force(token) {
    if (!this.isLocked("force")) void this.play.force(this.play.selected, token);
  }

  /** @param {string} text */
  typeSeed(text) {
    try {
      void this.play.setSeed(seed(text.trim()));
    } catch (error) {
      this.refuse("seed", error, text);
    }
  }

  /**
   * Shows an error where it belongs.
   * @param {"seed" | "link" | "engine"} where
   * @param {unknown} error
   * @param {unknown} [draft] what the reader wrote there
   */
  refuse(where, error, draft) {
    this.play.fault = { where, error: errorData(error), draft };
    this.requestUpdate();
  }

  /**
   * Loads a model beside the one on the page; see `useModel` for what follows.
   * @param {string} address
   * @param {string} [sha256] the hash that it must have
   */
  loadModel(address, sha256) {
    const readable = address !== "" && URL.canParse(address, document.baseURI);
    const src = readable ? new URL(address, document.baseURI).href : "";
    if (!/^(https?|file):/.test(src)) {
      const message = `“${address}” is not the address of a file on the web.`;
      this.shelf.refuse({ code: "bad_input", param: "src", message });
      return;
    }
    void this.shelf.open(src, sha256 ? { sha256 } : {});
  }

  /** Goes on with a loaded model, or with the page's own. Back leads to the old one. @param {string | null} src */
  useModel(src) {
    if (src) this.#agreed.add(src);
    if (!this.#address) {
      this.src = src ?? undefined;
      return;
    }
    this.#address.write(this.play.state, this.#beside);
    // Another model has other tokens, so none can be forced or kept in the table.
    const { prompt, pipeline, seed } = this.play.state;
    const state = { prompt, pipeline, seed, forced: {}, length: 0, src: src ?? DEFAULT_MODEL };
    this.#address.enter(state, { ...this.#beside, selected: 0, pins: [] });
    this.#begin();
  }

  /** Loads the model that a link asks for. */
  agreeToModel() {
    const { asked } = this.shelf;
    if (!asked) return;
    this.#agreed.add(asked);
    this.shelf.asked = null;
    void this.play.start();
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
    const { state } = this.play;
    this.#address?.write(state, this.#beside);
    await this.copyText(this.#address?.link(state, this.#beside) ?? location.href);
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

  async saveTrace() {
    try {
      const file = new Blob([await this.exportTrace()], { type: "application/json" });
      const link = document.createElement("a");
      link.href = URL.createObjectURL(file);
      link.download = "logitscope-trace.json";
      link.click();
      URL.revokeObjectURL(link.href);
    } catch (error) {
      this.refuse("engine", error);
    }
  }

  render() {
    return pageView(this);
  }
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
