// A model's chat template, applied to a message.
//
// The command line does the same with another engine (src/model/chat/), which would be a
// third of the page; tests/chat/ holds both to what a third one gives.

import { Template } from "@huggingface/jinja";
import { refusal } from "./fit.js";
import { functions, withFunctions } from "./functions.js";
import { withoutJumps } from "./loops.js";

/**
 * @typedef {{ role: string, content: string }} Message
 */

/**
 * The text that asks a model for the next turn.
 * @param {string | null} template Jinja source, as the model's file carries it
 * @param {Message[]} messages
 * @param {{ bos?: string | null, eos?: string | null, date?: Date }} [more] texts of the tokens that begin and end
 *   a sequence; the date, of which some templates tell the model
 */
export function render(template, messages, { bos, eos, date } = {}) {
  if (!template) throw refusal("model_unsupported", "The model's file has no chat template.");
  try {
    const read = new Template(template);
    const { parsed } = /** @type {{ parsed: { body: any[] } }} */ (/** @type {unknown} */ (read));
    parsed.body = withFunctions(withoutJumps(parsed.body));
    return read.render({
      messages,
      add_generation_prompt: true,
      tools: null,
      documents: null,
      ...functions(date),
      bos_token: bos ?? "",
      eos_token: eos ?? "",
    });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw refusal("model_unsupported", `The model's chat template cannot be applied: ${why}`);
  }
}
