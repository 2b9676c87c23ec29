import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { render } from "../../src/models/chat.js";

test("chat templates give what jinja2 gives", () => {
  const file = new URL("../../../tests/chat/cases.json", import.meta.url);
  const cases = JSON.parse(readFileSync(file, "utf8"));
  assert.equal(cases.length, 12);
  for (const { name, template, messages, prompt } of cases) {
    assert.equal(render(template, messages, { bos: "<s>", eos: "</s>" }), prompt, name);
  }
});

test("a template that fails is refused with its reason", () => {
  const message = { role: "user", content: "a" };
  assert.throws(() => render(null, [message]), { code: "model_unsupported" });
  assert.throws(() => render("{{ raise_exception('no systems') }}", [message]), /no systems/);
  assert.throws(() => render("{% for %}", [message]), { code: "model_unsupported" });
});
