import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { test } from "node:test";
import { brotliCompressSync } from "node:zlib";
import { DIST } from "./harness.js";

/** What a reader downloads before the model, compressed: the project's promise. */
const BUDGET = 500_000;

test("the compressed page is small", (context) => {
  let total = 0;
  for (const entry of readdirSync(DIST, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || extname(entry.name) === ".gguf") continue;
    const bytes = readFileSync(join(entry.parentPath, entry.name));
    const compressed = brotliCompressSync(bytes).length;
    total += compressed;
    context.diagnostic(`${entry.name}: ${bytes.length} bytes, ${compressed} with brotli`);
  }
  context.diagnostic(`the page without the model: ${total} bytes with brotli, of ${BUDGET}`);
  assert.ok(total > 1000, "dist/ is nearly empty");
  assert.ok(total <= BUDGET, `${total} bytes with brotli, but at most ${BUDGET} are promised`);
});
