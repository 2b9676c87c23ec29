// Constraints: which tokens may follow so that the text keeps to a grammar, step by step.

import { html, nothing } from "lit";
import { count, plural, probability, spoken, visible } from "../format.js";
import { deadEnd } from "./dead-end.js";
import { Form, MOST_TOKENS, whole, word } from "./form.js";
import {
  bar,
  cancelledView,
  field,
  outcome,
  refusal,
  table,
  textField,
  token,
  twin,
} from "./parts.js";

/**
 * @import { LogitSequences } from "./element.js"
 * @import { Options, Run, RunStep } from "./protocol.js"
 */

/**
 * @typedef {object} Kind a way to write a constraint
 * @property {string} label
 * @property {string} name of the text form
 * @property {string} example what stands in the field at first; empty if there is nothing to write
 * @property {(source: string) => unknown} [argument] what of the source stands in the text form
 */

const SCHEMA = `{
  "type": "object",
  "properties": {
    "name": {"type": "string", "maxLength": 12},
    "age": {"type": "integer", "minimum": 0, "maximum": 99}
  },
  "required": ["name", "age"],
  "additionalProperties": false
}`;

const PARAMETERS = `{
      "type": "object",
      "properties": {"city": {"enum": ["Bern", "Lima"]}, "days": {"enum": [1, 2, 3]}},
      "required": ["city", "days"],
      "additionalProperties": false
    }`;

/** @type {Record<string, Kind>} */
const KINDS = {
  regex: {
    label: "Regular expression",
    name: "regex",
    example: "(The|A) [a-z]+ (ran|sat) [a-z ]{3,20}\\.",
  },
  choice: {
    label: "Choice, one a line",
    name: "choice",
    example: "yes\nno\nmaybe",
    argument: (source) => source.split("\n").filter((line) => line !== ""),
  },
  json_schema: { label: "JSON schema", name: "json_schema", example: SCHEMA },
  json: { label: "Any JSON", name: "json", example: "" },
  openai: {
    label: "Function call, as OpenAI writes it",
    name: "tool",
    example: `{
  "type": "function",
  "function": {
    "name": "weather",
    "parameters": ${PARAMETERS}
  }
}`,
  },
  anthropic: {
    label: "Function call, as Anthropic writes it",
    name: "tool",
    example: `{
    "name": "weather",
    "input_schema": ${PARAMETERS}
}`,
  },
  lark: {
    label: "Lark grammar",
    name: "lark",
    example: 'start: sum\nsum: NUMBER (" + " NUMBER)+ " = " NUMBER\nNUMBER: /[0-9]{1,3}/\n',
  },
  gbnf: {
    label: "GBNF grammar, as llama.cpp reads it",
    name: "gbnf",
    example: 'root ::= move (" " move)+\nmove ::= [a-h] [1-8] "-" [a-h] [1-8]\n',
  },
  sql_select: { label: "SQL SELECT, ready made", name: "sql_select", example: "" },
  text: { label: "As text", name: "", example: 'regex("[a-z]+")' },
};

/** The tab. */
export class Constraints {
  name = "constraint";
  title = "Constraint";
  /** @type {{ run: Run, options: Options } | null} */
  last = null;
  /** The step in view. */
  selected = 0;
  #host;
  form = new Form(
    { kind: "regex", source: KINDS.regex?.example ?? "", tokens: "48", check: "" },
    { tokens: whole(0, MOST_TOKENS), kind: word(KINDS) },
    () => {
      this.last = null;
      this.selected = 0;
    },
  );

  /** @param {LogitSequences} host */
  constructor(host) {
    this.#host = host;
  }

