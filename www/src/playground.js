// One playground: its state, what the engine said about it, and what a reader may do to it.
//
// It draws nothing. The element (logit-scope.js) renders it after every `change`, and the
// engine (client.js) does all the decoding. State changes go through `#go`, which remembers
// the old state for Undo and asks the engine for the new one.

import { errorData, isAbort, LogitscopeError } from "./errors.js";
import { brokenLock, lockedError } from "./locks.js";

/**
 * @import { Engine } from "./client.js"
 * @import { Written } from "./locks.js"
 * @import { Choice, Part, Places, Wanted } from "./protocol.js"
 * @import { ErrorData, Finish, ModelInfo, Note, ParsedPipeline, Progress, Ranks, StageArgs, StageSpec, Step, StepTrace } from "./types.js"
 */

/**
 * @typedef {object} Fault a refusal, and the control it belongs to
 * @property {"engine" | "prompt" | "pipeline" | "seed" | "param" | "link"} where
 * @property {number} [index] the stage, for `param`
 * @property {string} [name] the parameter, for `param`
 * @property {unknown} [draft] what the reader wrote there, so that it is not lost
 * @property {ErrorData} error
 *
 * @typedef {Omit<Fault, "error">} Edit what a reader wrote, and where
 * @typedef {{ state: Wanted, steps: Step[], basis: Wanted | null }} Kept
 */

/** How many states Undo remembers. */
const UNDO_DEPTH = 200;
/** How many tokens one press of Run takes at most. */
export const RUN_LENGTH = 64;

let sessions = 0;

/**
 * The tokens that are forced before a position.
 * @param {Record<number, number>} forced
 * @param {number} position
 * @returns {Record<number, number>}
 */
function before(forced, position) {
  return Object.fromEntries(Object.entries(forced).filter(([at]) => Number(at) < position));
}

/** See the module. Fires `change`, and `step`, `finish` and `error` with typed details. */
export class Playground extends EventTarget {
  #engine;
  #session = `session-${++sessions}`;
  #run = new AbortController();
  /** @type {{ state: Wanted, selected: number, key: string }[]} */
  #past = [];
  #edits = 0;
  /** What `steps` were decoded from. @type {Wanted | null} */
  #basis = null;
  /** The pipeline text that was read last, and its stages. */
  #read = "";
  /** @type {StageArgs[]} */
  #accepted = [];
  /**
   * The last state that the engine took, with what it said: what an edit that it refuses falls
   * back to.
   * @type {Kept | null}
   */
  #kept = null;
  /** The edit that the engine has not answered yet, whatever was asked since. @type {Edit | null} */
  #unanswered = null;

  /** @type {StageSpec[]} */
  catalogue = [];
  /** @type {ModelInfo | null} */
  model = null;
  /** What the controls show. @type {StageArgs[]} */
  stages = [];
  /** @type {Note[]} */
  notes = [];
  /** @type {Fault | null} */
  fault = null;
  /** The tokens of the prompt. @type {{ ids: number[], pieces: string[] }} */
  promptTokens = { ids: [], pieces: [] };
  /** Tokens of the present state. @type {Step[]} */
  steps = [];
  /** Tokens of the state before, shown until the present ones arrive. @type {Step[]} */
  stale = [];
  /** The next step, decoded but not taken. @type {StepTrace | null} */
  preview = null;
  /** @type {Finish | null} */
  finish = null;
  /** The step in view; as many as there are steps: the next one. */
  selected = 0;
  /** Whether the tokens stay when the pipeline or the seed changes. */
  holding = false;
  /** Tokens that the reader chose, before others were held. @type {Record<number, number>} */
  #chosen = {};
  /** @type {"loading" | "running" | "settling" | null} */
  busy = null;
  /** Of the model's file. @type {Progress | null} */
  progress = null;
  /** Which stage runs where. @type {Places | null} */
  places = null;
  /** Something to tell, such as that the engine was restarted. */
  notice = "";

  /**
   * @param {Engine} engine
   * @param {Wanted} initial
   */
  constructor(engine, initial) {
    super();
    this.#engine = engine;
    /** @type {Wanted} */
    this.state = initial;
  }

