import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as page from "../../pkg/logitscope.js";
import * as sequences from "../../pkg-sequences/logitscope_sequences.js";
import { loadEngine } from "./engine.js";

const file = (/** @type {string} */ path) => readFileSync(new URL(path, import.meta.url));

loadEngine();
sequences.initSync({ module: file("../../pkg-sequences/logitscope_sequences_bg.wasm") });
const MODEL = file("../../../models/default.gguf");
const DRAFT = file("../../../models/draft.gguf");
const OPTIONS = { prompt: "Once upon a time", pipeline: "categorical(seed=7)", maxTokens: 24 };

test("the page's engine names what it lacks, and the other has it", () => {
  const constraint = 'regex("[a-z]{4}")';
  const refused = (/** @type {any} */ error) => error.code === "needs_constraints";
  const model = page.Model.open(MODEL);
  assert.throws(() => new page.Session(model, { ...OPTIONS, constraint }), refused);
  const run = sequences.Model.open(MODEL).run({ ...OPTIONS, constraint }, 'regex("[a-m]+")');
  assert.match(run.text, /^[a-z]{4}$/);
  assert.equal(run.finish.reason, "grammar");
  assert.equal(run.standing.accepting, true);
  assert.equal(run.check, /^[a-m]+$/.test(run.text));
  assert.ok(run.steps.length > 0);
  for (const { constraint } of run.steps) {
    assert.ok(constraint.feasible_mass > 0 && constraint.feasible_mass < 1);
    assert.ok(constraint.allowed > 0);
  }
});

test("both engines write the same text", () => {
  const run = sequences.Model.open(MODEL).run(OPTIONS);
  const session = new page.Session(page.Model.open(MODEL), OPTIONS);
  while (session.step() !== null);
  assert.equal(session.text(), run.text);
  assert.equal(run.steps.length, 24);
  assert.equal(run.steps.at(-1).running_logprob, run.raw_logprob);
});

test("mistakes in a constraint have their place", () => {
  const model = sequences.Model.open(MODEL);
  const place = (/** @type {string} */ text) => {
    try {
      model.checkConstraint(text);
    } catch (error) {
      const { code, position, param } = /** @type {any} */ (error);
      return { code, position, param };
    }
    return null;
  };
  assert.equal(place('regex("a(b)")'), null);
  assert.deepEqual(place('regex("a(b")'), { code: "syntax", position: 1, param: null });
  const schema = place(`json_schema(${JSON.stringify('{"type": "object",')})`);
  assert.equal(schema?.code, "syntax");
  assert.equal(schema?.position, 17);
  assert.equal(place("sql_select()"), null);
});

test("speculation and its laboratory work, and find a wrong rule out", () => {
  const model = sequences.Model.open(MODEL);
  const draft = sequences.Model.open(DRAFT);
  const strategy = 'speculative(draft="draft", tokens=3)';
  const run = new sequences.Speculation(model, OPTIONS, strategy, draft.share());
  while (run.step());
  assert.equal(run.summary().tokens, 24);
  assert.ok(run.summary().target_passes < 24);

  const table = (/** @type {number} */ seed) =>
    sequences.Model.table(JSON.stringify({ vocab: 5, seed, scale: 1, eos: 4 }));
  const [target, other] = [table(1), table(2)];
  const findings = (/** @type {string} */ fault) =>
    sequences.laboratory(target, other.share(), {
      options: {
        promptIds: [0, 1, 0],
        pipeline: "temperature(t=0.8) | top_p(p=0.95) | categorical(seed=3)",
        maxTokens: 4,
      },
      strategy: 'speculative(draft="draft", tokens=3)',
      fault,
      runs: 4000,
    });
  assert.ok(findings("none").chi_square.p_value > 0.001);
  for (const fault of ["likeliest_draft", "mismatched_temperature", "no_residual"]) {
    assert.ok(findings(fault).chi_square.p_value < 0.001, fault);
  }
});

test("forced tokens, the tree and the parting of branches", () => {
  const model = sequences.Model.open(MODEL);
  const first = model.run(OPTIONS);
  const [origin] = first.steps;
  const other = origin.others.find((/** @type {any} */ share) => share.token !== origin.token);
  const second = model.run({ ...OPTIONS, forced: new Map([[0, other.token]]) });
  assert.equal(second.steps[0].token, other.token);
  const branches = [first, second].map(({ steps }) =>
    steps.map((/** @type {any} */ { token, raw_logprob, final_logprob }) => ({
      token,
      raw_logprob,
      final_logprob,
    })),
  );
  const { nodes, ends } = sequences.branchTree(branches);
  assert.equal(nodes[ends[0]].running_logprob, first.raw_logprob);
  const parting = sequences.compareBranches(branches, 0, 1);
  assert.equal(parting.shared, 0);
  assert.deepEqual(parting.tokens, [origin.token, other.token]);
});

test("text in chunks is held back only where it must be", () => {
  const model = sequences.Model.open(MODEL);
  const moments = model.watch("own🦊!", 1, ["wnx", "!"]);
  const shown = moments.map((/** @type {any} */ moment) => [
    moment.text,
    moment.held_back,
    moment.partial.length,
    moment.matched ?? null,
  ]);
  assert.deepEqual(shown, [
    ["o", "", 0, null],
    ["o", "w", 0, null],
    ["o", "wn", 0, null],
    ["o", "wn", 1, null],
    ["o", "wn", 2, null],
    ["o", "wn", 3, null],
    ["own🦊", "", 0, null],
    ["own🦊", "", 0, "!"],
  ]);
});
