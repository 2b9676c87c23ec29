/* tslint:disable */
/* eslint-disable */

/**
 * A beam search.
 */
export class Beams {
    free(): void;
    [Symbol.dispose](): void;
    /**
     * Why the search ended, or null.
     */
    finish(): any;
    /**
     * Prepares a search: the options of a session, and a text such as `beam(width=4)`.
     */
    constructor(model: Model, options: any, strategy: string);
    /**
     * The tree, the steps and the sequences so far.
     */
    record(): any;
    /**
     * Lengthens every beam by one token; false when the search has ended.
     */
    step(): boolean;
}

/**
 * A pipeline with the state of its sampler, for rows of logits from elsewhere.
 */
export class Decoder {
    free(): void;
    [Symbol.dispose](): void;
    /**
     * The token for a row `[V]` in nats, after `history`, whose first `prompt_len` tokens are
     * the prompt. `u`, in `0..1`, replaces the seeded draw.
     */
    decode(row: Float32Array | number[], history: Uint32Array | number[], prompt_len: number, u?: number | null): number;
    /**
     * Reads a pipeline text; a seed that it leaves out is drawn.
     */
    constructor(pipeline: string);
    /**
     * As [`decode`](Self::decode), with the trace of the step in place of the token: what every
     * stage did, with the `top` likeliest tokens after each.
     */
    trace(row: Float32Array | number[], history: Uint32Array | number[], prompt_len: number, u: number | null | undefined, top: number): any;
}

/**
 * A file that arrives piece by piece.
 */
export class Incoming {
    free(): void;
    [Symbol.dispose](): void;
    /**
     * Reserves memory for a file of `size` bytes, if that is known.
     */
    constructor(size?: number | null);
    /**
     * Opens the complete file.
     */
    open(): Model;
    /**
     * Takes the next bytes.
     */
    push(piece: Uint8Array | number[]): void;
}

/**
 * A language model in memory.
 */
export class Model {
    private constructor();
    free(): void;
    [Symbol.dispose](): void;
    /**
     * Compiles a constraint and forgets it: throws what is wrong with it, and where.
     */
    checkConstraint(text: string): void;
    /**
     * What is known about it: the file's own statements, and a hash.
     */
    info(): any;
    /**
     * Opens the bytes of a GGUF file.
     */
    static open(bytes: Uint8Array | number[]): Model;
    /**
     * What a token stands for; bytes that are no character appear as `⟨e2⟩`.
     */
    piece(id: number): string;
    /**
     * One sequence from the prompt to its end, with what each step allowed and cost: the
     * options of a session, and a constraint that the finished text is checked with.
     */
    run(options: any, check?: string | null): any;
    /**
     * Tokens whose text contains `text`, or whose id it is: `[{id, piece}]`.
     */
    search(text: string, limit: number): any;
    /**
     * The same model once more, to be given away as a draft.
     */
    share(): Model;
    /**
     * A model that is a table, from JSON: `{"vocab": 5, "seed": 1, "scale": 1, "eos": 4}`. It
     * costs nothing to run, but its tokens have no texts.
     */
    static table(json: string): Model;
    /**
     * Ids and pieces of a text.
     */
    tokenize(text: string): any;
    /**
     * What a reader sees of a text as it comes, chunk by chunk: chunks of `size` bytes, or the
     * tokens of the text if `size` is 0; then once more when nothing more comes.
     */
    watch(text: string, size: number, stops: any): any;
}

/**
 * A generation with its traces.
 */
export class Session {
    free(): void;
    [Symbol.dispose](): void;
    /**
     * Several pipeline texts on the row of a step, all with the step's own draw: sides,
     * tokens, and where each further side parts from the first, in words.
     */
    compare(step: number, pipelines: any, top: number): any;
    /**
     * A hash of the trace file: equal digests, equal traces.
     */
    digest(): string;
    /**
     * The tokens of the same word at a step, with the way of each through it.
     */
    family(step: number, token: number): any;
    /**
     * How the generation ended; `null` if it has not.
     */
    finish(): any;
    /**
     * Takes this token in place of drawing one.
     */
    force(token: number): any;
    /**
     * The forced tokens by position.
     */
    forced(): any;
    /**
     * The way of single tokens through a step, wherever they stand, as a trace.
     */
    ledger(step: number, tokens: Uint32Array | number[]): any;
    /**
     * How many tokens have been generated.
     */
    length(): number;
    /**
     * Starts after a prompt: `{prompt, pipeline, seed, maxTokens, stop, forced, top}`.
     */
    constructor(model: Model, options: any);
    /**
     * What the pipeline's author should know.
     */
    notes(): any;
    /**
     * What every penalty looks at and does at a step.
     */
    penalties(step: number): any;
    /**
     * The pipeline text, every parameter filled in.
     */
    pipeline(): string;
    /**
     * The trace of the next step, without taking a token.
     */
    preview(): any;
    /**
     * Ids and pieces of the prompt.
     */
    prompt(): any;
    /**
     * The whole vocabulary of a step by raw rank: `{token, probability, alive}` as typed
     * arrays, `alive` after the given stage (0 is the raw row).
     */
    ranks(step: number, stage: number): any;
    /**
     * Forgets every token after the first `length`.
     */
    rewind(length: number): void;
    /**
     * The seed in force, in decimal.
     */
    seed(): string;
    /**
     * What the generation noticed, such as an end of sequence that a stage removed.
     */
    sequenceNotes(): any;
    /**
     * Changes the pipeline, keeping prompt, seed and forced tokens, and begins again.
     */
    setPipeline(text: string): void;
    /**
     * Where the constraint's parser stands: `{accepting, ended, broken, inside}`, or null.
     */
    standing(): any;
    /**
     * Decodes one token; `null` when the generation has ended.
     */
    step(): any;
    /**
     * What may be shown of the generated text.
     */
    text(): string;
    /**
     * Everything needed to replay the generation, as JSON text.
     */
    traceFile(): string;
    /**
     * The trace of a token already taken.
     */
    trace(step: number): any;
}

