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

    def speed(prompt: str, count: int, goes_on: bool) -> tuple[float, int]:
        """Tokens computed a processor second, and how many of the prompt were read."""
        start = time.process_time()
        answer = server.handle_completions(
            {"prompt": prompt, "n_predict": count, "temperature": 0, "cache_prompt": goes_on, "ignore_eos": True}
        )
        read = answer["timings"]["prompt_n"]
        return (read + count - 1) / (time.process_time() - start), read

    # Reading and writing are timed apart: a difference of two long times would be mostly noise.
    prompt = TEXT * 12
    speed(prompt, 1, False)
    reading, writing = [], []
    for _ in range(REPEATS):
        reading.append(speed(prompt, 1, False))
        # The text is still in the cache, but for its end.
        writing.append(speed(prompt, GENERATED, True))
    assert all(read <= 2 for _, read in writing), "the prompt was read again"
    print(f"xllamacpp {xllamacpp.__version__ if hasattr(xllamacpp, '__version__') else ''}")
    print(f"prompt of {reading[0][1]} tokens: {max(reading)[0]:.1f} tokens a second")
    print(f"generation: {max(writing)[0]:.1f} tokens a second")


if __name__ == "__main__":
    main()
