// Brings a model into the engine: out of the store, from an address, or from a file.
//
// Runs in the worker, which imports it when a model other than the page's own is wanted. The
// bytes go to the store and into the engine's memory at the same time, so each is read once.
// What arrived before a break stays in the store, and the next attempt goes on from there.

import { isAbort } from "../errors.js";
import { megabytes, unescaped } from "../format.js";
import { expectRoom, expectRoomSoFar, refusal } from "./fit.js";
import { Store } from "./store.js";

/**
 * @import { Incoming, Model } from "../../pkg/logitscope.js"
 * @import { Progress, Room } from "../types.js"
 * @import { Place } from "./store.js"
 */

/**
 * @typedef {object} Talk
 * @property {AbortSignal} signal
 * @property {(progress: Progress) => void} tell
 * @property {(size?: number) => Pick<Incoming, "push" | "open" | "free">} receive memory of the
 *   thread's engine
 *
 * @typedef {object} Given what the reader brought beside the address
 * @property {File} [file] the file itself
 * @property {string} [sha256] the hash that it must have
 */

/** How often progress is told. */
const TELL_MS = 100;
/** What a broken connection is given before it is tried again. */
const PAUSE_MS = 500;

/**
 * @param {string} src
 * @param {Talk} talk
 * @param {Given} given
 * @returns {Promise<Model>}
 */
export async function load(src, talk, given) {
  const store = await Store.open();
  const place = (await store?.place(src)) ?? null;
  try {
    return await new Loading(src, talk, given, store, place).run();
  } catch (error) {
    // What cannot be a model is not worth keeping; the beginning of a download that can go on is.
    if (isWorthless(error) || place?.line.size === null) place?.empty();
    throw error;
  } finally {
    const empty = place?.length === 0;
    place?.close();
    if (empty) await store?.remove(src);
  }
}

/** @param {unknown} error */
function isWorthless(error) {
  const code = /** @type {{ code?: string }} */ (error).code ?? "";
  return ["model_format", "model_unsupported", "model_hash"].includes(code);
}

/** One attempt to have a model. */
class Loading {
  #src;
  #talk;
  #given;
  #store;
  #place;
  /** @type {ReturnType<Talk["receive"]> | null} */
  #incoming = null;
  #loaded = 0;
  /** @type {number | null} */
  #size = null;
  /** What the server calls the version that is loaded. @type {string | null} */
  #tag = null;
  /** How much may be kept, besides this model. @type {Room | null} */
  #room = null;
  #began = performance.now();
  /** Whether the server can send the rest of a file. */
  #doesParts = true;
  /** Whether the server's word about the size was wrong. */
  #sizeUnknown = false;
  /** Bytes that were there before the download began. */
  #before = 0;
  #told = 0;

  /**
   * @param {string} src
   * @param {Talk} talk
   * @param {Given} given
   * @param {Store | null} store
   * @param {Place | null} place
   */
  constructor(src, talk, given, store, place) {
    this.#src = src;
    this.#talk = talk;
    this.#given = given;
    this.#store = store;
    this.#place = place;
  }

  async run() {
    const { file } = this.#given;
    try {
      if (file) await this.#takeFile(file);
      else if (this.#place?.complete) await this.#takeKept(this.#place.line.size);
      else if (this.#src.startsWith("file:")) throw this.#absent();
      else await this.#download();
      return await this.#open();
    } catch (error) {
      this.#incoming?.free();
      throw error;
    }
  }

  /** Opens what has arrived. */
  async #open() {
    const incoming = this.#incoming ?? this.#talk.receive(0);
    this.#incoming = null;
    // From here on the engine owns the bytes, and frees them if it refuses them.
    const model = incoming.open();
    const { sha256 } = model.info();
    // What was complete once has a hash already: storage may have been damaged since.
    const expected = this.#given.sha256 ?? this.#place?.line.sha256;
    if (expected && expected !== sha256) {
      model.free();
      throw refusal("model_hash", `The file's SHA-256 is ${sha256}, but it should be ${expected}.`);
    }
    await this.#place?.note({ size: this.#loaded, sha256 });
    return model;
  }

  #absent() {
    const name = unescaped(this.#src.slice("file:///".length));
    return refusal(
      "model_absent",
      `“${name}” is a file that this browser does not have. Open it under “Other models”.`,
    );
  }

  /** Asks for memory, once it is known how much. @param {number | null} size */
  #reserve(size) {
    this.#incoming?.free();
    this.#incoming = this.#talk.receive(size ?? undefined);
    this.#size = size;
    this.#loaded = 0;
  }

