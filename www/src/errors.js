// The one error type of the page: the engine's refusals, and the page's own.

/** @import { ErrorData } from "./types.js" */

/** A refusal with a stable code, and where the fault lies. */
export class LogitscopeError extends Error {
  /** @param {ErrorData} data */
  constructor({ code, stage, param, position, message }) {
    super(message);
    this.name = "LogitscopeError";
    this.code = code;
    this.stage = stage ?? null;
    this.param = param ?? null;
    this.position = position ?? null;
  }
}

/**
 * What an error says, as plain data that survives `postMessage`.
 * @param {unknown} error
 * @returns {ErrorData}
 */
export function errorData(error) {
  const fields = /** @type {Partial<ErrorData>} */ (error instanceof Error ? error : {});
  const { code = "internal", stage, param, position } = fields;
  const message = error instanceof Error ? error.message : String(error);
  return { code, stage, param, position, message };
}

/** Whether an error only says that its work is no longer wanted. @param {unknown} error */
export function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}
