// What the engine sends, as types. Field names are those of the Rust structures in
// src/trace.rs and src/spec.rs; nothing here runs.

/**
 * @typedef {object} Verdict why a token lives or died
 * @property {string} reason
 * @property {number} value
 * @property {number} limit
 * @property {number} margin
 *
 * @typedef {object} Row one token after a stage
 * @property {number} token
 * @property {number} rank from 0
 * @property {number} score nats, divided by the temperatures so far
 * @property {number} probability after the stage; 0 if it died
 * @property {number | null} [probability_before]
 * @property {number} mass_before
 * @property {boolean} alive
 * @property {Verdict | null} [verdict]
 *
 * @typedef {{ token: number, count: number, mass_before: number, mass: number }} CutTrace
 * @typedef {{ token: number, score?: number | null, why: string }} EditTrace
 * @typedef {{ token: number, low: number, high: number }} Slice
 *
 * @typedef {object} StageTrace the row after one stage
 * @property {string} stage
 * @property {string} id
 * @property {string} label
 * @property {number} alive_before
 * @property {number} alive
 * @property {number} removed_mass
 * @property {number} entropy nats
 * @property {number} temperature
 * @property {Row[]} rows
 * @property {number} rest_mass
 * @property {CutTrace | null} [cut]
 * @property {number | null} [limit]
 * @property {EditTrace[]} edits
 *
 * @typedef {object} DrawTrace
 * @property {number} token
 * @property {number} u
 * @property {boolean} random
 * @property {boolean} [noise] whether noise on every score decided, so that `u` need not lie between
 * @property {boolean} forced
 * @property {number} low
 * @property {number} high
 * @property {number} margin
 * @property {number} probability
 * @property {number} raw_logprob
 * @property {number | null} [final_logprob]
 * @property {Slice[]} slices
 *
 * @typedef {{ stages: StageTrace[], draw?: DrawTrace | null }} StepTrace
 *
 * @typedef {{ reason: string, also?: string[], stop_string?: string | null, stage?: string | null, message?: string | null }} Finish
 *
 * @typedef {object} Step one generated token
 * @property {number} index
 * @property {number} token
 * @property {string} piece
 * @property {string} text everything decoded so far
 * @property {StepTrace} trace
 * @property {Finish | null} [finish]
 * @property {number} [forgotten] of the first tokens, how many the model no longer saw
 *
 * @typedef {object} ParamSpec
 * @property {string} name
 * @property {"number" | "integer" | "word" | "seed" | "ids" | "sequences" | "bias"
 *   | "sequence_bias" | "forced" | "texts"} type
 * @property {number} [min]
 * @property {number} [max]
 * @property {boolean} [min_excluded]
 * @property {string[]} [words]
 * @property {string | null} [default] as written in the text form
 * @property {string | null} [neutral]
 * @property {[number, number, number] | null} [slider] low, high, step
 * @property {string} unit
 * @property {string} help
 *
 * @typedef {object} StageSpec
 * @property {string} id
 * @property {string} label
 * @property {"edit" | "reshape" | "truncate" | "sampler"} kind
 * @property {string} summary
 * @property {string} formula
 * @property {string} source
 * @property {ParamSpec[]} params
 * @property {string[]} laws
 *
 * @typedef {{ stage: string } & Record<string, unknown>} StageArgs a stage with its values
 *
 * @typedef {{ code: string, stage: string, message: string }} Note
 *
 * @typedef {object} ParsedPipeline
 * @property {string} text canonical: every parameter printed
 * @property {StageArgs[]} stages the last is the sampler
 * @property {Note[]} notes
 * @property {string | null} [seed]
 *
 * @typedef {object} ModelInfo
 * @property {string | null} name
 * @property {string} architecture
 * @property {number} parameters
 * @property {number} file_bytes
 * @property {number} context_length
 * @property {number} vocabulary_size
 * @property {string} hash
 * @property {string | null} sha256 of the whole file
 * @property {string | null} bos_token the text of the token that begins a sequence
 * @property {string | null} eos_token and of the first that ends one
 * @property {string | null} chat_template
 *
 * @typedef {{ loaded: number, total: number, left: number | null }} Progress bytes, 0 where
 *   unknown, and seconds left
 *
 * @typedef {object} Kept a model in the browser's storage
 * @property {string} src
 * @property {number | null} size bytes of the whole file
 * @property {number} loaded bytes of it that are there
 * @property {string | null} sha256 once it is complete
 *
 * @typedef {object} Room what may be kept, in bytes
 * @property {number} budget the reader's limit
 * @property {number} used
 * @property {number | null} quota the browser's limit for everything of this page
 * @property {number} usage
 *
 * @typedef {object} ErrorData a refusal, as data
 * @property {string} code
 * @property {string | null} [stage]
 * @property {string | null} [param]
 * @property {number | null} [position] byte offset in the text that was read
 * @property {string} message
 *
 * @typedef {object} Sum how the scores after a stage become probabilities
 * @property {number} highest
 * @property {{ token: number, below: number, exponential: number, plain: number | null }[]} terms
 * @property {number} others live tokens out of view
 * @property {number} others_total the sum of their exponentials
 * @property {number} total
 * @property {number | null} plain_total
 *
 * @typedef {object} Worksheet
 * @property {StepTrace} trace
 * @property {Sum[]} sums
 * @property {{ token: number, probability: number }[]} before the raw row before anything was
 *   multiplied or added; empty if nothing was
 * @property {number | null} rounding how far the largest rounding to f32 moved a score, in nats;
 *   null where that cannot be seen
 *
 * @typedef {object} Side one pipeline's side of a comparison
 * @property {string} pipeline
 * @property {StepTrace} trace
 * @property {number} kept
 * @property {{ token: number, u: number, low: number, high: number } | null} taken
 * @property {{ stage: string, kept: number, least: number | null, ids: number[] }[]} alone what
 *   each truncation keeps without the others
 * @property {number} intersection how many tokens all of them keep
 * @property {ErrorData | null} error
 *
 * @typedef {object} Parting where a side parts from the first
 * @property {number} side
 * @property {number | null} place
 * @property {string | null} here
 * @property {string | null} there
 * @property {string | null} cuts_otherwise
 * @property {[number, number | null]} only_here
 * @property {[number, number | null]} only_there
 * @property {string} words
 *
 * @typedef {{ token: number, raw: number, sides: (number | null)[] }} Compared
 * @typedef {{ sides: Side[], tokens: Compared[], partings: Parting[] }} Comparison
 *
 * @typedef {object} Penalised what a penalty did to one token
 * @property {number} token
 * @property {number} count
 * @property {number} before
 * @property {number | null} after
 * @property {"down" | "up" | "same" | "removed"} direction
 * @property {string} why
 * @property {{ earlier: Places, now: Places, length: number, penalty: number } | null} repetition
 *
 * @typedef {{ start: number, end: number }} Places a range of the history, the end excluded
 *
 * @typedef {object} PenaltyView one penalty at a step
 * @property {string} stage
 * @property {string} id
 * @property {Places} view
 * @property {Penalised[]} tokens
 * @property {number | null} breaker
 * @property {Note[]} warnings
 *
 * @typedef {object} Family the tokens of one word at a step
 * @property {{ token: number, kinship: "itself" | "space" | "case" | "fragment", piece: string }[]} relatives
 * @property {number} left_out
 * @property {number} raw_mass
 * @property {number} final_mass
 * @property {StepTrace} trace
 *
 * @typedef {{ id: number, piece: string }} Found
 *
 * @typedef {{ code: string, param: string | null, message: string }} ProfileNote
 *
 * @typedef {object} Profile a framework at a version
 * @property {string} name
 * @property {string} version
 * @property {string} source
 * @property {{ name: string, default: unknown }[]} parameters
 *
 * @typedef {object} Translation a request in a framework's words, as a pipeline
 * @property {string} pipeline
 * @property {string[]} alternatives
 * @property {ProfileNote[]} notes
 *
 * @typedef {{ text: string, warnings: ProfileNote[] }} Copied settings for a framework
 *
 * @typedef {object} Ranks the whole vocabulary after a stage
 * @property {ArrayLike<number>} token
 * @property {ArrayLike<number>} probability of the raw row, in rank order
 * @property {ArrayLike<number>} alive after the stage, in the same order
 */

export {};
