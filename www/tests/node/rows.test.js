import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRow } from "../../src/rows.js";

test("a row may be pasted as JSON, CSV or text", () => {
  const named = { labels: ["cat", "dog", "fish"], logits: [2, 1, -0.5] };
  for (const text of [
    "cat 2.0\ndog 1.0\nfish -0.5",
    "cat,2.0\ndog,1.0\nfish,-0.5",
    "cat: 2, dog: 1, fish: -.5",
    "cat=2; dog=1e0; fish=-0.5",
    '{"cat": 2, "dog": 1, "fish": -0.5}',
    '[["cat", 2], ["dog", 1], ["fish", -0.5]]',
  ]) {
    assert.deepEqual(parseRow(text), named, text);
  }
  const bare = {
    labels: ["token 0", "token 1", "token 2"],
    logits: [2, Number.NEGATIVE_INFINITY, 0],
  };
  for (const text of ["2, -inf, 0", "2\n-inf\n0", '[2, "-inf", 0]', "2\t-Infinity\t0\n"]) {
    assert.deepEqual(parseRow(text), bare, text);
  }
});

test("what is no score is named", () => {
  const wrong = [
    ["cat two", /cat two|entry 1/],
    ["", /at least one/],
    ["[1,", /JSON/],
    ['[1, "x"]', /“x”/],
    ["[null]", /null/],
  ];
  for (const [text, message] of wrong) {
    assert.throws(() => parseRow(String(text)), { code: "bad_input", param: "logits", message });
  }
});