  /** The text of a token; a number until it is known. @param {number} token */
  piece(token) {
    return this.#engine.pieces(this.state.src).get(token) ?? `#${token}`;
  }

  /** Learns the text of a token. @param {number} token @param {string} piece */
  name(token, piece) {
    this.#engine.pieces(this.state.src).set(token, piece);
  }

  /** The trace of the step in view, an old one until the new one is there. */
  get trace() {
    const step = this.steps[this.selected] ?? this.stale[this.selected];
    if (step) return step.trace;
    return this.preview ?? this.steps.at(-1)?.trace ?? null;
  }

  /** Whether the step in view has been taken. */
  get taken() {
    return this.selected < Math.max(this.steps.length, this.stale.length);
  }

  /** All text generated so far. */
  get text() {
    return this.steps.at(-1)?.text ?? "";
  }

  get canReset() {
    return this.state.length > 0 || Object.keys(this.state.forced).length > 0;
  }

  get canUndo() {
    return this.#past.length > 0;
  }

  /** Loads the model and brings the engine to the state. */
  async start() {
    this.busy = "loading";
    this.#changed();
    try {
      const loading = this.#engine.ask(
        "load",
        { src: this.state.src },
        { signal: this.#run.signal, onPart: (part) => this.#hear(part) },
      );
      // A fault in the pipeline is told when the model is there.
      const reading = this.#readStages().catch(() => {});
      const [{ catalogue, info }] = await Promise.all([loading, reading]);
      this.catalogue = catalogue;
      this.model = info;
      this.progress = null;
      this.#endBeforeMissing(info.vocabulary_size);
      await this.#settle();
    } catch (error) {
      this.busy = null;
      this.#fail("engine", isAbort(error) ? cancelledLoading() : error);
    }
  }

