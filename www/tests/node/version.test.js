import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { version } from "../../pkg/logitscope.js";
import { loadEngine } from "./engine.js";

test("the bundle loads under Node and names its version", () => {
  loadEngine();
  const packageFile = new URL("../../package.json", import.meta.url);
  assert.equal(version(), JSON.parse(readFileSync(packageFile, "utf8")).version);
});
