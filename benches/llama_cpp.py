"""llama.cpp's tokens a second on a GGUF file, on one thread: the peer of `benches/model.rs`.

    pip install xllamacpp            # carries a compiled llama.cpp
    python benches/llama_cpp.py cache/SmolLM2-135M-Instruct.Q4_1.gguf

Prints the best of some runs, by processor time as the Rust bench does: a prompt read at
once, and tokens one by one after it. Times are the process's, so nothing else may run in it.
"""

import sys
import time

import xllamacpp

TEXT = "The quick brown fox jumps over the lazy dog, and then it runs back home before the rain starts. "
GENERATED = 64
REPEATS = 3


def main() -> None:
    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.n_ctx = 1024
    params.n_parallel = 1
    params.warmup = False
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)

    def seconds(prompt: str, count: int) -> tuple[float, int]:
        """Processor seconds to read a prompt afresh and write `count` tokens; tokens read."""
        start = time.process_time()
        answer = server.handle_completions(
            {"prompt": prompt, "n_predict": count, "temperature": 0, "cache_prompt": False, "ignore_eos": True}
        )
        return time.process_time() - start, answer["timings"]["prompt_n"]

    prompt = TEXT * 12
    seconds(prompt, 1)
    read = min(seconds(prompt, 1) for _ in range(REPEATS))
    written = min(seconds(prompt, 1 + GENERATED) for _ in range(REPEATS))
    print(f"xllamacpp {xllamacpp.__version__ if hasattr(xllamacpp, '__version__') else ''}")
    print(f"prompt of {read[1]} tokens: {read[1] / read[0]:.1f} tokens a second")
    print(f"generation: {GENERATED / (written[0] - read[0]):.1f} tokens a second")


if __name__ == "__main__":
    main()
