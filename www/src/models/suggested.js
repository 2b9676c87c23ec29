// Models that are worth a look, as data. None is fetched before a reader asks for it.
//
// Where `bytes` and `sha256` are given they belong to the revision in the address, and what
// arrives is held to them. Other sizes are about right; the true one is asked for first.

/**
 * @typedef {object} Suggestion
 * @property {string} name
 * @property {string} src
 * @property {number} bytes
 * @property {string} license
 * @property {string} what
 * @property {string} [sha256]
 */

/** @type {Suggestion[]} */
export const SUGGESTED = [
  {
    name: "SmolLM2 135M Instruct, Q4_K_M",
    src: "https://huggingface.co/unsloth/SmolLM2-135M-Instruct-GGUF/resolve/9e6855bc4be717fca1ef21360a1db4b29d5c559a/SmolLM2-135M-Instruct-Q4_K_M.gguf",
    bytes: 105_454_144,
    license: "Apache-2.0",
    what: "a small chat model that knows a little about everything",
    sha256: "ed5fa30c487b282ec156c29062f1222e5c20875a944ac98289dbd242e947f747",
  },
  {
    name: "SmolLM2 135M Instruct, Q8_0",
    src: "https://huggingface.co/unsloth/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct-Q8_0.gguf",
    bytes: 145_000_000,
    license: "Apache-2.0",
    what: "the same with weights of eight bits",
  },
  {
    name: "SmolLM2 360M Instruct, Q8_0",
    src: "https://huggingface.co/HuggingFaceTB/SmolLM2-360M-Instruct-GGUF/resolve/main/smollm2-360m-instruct-q8_0.gguf",
    bytes: 386_000_000,
    license: "Apache-2.0",
    what: "its larger sister",
  },
  {
    name: "Qwen2.5 0.5B Instruct, Q4_K_M",
    src: "https://huggingface.co/Qwen/Qwen2.5-0.5B-Instruct-GGUF/resolve/main/qwen2.5-0.5b-instruct-q4_k_m.gguf",
    bytes: 491_400_032,
    license: "Apache-2.0",
    what: "many languages, a vocabulary of 151 936 tokens",
  },
  {
    name: "Qwen3 0.6B, Q8_0",
    src: "https://huggingface.co/Qwen/Qwen3-0.6B-GGUF/resolve/23749fefcc72300e3a2ad315e1317431b06b590a/Qwen3-0.6B-Q8_0.gguf",
    bytes: 639_446_688,
    license: "Apache-2.0",
    what: "thinks before it answers",
    sha256: "9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031",
  },
];
