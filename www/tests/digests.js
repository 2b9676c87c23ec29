// Traces of the recorded cases, for whichever engine is loaded.

/**
 * @import { Model, Session } from "../pkg/logitscope.js"
 * @typedef {{ options: object, tokens: number, digest: string }} Case
 */

/**
 * Runs each case to its end and returns what `tests/digests.json` records of it.
 * @param {{ Model: typeof Model, Session: typeof Session }} engine
 * @param {Uint8Array} modelBytes
 * @param {Case[]} cases
 */
export function traceAll(engine, modelBytes, cases) {
  const model = engine.Model.open(modelBytes);
  return cases.map(({ options }) => {
    const session = new engine.Session(model, options);
    while (session.step()) {}
    const result = { tokens: session.length(), digest: session.digest() };
    session.free();
    return result;
  });
}
