// What the page and its worker say to each other, as types; nothing here runs.
//
// Every request carries its whole state, because the text is a pure function of prompt,
// pipeline, seed, forced tokens and length. A worker that has never heard of a session can
// therefore answer for it, and replacing a lost worker is asking again.

/**
 * @import { ErrorData, Kept, ModelInfo, Progress, Room, Note, ParsedPipeline, Ranks, StageArgs, StageSpec, Step, StepTrace, Comparison, Family, Finish, Found, PenaltyView, Worksheet, Profile, Translation, Copied } from "./types.js"
 *
 * @typedef {object} Wanted the state a session shall be in
 * @property {string} src address of the model
 * @property {string} prompt
 * @property {string} pipeline
 * @property {string | null} seed decimal, because it has 64 bits
 * @property {Record<number, number>} forced position to token
 * @property {number} length tokens to have been generated
 * @property {boolean} [slide] whether a full context forgets its oldest half and goes on
 *
 * @typedef {object} Opened what is known before the first token
 * @property {string} pipeline canonical, with its seed
 * @property {string} seed
 * @property {Note[]} notes
 * @property {{ ids: number[], pieces: string[] }} prompt
 *
 * @typedef {"measured" | "cpu" | "gpu"} Choice where the reader wants it computed
 *
 * @typedef {object} DeviceState what a thread knows of its GPU
 * @property {Choice} choice
 * @property {boolean} pending whether a GPU is still being measured
 * @property {string | null} adapter the GPU, if there is one
 * @property {string | null} measured what it was measured to need, beside the CPU
 * @property {string} why why the CPU computes, if everything runs there; else empty
 *
 * @typedef {DeviceState & { step: number | null, logits: Place | null, stages: Place[] | null }} Places
 *   where the model's last matrix and each stage run, at a step; null where nothing asked a GPU
 *
 * @typedef {{ stage: string, device: boolean, why: string }} Place where one stage runs, and why
 * @typedef {Place & { rows: number, of: number }} Share where so many of its rows ran
 * @typedef {DeviceState & { places: Share[] }} Computed where a whole run was computed
 *
 * @typedef {object} Settled the end of a run
 * @property {number} length tokens there are
 * @property {Finish | null} finish
 * @property {StepTrace | null} preview the next step, decoded but not taken
 * @property {Places} places
 *
 * @typedef {object} Part news while a request is being answered
 * @property {Progress} [progress] of the model's file
 * @property {Opened} [opened]
 * @property {Step[]} [steps]
 * @property {[number, string][]} [pieces] texts of tokens not mentioned before
 *
 * @typedef {{ logits: number[], multiply: number, add: number, pipeline: string, u: number | null }} ByHandRequest
 *
 * @typedef {object} Calls each call with its arguments and its result
 * @property {{ args: { src: string }, result: { version: string, catalogue: StageSpec[], info: ModelInfo } }} load
 * @property {{ args: { text: string }, result: ParsedPipeline }} parse
 * @property {{ args: { stages: StageArgs[] }, result: string }} print
 * @property {{ args: {}, result: string }} freshSeed
 * @property {{ args: { session: string, wanted: Wanted, known: number }, result: Settled }} settle
 * @property {{ args: { session: string, wanted: Wanted, step: number, stage: number }, result: Ranks }} ranks
 * @property {{ args: { session: string, wanted: Wanted, step: number, tokens: number[] }, result: StepTrace }} ledger
 * @property {{ args: { session: string, wanted: Wanted, step: number, token: number }, result: Family }} family
 * @property {{ args: { session: string, wanted: Wanted, step: number }, result: PenaltyView[] }} penalties
 * @property {{ args: { session: string, wanted: Wanted, step: number, pipelines: string[] }, result: Comparison }} compare
 * @property {{ args: { request: ByHandRequest }, result: Worksheet }} worksheet
 * @property {{ args: { request: ByHandRequest, pipelines: string[], labels: string[] }, result: Comparison }} compareByHand
 * @property {{ args: {}, result: { profiles: Profile[], targets: string[] } }} profiles
 * @property {{ args: { name: string, params: string }, result: Translation }} translate
 * @property {{ args: { target: string, pipeline: string }, result: Copied }} copyAs
 * @property {{ args: { session: string, wanted: Wanted }, result: string }} traceFile
 * @property {{ args: { src: string, text: string, limit: number }, result: Found[] }} search
 * @property {{ args: { src: string, text: string, now: number }, result: string }} chat
 * @property {{ args: { src: string, file?: File, sha256?: string }, result: ModelInfo }} keep
 * @property {{ args: {}, result: Room & { models: Kept[] } | null }} kept
 * @property {{ args: { src: string }, result: null }} forget
 * @property {{ args: {}, result: null }} forgetAll
 * @property {{ args: { bytes: number }, result: null }} setBudget
 * @property {{ args: {}, result: null }} measured answers when a GPU has been measured, or there is none
 * @property {{ args: { session: string }, result: null }} release
 *
 * @typedef {{ id: number, call: keyof Calls, args: any } | { cancel: number }} Request
 * @typedef {{ awake: true } | { id: number, part: Part } | { id: number, result: any }
 *   | { id: number, error: ErrorData, fatal: boolean }} Answer `awake` is what a worker says first
 */

export {};