  /** Takes what lies in the store already. @param {number | null} size */
  async #takeKept(size) {
    this.#reserve(size);
    for (const piece of this.#place?.pieces() ?? []) {
      this.#incoming?.push(piece);
      // The thread hears of a wish to cancel only when it pauses.
      if (this.#progress(piece.length)) await pause(0, this.#talk.signal);
      if (this.#talk.signal.aborted) throw this.#talk.signal.reason;
    }
    this.#before = this.#loaded;
    this.#began = performance.now();
  }

  /** @param {File} file */
  async #takeFile(file) {
    const room = (await this.#store?.room()) ?? null;
    const have = this.#place?.length ?? 0;
    expectRoom(file.size, have, room);
    this.#reserve(file.size);
    this.#place?.empty();
    await this.#place?.note({ size: file.size, tag: null, sha256: null });
    try {
      await this.#takeBody(file.stream());
    } catch (error) {
      // Only the reader can bring the rest, and brings the whole.
      this.#place?.empty();
      throw error;
    }
  }

  async #download() {
    const { size, tag } = await this.#head();
    const place = this.#place;
    const { line, length: have = 0 } = place ?? {};
    const goOn =
      have > 0 && size !== null && have <= size && line?.size === size && line.tag === tag;
    if (!goOn) place?.empty();
    await this.#expectRoom(size, goOn ? have : 0);
    this.#tag = tag;
    await place?.note({ size, tag, sha256: null });
    await this.#takeKept(size);
    while (this.#size === null || this.#loaded < this.#size) {
      const before = this.#loaded;
      const why = await this.#attempt();
      if (why === null) return;
      // A connection that brings something is worth another; one that does not is not.
      if (this.#loaded === before) throw this.#broken(why);
      await pause(PAUSE_MS, this.#talk.signal);
    }
  }

  /**
   * @param {number | null} size
   * @param {number} have
   */
  async #expectRoom(size, have) {
    this.#room = (await this.#store?.room()) ?? null;
    if (size !== null) expectRoom(size, have, this.#room);
  }

  /** @param {string} why */
  #broken(why) {
    const of = this.#size === null ? "" : ` of ${megabytes(this.#size)}`;
    let next = "What has arrived is kept, and the next attempt goes on from there.";
    if (!this.#doesParts)
      next = "The server sends whole files only, so the next attempt begins anew.";
    if (this.#size === null)
      next = "The server does not tell the file's size, so the next attempt begins anew.";
    const kept = this.#place && this.#loaded > 0 ? ` ${next}` : "";
    return refusal(
      "io",
      `${this.#src} could not be loaded (${megabytes(this.#loaded)}${of} arrived): ${why}.${kept}`,
    );
  }

  /** What the server says about the file before it is fetched; unknown if it does not say. */
  async #head() {
    const response = await this.#fetch("HEAD", {}).catch((error) => {
      if (isAbort(error)) throw error;
      throw this.#broken(
        `the server cannot be reached, or lets no other page read it (${error.message})`,
      );
    });
    // Addresses that are signed for one method refuse the other, so only this is certain.
    if (response.status === 404 || response.status === 410) throw this.#broken(said(response));
    return response.ok ? about(response) : { size: null, tag: null };
  }

  /**
   * @param {"HEAD" | "GET"} method
   * @param {Record<string, string>} headers
   */
  #fetch(method, headers) {
    // The store keeps it; the browser's cache need not do so too.
    return fetch(this.#src, { method, headers, signal: this.#talk.signal, cache: "no-store" });
  }

  /** One connection: null when the file is complete, else why it is not. @returns {Promise<string | null>} */
  async #attempt() {
    try {
      const from = this.#loaded;
      const response = await this.#fetch("GET", from > 0 ? { range: `bytes=${from}-` } : {});
      if (!response.ok || !response.body) return said(response);
      const { size, tag, part } = about(response);
      if (from > 0 && response.status === 200) {
        // The server does not do parts: this is the whole file.
        this.#doesParts = false;
        await this.#beginAnew(size ?? this.#size, tag);
      } else if (from > 0 && !this.#goesOn(from, tag, part)) {
        // It has another file by now, whose size the next answer tells.
        await response.body.cancel();
        await this.#beginAnew(null, tag);
        return await this.#attempt();
      } else if (from === 0 && this.#size === null && size !== null) {
        await this.#beginAnew(size, tag);
      }
      if (!(await this.#takeBody(response.body))) {
        // More came than was announced. A server that compresses files on the way tells their
        // compressed size, so the real one will be known at the end.
        this.#sizeUnknown = true;
        await this.#beginAnew(null, tag);
        return await this.#attempt();
      }
      return this.#size === null || this.#loaded >= this.#size ? null : "the connection broke off";
    } catch (error) {
      if (this.#talk.signal.aborted || !(error instanceof TypeError)) throw error;
      return `the connection broke off (${error.message})`;
    }
  }

  /**
   * Whether a part is of the same file, and begins where it was asked to.
   * @param {number} from
   * @param {string | null} tag
   * @param {{ from: number, size: number | null } | null} part
   */
  #goesOn(from, tag, part) {
    const size = part?.size ?? this.#size;
    return tag === this.#tag && size === this.#size && (part?.from ?? from) === from;
  }

  /**
   * Forgets what has arrived.
   * @param {number | null} told what the server says is the file's size
   * @param {string | null} tag
   */
  async #beginAnew(told, tag) {
    const size = this.#sizeUnknown ? null : told;
    this.#place?.empty();
    await this.#expectRoom(size, 0);
    this.#tag = tag;
    this.#reserve(size);
    this.#before = 0;
    this.#began = performance.now();
    await this.#place?.note({ size, tag, sha256: null });
  }

  /** Whether it was no more than was announced. @param {ReadableStream<Uint8Array<ArrayBuffer>>} body */
  async #takeBody(body) {
    const reader = body.getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (this.#talk.signal.aborted) throw this.#talk.signal.reason;
        if (done) return true;
        const loaded = this.#loaded + value.length;
        if (this.#size !== null && loaded > this.#size) return false;
        if (this.#size === null) expectRoomSoFar(loaded, this.#room);
        this.#incoming?.push(value);
        this.#place?.append(value);
        this.#progress(value.length);
      }
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  /** Whether it was told. @param {number} bytes */
  #progress(bytes) {
    this.#loaded += bytes;
    const now = performance.now();
    if (now - this.#told < TELL_MS && this.#loaded !== this.#size) return false;
    this.#told = now;
    const rate = (this.#loaded - this.#before) / (now - this.#began);
    const left = this.#size !== null && rate > 0 ? (this.#size - this.#loaded) / rate / 1000 : null;
    this.#talk.tell({ loaded: this.#loaded, total: this.#size ?? 0, left });
    return true;
  }
}

/**
 * The size of the whole file and its version, as the server gives them, and which part it sends;
 * many servers let no other page read the latter.
 * @param {Response} response
 */
function about({ status, headers }) {
  const length = headers.get("content-length");
  const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get("content-range") ?? "");
  const whole = Number(range?.[2]);
  return {
    size: status === 200 && length !== null ? Number(length) : null,
    tag: headers.get("etag") ?? headers.get("last-modified"),
    part: range && { from: Number(range[1]), size: Number.isNaN(whole) ? null : whole },
  };
}

/** @param {Response} response */
function said({ status, statusText }) {
  return `the server answered ${status} ${statusText}`;
}

/**
 * @param {number} milliseconds
 * @param {AbortSignal} signal
 */
function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
