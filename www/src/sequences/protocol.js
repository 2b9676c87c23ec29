// What the Sequences area and its worker say to each other, as types. Field names are those
// of the Rust structures in src/run.rs, src/strategy/ and src/stop/; nothing here runs.

/**
 * @import { Computed } from "../protocol.js"
 * @import { ErrorData, Finish, Note } from "../types.js"
 *
 * @typedef {object} Options what a sequence starts from
 * @property {string} [prompt]
 * @property {number[]} [promptIds] in place of the text
 * @property {string} pipeline
 * @property {string} [seed]
 * @property {number} [sample]
 * @property {number} [maxTokens]
 * @property {string[]} [stop]
 * @property {boolean} [trim]
 * @property {number[]} [eos]
 * @property {string} [constraint]
 * @property {Map<number, number>} [forced] position to token
 *
 * @typedef {{ accepting: boolean, ended: boolean, broken: boolean, inside: string }} Standing
 *
 * @typedef {object} ConstraintTrace
 * @property {number} allowed
 * @property {number} feasible_mass
 * @property {number | null} top_forbidden
 * @property {number} top_forbidden_probability
 * @property {boolean} off_manifold
 * @property {Standing} standing before the step
 *
 * @typedef {{ token: number, raw_logprob: number, final_logprob: number | null }} Taken
 * @typedef {{ token: number, probability: number }} Share
 *
 * @typedef {Taken & {
 *   running_logprob: number,
 *   alive: number,
 *   others: Share[],
 *   constraint: ConstraintTrace | null,
 *   text: string,
 *   held_back: string,
 *   partial: string,
 * }} RunStep
 *
 * @typedef {object} Run
 * @property {RunStep[]} steps
 * @property {string} text
 * @property {Finish | null} finish
 * @property {Standing | null} standing
 * @property {boolean | null} check
 * @property {number} raw_logprob
 * @property {number} final_logprob
 * @property {number} repetition
 * @property {number | null} last_fork
 * @property {Note[]} notes
 * @property {string} pipeline
 * @property {string} seed
 * @property {Computed | null} computed
 *
 * @typedef {"runs" | "hypothesis" | "displaced" | "ended_too_low" | "pruned"} Fate
 * @typedef {{ parent: number | null, token: number, length: number, group: number, rank: number,
 *   logprob: number, sum: number, score: number, fate: Fate }} BeamNode
 * @typedef {{ nodes: { start: number, end: number }, beams: number[], hypotheses: number,
 *   shared_prefix: number, parents: number, cache_bytes: number, cache_bytes_shared: number }} BeamStep
 * @typedef {{ node: number, tokens: number[], text: string, sum: number, length: number,
 *   score: number, finish: Finish }} BeamSequence
 *
 * @typedef {object} BeamRecord
 * @property {{ width: number, groups: number, length_penalty: number }} options
 * @property {boolean} sampled
 * @property {BeamNode[]} nodes
 * @property {BeamStep[]} steps
 * @property {BeamSequence[]} sequences best first
 * @property {number} passes
 * @property {number} rows
 * @property {number} peak_cache_bytes
 * @property {number} peak_cache_bytes_shared
 * @property {Note[]} notes
 *
 * @typedef {{ record: BeamRecord, finish: Finish | null, computed: Computed | null }} BeamResult
 *
 * @typedef {{ token: number, p: number, q: number, ratio: number, uniform: number,
 *   accepted: boolean | null }} Drafted
 * @typedef {{ token: number, source: "residual" | "bonus" | "target", uniform: number,
 *   probability: number, distribution: Share[] }} Next
 * @typedef {{ start: number, drafted: Drafted[], accepted: number, next: Next | null,
 *   copied_from: number | null, draft_passes: number }} Block
 * @typedef {{ tokens: number, target_passes: number, draft_passes: number, drafted: number,
 *   judged: number, accepted: number, acceptance_rate: number, tokens_per_pass: number,
 *   draft_size: number, speedup: number }} Summary
 * @typedef {{ blocks: Block[], summary: Summary, text: string, finish: Finish | null,
 *   milliseconds: number | null, plain: number | null, computed: Computed | null }} Speculated
 *
 * @typedef {{ statistic: number, degrees: number, p_value: number }} ChiSquare
 * @typedef {{ tokens: number[], expected: number, observed: number }} Cell
 * @typedef {{ chi_square: ChiSquare, total_variation: number, cells: Cell[], summary: Summary }} Findings
 * @typedef {"none" | "likeliest_draft" | "mismatched_temperature" | "no_residual"} Mistake
 * @typedef {{ options: Options, strategy: string, fault: Mistake, runs: number }} Setup
 *
 * @typedef {{ chunk: number[], text: string, held_back: string, partial: number[],
 *   matched: string | null }} Moment
 *
 * @typedef {{ parent: number | null, taken: Taken, length: number, running_logprob: number,
 *   branches: number[], children: number[] }} TreeNode
 * @typedef {{ nodes: TreeNode[], ends: (number | null)[] }} Tree
 * @typedef {{ shared: number, tokens: (number | null)[], choice_logprobs: (number | null)[],
 *   logprobs: number[], logprobs_per_token: number[], same_ending: number }} Parting
 *
 * @typedef {object} Calls each call with its arguments and its result
 * @property {{ args: { src: string, options: Options, check?: string }, result: Run }} run
 * @property {{ args: { src: string, text: string }, result: null }} checkConstraint
 * @property {{ args: { src: string, options: Options, strategy: string }, result: BeamResult }} beams
 * @property {{ args: { src: string, draft: string | null, options: Options, strategy: string }, result: Speculated }} speculate
 * @property {{ args: { src: string, draft: string, setup: Setup, tables: boolean }, result: Findings }} laboratory
 * @property {{ args: { src: string, text: string, size: number, stops: string[] }, result: Moment[] }} watch
 * @property {{ args: { tokens: number[] }, result: number }} repetition
 * @property {{ args: { branches: Taken[][] }, result: Tree }} tree
 * @property {{ args: { branches: Taken[][], a: number, b: number }, result: Parting | null }} parting
 *
 * @typedef {{ id: number, call: keyof Calls, args: any }} Request
 * @typedef {{ id: number, result: any, pieces: [number, string][] }
 *   | { id: number, part: any, pieces: [number, string][] }
 *   | { id: number, error: ErrorData, fatal: boolean }} Answer `fatal` is an engine that cannot go on
 */

export {};
