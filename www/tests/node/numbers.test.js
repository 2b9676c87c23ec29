import assert from "node:assert/strict";
import { test } from "node:test";
import { numberIn, stepped } from "../../src/numbers.js";

test("a text is a number as a whole, or stays a text", () => {
  for (const [text, number] of /** @type {const} */ ([
    ["0.8", 0.8],
    [" .8 ", 0.8],
    ["+1e-3", 0.001],
    ["-0", -0],
    ["2147483648", 2147483648],
  ])) {
    assert.equal(numberIn(text), number);
  }
  for (const text of ["0,8", "0.8.1", "", " ", "abc", "NaN", "Infinity", "1e309", "0x10", "1 2"]) {
    assert.equal(numberIn(text), text);
  }
});

test("an arrow key turns a number by one step, within its range", () => {
  assert.equal(stepped("0.8", 1, { step: 0.05 }), "0.85", "no digits of binary fractions");
  assert.equal(stepped("0.3", -1, { step: 0.1 }), "0.2");
  assert.equal(stepped("0", -1, { step: 1, min: 0 }), null);
  assert.equal(stepped("1", 1, { step: 0.01, max: 1 }), null);
  assert.equal(stepped("0,8", 1, { step: 0.05 }), null);
});