  /**
   * A link may name a token that the model does not have: its text ends before that.
   * @param {number} tokens that the model has
   */
  #endBeforeMissing(tokens) {
    const missing = Object.entries(this.state.forced).find(([, token]) => token >= tokens);
    if (!missing) return;
    const at = Number(missing[0]);
    const message = `The link takes token ${missing[1]} in step ${at + 1}, but the model has only ${tokens} tokens. The text ends before it.`;
    this.fault = { where: "link", error: { code: "token_out_of_vocabulary", message } };
    const length = Math.min(this.state.length, at);
    this.state = { ...this.state, forced: before(this.state.forced, at), length };
  }

  /** Ends the loading of the model; what has arrived is kept. */
  cancelLoading() {
    if (this.busy !== "loading") return;
    this.#run.abort();
    this.#run = new AbortController();
  }

  /** Ends everything that runs, and lets the engine forget the session. */
  close() {
    this.#run.abort();
    if (this.model) void this.#engine.ask("release", { session: this.#session }).catch(() => {});
  }

  // --- What a reader may do ---------------------------------------------------------------

  /** Takes one token. @returns {Promise<Step | null>} the token, or null when finished */
  async step() {
    if (this.finish) return null;
    const length = this.steps.length + 1;
    await this.#go({ length }, { select: length - 1 });
    return this.steps[length - 1] ?? null;
  }

  /** Takes tokens until it is finished, stopped, or there are `count` more. */
  async run(count = RUN_LENGTH) {
    if (this.finish) return;
    await this.#go({ length: this.steps.length + count }, { follow: true });
  }

  /** Ends a run; what was generated stays. */
  stop() {
    if (this.busy !== "running") return;
    this.#run.abort();
  }

  /** Takes the last change back. */
  async undo() {
    const past = this.#past.pop();
    this.#unanswered = null;
    if (past) await this.#enter(past.state, past.selected);
  }

  /** Where it is computed, if the reader has a say. */
  get choice() {
    return this.#engine.choice;
  }

  /** Has it computed elsewhere: the same tokens. @param {Choice} choice */
  choose(choice) {
    this.#engine.choose(choice);
  }

  /** Asks again for what failed. */
  retry() {
    this.fault = null;
    return this.model ? this.#settle() : this.start();
  }

  /** Forgets every generated token. */
  reset() {
    this.#chosen = {};
    return this.#go({ length: 0, forced: {} }, { select: 0 });
  }

  /**
   * Takes this token at a position, drawn or not, and forgets what followed.
   * @param {number} position
   * @param {number} token
   */
  force(position, token) {
    const upTo = (/** @type {Record<number, number>} */ forced) => ({
      ...before(forced, position),
      [position]: token,
    });
    const forced = upTo(this.state.forced);
    this.#chosen = upTo(this.#chosen);
    return this.#go({ forced, length: position + 1 }, { select: position });
  }

  /**
   * Holds the text: whatever changes, its tokens stay, so that a step can be watched while
   * its context is still. It is nothing but forcing every token. Let go, they are drawn again.
   * @param {boolean} on
   */
  async hold(on) {
    this.holding = on;
    if (on) this.#chosen = this.state.forced;
    this.#changed();
    const same = JSON.stringify(this.state.forced) === JSON.stringify(this.#chosen);
    if (!on && !same) await this.#go({ forced: this.#chosen }, {});
  }

  /** What must be forced so that the text stays. */
  #held() {
    const own = Object.fromEntries(this.steps.map(({ token }, position) => [position, token]));
    return this.holding ? { forced: { ...this.state.forced, ...own } } : {};
  }

  /** @param {string} prompt */
  setPrompt(prompt) {
    // A refused prompt taken back is no new one.
    if (prompt === this.state.prompt && this.fault?.where === "prompt") return this.#forgive();
    this.#chosen = {};
    const edit = { where: /** @type {const} */ ("prompt"), draft: prompt };
    return this.#go({ prompt, forced: {}, length: 0 }, { key: "prompt", select: 0, edit });
  }

  /** Puts the prompt to the model as a user's message, by the model's own template. */
  async wrapPrompt() {
    const { src, prompt } = this.state;
    try {
      // A template may tell the date, which the reader then sees in the prompt.
      await this.setPrompt(await this.#engine.ask("chat", { src, text: prompt, now: Date.now() }));
    } catch (error) {
      this.#fail("prompt", error);
    }
  }

  /** Goes on although the context is full: its oldest half is forgotten each time. */
  slide() {
    return this.#go({ slide: true, length: this.steps.length + 1 }, { follow: true });
  }

  /** Draws another seed. */
  async redraw() {
    try {
      await this.#setSeed(await this.#engine.ask("freshSeed", {}));
    } catch (error) {
      this.#fail("seed", error);
    }
  }

  /** @param {string} seed decimal */
  setSeed(seed) {
    return this.#setSeed(seed);
  }

  /** @param {string} seed */
  #setSeed(seed) {
    return this.#go({ seed, ...this.#held() }, { edit: { where: "seed", draft: seed } });
  }

  /** @param {number} index */
  select(index) {
    this.selected = Math.max(0, Math.min(index, this.steps.length));
    this.#changed();
  }

  /**
   * Replaces the pipeline by a text, which may be refused.
   * @param {string} text
   * @param {string[]} [locks] what the text may not change
   */
  async setPipeline(text, locks = []) {
    const refused = this.fault?.where === "pipeline" ? this.fault.draft : null;
    // Leaving the field applies it again.
    if (text === refused || (text === this.state.pipeline && refused === null)) return;
    const edit = ++this.#edits;
    const written = { where: /** @type {const} */ ("pipeline"), draft: text };
    try {
      const parsed = await this.#engine.ask("parse", { text });
      if (edit !== this.#edits) return;
      const seed = parsed.seed ?? this.state.seed;
      const lock = brokenLock(locks, this.#written(), { stages: parsed.stages, seed });
      if (lock !== null) throw lockedError(lock);
      this.#accept(parsed, parsed.text);
      await this.#go({ pipeline: parsed.text, seed, ...this.#held() }, { edit: written });
      if (this.fault) return;
      this.notes = parsed.notes;
      this.#changed();
    } catch (error) {
      if (edit === this.#edits) this.#fail("pipeline", error, written);
    }
  }

  /** @returns {Written} the pipeline as it is */
  #written() {
    return { stages: this.#accepted, seed: this.state.seed };
  }

  /**
   * Sets one parameter of one stage, which may be refused.
   * @param {number} index
   * @param {string} name
   * @param {unknown} value
   * @param {unknown} [draft] what the reader wrote for it
   */
  setParam(index, name, value, draft = value) {
    const stages = this.stages.map((stage, at) =>
      at === index ? { ...stage, [name]: value } : stage,
    );
    const edit = { where: /** @type {const} */ ("param"), index, name, draft };
    return this.#setStages(stages, `param ${index} ${name}`, edit);
  }

  /**
   * Says that what stands in a control cannot be read as a value.
   * @param {number} index
   * @param {string} name
   * @param {unknown} draft
   * @param {string} message
   */
  refuse(index, name, draft, message) {
    const stage = this.stages[index]?.stage;
    const error = new LogitscopeError({ code: "syntax", stage, param: name, message });
    this.#fail("param", error, { where: "param", index, name, draft });
  }

  /** Adds a stage, with its defaults, before the sampler. @param {string} id */
  addStage(id) {
    const end = Math.max(0, this.stages.length - 1);
    return this.#setStages(this.stages.toSpliced(end, 0, { stage: id }), "");
  }

  /** @param {number} index */
  removeStage(index) {
    return this.#setStages(this.stages.toSpliced(index, 1), "");
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  moveStage(from, to) {
    const stage = this.stages[from];
    if (!stage || from === to) return;
    return this.#setStages(this.stages.toSpliced(from, 1).toSpliced(to, 0, stage), "");
  }

  /** Replaces the sampler. @param {string} id */
  setSampler(id) {
    return this.#setStages(this.stages.toSpliced(-1, 1, { stage: id }), "");
  }

  /** The trace file of the present state, from which the run can be replayed. */
  exportTrace() {
    return this.#engine.ask("traceFile", { session: this.#session, wanted: this.#present() });
  }

  /**
   * The whole vocabulary at a step, after a stage.
   * @param {number} step
   * @param {number} stage 0 is the raw row
   * @param {AbortSignal} signal
   * @returns {Promise<Ranks>}
   */
  ranks(step, stage, signal) {
    const wanted = this.#present();
    return this.#engine.ask("ranks", { session: this.#session, wanted, step, stage }, { signal });
  }

  /**
   * The way of single tokens through the step in view.
   * @param {number[]} tokens
   * @param {AbortSignal} signal
   */
  ledger(tokens, signal) {
    const args = { session: this.#session, wanted: this.#present(), step: this.selected, tokens };
    return this.#engine.ask("ledger", args, { signal });
  }

  /**
   * The tokens of the same word at the step in view.
   * @param {number} token
   * @param {AbortSignal} signal
   */
  family(token, signal) {
    const args = { session: this.#session, wanted: this.#present(), step: this.selected, token };
    return this.#engine.ask("family", args, { signal });
  }

  /** What the penalties do at the step in view. @param {AbortSignal} signal */
  penalties(signal) {
    const args = { session: this.#session, wanted: this.#present(), step: this.selected };
    return this.#engine.ask("penalties", args, { signal });
  }

  /**
   * Several pipelines on the row of the step in view.
   * @param {string[]} pipelines
   * @param {AbortSignal} signal
   */
  compare(pipelines, signal) {
    const args = {
      session: this.#session,
      wanted: this.#present(),
      step: this.selected,
      pipelines,
    };
    return this.#engine.ask("compare", args, { signal });
  }

  /**
   * Tokens whose text contains this, or whose id it is.
   * @param {string} text
   */
  search(text) {
    return this.#engine.ask("search", { src: this.state.src, text, limit: 24 });
  }

  // --- How it comes about -----------------------------------------------------------------

  /** The state with the tokens that there really are. */
  #present() {
    return { ...this.state, length: this.steps.length };
  }

  /**
   * @param {StageArgs[]} stages
   * @param {string} key
   * @param {Edit} [written]
   */
  async #setStages(stages, key, written) {
    const edit = ++this.#edits;
    // Controls show at once what the reader did; the engine's answer follows.
    this.stages = stages;
    this.#changed();
    try {
      const text = await this.#engine.ask("print", { stages });
      if (edit !== this.#edits) return;
      const whole = { where: /** @type {const} */ ("pipeline"), draft: text };
      await this.#go({ pipeline: text, ...this.#held() }, { key, edit: written ?? whole });
    } catch (error) {
      if (edit !== this.#edits) return;
      this.stages = this.#accepted;
      this.#fail(written?.where ?? "pipeline", error, written);
    }
  }

  /**
   * Changes the state so that Undo can take it back.
   * @param {Partial<Wanted>} change
   * @param {{ key?: string, select?: number, follow?: boolean, edit?: Edit }} how changes with
   *   the same key, such as those of one slider, are taken back together
   */
  #go(change, { key = "", select, follow = false, edit }) {
    // A run that is interrupted ends where it is.
    if (this.busy === "running") {
      this.state = this.#present();
      this.#keep();
    }
    if (key === "" || this.#past.at(-1)?.key !== key) {
      this.#past.push({ state: this.state, selected: this.selected, key });
      if (this.#past.length > UNDO_DEPTH) this.#past.shift();
    }
    return this.#enter({ ...this.state, ...change }, select ?? this.selected, follow, edit);
  }

  /**
   * @param {Wanted} state
   * @param {number} selected
   * @param {boolean} [follow] whether the view goes along with the tokens
   * @param {Edit} [edit] what the reader wrote, if that is what leads there
   */
  #enter(state, selected, follow = false, edit) {
    if (state.pipeline !== this.state.pipeline) this.notes = [];
    this.state = state;
    this.selected = selected;
    this.fault = null;
    this.notice = "";
    return this.#settle(follow, edit);
  }

  /** Remembers what an edit that is refused falls back to. */
  #keep() {
    this.#kept = { state: this.state, steps: this.steps, basis: this.#basis };
  }

  /** Takes an error from the page whose cause is gone. */
  #forgive() {
    this.fault = null;
    this.#changed();
  }

  /**
   * An edit that the engine refuses changes nothing: the text is as before, and what the
   * reader wrote stays in its control, beside the error.
   * @param {Kept} kept
   * @param {Edit} edit
   * @param {unknown} error
   */
  #takeBack(kept, edit, error) {
    const since = this.#past.findIndex(({ state }) => state === kept.state);
    if (since >= 0) this.#past.length = since;
    this.state = kept.state;
    this.steps = kept.steps;
    this.#basis = kept.basis;
    this.#unanswered = null;
    this.#fail(edit.where, error, edit);
    return this.#settle();
  }

  /** How many of the steps belong to the state, so that they need not be told again. */
  #known() {
    const basis = this.#basis;
    const state = this.state;
    const same =
      basis !== null &&
      basis.src === state.src &&
      basis.prompt === state.prompt &&
      basis.slide === state.slide &&
      basis.pipeline === state.pipeline &&
      basis.seed === state.seed;
    if (!same) return 0;
    const unlike = this.steps.findIndex((_, at) => basis.forced[at] !== state.forced[at]);
    return Math.min(state.length, unlike < 0 ? this.steps.length : unlike);
  }

  /**
   * Asks the engine for the state, and takes in what it answers.
   * @param {boolean} [follow]
   * @param {Edit} [edit]
   * @returns {Promise<void>}
   */
  async #settle(follow = false, edit) {
    this.#run.abort();
    const run = new AbortController();
    this.#run = run;
    this.busy = follow ? "running" : "settling";
    this.finish = null;
    if (edit) this.#unanswered = edit;
    this.#changed();
    try {
      if (this.state.pipeline !== this.#read) await this.#readStages();
      if (this.#run !== run) return;
      const known = this.#known();
      if (this.steps.length > known) this.stale = this.steps;
      this.steps = this.steps.slice(0, known);
      const settled = await this.#engine.ask(
        "settle",
        { session: this.#session, wanted: this.state, known },
        { signal: run.signal, onPart: (part) => this.#hear(part, follow) },
      );
      this.preview = settled.preview;
      this.finish = settled.finish;
      this.places = settled.places;
      if (settled.places.pending) void this.#lookAgain();
    } catch (error) {
      if (this.#run !== run) return;
      if (!isAbort(error)) {
        const kept = this.#kept;
        const refused = this.#unanswered;
        if (refused && kept && !isBroken(error)) return await this.#takeBack(kept, refused, error);
        this.#fail(place(error), error);
      }
    }
    // Whoever started something else in the meantime owns the state now.
    if (this.#run === run) this.#rest(run.signal.aborted);
  }

  /** Asks where the stages run once the GPU has been measured. */
  async #lookAgain() {
    await this.#engine.ask("measured", {});
    if (this.busy === null) await this.#settle();
  }

  /** The end of a settling. @param {boolean} stopped before it was complete */
  #rest(stopped) {
    this.busy = null;
    this.#unanswered = null;
    this.stale = [];
    // A link that the engine never took is as long as it says, once it is right.
    if (this.#basis) {
      this.state = this.#present();
      this.#keep();
    }
    this.selected = Math.min(this.selected, this.steps.length);
    this.#changed();
    if (this.finish) {
      const detail = { ...this.finish, text: this.text };
      this.dispatchEvent(new CustomEvent("finish", { detail }));
    }
    // A stopped run has not looked at its next step yet.
    if (stopped) void this.#settle();
  }

  /** Learns the stages of the pipeline's text, for the controls. */
  async #readStages() {
    const text = this.state.pipeline;
    const edit = this.#edits;
    const parsed = await this.#engine.ask("parse", { text });
    if (text !== this.state.pipeline) return;
    const shown = this.stages;
    this.#accept(parsed, text);
    // A control that moved on in the meantime must not jump back.
    if (edit !== this.#edits) this.stages = shown;
    if (parsed.notes.length > 0) this.notes = parsed.notes;
  }

  /**
   * Takes the stages of a pipeline text for the controls.
   * @param {ParsedPipeline} parsed
   * @param {string} text
   */
  #accept(parsed, text) {
    this.stages = parsed.stages;
    this.#accepted = parsed.stages;
    this.#read = text;
  }

  /**
   * @param {Part} part
   * @param {boolean} [follow]
   */
  #hear(part, follow = false) {
    if (part.progress) this.progress = part.progress;
    if (part.opened) {
      const { pipeline, seed, notes, prompt } = part.opened;
      if (this.#read === this.state.pipeline) this.#read = pipeline;
      this.state = { ...this.state, pipeline, seed };
      this.#basis = this.state;
      this.promptTokens = prompt;
      if (notes.length > 0) this.notes = notes;
    }
    for (const step of part.steps ?? []) {
      this.steps[step.index] = step;
      if (follow) this.selected = step.index;
      this.dispatchEvent(new CustomEvent("step", { detail: step }));
    }
    this.#changed();
  }

  /**
   * @param {Fault["where"]} where
   * @param {unknown} error
   * @param {Partial<Edit>} [edit]
   */
  #fail(where, error, edit) {
    const data = errorData(error);
    this.fault = { ...edit, where, error: data };
    this.#changed();
    this.dispatchEvent(new CustomEvent("error", { detail: data }));
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

function cancelledLoading() {
  return new LogitscopeError({ code: "cancelled", message: "Loading the model was cancelled." });
}

/** What says that something broke, rather than that the reader asked for the impossible. */
const BROKEN = ["engine_lost", "internal", "io", "out_of_memory"];

/** @param {unknown} error */
function isBroken(error) {
  return BROKEN.includes(errorData(error).code);
}

/** The control that an error of the engine belongs to. @param {unknown} error */
function place(error) {
  const { code, stage, position } = errorData(error);
  if (code === "context_full") return "prompt";
  // Over `postMessage` what is not given is null.
  return stage || (position ?? null) !== null || code === "syntax" ? "pipeline" : "engine";
}
