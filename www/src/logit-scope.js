import { html, LitElement } from "lit";
import { engineVersion } from "./client.js";

/** Shows that the engine runs. A placeholder until the real element lands. */
export class LogitScope extends LitElement {
  static properties = { version: { state: true } };

  constructor() {
    super();
    this.version = "";
  }

  connectedCallback() {
    super.connectedCallback();
    void this.#start();
  }

  async #start() {
    this.version = await engineVersion();
  }

  render() {
    return html`<p>Engine ${this.version}</p>`;
  }
}

customElements.define("logit-scope", LogitScope);