  get #kind() {
    return /** @type {Kind} */ (KINDS[this.form.fields.kind ?? ""]);
  }

  /** The constraint as text, in the notation of links and of the command line. */
  get text() {
    const { name, example, argument } = this.#kind;
    if (!example) return `${name}()`;
    const { source = "" } = this.form.fields;
    if (!name) return source;
    return `${name}(${JSON.stringify(argument ? argument(source) : source)})`;
  }

  /** Whether a position in a refusal is one of the source: it is written into the text whole. */
  get #placed() {
    const { name, example, argument } = this.#kind;
    return name !== "" && example !== "" && !argument;
  }

  /** Begins with a constraint that the page gives. @param {string} text */
  give(text) {
    this.form.give({ kind: "text", source: text });
  }

  #changed = () => {
    this.form.error = null;
    this.#host.requestUpdate();
  };

  #choose = () => {
    this.form.fields.source = this.#kind.example;
    this.form.begin();
    this.#changed();
  };

  /** @returns {Options} */
  #options() {
    const maxTokens = Number(this.form.fields.tokens);
    return { ...this.#host.options(), constraint: this.text, maxTokens };
  }

  /** @param {Options} options */
  #start(options) {
    return this.#host.work(this.form, "Writing under the constraint", async () => {
      const check = this.form.fields.check || undefined;
      const show = (/** @type {Run} */ run) => {
        this.last = { run, options };
      };
      await this.#host.run("Constraint", options, { check, show });
    });
  }

  render() {
    const changed = this.#changed;
    const { example } = this.#kind;
    const f = this.form;
    const options = Object.fromEntries(
      Object.entries(KINDS).map(([name, { label }]) => [name, label]),
    );
    return html`
      <p class="legend">
        A parser says before each step which tokens may follow. The others are removed from the raw
        row first; then the pipeline of the page does its work.
      </p>
      <div class="form">
        ${field(f, "kind", "Kind", { changed: this.#choose, options })}
        ${field(f, "tokens", "Tokens at most", { changed })}
        ${field(f, "check", "Check of the finished text, a constraint", {
          changed,
          wide: true,
          placeholder: 'regex(".*cat.*"), or nothing',
        })}
        ${
          example
            ? textField(f, "source", "Source", {
                changed,
                invalid: f.error !== null,
                describedBy: f.error ? "constraint-fault" : undefined,
                rows: 4,
              })
            : nothing
        }
      </div>
      ${refusal(f.error, "constraint-fault", this.#placed ? f.fields.source : undefined)}
      <p class="as-text">As text: <code>${this.text}</code></p>
      <button class="primary" aria-disabled=${this.#host.resting ? "false" : "true"} @click=${() => this.#start(this.#options())}>Write</button>
      ${cancelledView(f)}
      ${this.last ? this.#runView(this.last) : nothing}
    `;
  }

  /** @param {{ run: Run, options: Options }} last */
  #runView(last) {
    const { run } = last;
    const steps = run.steps.filter((step) => step.constraint);
    const lost = steps.filter((step) => step.constraint?.off_manifold).length;
    return html`
      <p class="written" aria-label="The text written">${run.text || "∅"}</p>
      ${outcome(run)}
      ${deadEnd(this.#host, last, (options) => this.#start(options))}
      ${
        lost > 0
          ? html`<p class="warning">
              Off the model's ground: at ${plural(lost, "step")} of ${steps.length} the constraint left less than
              0.01 of the probability. What is written there may make no sense.
            </p>`
          : nothing
      }
      <figure>
        <figcaption class="legend">
          How much probability the mask left at each step. Press one to see the step.
        </figcaption>
        <div class="columns" role="group" aria-label="Feasible mass by step">
          ${steps.map((step, index) => this.#column(step, index))}
        </div>
      </figure>
      ${this.#stepView(steps)}
      ${twin(
        table(
          "What the constraint did at each step",
          [
            "Step",
            "Token",
            "Allowed",
            "Mass left",
            "Likeliest forbidden",
            "Its probability",
            "May end",
            "The parser is inside of",
          ],
          steps.map((step, index) => this.#row(step, index)),
          { marked: this.selected },
        ),
        "Table of all steps",
      )}
    `;
  }

  /**
   * @param {RunStep} step
   * @param {number} index
   */
  #column({ token, constraint }, index) {
    const mass = constraint?.feasible_mass ?? 0;
    const piece = this.#host.piece(token);
    return html`<button
      class="column ${constraint?.off_manifold ? "off" : ""}"
      aria-pressed=${index === this.selected ? "true" : "false"}
      aria-label="Step ${index + 1}, ${spoken(piece)}: mass left ${probability(mass)}"
      title="${probability(mass)} left"
      @click=${() => {
        this.selected = index;
        this.#host.requestUpdate();
      }}
    ><span class="stick"><span style="height:${mass * 100}%"></span></span><span class="token">${visible(piece)}</span></button>`;
  }

  /** @param {RunStep[]} steps */
  #stepView(steps) {
    const step = steps[this.selected];
    const constraint = step?.constraint;
    if (!step || !constraint) return nothing;
    const { allowed, feasible_mass, top_forbidden, top_forbidden_probability, standing } =
      constraint;
    return html`
      <dl class="outcome">
        <div><dt>Step</dt><dd>${this.selected + 1}, took ${token(this.#host.piece(step.token))}</dd></div>
        <div><dt>Tokens allowed</dt><dd>${count(allowed)}</dd></div>
        <div><dt>Mass left (feasible mass)</dt><dd>${bar(feasible_mass)}${constraint.off_manifold ? " ⚠ hardly any" : ""}</dd></div>
        <div>
          <dt>Likeliest forbidden</dt>
          <dd>${top_forbidden == null ? "none" : html`${token(this.#host.piece(top_forbidden))} ${probability(top_forbidden_probability)}`}</dd>
        </div>
        <div><dt>May end here</dt><dd>${standing.accepting ? "✓ yes" : "not yet"}</dd></div>
        <div><dt>The parser is inside of</dt><dd>${standing.inside}</dd></div>
      </dl>
    `;
  }

  /**
   * @param {RunStep} step
   * @param {number} index
   */
  #row(step, index) {
    const c = step.constraint;
    if (!c) return [];
    return [
      index + 1,
      token(this.#host.piece(step.token)),
      count(c.allowed),
      html`${probability(c.feasible_mass)}${c.off_manifold ? " ⚠" : ""}`,
      c.top_forbidden == null ? "none" : token(this.#host.piece(c.top_forbidden)),
      probability(c.top_forbidden_probability),
      c.standing.accepting ? "yes" : "no",
      c.standing.inside,
    ];
  }
}
