// Beam search: the tree as it grew, what was pruned, and the texts beside those of sampling.

import { html, nothing, svg } from "lit";
import { guard } from "lit/directives/guard.js";
import { because, nats, plural, probability, spoken, visible } from "../format.js";
import { Form, MOST_TOKENS, real, whole, word } from "./form.js";
import {
  cancelledView,
  computedView,
  field,
  notesView,
  refusal,
  size,
  table,
  token,
} from "./parts.js";

/**
 * @import { LogitSequences } from "./element.js"
 * @import { BeamNode, BeamRecord, BeamResult, BeamStep } from "./protocol.js"
 */

/** What became of a candidate, in words and as a sign. @type {Record<BeamNode["fate"], [string, string]>} */
const FATES = {
  runs: ["→", "runs on"],
  hypothesis: ["★", "a finished sequence"],
  displaced: ["☆", "finished, then displaced by better ones"],
  ended_too_low: ["✕", "ended, but ranked too low"],
  pruned: ["✕", "pruned"],
};

const COLUMN = 124;
const ROW = 22;

/** As many candidates as the picture draws at most; more would keep the page from answering. */
const MOST_DRAWN = 2000;

const EARLY = { false: "false", true: "true", never: "never" };

const COUNTS = { generated: "generated tokens", all: "all tokens, as vLLM" };

/** The widest search that the engine takes. */
const WIDEST = 1024;

/** A text found beside the beams. @typedef {{ how: string, text: string, tokens: number, logprob: number, repetition: number }} Found */

