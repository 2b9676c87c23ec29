/**
 * What the page and its thread say to each other.
 *
 * @typedef {{ask: "adapter"} | {ask: "check", full: boolean} |
 *   {ask: "bench", vocabularies: Uint32Array, batches: Uint32Array}} Asked
 *
 * @typedef {{tell: "adapter", adapter: Adapter, version: string} |
 *   {tell: "progress", line: string} | {tell: "report", full: boolean, report: Report} |
 *   {tell: "line", line: Line} | {tell: "done"} | {tell: "failed", message: string}} Told
 *
 * @typedef {object} Adapter
 * @property {string} name
 * @property {string} backend
 * @property {boolean} software
 *
 * @typedef {object} Report
 * @property {string} adapter
 * @property {number} comparisons
 * @property {number} launches
 * @property {number} sorted
 * @property {number} by_radix
 * @property {string[]} differences
 * @property {number} different
 * @property {string[]} rejected
 * @property {string[]} survived
 * @property {string} hash
 * @property {string} published empty if only a part of the suite ran
 * @property {{pipeline: string, cost: Cost, bytes_a_token: number}[]} costs
 * @property {boolean} passed
 *
 * @typedef {object} Cost
 * @property {number} dispatches
 * @property {number} submissions
 * @property {number} maps
 * @property {number} read_back
 * @property {number} traffic
 * @property {number} uploaded
 *
 * @typedef {object} Line
 * @property {number} vocabulary
 * @property {number} rows
 * @property {number} ours_ms
 * @property {number | null} sort_ms
 * @property {number} cpu_ms
 * @property {Cost} cost
 * @property {number} sort_dispatches
 * @property {number} bandwidth
 */

export {};
