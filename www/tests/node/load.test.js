// What loading a model keeps, refuses and forgets, with storage and engine of a few lines.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { load } from "../../src/models/load.js";
import { Store } from "../../src/models/store.js";

/** A folder of the origin-private file system, in memory. */
class Folder {
  /** @type {Map<string, Uint8Array>} */
  files = new Map();
  /** @type {Map<string, Folder>} */
  folders = new Map();

  /** @param {string} name */
  async getDirectoryHandle(name) {
    const folder = this.folders.get(name) ?? new Folder();
    this.folders.set(name, folder);
    return folder;
  }

  async *keys() {
    yield* [...this.files.keys()];
  }

  /**
   * @param {string} name
   * @param {{ create?: boolean }} [options]
   */
  async getFileHandle(name, { create = false } = {}) {
    const { files } = this;
    if (!files.has(name)) {
      if (!create) throw new DOMException("absent", "NotFoundError");
      files.set(name, new Uint8Array());
    }
    const bytes = () => files.get(name) ?? new Uint8Array();
    return {
      getFile: async () => new File([/** @type {Uint8Array<ArrayBuffer>} */ (bytes())], name),
      createSyncAccessHandle: async () => ({
        getSize: () => bytes().length,
        /** @param {number} size */
        truncate: (size) => files.set(name, bytes().slice(0, size)),
        flush: () => {},
        close: () => {},
        /**
         * @param {Uint8Array} into
         * @param {{ at: number }} place
         */
        read(into, { at }) {
          const part = bytes().subarray(at, at + into.length);
          into.set(part);
          return part.length;
        },
        /**
         * @param {Uint8Array} from
         * @param {{ at: number }} place
         */
        write(from, { at }) {
          const all = new Uint8Array(Math.max(bytes().length, at + from.length));
          all.set(bytes());
          all.set(from, at);
          files.set(name, all);
          return from.length;
        },
      }),
    };
  }

  /** @param {string} name */
  async removeEntry(name) {
    if (!this.files.delete(name)) throw new DOMException("absent", "NotFoundError");
  }
}

/** Takes bytes as the engine does; their number stands for a hash. */
class Incoming {
  length = 0;

  /** @param {Uint8Array} bytes */
  push({ length }) {
    this.length += length;
  }

  open() {
    const info = () => ({ sha256: `of ${this.length} bytes` });
    return /** @type {any} */ ({ info, free() {} });
  }

  free() {}
}

const FILE = Buffer.alloc(3_000_000, "GGUF");
/** How the server answers. @type {(request: import("node:http").IncomingMessage, response: import("node:http").ServerResponse) => unknown} */
let answer = () => {};
const server = createServer((request, response) => answer(request, response));
let url = "";

before(async () => {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  url = `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}/x.gguf`;
});
after(() => server.close());

beforeEach(() => {
  const root = new Folder();
  const storage = { getDirectory: async () => root, estimate: async () => ({}) };
  Object.defineProperty(globalThis, "navigator", { value: { storage }, configurable: true });
});

const store = async () => {
  const opened = await Store.open();
  assert.ok(opened);
  return opened;
};

/**
 * @param {string} [src]
 * @param {import("../../src/models/load.js").Given} [given]
 * @param {AbortController} [controller] aborted when the loading tells of progress
 */
function loading(src = url, given = {}, controller) {
  const { signal } = controller ?? new AbortController();
  // As a message would: heard when the thread pauses, not before.
  const tell = () => controller && setTimeout(() => controller.abort());
  return load(src, { signal, tell, receive: () => new Incoming() }, given);
}

/** Sends the whole file without its size. @type {typeof answer} */
const untold = ({ method }, response) => {
  response.writeHead(200, { "transfer-encoding": "chunked" });
  response.end(method === "HEAD" ? undefined : FILE);
};

test("a model of unknown size stops where the budget ends, and nothing of it is kept", async () => {
  answer = untold;
  await (await store()).setBudget(1_000_000);
  await assert.rejects(loading(), {
    code: "over_budget",
    message: /of the 1\.0 MB that may be kept/,
  });
  assert.deepEqual(await (await store()).list(), []);
  await (await store()).setBudget(4_000_000);
  assert.equal((await loading()).info().sha256, "of 3000000 bytes");
  const [kept] = await (await store()).list();
  assert.equal(kept?.loaded, FILE.length);
});

test("reading a kept model can be cancelled, and costs it nothing", async () => {
  answer = untold;
  await loading();
  await assert.rejects(loading(url, {}, new AbortController()), { name: "AbortError" });
  assert.equal((await (await store()).list())[0]?.sha256, "of 3000000 bytes");
});

test("a kept model that was damaged is refused and forgotten", async () => {
  answer = untold;
  await loading();
  const place = await (await store()).place(url);
  await place.note({ sha256: "of other bytes" });
  await assert.rejects(loading(), { code: "model_hash", message: /should be of other bytes/ });
  assert.deepEqual(await (await store()).list(), []);
});

test("of a file of the reader's whose reading was cancelled nothing is kept", async () => {
  const file = new File([FILE], "x.gguf");
  // A browser reads a file in pieces, between which the thread pauses.
  file.stream = () =>
    new ReadableStream({
      async start(pieces) {
        for (let at = 0; at < FILE.length; at += 100_000) {
          pieces.enqueue(FILE.subarray(at, at + 100_000));
          await new Promise((resolve) => setTimeout(resolve));
        }
        pieces.close();
      },
    });
  await assert.rejects(loading("file:///x.gguf", { file }, new AbortController()), {
    name: "AbortError",
  });
  assert.deepEqual(await (await store()).list(), []);
  // One that does not fit costs the one of its name that is kept nothing.
  await loading("file:///x.gguf", { file });
  await (await store()).setBudget(3_000_000);
  const large = new File([FILE, FILE], "x.gguf");
  await assert.rejects(loading("file:///x.gguf", { file: large }), { code: "over_budget" });
  assert.equal((await (await store()).list())[0]?.sha256, "of 3000000 bytes");
});

test("a server whose parts are others than it was asked for is asked for the whole", async () => {
  let rest = "bytes 0-2999999/3000000";
  /** @type {(string | undefined)[]} */
  const asked = [];
  answer = ({ method, headers }, response) => {
    if (method === "HEAD") {
      return response.writeHead(200, { "content-length": FILE.length }).end();
    }
    asked.push(headers.range);
    if (headers.range) {
      // As many bytes as are missing, but others.
      const from = Number(/\d+/.exec(headers.range)?.[0]);
      return response.writeHead(206, { "content-range": rest }).end(FILE.subarray(from));
    }
    response.writeHead(200, { "content-length": FILE.length });
    // Only the first connection breaks off.
    if (asked.length > 1) return response.end(FILE);
    response.write(FILE.subarray(0, 500_000), () => response.destroy());
  };
  for (const other of ["bytes 0-2999999/3000000", "bytes 500000-3999999/4000000"]) {
    asked.length = 0;
    rest = other;
    await (await store()).clear();
    assert.equal((await loading()).info().sha256, "of 3000000 bytes", other);
    assert.equal(asked.length, 3, other);
    assert.deepEqual([asked[0], asked[2]], [undefined, undefined]);
    assert.match(asked[1] ?? "", /^bytes=\d+-$/);
  }
});
