import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as engine from "../../pkg/logitscope.js";
import { traceAll } from "../digests.js";
import { loadEngine } from "./engine.js";

test("traces under Node are those of the native engine, byte for byte", () => {
  loadEngine();
  const read = (/** @type {string} */ file) => readFileSync(new URL(file, import.meta.url));
  const { cases } = JSON.parse(read("../../../tests/digests.json").toString());
  const results = traceAll(engine, read("../../../models/default.gguf"), cases);
  assert.ok(results.length >= 3);
  const recorded = cases.map((/** @type {any} */ { tokens, digest }) => ({ tokens, digest }));
  assert.deepEqual(results, recorded);
});
