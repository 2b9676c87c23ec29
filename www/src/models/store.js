// Where models are kept: files in the origin-private file system, and a line about each.
//
// Runs in the worker, because only there files of that system can be written as they come.
// A model is `ID.gguf` and `ID.json`; the identifier is a hash of the address. A file that is
// shorter than its line says is the beginning of a download that broke off.

import { refusal } from "./fit.js";

/** @import { Kept, Room } from "../types.js" */

const FOLDER = "models";
const BUDGET = "budget.json";
/** How many bytes may be kept until the reader says otherwise. */
const DEFAULT_BUDGET = 1_000_000_000;

/**
 * @typedef {object} Line what is written down about a model
 * @property {string} src
 * @property {number | null} size bytes of the whole file, as far as the server told
 * @property {string | null} tag what the server calls this version of it
 * @property {string | null} sha256 once it is complete
 */

/** See the module. */
export class Store {
  #folder;

  /** @param {FileSystemDirectoryHandle} folder */
  constructor(folder) {
    this.#folder = folder;
  }

  /** The store; null where the browser gives this page none. */
  static async open() {
    try {
      const root = await navigator.storage.getDirectory();
      return new Store(await root.getDirectoryHandle(FOLDER, { create: true }));
    } catch {
      return null;
    }
  }

  /** Every model that is kept, or partly so. @returns {Promise<Kept[]>} */
  async list() {
    const all = [];
    for await (const name of this.#folder.keys()) {
      if (!name.endsWith(".json") || name === BUDGET) continue;
      const line = /** @type {Line | null} */ (await this.#readJson(name));
      if (!line) continue;
      const file = await this.#folder.getFileHandle(name.replace(".json", ".gguf"), {
        create: true,
      });
      const { size: loaded } = await file.getFile();
      all.push({ src: line.src, size: line.size, loaded, sha256: line.sha256 });
    }
    return all;
  }

  /** A model that is complete, as a file; null if it is not here. @param {string} src */
  async file(src) {
    const id = await identifier(src);
    const line = /** @type {Line | null} */ (await this.#readJson(`${id}.json`));
    if (!line?.sha256) return null;
    const file = await (await this.#folder.getFileHandle(`${id}.gguf`)).getFile();
    return file.size === line.size ? file : null;
  }

  /** How much may be kept, and how much is. @returns {Promise<Room>} */
  async room() {
    const { budget = DEFAULT_BUDGET } = (await this.#readJson(BUDGET)) ?? {};
    const used = (await this.list()).reduce((sum, { loaded }) => sum + loaded, 0);
    const { quota = null, usage = 0 } = await navigator.storage.estimate();
    return { budget, used, quota, usage };
  }

  /** @param {number} budget bytes */
  setBudget(budget) {
    return this.#writeJson(BUDGET, { budget });
  }

  /** Forgets a model. @param {string} src */
  async remove(src) {
    const id = await identifier(src);
    for (const name of [`${id}.json`, `${id}.gguf`]) {
      await this.#folder.removeEntry(name).catch((error) => {
        if (error.name === "NotFoundError") return;
        throw refusal("storage", `The model is in use and cannot be removed now: ${error.message}`);
      });
    }
  }

  /** Forgets every model. */
  async clear() {
    for (const { src } of await this.list()) await this.remove(src);
  }

  /** The place of a model, locked until it is closed. @param {string} src */
  async place(src) {
    const id = await identifier(src);
    const line = /** @type {Line | null} */ (await this.#readJson(`${id}.json`));
    const handle = await this.#folder.getFileHandle(`${id}.gguf`, { create: true });
    const access = await handle.createSyncAccessHandle().catch((error) => {
      throw refusal("storage", `Another tab is loading this model: ${error.message}`);
    });
    const save = (/** @type {Line} */ next) => this.#writeJson(`${id}.json`, next);
    return new Place(src, access, line, save);
  }

  /** @param {string} name */
  async #readJson(name) {
    try {
      const handle = await this.#folder.getFileHandle(name);
      return JSON.parse(await (await handle.getFile()).text());
    } catch {
      // Absent, or broken off while it was written: either way nothing is known.
      return null;
    }
  }

  /**
   * @param {string} name
   * @param {unknown} value
   */
  async #writeJson(name, value) {
    const handle = await this.#folder.getFileHandle(name, { create: true });
    const access = await handle.createSyncAccessHandle();
    const bytes = new TextEncoder().encode(JSON.stringify(value));
    access.truncate(0);
    access.write(bytes, { at: 0 });
    access.close();
  }
}

/** One model's file while it is read or written. */
export class Place {
  #access;
  #save;

  /**
   * @param {string} src
   * @param {FileSystemSyncAccessHandle} access
   * @param {Line | null} line
   * @param {(line: Line) => Promise<void>} save
   */
  constructor(src, access, line, save) {
    this.#access = access;
    this.#save = save;
    this.line = line ?? { src, size: null, tag: null, sha256: null };
    // Without a line nobody knows what the bytes are.
    if (!line) access.truncate(0);
    this.length = access.getSize();
  }

  get complete() {
    return this.line.sha256 !== null && this.length === this.line.size;
  }

  /** Writes down what is known about the file. @param {Partial<Line>} change */
  async note(change) {
    this.line = { ...this.line, ...change };
    await this.#save(this.line);
  }

  /** Forgets the bytes. */
  empty() {
    this.#access.truncate(0);
    this.length = 0;
  }

  /** @param {Uint8Array<ArrayBuffer>} bytes */
  append(bytes) {
    const written = this.#write(bytes);
    this.length += written;
    if (written < bytes.length) throw refusal("storage_full", "The browser's storage is full.");
  }

  /** @param {Uint8Array<ArrayBuffer>} bytes */
  #write(bytes) {
    try {
      return this.#access.write(bytes, { at: this.length });
    } catch (error) {
      throw refusal("storage_full", `The browser's storage takes no more: ${error}`);
    }
  }

  /** The bytes, in pieces that are valid until the next one. */
  *pieces() {
    const buffer = new Uint8Array(1 << 20);
    for (let at = 0; at < this.length; ) {
      const read = this.#access.read(buffer, { at });
      if (read === 0) throw refusal("storage", "A file of the browser's storage cannot be read.");
      yield buffer.subarray(0, read);
      at += read;
    }
  }

  close() {
    this.#access.flush();
    this.#access.close();
  }
}

/** A file name for an address. @param {string} src */
async function identifier(src) {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(src));
  return [...new Uint8Array(hash).slice(0, 16)]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}