/**
 * A generation by drafting and judging.
 */
export class Speculation {
    free(): void;
    [Symbol.dispose](): void;
    /**
     * Every block so far.
     */
    blocks(): any;
    /**
     * Why the generation ended, or null.
     */
    finish(): any;
    /**
     * Prepares a generation: the options of a session, a text such as
     * `speculative(draft="other", tokens=4)`, and the draft model that it names, which is
     * given away: [`Model::share`] makes another.
     */
    constructor(model: Model, options: any, strategy: string, draft?: Model | null);
    /**
     * Drafts a block and has it judged; false when the sequence has ended.
     */
    step(): boolean;
    /**
     * What speculation saved or cost so far.
     */
    summary(): any;
    /**
     * The text so far.
     */
    text(): string;
}

/**
 * Sequences that begin alike, as one tree: a list of `{token, raw_logprob, final_logprob}`
 * for each branch in; `{nodes, ends}` out.
 */
export function branchTree(branches: any): any;

/**
 * The declaration of every stage, in catalogue order.
 */
export function catalogue(): any;

/**
 * Where two of the branches part, and what each cost; null if one does not exist.
 */
export function compareBranches(branches: any, a: number, b: number): any;

/**
 * A row worked by hand and what other pipelines make of it, as [`Session::compare`];
 * `labels` name the tokens.
 */
export function compareByHand(request: any, pipelines: any, labels: any): any;

/**
 * A pipeline as settings for another framework: `{text, params, warnings}`.
 */
export function copyAs(target: any, pipeline: string): any;

/**
 * The forms that [`copyAs`](copy_as) writes.
 */
export function copyTargets(): any;

/**
 * A seed from the browser's own randomness.
 */
export function freshSeed(): string;

/**
 * Counts many short sequences and holds them to the target's own probabilities:
 * `{options, strategy, fault, runs}`. `fault` is a mistake to make: `none`, `likeliest_draft`,
 * `mismatched_temperature` or `no_residual`.
 */
export function laboratory(model: Model, draft: Model | null | undefined, setup: any): any;

/**
 * Reads a pipeline text: `{text, stages, notes, seed}`, every parameter filled in, the
 * sampler last, its seed as a text.
 */
export function parsePipeline(text: string): any;

/**
 * The text of stages as objects, such as `{stage: "top_p", p: 0.9}`.
 */
export function printPipeline(stages: any): string;

/**
 * Every profile: `{name, version, source, parameters}`.
 */
export function profiles(): any;

/**
 * Of all short runs of tokens, the share that had come before.
 */
export function repetition(tokens: Uint32Array | number[]): number;

/**
 * What a framework makes of a request in its own words, as JSON text: `{pipeline, notes,
 * alternatives, …}`. `prompt_len` serves the parameters that count the prompt.
 */
export function translate(name: string, params: string, prompt_len: number): any;

/**
 * The version of the crate, such as `0.1.0`.
 */
export function version(): string;

/**
 * A row of logits worked by hand: `{logits, multiply, add, pipeline, u}` in, the trace with
 * the arithmetic of each stage out; see [`worksheet`].
 */
export function worksheet(request: any): any;

export type InitInput = RequestInfo | URL | Response | BufferSource | WebAssembly.Module;

