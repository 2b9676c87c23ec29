// Every sequence so far as one tree: where they part, what each cost, and a way to fork.

import { html, nothing } from "lit";
import { because, finished, nats, plural, probability, spoken, visible } from "../format.js";
import { Form, MOST_TOKENS, whole } from "./form.js";
import { bar, cancelledView, field, refusal, table, token, twin } from "./parts.js";

/**
 * @import { Finish } from "../types.js"
 * @import { LogitSequences } from "./element.js"
 * @import { Options, Parting, Run, RunStep, Taken, Tree } from "./protocol.js"
 */

/**
 * @typedef {object} Branch one sequence
 * @property {string} from
 * @property {Taken[]} steps
 * @property {string} text
 * @property {Finish | null} finish
 * @property {Run | null} run what could have been taken instead; null for the run of the page
 * @property {Options | null} options
 */

/** The tab. */
export class Branches {
  name = "branches";
  title = "Branches";
  /** @type {Tree | null} */
  tree = null;
  /** @type {Parting | null} */
  parting = null;
  /** The token in view: a node of the tree. @type {number | null} */
  selected = null;
  /** The samples that were drawn last. @type {Run[]} */
  samples = [];
  #host;
  #drawn = "";
  #compared = ["0", "1"];
  form = new Form(
    { samples: "4", tokens: "16" },
    { samples: whole(1, 100), tokens: whole(1, MOST_TOKENS) },
    () => {
      this.samples = [];
    },
  );
  /** Another way from a token of the tree; it has nothing to write in. */
  #forks = new Form({}, {}, () => {});

  /** @param {LogitSequences} host */
  constructor(host) {
    this.#host = host;
  }

  /** The run of the page, then every run that was made of the same prompt. @type {Branch[]} */
  get branches() {
    const { play, kept } = this.#host;
    /** @type {Branch[]} */
    const branches = [];
    const own = (play?.steps ?? []).flatMap(({ trace: { draw } }) =>
      draw
        ? [
            {
              token: draw.token,
              raw_logprob: draw.raw_logprob,
              final_logprob: draw.final_logprob ?? null,
            },
          ]
        : [],
    );
    if (own.length > 0) {
      const text = play?.text ?? "";
      branches.push({
        from: "the page",
        steps: own,
        text,
        finish: play?.finish ?? null,
        run: null,
        options: null,
      });
    }
    for (const { from, options, run } of kept) {
      if (options.prompt !== play?.state.prompt) continue;
      const { steps, text, finish } = run;
      branches.push({ from, steps, text, finish, run, options });
    }
    return branches;
  }

