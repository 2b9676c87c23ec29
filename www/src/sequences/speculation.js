// Speculation: what was drafted, how it was judged, what it saved; and the laboratory that
// holds its texts to the target's own distribution.

import { html, nothing } from "lit";
import { nats, place, probability, visible } from "../format.js";
import { Form, MOST_TOKENS, whole, word } from "./form.js";
import { bar, cancelledView, computedView, field, refusal, table, token, twin } from "./parts.js";

/**
 * @import { LogitSequences } from "./element.js"
 * @import { Block, Findings, Mistake, Speculated, Summary } from "./protocol.js"
 */

/** Rules of judgement, right and wrong. @type {Record<Mistake, string>} */
const MISTAKES = {
  none: "none: the right rule",
  likeliest_draft: "the draft takes its likeliest token, though q says it draws",
  mismatched_temperature: "q is read at twice the temperature it is drawn at",
  no_residual: "after a rejection p is drawn from, not what p has beyond q",
};

const DRAFTERS = { model: "the small model", lookup: "the text so far (prompt lookup)" };

const RULES = {
  rejection: "rejection: accept if u ≤ p/q",
  match: "match: accept if the target draws the same",
};

/** Where the token after a block came from. @type {Record<string, string>} */
const SOURCES = {
  residual: "residual: what p has beyond q",
  bonus: "bonus: all were accepted, and p gives one more",
  target: "the target's own draw",
};

/** The longest block that the forms take. */
const BLOCK = 64;

/** Below this the counts do not follow the target. */
const SUSPICIOUS = 0.001;

/**
 * What two numbers as printed say together, of which the first is the larger one if it saves.
 * @param {string} without
 * @param {string} within
 */
function gain(without, within) {
  if (without === within) return "it neither saves nor costs";
  return Number(without) > Number(within) ? "it saves" : "it costs";
}

/** Fewer sequences than this have nothing to be compared with. */
const FEWEST_RUNS = 2;

