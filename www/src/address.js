// The address of the page: it follows the state, and a pasted one is followed.

import { LogitscopeError } from "./errors.js";
import { fromFragment, toFragment } from "./state.js";

/**
 * @import { Wanted } from "./protocol.js"
 * @import { Beside } from "./state.js"
 */

/** How long the state must rest before the address follows: browsers limit how often. */
const REST_MS = 300;

/** Keeps a state in the fragment of the page's address. */
export class Address {
  #defaultSrc;
  #onPasted;
  #rest = 0;
  /** The fragment that the state is of, as the browser writes it. */
  #known = "";
  #followed = () => {
    if (this.#left) this.#onPasted();
  };

  /**
   * @param {string} defaultSrc the model that need not be named
   * @param {() => void} onPasted called when a reader goes to another state
   */
  constructor(defaultSrc, onPasted) {
    this.#defaultSrc = defaultSrc;
    this.#onPasted = onPasted;
    window.addEventListener("hashchange", this.#followed);
  }

  /** What the address says; throws when it is damaged. */
  read() {
    // What was to be written is of the state that this one replaces.
    clearTimeout(this.#rest);
    this.#note();
    const state = fromFragment(location.hash);
    if (state.src) state.src = addressed(state.src);
    return state;
  }

  /**
   * Writes a state as soon as it has rested for a moment.
   * @param {Wanted} state
   * @param {Beside} [beside]
   */
  writeSoon(state, beside) {
    clearTimeout(this.#rest);
    this.#rest = window.setTimeout(() => this.write(state, beside), REST_MS);
  }

  /**
   * @param {Wanted} state
   * @param {Beside} [beside]
   */
  write(state, beside) {
    clearTimeout(this.#rest);
    // The browser says so only in a moment: the old state must not stand over the new address.
    if (this.#left) return;
    history.replaceState(history.state, "", this.link(state, beside));
    this.#note();
  }

  /**
   * A state as a link that can be passed on, whether or not the browser keeps so long an address.
   * @param {Wanted} state
   * @param {Beside} [beside]
   */
  link(state, beside) {
    // A bare fragment would belong to the base of the page, which need not be its address.
    return new URL(`#${toFragment(state, this.#defaultSrc, beside)}`, location.href).href;
  }

  /**
   * Goes to another state, from which Back leads to this one.
   * @param {Wanted} state
   * @param {Beside} [beside]
   */
  enter(state, beside) {
    clearTimeout(this.#rest);
    history.pushState(history.state, "", this.link(state, beside));
    this.#note();
  }

  #note() {
    // Browsers escape what they must, so the fragment is what they made of it.
    this.#known = location.hash;
  }

  /** Whether the reader has gone to another address, which is not followed yet. */
  get #left() {
    return location.hash !== this.#known;
  }

  /** Follows no more. */
  close() {
    clearTimeout(this.#rest);
    window.removeEventListener("hashchange", this.#followed);
  }
}

/** The address of a model, as a link writes it. @param {string} src */
function addressed(src) {
  if (URL.canParse(src, document.baseURI)) return new URL(src, document.baseURI).href;
  const message = `The field “m” of the link is “${src}”, which is no address.`;
  throw new LogitscopeError({ code: "bad_input", param: "m", message });
}