/** The tab. */
export class Beams {
  name = "beams";
  title = "Beams";
  /** @type {BeamResult | null} */
  result = null;
  /** @type {Found[]} */
  found = [];
  /** @type {{ width: number, record: BeamRecord }[]} */
  widths = [];
  /** The tree is shown up to this step. */
  upTo = 0;
  /** Whether the table of the tree is unfolded. */
  #listed = false;
  #host;
  form = new Form(
    {
      width: "4",
      tokens: "12",
      penalty: "1",
      early: "false",
      counts: "generated",
      groups: "1",
      diversity: "1",
      pipeline: "greedy()",
      text: "",
    },
    {
      width: whole(1, WIDEST),
      tokens: whole(0, MOST_TOKENS),
      penalty: real,
      early: word(EARLY),
      counts: word(COUNTS),
      groups: whole(1, WIDEST),
      diversity: real,
    },
    () => {
      this.result = null;
      this.widths = [];
      this.found = [];
    },
  );
  /** What comes of other widths, with the same fields. */
  #others = new Form(this.form.fields, this.form.rules, () => {
    this.widths = [];
  });

  /** @param {LogitSequences} host */
  constructor(host) {
    this.#host = host;
  }

  #changed = () => {
    this.form.error = null;
    this.#others.error = null;
    this.#host.requestUpdate();
  };

  /** Begins with a strategy that the page gives. @param {string} text */
  give(text) {
    this.form.give({ text });
  }

  /** The strategy as text: as written, or put together from the fields. */
  get strategy() {
    const { text, width = "" } = this.form.fields;
    return text || this.#written(width);
  }

  /** @param {string} width */
  #written(width) {
    const { penalty, early, counts, groups, diversity } = this.form.fields;
    const shared = `length_penalty=${penalty}, early_stopping=${early}, length_counts=${counts}`;
    return Number(groups) > 1
      ? `diverse_beam(width=${width}, groups=${groups}, diversity_penalty=${diversity}, ${shared})`
      : `beam(width=${width}, ${shared})`;
  }

  #options() {
    const { pipeline = "", tokens } = this.form.fields;
    return { ...this.#host.options(), pipeline, maxTokens: Number(tokens) };
  }

  #search = () =>
    this.#host.work(this.form, "Searching", async () => {
      const { src } = this.#host;
      const options = this.#options();
      const show = (/** @type {BeamResult} */ result) => {
        // Whoever looks at an earlier step goes on looking at it.
        const last = this.result?.record.steps.length ?? this.upTo;
        if (this.upTo === last) this.upTo = result.record.steps.length;
        this.result = result;
        this.#host.requestUpdate();
      };
      const { strategy } = this;
      const result = await this.#host.ask("beams", { src, options, strategy }, show);
      show(result);
      const [best] = result.record.sequences;
      if (best) {
        // The same tokens forced: what the raw rows say of them.
        const forced = new Map(best.tokens.map((token, at) => [at, token]));
        const plain = { ...options, pipeline: "greedy()", forced, maxTokens: best.tokens.length };
        await this.#beside("the best beam", plain);
      }
      await this.#beside("greedy", { ...options, pipeline: "greedy()" });
      for (const sample of [0, 1, 2]) {
        const pipeline = "top_p(p=0.9) | categorical()";
        await this.#beside(`nucleus, p = 0.9, sample ${sample + 1}`, {
          ...options,
          pipeline,
          sample,
        });
      }
    });

  /**
   * @param {string} how
   * @param {import("./protocol.js").Options} options
   */
  async #beside(how, options) {
    const run = await this.#host.run(`Beams: ${how}`, options);
    const { text, raw_logprob, repetition, steps } = run;
    this.found = [
      ...this.found,
      { how, text, tokens: steps.length, logprob: raw_logprob, repetition },
    ];
    this.#host.requestUpdate();
  }

  #compareWidths = () =>
    this.#host.work(this.#others, "Searching with other widths", async () => {
      const { src } = this.#host;
      const groups = Number(this.form.fields.groups);
      for (const width of [1, 2, 4, 8].filter((width) => width % groups === 0)) {
        const strategy = this.#written(String(width));
        const { record } = await this.#host.ask("beams", {
          src,
          options: this.#options(),
          strategy,
        });
        this.widths = [...this.widths, { width, record }];
        this.#host.requestUpdate();
      }
    });

  render() {
    const changed = this.#changed;
    const f = this.form;
    return html`
      <p class="legend">
        Several sequences grow side by side. At every step all continuations are ranked by the sum of
        their log-probabilities, and only the best run on.
      </p>
      <div class="form">
        ${field(f, "width", "Width", { changed })}
        ${field(f, "tokens", "Tokens at most", { changed })}
        ${field(f, "penalty", "Length penalty", { changed })}
        ${field(f, "early", "Stop early", { changed, options: EARLY })}
        ${field(f, "counts", "Length counts", { changed, options: COUNTS })}
        ${field(f, "groups", "Groups", { changed })}
        ${Number(f.fields.groups) > 1 ? field(f, "diversity", "Diversity penalty", { changed }) : nothing}
        ${field(f, "text", "Strategy as text, in place of these fields", { changed, wide: true, placeholder: this.#written(f.fields.width ?? "") })}
        ${field(f, "pipeline", "Pipeline of the beams; categorical() draws them", { changed, wide: true })}
      </div>
      ${refusal(f.error, "beams-fault")}
      <p class="as-text">As text: <code>${this.strategy}</code></p>
      <button class="primary" aria-disabled=${this.#host.resting ? "false" : "true"} @click=${this.#search}>Search</button>
      ${cancelledView(f)}
      ${this.result ? this.#resultView(this.result) : nothing}
    `;
  }

  /** @param {BeamResult} result */
  #resultView({ record, computed }) {
    return html`
      ${notesView(record.notes)}
      ${computedView(computed)}
      ${record.steps.length > 0 ? this.#grown(record) : html`<p class="collapse">No step was taken.</p>`}
      <h3>What was found</h3>
      ${table(
        "Sequences found, best first",
        ["Text", "Tokens", "Sum of log-probabilities", "Score with length penalty", "Ended by"],
        record.sequences.map(({ text, tokens, sum, score, finish }) => [
          text,
          tokens.length,
          nats(sum),
          score.toFixed(4).replace("-", "−"),
          because(finish),
        ]),
      )}
      <h3>Beside sampling</h3>
      <p class="legend">
        The likeliest text is often not the best one: it tends to be short, dull, or to repeat itself. The
        log-probability is that of the raw rows; repetition is the share of three-token runs that had
        come before.
      </p>
      ${table(
        "The same prompt, found in other ways",
        ["How", "Text", "Tokens", "Log-probability", "Repetition"],
        this.found.map(({ how, text, tokens, logprob, repetition }) => [
          how,
          text,
          tokens,
          nats(logprob),
          probability(repetition),
        ]),
      )}
      <h3>What a width costs</h3>
      <button aria-disabled=${this.#host.resting ? "false" : "true"} @click=${this.#compareWidths}>Compare widths</button>
      ${refusal(this.#others.error, "widths-fault")}
      ${cancelledView(this.#others)}
      ${table(
        "Cost by width",
        [
          "Width",
          "Passes",
          "Rows through the model",
          "Cache, nothing shared",
          "Cache, beginnings shared",
          "Best sum",
        ],
        [...(this.widths.length > 0 ? this.widths : [{ width: record.options.width, record }])].map(
          ({ width, record }) => [
            width,
            record.passes,
            record.rows,
            size(record.peak_cache_bytes),
            size(record.peak_cache_bytes_shared),
            record.sequences[0] ? nats(record.sequences[0].sum) : "none",
          ],
        ),
      )}
    `;
  }

  /** @param {BeamRecord} record */
  #grown(record) {
    return html`
      <h3>The tree as it grew</h3>
      <label class="scrub">
        <span>Shown up to step ${this.upTo} of ${record.steps.length}</span>
        <input
          type="range"
          min="1"
          max=${record.steps.length}
          .value=${String(this.upTo)}
          @input=${(/** @type {Event} */ event) => {
            this.upTo = Number(/** @type {HTMLInputElement} */ (event.target).value);
            this.#host.requestUpdate();
          }}
        />
      </label>
      ${guard([record, this.upTo], () => this.#tree(record))}
      <p class="legend">
        ${Object.values(FATES).map(([sign, words]) => html`<span class="fate">${sign} ${words}</span> `)}
        The number is the sum of the log-probabilities, in nats.
      </p>
      ${this.#collapse(record)}
      ${this.#list(record)}
    `;
  }

  /** @param {BeamRecord} record */
  #collapse({ steps, options }) {
    const last = steps[this.upTo - 1];
    if (!last) return nothing;
    const alone = last.beams.length < 2;
    if (last.beams.length === 0) {
      return html`<p class="collapse">
        With step ${this.upTo} the search has ended.${this.upTo > 1 ? " Move back to see how the beams ran." : ""}
        In this step their contexts took ${size(last.cache_bytes)}, or ${size(last.cache_bytes_shared)} with beginnings held once.
      </p>`;
    }
    return html`<p class="collapse">
      After step ${this.upTo} ${plural(last.beams.length, "beam")} of ${options.width} run${last.beams.length === 1 ? "s" : ""} on,
      continuing ${plural(last.parents, "beam")} of the step before.
      ${
        alone
          ? nothing
          : last.shared_prefix > 0
            ? html`They have collapsed onto one beginning: <b>all share their first ${plural(last.shared_prefix, "token")}</b> of ${this.upTo}.`
            : "They share no beginning."
      }
      Their contexts take ${size(last.cache_bytes)}, or ${size(last.cache_bytes_shared)} when beginnings are held once.
    </p>`;
  }

  /** @param {BeamRecord} record */
  #tree({ nodes: all, steps }) {
    const end = steps[this.upTo - 1]?.nodes.end ?? 0;
    const from = firstDrawn(steps.slice(0, this.upTo));
    const begin = steps[from]?.nodes.start ?? 0;
    const nodes = all.slice(begin, end);
    /** The place of each node: its column is its step, its row its place among the candidates. @type {{ x: number, y: number }[]} */
    const places = [];
    /** @type {number[]} */
    const used = [];
    for (const { length } of nodes) {
      const row = used[length] ?? 0;
      used[length] = row + 1;
      places.push({ x: (length - 1 - from) * COLUMN + 34, y: row * ROW + 14 });
    }
    const height = Math.max(0, ...used.filter((row) => row !== undefined)) * ROW + 10;
    const root = { x: 6, y: 14 };
    const label = `Search tree: ${plural(nodes.length, "candidate")} in ${plural(this.upTo - from, "step")}; the table below lists them.`;
    return html`
      ${
        from > 0
          ? html`<p class="legend">So many candidates are too many for one picture: it begins with step ${from + 1}.</p>`
          : nothing
      }
      <div class="scroller tree" tabindex="0" role="group" aria-label="Search tree">
        <svg width=${(this.upTo - from) * COLUMN + 40} height=${height} role="img" aria-label=${label}>
          <circle cx=${root.x} cy=${root.y} r="4" class="root"></circle>
          ${nodes.map((node, index) => {
            const to = places[index] ?? root;
            const parent = node.parent === null ? undefined : places[node.parent - begin];
            const { x, y } = parent ? { x: parent.x + COLUMN - 36, y: parent.y } : root;
            const middle = (x + to.x) / 2;
            return svg`<path
              class="edge ${node.fate}"
              d="M${x} ${y} C${middle} ${y} ${middle} ${to.y} ${to.x - 2} ${to.y}"
            ></path>`;
          })}
          ${nodes.map((node, index) => {
            const { x, y } = places[index] ?? root;
            const piece = visible(this.#host.piece(node.token));
            const short = piece.length > 7 ? `${piece.slice(0, 6)}…` : piece;
            return svg`<g class="node ${node.fate}">
              <title>${piece}: ${FATES[node.fate][1]}, sum ${nats(node.sum)}, score ${nats(node.score)}</title>
              <text x=${x} y=${y + 4}>${FATES[node.fate][0]} ${short} <tspan class="sum">${nats(node.sum)}</tspan></text>
            </g>`;
          })}
        </svg>
      </div>
    `;
  }

  /** The table of the tree, which is long, so it is made when it is unfolded. @param {BeamRecord} record */
  #list(record) {
    return html`<details
      class="twin"
      ?open=${this.#listed}
      @toggle=${(/** @type {Event} */ event) => {
        this.#listed = /** @type {HTMLDetailsElement} */ (event.target).open;
        this.#host.requestUpdate();
      }}
    ><summary>Table of every candidate</summary>${
      this.#listed ? guard([record, this.upTo], () => this.#nodeTable(record)) : nothing
    }</details>`;
  }

  /** @param {BeamRecord} record */
  #nodeTable({ nodes }) {
    return table(
      "Every candidate, oldest first",
      ["Step", "Group", "Rank", "After", "Token", "Log-probability", "Sum", "Score", "Fate"],
      nodes
        .filter(({ length }) => length <= this.upTo)
        .map((node) => {
          const parent = node.parent === null ? undefined : nodes[node.parent];
          return [
            node.length,
            node.group + 1,
            node.rank + 1,
            parent ? spoken(this.#host.piece(parent.token)) : "the prompt",
            token(this.#host.piece(node.token)),
            nats(node.logprob),
            nats(node.sum),
            nats(node.score),
            FATES[node.fate][1],
          ];
        }),
    );
  }
}

/** The step, from 0, with which a picture must begin so that it is not too large. @param {BeamStep[]} steps */
function firstDrawn(steps) {
  const end = steps.at(-1)?.nodes.end ?? 0;
  const first = steps.findIndex(({ nodes }) => end - nodes.start <= MOST_DRAWN);
  return first < 0 ? steps.length - 1 : first;
}