/** The tab. */
export class Speculations {
  name = "speculation";
  title = "Speculation";
  /** @type {Speculated | null} */
  result = null;
  /** @type {{ mistake: Mistake, findings: Findings, tables: boolean, empty: boolean, rule: string }[]} */
  findings = [];
  /** The block in view. */
  selected = 0;
  #host;
  form = new Form(
    { drafter: "model", tokens: "4", ngram: "2", rule: "rejection", length: "48", text: "" },
    {
      drafter: word(DRAFTERS),
      ngram: whole(1, BLOCK),
      tokens: whole(1, BLOCK),
      rule: word(RULES),
      length: whole(0, MOST_TOKENS),
    },
    () => {
      this.result = null;
    },
  );
  #laboratory = new Form(
    {
      models: "tables",
      pipeline: "temperature(t=0.8) | top_p(p=0.95) | categorical()",
      length: "4",
      drafted: "3",
      runs: "4000",
      rule: "rejection",
      mistake: "none",
    },
    { length: whole(0, 64), drafted: whole(1, BLOCK), runs: whole(0, 1_000_000) },
    () => {
      this.findings = [];
    },
  );

  /** @param {LogitSequences} host */
  constructor(host) {
    this.#host = host;
  }

  #changed = () => {
    this.form.error = null;
    this.#laboratory.error = null;
    this.#host.requestUpdate();
  };

  /** Begins with a strategy that the page gives. @param {string} text */
  give(text) {
    this.form.give({ text, drafter: text.startsWith("prompt") ? "lookup" : "model" });
  }

  /** The strategy as text: as written, or put together from the fields. */
  get strategy() {
    return this.form.fields.text || this.#written;
  }

  get #written() {
    const { drafter, tokens, ngram, rule } = this.form.fields;
    return drafter === "model"
      ? `speculative(draft="draft", tokens=${tokens}, rule=${rule})`
      : `prompt_lookup(ngram=${ngram}, tokens=${tokens}, rule=${rule})`;
  }

  #run = () =>
    this.#host.work(this.form, "Drafting and judging", async () => {
      const { src, draft } = this.#host;
      const { drafter, length } = this.form.fields;
      const args = {
        src,
        draft: drafter === "model" ? draft : null,
        options: { ...this.#host.options(), maxTokens: Number(length) },
        strategy: this.strategy,
      };
      this.selected = 0;
      this.result = await this.#host.ask("speculate", args, (part) => {
        this.result = part;
        this.#host.requestUpdate();
      });
    });

  /** Few sequences must be possible, and each costs a pass of the model unless it is a table. */
  #chooseModels = () => {
    const { fields } = this.#laboratory;
    Object.assign(
      fields,
      fields.models === "tables"
        ? {
            pipeline: "temperature(t=0.8) | top_p(p=0.95) | categorical()",
            length: "4",
            drafted: "3",
            runs: "4000",
          }
        : { pipeline: "top_k(k=8) | categorical()", length: "2", drafted: "2", runs: "2000" },
    );
    this.#changed();
  };

  /** @param {Mistake[]} mistakes */
  #try(mistakes) {
    return this.#host.work(this.#laboratory, "Counting", async () => {
      const { src, draft } = this.#host;
      const { models, pipeline = "", length, drafted, runs, rule = "" } = this.#laboratory.fields;
      const tables = models === "tables";
      const { prompt, seed } = this.#host.options();
      const options = {
        ...(tables ? { promptIds: [0, 1, 0] } : { prompt }),
        ...(seed === undefined ? {} : { seed }),
        pipeline,
        maxTokens: Number(length),
      };
      const empty = Number(length) === 0 || Number(runs) < FEWEST_RUNS;
      for (const mistake of mistakes) {
        const findings = await this.#host.ask("laboratory", {
          src,
          draft,
          tables,
          setup: {
            options,
            strategy: `speculative(draft="draft", tokens=${drafted}, rule=${rule})`,
            fault: mistake,
            runs: Number(runs),
          },
        });
        this.findings = [...this.findings, { mistake, findings, tables, empty, rule }];
        this.#host.requestUpdate();
      }
    });
  }

  render() {
    const changed = this.#changed;
    const f = this.form;
    return html`
      <p class="legend">
        A cheap draft proposes several tokens; one pass of the model judges them all. Judged rightly, the
        text has exactly the model's own distribution. p is the model's probability, q the draft's, both
        after the pipeline of the page.
      </p>
      <div class="form">
        ${field(f, "drafter", "Who drafts", { changed, options: DRAFTERS })}
        ${f.fields.drafter === "lookup" ? field(f, "ngram", "n-gram at most", { changed }) : nothing}
        ${field(f, "tokens", "Tokens a block", { changed })}
        ${field(f, "rule", "Rule", { changed, options: RULES })}
        ${field(f, "length", "Tokens in all", { changed })}
        ${field(f, "text", "Strategy as text, in place of these fields", { changed, wide: true, placeholder: this.#written })}
      </div>
      ${refusal(f.error, "speculation-fault")}
      <p class="as-text">As text: <code>${this.strategy}</code></p>
      <button class="primary" aria-disabled=${this.#host.resting ? "false" : "true"} @click=${this.#run}>Speculate</button>
      ${cancelledView(f)}
      ${this.result ? this.#resultView(this.result) : nothing}
      ${this.#laboratoryView()}
    `;
  }

  /** @param {Speculated} result */
  #resultView({ blocks, summary, milliseconds, plain, computed }) {
    if (blocks.length === 0) return html`<p>Nothing was drafted.</p>`;
    return html`
      <div class="blocks" role="group" aria-label="Blocks">
        ${blocks.map((block, index) => this.#chip(block, index))}
      </div>
      <p class="legend">
        A block each: <span class="accepted">✓ accepted</span>, <span class="rejected">✕ rejected</span>,
        <span class="unjudged">not judged</span>, <span class="drawn">+ drawn by the model</span>.
      </p>
      ${this.#summary(summary, milliseconds, plain)}
      ${computedView(computed)}
      ${this.#blockView(blocks[this.selected])}
      ${twin(this.#blockTable(blocks), "Table of all blocks")}
    `;
  }

  /**
   * @param {Block} block
   * @param {number} index
   */
  #chip({ drafted, next }, index) {
    const piece = (/** @type {number} */ token) => visible(this.#host.piece(token));
    return html`<button
      class="block"
      aria-pressed=${index === this.selected ? "true" : "false"}
      @click=${() => {
        this.selected = index;
        this.#host.requestUpdate();
      }}
    >${drafted.map(({ token, accepted }) =>
      accepted === null
        ? html`<span class="unjudged">${piece(token)}</span>`
        : accepted
          ? html`<span class="accepted">✓${piece(token)}</span>`
          : html`<s class="rejected">✕${piece(token)}</s>`,
    )}${next ? html`<span class="drawn">+${piece(next.token)}</span>` : nothing}</button>`;
  }

  /**
   * @param {Summary} summary
   * @param {number | null} milliseconds null where the run did not come to its end
   * @param {number | null} plain
   */
  #summary(summary, milliseconds, plain) {
    return html`<dl class="outcome">
      <div><dt>Tokens a pass of the model</dt><dd>${summary.tokens_per_pass.toFixed(2)} (${summary.tokens} in ${summary.target_passes})</dd></div>
      <div><dt>Accepted of those judged</dt><dd>${bar(summary.acceptance_rate)} (${summary.accepted} of ${summary.judged})</dd></div>
      <div><dt>Passes of the draft</dt><dd>${summary.draft_passes}, each ${probability(summary.draft_size)} of the model's size</dd></div>
      <div>
        <dt>By passes</dt>
        <dd>${summary.speedup.toFixed(2)} times as fast as without: ${gain(summary.speedup.toFixed(2), "1.00")}</dd>
      </div>
      ${
        milliseconds === null || plain === null
          ? nothing
          : html`<div>
              <dt>On this device</dt>
              <dd>${milliseconds.toFixed(0)} ms, and ${plain.toFixed(0)} ms without: ${gain(plain.toFixed(0), milliseconds.toFixed(0))}</dd>
            </div>`
      }
    </dl>`;
  }

  /** @param {Block | undefined} block */
  #blockView(block) {
    if (!block) return nothing;
    const { next, copied_from } = block;
    return html`
      <h3>Block ${this.selected + 1}</h3>
      ${copied_from === null ? nothing : html`<p class="legend">Copied from position ${copied_from} of the text.</p>`}
      ${table(
        `Block ${this.selected + 1}`,
        ["Drafted", "p", "q", "p / q", "u", "Verdict"],
        block.drafted.map((drafted) => this.#drafted(drafted)),
      )}
      ${
        next
          ? html`<p>
                Then ${token(this.#host.piece(next.token))}, drawn with ${probability(next.probability)} at
                u = ${place(next.uniform)} from the ${SOURCES[next.source]}.
              </p>
              ${table(
                next.source === "residual"
                  ? "Residual distribution"
                  : "Distribution it was drawn from",
                ["Token", "Probability"],
                next.distribution.map((share) => [
                  token(this.#host.piece(share.token)),
                  bar(share.probability),
                ]),
              )}`
          : html`<p>The sequence ended with an accepted token.</p>`
      }
    `;
  }

  /** @param {Block["drafted"][number]} drafted */
  #drafted({ token: id, p, q, ratio, uniform, accepted }) {
    const head = token(this.#host.piece(id));
    // The model need not say anything about what comes after a rejected token.
    if (accepted === null) return [head, "", probability(q), "", "", "not judged"];
    const verdict = accepted ? "✓ accepted" : "✕ rejected";
    return [head, probability(p), probability(q), ratio.toPrecision(3), place(uniform), verdict];
  }

  /** @param {Block[]} blocks */
  #blockTable(blocks) {
    return table(
      "Every block",
      ["Block", "Token", "p", "q", "p / q", "u", "Verdict"],
      blocks.flatMap((block, index) => [
        ...block.drafted.map((drafted) => [index + 1, ...this.#drafted(drafted)]),
        ...(block.next
          ? [
              [
                index + 1,
                token(this.#host.piece(block.next.token)),
                "",
                "",
                "",
                place(block.next.uniform),
                SOURCES[block.next.source],
              ],
            ]
          : []),
      ]),
    );
  }

  #laboratoryView() {
    const t = this.#laboratory;
    const changed = this.#changed;
    const mistake = /** @type {Mistake} */ (t.fields.mistake);
    const off = !this.#host.resting;
    return html`
      <h3>Is it exact? A laboratory</h3>
      <p class="legend">
        Many short sequences are drafted and judged, and counted. The chi-square test holds the counts to the
        probabilities that the model itself gives; a wrong rule gives itself away. All of this is computed on
        the CPU, whatever the page computes on.
      </p>
      <div class="form">
        ${field(t, "models", "Models", { changed: this.#chooseModels, options: { tables: "two tables of five tokens, quick", page: "this page's model and its draft" }, wide: true })}
        ${field(t, "pipeline", "Pipeline; few tokens must survive", { changed, wide: true })}
        ${field(t, "length", "Tokens a sequence", { changed })}
        ${field(t, "drafted", "Tokens a block", { changed })}
        ${field(t, "runs", "Sequences", { changed })}
        ${field(t, "rule", "Rule", { changed, options: { rejection: "rejection", match: "match" } })}
        ${field(t, "mistake", "Mistake", { changed, options: MISTAKES, wide: true })}
      </div>
      ${refusal(t.error, "laboratory-fault")}
      <div class="out">
        <button aria-disabled=${off ? "true" : "false"} @click=${() => this.#try([mistake])}>Count</button>
        <button aria-disabled=${off ? "true" : "false"} @click=${() => this.#try(/** @type {Mistake[]} */ (Object.keys(MISTAKES)))}>Count with every mistake</button>
      </div>
      ${cancelledView(t)}
      ${this.findings.length > 0 ? this.#findingsView() : nothing}
    `;
  }

  #findingsView() {
    const last = this.findings.at(-1);
    const hiding = this.findings.some(
      ({ mistake, empty, findings }) =>
        mistake !== "none" && !empty && findings.chi_square.p_value >= SUSPICIOUS,
    );
    return html`
      ${
        last?.rule === "match"
          ? html`<p class="legend">
              Under the rule “match” every token is the model's own draw and q is not asked, so no mistake
              about q can matter.
            </p>`
          : hiding
            ? html`<p class="legend">
                A mistake that is not found out may hide where few tokens are likely, or the draft is seldom
                accepted. More sequences, or another prompt, may show it.
              </p>`
            : nothing
      }
      ${table(
        "Held to the model's own distribution",
        ["Mistake", "Verdict", "p-value", "χ²", "Degrees", "Total variation", "Accepted"],
        this.findings.map(
          ({ mistake, empty, findings: { chi_square, total_variation, summary } }) => {
            if (empty || chi_square.degrees === 0) {
              return [MISTAKES[mistake], "nothing to test", "", "", "", "", ""];
            }
            return [
              MISTAKES[mistake],
              verdict(mistake, chi_square.p_value),
              chi_square.p_value < 1e-12 ? "<10⁻¹²" : probability(chi_square.p_value),
              chi_square.statistic > 1e6 ? "∞" : nats(chi_square.statistic),
              chi_square.degrees,
              probability(total_variation),
              probability(summary.acceptance_rate),
            ];
          },
        ),
      )}
      ${
        last
          ? twin(
              table(
                `Sequences: ${MISTAKES[last.mistake]}`,
                ["Sequence", "Expected", "Counted"],
                last.findings.cells
                  .slice(0, 24)
                  .map(({ tokens, expected, observed }) => [
                    last.tables
                      ? tokens.join(" ")
                      : token(tokens.map((id) => this.#host.piece(id)).join("")),
                    bar(expected),
                    bar(observed),
                  ]),
              ),
              `Table of sequences, mistake: ${MISTAKES[last.mistake]}`,
            )
          : nothing
      }
    `;
  }
}

/**
 * What a test says of a rule. That a planted mistake left no trace does not make it right.
 * @param {Mistake} mistake
 * @param {number} p
 */
function verdict(mistake, p) {
  if (p < SUSPICIOUS) return html`<b class="rejected">✗ another distribution</b>`;
  return mistake === "none" ? html`<b class="accepted">✓ the model's</b>` : "not found out";
}
