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
    '[{"token": "cat", "logprob": 2}, {"token": "dog", "logprob": 1}, {"token": "fish", "logprob": -0.5}]',
    "token,logit\ncat,2.0\ndog,1.0\nfish,-0.5",
    '7,"cat",2.0\r\n9,"dog",1.0\r\n11,"fish",-0.5\r\n',
    "cat\t2\ndog\t1\nfish\t-0.5",
  ]) {
    assert.deepEqual(parseRow(text), named, text);
  }
  const bare = {
    labels: ["token 0", "token 1", "token 2"],
    logits: [2, Number.NEGATIVE_INFINITY, 0],
  };
  for (const text of [
    "2, -inf, 0",
    "2\n-inf\n0",
    '[2, "-inf", 0]',
    "2\t-Infinity\t0\n",
    "2 -inf 0",
    "[2. -inf\n 0.]",
    "[2, -Infinity, 0]",
    "2 \u2212inf 0",
  ]) {
    assert.deepEqual(parseRow(text), bare, text);
  }
});

test("two numbers are two scores, and a typeset minus is a minus", () => {
  assert.deepEqual(parseRow("2 1").logits, [2, 1]);
  assert.deepEqual(parseRow("a \u22121\nb 0"), { labels: ["a", "b"], logits: [-1, 0] });
  assert.throws(() => parseRow("+inf 1"), { code: "bad_input" });
});

test("names keep their spaces and their commas", () => {
  const { labels } = parseRow('token,logit\n the,1\n",",2\n"say ""a""",3\n15,4');
  assert.deepEqual(labels, [" the", ",", 'say "a"', "15"]);
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

test("a row is found inside a server's answer", () => {
  const named = { labels: ["cat", "dog"], logits: [-0.5, -1.5] };
  const top = [
    { token: "cat", logprob: -0.5 },
    { token: "dog", logprob: -1.5 },
  ];
  for (const answer of [
    { logits: { cat: -0.5, dog: -1.5 } },
    { choices: [{ logprobs: { content: [{ token: "cat", logprob: -0.5, top_logprobs: top }] } }] },
    { choices: [{ logprobs: { tokens: ["cat"], top_logprobs: [{ cat: -0.5, dog: -1.5 }] } }] },
  ]) {
    assert.deepEqual(parseRow(JSON.stringify(answer)), named, JSON.stringify(answer));
  }
  assert.deepEqual(parseRow('{"logits": [2, 1, 0]}').logits, [2, 1, 0]);
  assert.deepEqual(parseRow('{"id": 3, "model": "m", "logits": [[2, 1, 0]]}').logits, [2, 1, 0]);
});

test("one row in brackets is that row, and two are refused", () => {
  assert.deepEqual(parseRow("[[2, 1, 0]]").logits, [2, 1, 0]);
  assert.deepEqual(parseRow("[[7, 2.5], [9, 1]]"), { labels: ["7", "9"], logits: [2.5, 1] });
  assert.throws(() => parseRow("[[2, 1, 0], [3, 2, 1]]"), { code: "bad_input", message: /2 rows/ });
});

test("ids with their scores are a table, and commas may be decimal", () => {
  const table = { labels: ["123", "456"], logits: [1.5, -0.5] };
  for (const text of ["123,1.5\n456,-0.5", "123;1,5\n456;-0,5", "123\t1,5\n456\t-0,5"]) {
    assert.deepEqual(parseRow(text), table, text);
  }
  assert.deepEqual(parseRow("cat;1,5\ndog;0,25"), { labels: ["cat", "dog"], logits: [1.5, 0.25] });
  assert.deepEqual(parseRow("token;logit\ncat;1,5\ndog;-2"), {
    labels: ["cat", "dog"],
    logits: [1.5, -2],
  });
});
