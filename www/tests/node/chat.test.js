import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { render } from "../../src/models/chat.js";

test("chat templates give what jinja2 gives", () => {
  const file = new URL("../../../tests/chat/cases.json", import.meta.url);
  const cases = JSON.parse(readFileSync(file, "utf8"));
  assert.equal(cases.length, 44);
  for (const { name, template, messages, date, prompt, refused } of cases) {
    const apply = () =>
      render(template, messages, { bos: "<s>", eos: "</s>", date: new Date(`${date}T00:00`) });
    if (refused) assert.throws(apply, { code: "model_unsupported", message: new RegExp(refused) });
    else assert.equal(apply(), prompt, name);
  }
});

test("a template that fails is refused with its reason", () => {
  const message = { role: "user", content: "a" };
  assert.throws(() => render(null, [message]), { code: "model_unsupported" });
  assert.throws(() => render("{{ raise_exception('no systems') }}", [message]), /no systems/);
  assert.throws(() => render("{% for %}", [message]), { code: "model_unsupported" });
});

test("dates are written in English, and only where one is given", () => {
  const format = (/** @type {string} */ text, /** @type {string} */ date) =>
    render(`{{ strftime_now("${text}") }}`, [], { date: new Date(date) });
  const every = "%Y-%m-%d %d %b %Y %B %A %a %H:%M:%S %%";
  assert.equal(
    format(every, "2024-07-03T09:05:07"),
    "2024-07-03 03 Jul 2024 July Wednesday Wed 09:05:07 %",
  );
  assert.throws(() => format("%Q", "2024-07-03T09:05:07"), /%Q/);
  assert.throws(() => render("{{ strftime_now('%Y') }}", []), /date of the day, and none is given/);
});

test("characters to strip are those that are named", () => {
  const cases = {
    "{{ '\\n a \\n'.strip('\\n') }}": " a ",
    "{{ '\\n a \\n'.lstrip('\\n') }}": " a \n",
    "{{ ('xay' + 'x').rstrip('xy') }}": "xa",
    "{{ ' a '.strip() }}": "a",
    "{% macro f(t) %}{{ t.strip('.') | upper }}{% endmacro %}{{ f('..b.') }}": "B",
    "{{ {'k': '-c-'.strip('-')}['k'] }}": "c",
    "{{ 'xx'.strip('x') ~ '!' }}": "!",
  };
  for (const [template, text] of Object.entries(cases)) {
    assert.equal(render(template, []), text, template);
  }
});

test("a loop that ends early keeps what its last turn wrote", () => {
  const messages = ["a", "b", "c", "d"].map((content) => ({ role: "user", content }));
  const cases = {
    "{% for m in messages %}{{ m.content }}{% if m.content == 'b' %}{% break %}{% endif %}-{% endfor %}!":
      "a-b!",
    "{% for m in messages %}{{ m.content }}{% if m.content == 'b' %}{% continue %}{% endif %}-{% endfor %}":
      "a-bc-d-",
    "{% for m in messages %}{% if m.content == 'c' %}x{% break %}{% elif m.content == 'a' %}{% continue %}{% endif %}{{ m.content }}{% endfor %}":
      "bx",
    // Each loop has its own end.
    "{% for m in messages %}{% for n in messages %}{{ n.content }}{% if n.content == m.content %}{% break %}{% endif %}{% endfor %};{% endfor %}":
      "a;ab;abc;abcd;",
    // A loop whose every turn went on early has had its turns.
    "{% for m in messages %}{% continue %}{% else %}none{% endfor %}": "",
    "{% macro f(x) %}{% for m in messages %}{{ x }}{% break %}{% endfor %}{% endmacro %}{{ f('y') }}":
      "y",
  };
  for (const [template, text] of Object.entries(cases)) {
    assert.equal(render(template, messages), text, template);
  }
});
