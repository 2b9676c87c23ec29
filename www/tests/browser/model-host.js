// A host of models as they are on the web: another origin, ranges, and every kind of trouble.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { setTimeout as rest } from "node:timers/promises";
import { gzipSync } from "node:zlib";

const MODEL = join(import.meta.dirname, "../../../models/default.gguf");
/** What a file claims to have that no engine can hold. */
const HUGE_BYTES = 5_000_000_000;

/** A chat template as short as they come. */
const TEMPLATE =
  "{{ bos_token }}{% for m in messages %}<{{ m['role'] }}> {{ m['content'] | trim }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %} <reply>{% endif %}";

/**
 * A GGUF file with one more line of metadata.
 * @param {Buffer} model
 * @param {string} name
 * @param {string} value
 */
function withText(model, name, value) {
  const key = Buffer.from(name);
  // Tensors lie at multiples of 32 bytes, and must go on doing so.
  const rest = 8 + key.length + 4 + 8 + value.length;
  const text = Buffer.from(value.padEnd(value.length + ((32 - (rest % 32)) % 32)));
  const line = Buffer.alloc(8 + key.length + 4 + 8);
  line.writeBigUInt64LE(BigInt(key.length), 0);
  key.copy(line, 8);
  line.writeUInt32LE(8, 8 + key.length);
  line.writeBigUInt64LE(BigInt(text.length), 12 + key.length);
  const head = Buffer.from(model.subarray(0, 24));
  head.writeBigUInt64LE(head.readBigUInt64LE(16) + 1n, 16);
  return Buffer.concat([head, line, text, model.subarray(24)]);
}

/** Serves the model that ships under names that say what goes wrong. */
export async function hostModels() {
  const model = await readFile(MODEL);
  const lying = Buffer.from(model);
  // The count of tensors, after magic and version.
  lying.writeBigUInt64LE(1n << 60n, 8);
  // The last tensor is the last norm, of f32.
  const broken = Buffer.from(model);
  broken.writeFloatLE(Number.NaN, model.length - 4);
  // The first block of the first tensor begins with its scale, a half float.
  const names = model.lastIndexOf("output_norm.weight");
  const data = Math.ceil((names + "output_norm.weight".length + 4 + 8 + 4 + 8) / 32) * 32;
  const damaged = Buffer.from(model);
  damaged.writeUInt16LE(0x7e00, data);
  const foreign = Buffer.from(model);
  foreign.write("bloom", foreign.indexOf("llama", foreign.indexOf("general.architecture")));
  const nameless = Buffer.from(model);
  nameless.write("general.none", nameless.indexOf("general.name"));
  /** @type {Record<string, Buffer>} */
  const files = {
    "/good.gguf": model,
    "/chat.gguf": withText(model, "tokenizer.chat_template", TEMPLATE),
    "/long.gguf": withText(nameless, "general.name", "N".repeat(3000)),
    "/breaks.gguf": model,
    "/down.gguf": model,
    "/slow.gguf": model,
    "/foreign.gguf": foreign,
    "/broken.gguf": broken,
    "/damaged.gguf": damaged,
    "/lies.gguf": lying,
    "/page.gguf": Buffer.from("<!DOCTYPE html><title>This is a page about a model</title>"),
    "/huge.gguf": Buffer.alloc(0),
    "/packed.gguf": model,
    "/whole.gguf": model,
    "/100%.gguf": model,
  };
  /** What was asked for, in order. @type {{ method: string, path: string, range: string | null }[]} */
  const asked = [];
  const host = { asked, up: true, /** Bytes that were sent slowly. */ sent: 0 };
  const server = createServer(async (request, response) => {
    const { method = "", url: path = "", headers } = request;
    response.setHeader("access-control-allow-origin", "*");
    response.setHeader("access-control-allow-headers", "range");
    response.setHeader("access-control-expose-headers", "etag, content-range");
    if (method === "OPTIONS") return response.end();
    const range = headers.range ?? null;
    asked.push({ method, path, range });
    const file = files[path];
    if (!file) {
      response.statusCode = 404;
      return response.end();
    }
    if (path === "/packed.gguf") {
      // As a host that compresses everything on its way: the length is the compressed one's.
      const packed = gzipSync(file);
      response.setHeader("content-encoding", "gzip");
      response.setHeader("content-length", packed.length);
      return response.end(method === "HEAD" ? undefined : packed);
    }
    const size = path === "/huge.gguf" ? HUGE_BYTES : file.length;
    response.setHeader("etag", `"${path}-1"`);
    const parts = path !== "/whole.gguf";
    const from = Number((parts && /^bytes=(\d+)-$/.exec(range ?? "")?.[1]) || 0);
    response.setHeader("content-length", size - from);
    if (method === "HEAD") return response.end();
    if (path === "/down.gguf" && !host.up) {
      response.writeHead(503, { "content-length": 0 });
      return response.end();
    }
    if (range && parts) {
      response.statusCode = 206;
      response.setHeader("content-range", `bytes ${from}-${size - 1}/${size}`);
    }
    const body = file.subarray(from);
    if (
      ["/breaks.gguf", "/down.gguf", "/whole.gguf"].includes(path) &&
      (parts ? from === 0 : !range)
    ) {
      host.up = path !== "/down.gguf";
      response.write(body.subarray(0, Math.floor(size / 2)));
      await rest(300);
      return response.destroy();
    }
    if (!["/slow.gguf", "/foreign.gguf"].includes(path)) return response.end(body);
    host.sent = 0;
    for (let at = 0; at < body.length && !response.destroyed; at += 30_000) {
      const piece = body.subarray(at, at + 30_000);
      response.write(piece);
      host.sent += piece.length;
      await rest(150);
    }
    response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return Object.assign(host, {
    url: `http://127.0.0.1:${address.port}`,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  });
}
