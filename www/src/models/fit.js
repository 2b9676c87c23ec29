// Whether a model will fit, asked before it is downloaded.

import { LogitscopeError } from "../errors.js";
import { megabytes } from "../format.js";

/** @import { Room } from "../types.js" */

/** The engine's addresses have 32 bits, and one file may take half of them. */
export const MOST_BYTES = 2 ** 31 - 1;

/**
 * Refuses a model, with the numbers, that memory, budget or storage cannot hold.
 * @param {number} size bytes of the whole file
 * @param {number} have bytes of it that are kept already
 * @param {Room | null} room null where nothing is kept
 */
export function expectRoom(size, have, room) {
  if (size > MOST_BYTES) {
    throw refusal(
      "model_too_large",
      `The model has ${megabytes(size)}, but the engine can hold ${megabytes(MOST_BYTES)} at most. Nothing was downloaded.`,
    );
  }
  if (!room) return;
  const more = size - have;
  const { budget, used, quota, usage } = room;
  if (used + more > budget) {
    throw refusal(
      "over_budget",
      `The model has ${megabytes(size)}, but of the ${megabytes(budget)} that may be kept ${megabytes(used - have)} are in use by other models. Nothing was downloaded. Remove a model or raise the limit.`,
    );
  }
  if (quota !== null && usage + more > quota) {
    throw refusal(
      "storage_full",
      `The model needs ${megabytes(more)}, but the browser gives this page only ${megabytes(Math.max(0, quota - usage))} more. Nothing was downloaded.`,
    );
  }
}

/**
 * Refuses to go on with a model of unknown size where what has arrived is too much already.
 * @param {number} arrived bytes
 * @param {Room | null} room null where nothing is kept
 */
export function expectRoomSoFar(arrived, room) {
  if (!room || room.used + arrived <= room.budget) return;
  const { budget, used } = room;
  throw refusal(
    "over_budget",
    `The server does not tell how large the model is, and with ${megabytes(arrived)} of it there is no room for more: of the ${megabytes(budget)} that may be kept ${megabytes(used)} are in use by other models. Nothing of it is kept. Remove a model or raise the limit.`,
  );
}

/**
 * @param {string} code
 * @param {string} message
 */
export function refusal(code, message) {
  return new LogitscopeError({ code, param: "src", message });
}
