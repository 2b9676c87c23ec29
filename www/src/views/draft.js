// What a reader is typing belongs to the reader: no repaint may take it back.
//
// `.value=${draft(text)}` writes `text` into a field whenever the field shows something else,
// as `live` does, but not while the reader is typing there. Typing begins with the first
// key and ends when the field is left or its text is applied.

import { noChange } from "lit";
import { Directive, directive } from "lit/directive.js";
import { setCommittedValue } from "lit/directive-helpers.js";

/** @typedef {HTMLInputElement | HTMLTextAreaElement} Field */

class Draft extends Directive {
  #typing = false;
  /** @type {Field | null} */
  #field = null;

  /** @param {string} text */
  render(text) {
    return text;
  }

  /**
   * @param {import("lit/directive.js").PropertyPart} part
   * @param {[string]} values
   */
  update(part, [text]) {
    const field = /** @type {Field} */ (part.element);
    if (this.#field !== field) this.#watch(field);
    if (this.#typing || field.value === text) return noChange;
    // Lit would not write what it wrote last; the field may have changed since.
    setCommittedValue(part);
    return text;
  }

  /** @param {Field} field */
  #watch(field) {
    this.#field = field;
    field.addEventListener("input", () => {
      this.#typing = true;
    });
    // Before those who apply the text, so that they may write what became of it.
    const end = () => {
      this.#typing = false;
    };
    field.addEventListener("change", end, { capture: true });
    field.addEventListener("blur", end);
  }
}

/** The text of a field that is read when it is applied; see the module. */
export const draft = directive(Draft);