  #changed = () => {
    this.form.error = null;
    this.#host.requestUpdate();
  };

  #sample = () =>
    this.#host.work(this.form, "Sampling", async () => {
      const { samples, tokens } = this.form.fields;
      for (let sample = 0; sample < Number(samples); sample++) {
        const options = { ...this.#host.options(), sample, maxTokens: Number(tokens) };
        const before = this.samples;
        const show = (/** @type {Run} */ run) => {
          this.samples = [...before, run];
        };
        await this.#host.run(`Sample ${sample + 1}`, options, { show });
        this.#host.requestUpdate();
      }
    });

  /** Asks for the tree again when there are other branches. */
  async #grow() {
    const branches = this.branches.map(({ steps }) =>
      steps.map(({ token, raw_logprob, final_logprob }) => ({ token, raw_logprob, final_logprob })),
    );
    const [a = "0", b = "0"] = this.#compared;
    const drawn = JSON.stringify([branches.map((steps) => steps.map(({ token }) => token)), a, b]);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    try {
      this.tree = await this.#host.ask("tree", { branches });
      this.parting =
        branches.length > 1 && a !== b
          ? await this.#host.ask("parting", { branches, a: Number(a), b: Number(b) })
          : null;
      if (this.selected !== null && this.selected >= this.tree.nodes.length) this.selected = null;
    } catch {
      // The worker was stopped; the tree is asked for with the next change.
      this.#drawn = "";
      return;
    }
    this.#host.requestUpdate();
  }

  /**
   * Takes another token in place of that of a node, and goes on from there.
   * @param {Branch} branch
   * @param {number} at
   * @param {number} token
   */
  #fork({ steps, options }, at, token) {
    return this.#host.work(this.#forks, "Going another way", async () => {
      const forced = new Map(steps.slice(0, at).map((step, index) => [index, step.token]));
      forced.set(at, token);
      const base = options ?? this.#host.options();
      const maxTokens = Math.max(base.maxTokens ?? 0, steps.length, at + 1);
      await this.#host.run(`Fork at token ${at + 1}`, { ...base, forced, maxTokens });
      const made = this.branches.length - 1;
      const origin = this.branches.findIndex((branch) => branch.steps === steps);
      this.#compared = [String(Math.max(0, origin)), String(made)];
    });
  }

  render() {
    const changed = this.#changed;
    const branches = this.branches;
    if (branches.length > 0 && !this.#host.busy) void this.#grow();
    return html`
      <p class="legend">
        Every sequence of this prompt so far, those of the other tabs and of the page included. Branches that begin
        alike share their beginning. A sequence's probability is the product of the probabilities of its tokens, so its
        log-probability is a running sum; here of the raw rows, in nats.
      </p>
      <div class="form">
        ${field(this.form, "samples", "Continuations", { changed })}
        ${field(this.form, "tokens", "Tokens each, at most", { changed })}
      </div>
      ${refusal(this.form.error, "branches-fault")}
      <button class="primary" aria-disabled=${this.#host.resting ? "false" : "true"} @click=${this.#sample}>Sample side by side</button>
      ${cancelledView(this.form)}
      ${this.samples.length > 0 ? this.#samplesView() : nothing}
      ${this.tree && branches.length > 0 ? this.#treeView(this.tree, branches) : nothing}
    `;
  }

  #samplesView() {
    return html`<div class="side-by-side">
      ${this.samples.map(
        ({ text, raw_logprob, repetition, steps, finish }, index) => html`<section>
          <h3>Sample ${index + 1}</h3>
          <p>${text}</p>
          <p class="legend">
            ${plural(steps.length, "token")}, ${nats(raw_logprob)} nats, repetition ${probability(repetition)}.
            ${finish ? finished(finish) : nothing}
          </p>
        </section>`,
      )}
    </div>`;
  }

  /**
   * @param {Tree} tree
   * @param {Branch[]} branches
   */
  #treeView(tree, branches) {
    const roots = tree.nodes.flatMap((node, index) => (node.parent === null ? [index] : []));
    return html`
      <h3>The tree</h3>
      <p class="legend">Press a token to see what else could have been taken there.</p>
      <div class="scroller" tabindex="0" role="group" aria-label="Tree of branches">
        <ul class="branches">${roots.map((root) => this.#chain(tree, branches, root))}</ul>
      </div>
      ${this.#forkView(tree, branches)}
      ${refusal(this.#forks.error, "fork-fault")}
      ${cancelledView(this.#forks)}
      ${this.#partingView(branches)}
      ${twin(
        table(
          "Every branch",
          ["Branch", "From", "Text", "Tokens", "Log-probability", "Ended by"],
          branches.map(({ from, text, steps, finish }, index) => [
            index + 1,
            from,
            text,
            steps.length,
            this.#running(tree, index),
            finish ? because(finish) : "",
          ]),
        ),
        "Table of all branches",
      )}
    `;
  }

  /**
   * @param {Tree} tree
   * @param {number} branch
   */
  #running(tree, branch) {
    const end = tree.ends[branch];
    const node = end == null ? undefined : tree.nodes[end];
    return node ? nats(node.running_logprob) : "0.00";
  }

  /**
   * A stretch without forks, and what follows it.
   * @param {Tree} tree
   * @param {Branch[]} branches
   * @param {number} first
   * @returns {import("lit").TemplateResult}
   */
  #chain(tree, branches, first) {
    const chain = [first];
    for (;;) {
      const node = tree.nodes[chain.at(-1) ?? first];
      const [only, ...more] = node?.children ?? [];
      if (only === undefined || more.length > 0) break;
      // A branch that ends here is a fork too: others go on.
      if (tree.nodes[only]?.branches.length !== node?.branches.length) break;
      chain.push(only);
    }
    const last = tree.nodes[chain.at(-1) ?? first];
    const ends = tree.ends.flatMap((end, branch) => (end === chain.at(-1) ? [branch + 1] : []));
    return html`<li>
      ${chain.map((index) => this.#tokenButton(tree, index))}
      <span class="sum">${nats(last?.running_logprob ?? 0)}${ends.length > 0 ? html` <b>▪ ${ends.join(", ")}</b>` : nothing}</span>
      ${
        last && last.children.length > 0
          ? html`<ul>${last.children.map((child) => this.#chain(tree, branches, child))}</ul>`
          : nothing
      }
    </li>`;
  }

  /**
   * @param {Tree} tree
   * @param {number} index
   */
  #tokenButton(tree, index) {
    const node = tree.nodes[index];
    if (!node) return nothing;
    const piece = this.#host.piece(node.taken.token);
    return html`<button
      class="branch-token"
      aria-pressed=${index === this.selected ? "true" : "false"}
      aria-label="Token ${node.length}: ${spoken(piece)}, running sum ${nats(node.running_logprob)}"
      title="${nats(node.taken.raw_logprob)}, together ${nats(node.running_logprob)}"
      @click=${() => {
        this.selected = index === this.selected ? null : index;
        this.#host.requestUpdate();
      }}
    >${visible(piece)}</button>`;
  }

  /**
   * @param {Tree} tree
   * @param {Branch[]} branches
   */
  #forkView(tree, branches) {
    const node = this.selected === null ? undefined : tree.nodes[this.selected];
    if (!node) return nothing;
    const at = node.length - 1;
    const branch = node.branches.map((index) => branches[index]).find((branch) => branch?.run);
    const step = /** @type {RunStep | undefined} */ (branch?.run?.steps[at]);
    return html`
      <h4>Token ${node.length}: ${token(this.#host.piece(node.taken.token))}</h4>
      <p class="legend">
        Log-probability ${nats(node.taken.raw_logprob)}, running sum ${nats(node.running_logprob)} nats;
        ${node.branches.length === 1 ? "one branch goes" : `${node.branches.length} branches go`} through it.
      </p>
      ${
        branch && step
          ? table(
              `What could be taken as token ${node.length}`,
              ["Token", "Final probability", "Fork"],
              step.others.map((share) => [
                token(this.#host.piece(share.token)),
                bar(share.probability),
                share.token === node.taken.token
                  ? "taken"
                  : html`<button aria-disabled=${this.#host.resting ? "false" : "true"} @click=${() => this.#fork(branch, at, share.token)}>
                      Go on with ${visible(this.#host.piece(share.token))}
                    </button>`,
              ]),
            )
          : html`<p>This is the run of the page: take another token there in the table of stages.</p>`
      }
    `;
  }

  /** @param {Branch[]} branches */
  #partingView(branches) {
    if (branches.length < 2) return nothing;
    const options = Object.fromEntries(
      branches.map(({ from }, index) => [String(index), `${index + 1}, ${from}`]),
    );
    const choose = (/** @type {number} */ side) => (/** @type {Event} */ event) => {
      this.#compared[side] = /** @type {HTMLSelectElement} */ (event.target).value;
      this.#changed();
    };
    return html`
      <h3>Compare two branches</h3>
      <div class="form">
        ${[0, 1].map(
          (side) => html`<label>
            <span>${side === 0 ? "Branch" : "with branch"}</span>
            <select @change=${choose(side)}>
              ${Object.entries(options).map(([value, words]) => html`<option value=${value} ?selected=${value === this.#compared[side]}>${words}</option>`)}
            </select>
          </label>`,
        )}
      </div>
      ${this.parting ? this.#parted(this.parting) : html`<p class="legend">Choose two different branches.</p>`}
    `;
  }

  /** @param {Parting} parting */
  #parted(parting) {
    const names = this.#compared.map((index) => `Branch ${Number(index) + 1}`);
    const shown = (/** @type {number | null | undefined} */ value) =>
      value == null ? "ends there" : nats(value);
    return html`
      <p>
        They share ${plural(parting.shared, "token")}, then part.
        ${parting.same_ending > 0 ? `Their last ${plural(parting.same_ending, "token")} are the same again.` : nothing}
      </p>
      ${table(
        "Where they part",
        ["Branch", "Different token", "What the choice cost", "Whole branch", "For each token"],
        [0, 1].map((side) => {
          const id = parting.tokens[side];
          return [
            names[side],
            id == null ? "ends there" : token(this.#host.piece(id)),
            shown(parting.choice_logprobs[side]),
            shown(parting.logprobs[side]),
            shown(parting.logprobs_per_token[side]),
          ];
        }),
      )}
    `;
  }
}