export interface InitOutput {
    readonly memory: WebAssembly.Memory;
    readonly __wbg_beams_free: (a: number, b: number) => void;
    readonly __wbg_decoder_free: (a: number, b: number) => void;
    readonly __wbg_incoming_free: (a: number, b: number) => void;
    readonly __wbg_model_free: (a: number, b: number) => void;
    readonly __wbg_session_free: (a: number, b: number) => void;
    readonly __wbg_speculation_free: (a: number, b: number) => void;
    readonly beams_finish: (a: number) => [number, number, number];
    readonly beams_new: (a: number, b: any, c: number, d: number) => [number, number, number];
    readonly beams_record: (a: number) => [number, number, number];
    readonly beams_step: (a: number) => [number, number, number];
    readonly branchTree: (a: any) => [number, number, number];
    readonly catalogue: () => [number, number, number];
    readonly compareBranches: (a: any, b: number, c: number) => [number, number, number];
    readonly compareByHand: (a: any, b: any, c: any) => [number, number, number];
    readonly copyAs: (a: any, b: number, c: number) => [number, number, number];
    readonly copyTargets: () => [number, number, number];
    readonly decoder_decode: (a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number) => [number, number, number];
    readonly decoder_new: (a: number, b: number) => [number, number, number];
    readonly decoder_trace: (a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number, i: number) => [number, number, number];
    readonly freshSeed: () => [number, number, number, number];
    readonly incoming_new: (a: number, b: number) => [number, number, number];
    readonly incoming_open: (a: number) => [number, number, number];
    readonly incoming_push: (a: number, b: number, c: number) => [number, number];
    readonly laboratory: (a: number, b: number, c: any) => [number, number, number];
    readonly model_checkConstraint: (a: number, b: number, c: number) => [number, number];
    readonly model_info: (a: number) => [number, number, number];
    readonly model_open: (a: number, b: number) => [number, number, number];
    readonly model_piece: (a: number, b: number) => [number, number];
    readonly model_run: (a: number, b: any, c: number, d: number) => [number, number, number];
    readonly model_search: (a: number, b: number, c: number, d: number) => [number, number, number];
    readonly model_share: (a: number) => number;
    readonly model_table: (a: number, b: number) => [number, number, number];
    readonly model_tokenize: (a: number, b: number, c: number) => [number, number, number];
    readonly model_watch: (a: number, b: number, c: number, d: number, e: any) => [number, number, number];
    readonly parsePipeline: (a: number, b: number) => [number, number, number];
    readonly printPipeline: (a: any) => [number, number, number, number];
    readonly profiles: () => [number, number, number];
    readonly repetition: (a: number, b: number) => number;
    readonly session_compare: (a: number, b: number, c: any, d: number) => [number, number, number];
    readonly session_digest: (a: number) => [number, number];
    readonly session_family: (a: number, b: number, c: number) => [number, number, number];
    readonly session_finish: (a: number) => [number, number, number];
    readonly session_force: (a: number, b: number) => [number, number, number];
    readonly session_forced: (a: number) => [number, number, number];
    readonly session_ledger: (a: number, b: number, c: number, d: number) => [number, number, number];
    readonly session_length: (a: number) => number;
    readonly session_new: (a: number, b: any) => [number, number, number];
    readonly session_notes: (a: number) => [number, number, number];
    readonly session_penalties: (a: number, b: number) => [number, number, number];
    readonly session_pipeline: (a: number) => [number, number];
    readonly session_preview: (a: number) => [number, number, number];
    readonly session_prompt: (a: number) => [number, number, number];
    readonly session_ranks: (a: number, b: number, c: number) => [number, number, number];
    readonly session_rewind: (a: number, b: number) => void;
    readonly session_seed: (a: number) => [number, number];
    readonly session_sequenceNotes: (a: number) => [number, number, number];
    readonly session_setPipeline: (a: number, b: number, c: number) => [number, number];
    readonly session_standing: (a: number) => [number, number, number];
    readonly session_step: (a: number) => [number, number, number];
    readonly session_text: (a: number) => [number, number];
    readonly session_trace: (a: number, b: number) => [number, number, number];
    readonly session_traceFile: (a: number) => [number, number];
    readonly speculation_blocks: (a: number) => [number, number, number];
    readonly speculation_finish: (a: number) => [number, number, number];
    readonly speculation_new: (a: number, b: any, c: number, d: number, e: number) => [number, number, number];
    readonly speculation_step: (a: number) => [number, number, number];
    readonly speculation_summary: (a: number) => [number, number, number];
    readonly speculation_text: (a: number) => [number, number];
    readonly translate: (a: number, b: number, c: number, d: number, e: number) => [number, number, number];
    readonly version: () => [number, number];
    readonly worksheet: (a: any) => [number, number, number];
    readonly llg_cancel: (a: number) => void;
    readonly llg_clone_cancellation_handle: (a: number) => number;
    readonly llg_clone_constraint: (a: number) => number;
    readonly llg_clone_matcher: (a: number) => number;
    readonly llg_clone_stop_controller: (a: number) => number;
    readonly llg_commit_token: (a: number, b: number, c: number) => number;
    readonly llg_compute_mask: (a: number, b: number) => number;
    readonly llg_constraint_init_set_defaults: (a: number, b: number) => void;
    readonly llg_decode_tokens: (a: number, b: number, c: number, d: number, e: number, f: number) => number;
    readonly llg_flush_logs: (a: number) => number;
    readonly llg_free_cancellation_handle: (a: number) => void;
    readonly llg_free_constraint: (a: number) => void;
    readonly llg_free_matcher: (a: number) => void;
    readonly llg_free_stop_controller: (a: number) => void;
    readonly llg_free_tokenizer: (a: number) => void;
    readonly llg_get_error: (a: number) => number;
    readonly llg_get_temperature: (a: number) => number;
    readonly llg_get_version: () => number;
    readonly llg_is_stopped: (a: number) => number;
    readonly llg_matcher_compute_ff_tokens: (a: number, b: number, c: number) => number;
    readonly llg_matcher_compute_mask: (a: number) => number;
    readonly llg_matcher_compute_mask_into: (a: number, b: number, c: number) => number;
    readonly llg_matcher_consume_token: (a: number, b: number) => number;
    readonly llg_matcher_consume_tokens: (a: number, b: number, c: number) => number;
    readonly llg_matcher_get_cancellation_handle: (a: number) => number;
    readonly llg_matcher_get_error: (a: number) => number;
    readonly llg_matcher_get_mask: (a: number) => number;
    readonly llg_matcher_get_mask_byte_size: (a: number) => number;
    readonly llg_matcher_is_accepting: (a: number) => number;
    readonly llg_matcher_is_cancelled: (a: number) => number;
    readonly llg_matcher_is_error: (a: number) => number;
    readonly llg_matcher_is_stopped: (a: number) => number;
    readonly llg_matcher_reset: (a: number) => number;
    readonly llg_matcher_rollback: (a: number, b: number) => number;
    readonly llg_matcher_validate_tokens: (a: number, b: number, c: number) => number;
    readonly llg_new_constraint: (a: number, b: number) => number;
    readonly llg_new_constraint_any: (a: number, b: number, c: number) => number;
    readonly llg_new_constraint_json: (a: number, b: number) => number;
    readonly llg_new_constraint_lark: (a: number, b: number) => number;
    readonly llg_new_constraint_regex: (a: number, b: number) => number;
    readonly llg_new_matcher: (a: number, b: number, c: number) => number;
    readonly llg_new_stop_controller: (a: number, b: number, c: number, d: number, e: number, f: number) => number;
    readonly llg_new_tokenizer: (a: number, b: number, c: number) => number;
    readonly llg_new_tokenizer_v2: (a: number, b: number, c: number) => number;
    readonly llg_par_compute_mask: (a: number, b: number, c: number, d: number) => void;
    readonly llg_stop_commit_token: (a: number, b: number, c: number, d: number) => number;
    readonly llg_stringify_tokens: (a: number, b: number, c: number, d: number, e: number) => number;
    readonly llg_tokenize_bytes: (a: number, b: number, c: number, d: number, e: number) => number;
    readonly llg_tokenize_bytes_marker: (a: number, b: number, c: number, d: number, e: number) => number;
    readonly llg_validate_grammar: (a: number, b: number, c: number, d: number, e: number) => number;
    readonly llg_clone_tokenizer: (a: number) => number;
    readonly __wbindgen_malloc: (a: number, b: number) => number;
    readonly __wbindgen_realloc: (a: number, b: number, c: number, d: number) => number;
    readonly __wbindgen_free: (a: number, b: number, c: number) => void;
    readonly __wbindgen_exn_store: (a: number) => void;
    readonly __externref_table_alloc: () => number;
    readonly __wbindgen_externrefs: WebAssembly.Table;
    readonly __externref_table_dealloc: (a: number) => void;
    readonly __wbindgen_start: () => void;
}

export type SyncInitInput = BufferSource | WebAssembly.Module;

/**
 * Instantiates the given `module`, which can either be bytes or
 * a precompiled `WebAssembly.Module`.
 *
 * @param {{ module: SyncInitInput }} module - Passing `SyncInitInput` directly is deprecated.
 *
 * @returns {InitOutput}
 */
export function initSync(module: { module: SyncInitInput } | SyncInitInput): InitOutput;

/**
 * If `module_or_path` is {RequestInfo} or {URL}, makes a request and
 * for everything else, calls `WebAssembly.instantiate` directly.
 *
 * @param {{ module_or_path: InitInput | Promise<InitInput> }} module_or_path - Passing `InitInput` directly is deprecated.
 *
 * @returns {Promise<InitOutput>}
 */
export default function __wbg_init (module_or_path: { module_or_path: InitInput | Promise<InitInput> } | InitInput | Promise<InitInput>): Promise<InitOutput>;
