"""Writes ends.json: which tokens llama.cpp takes for ends of a generation.

For each case a tiny model file is made and loaded by llama.cpp (in the Python package
`xllamacpp`), whose log lists them. To run it again:

    pip install gguf==0.19.0 xllamacpp==2026.10.11549
    python tests/tokenizers/ends.py
"""

import json
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import gguf
import numpy as np

TEXT, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5
# For each case: tokens with their types, and the ids that the file names.
CASES = {
    "nothing": ([("<|begin|>", CONTROL), ("<|stop|>", CONTROL)], {}),
    "named by the file alone": ([("<|a|>", CONTROL), ("<|b|>", CONTROL), ("<|c|>", CONTROL)], {"eos": 1, "eot": 0, "eom": 2}),
    "chat marks": ([(text, CONTROL) for text in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")], {"eos": 0}),
    "marked as text": ([("<|im_end|>", TEXT), ("<|eot_id|>", USER_DEFINED), ("<|start|>", TEXT)], {}),
    "every text": (
        [
            (text, CONTROL)
            for text in (
                "<|eot_id|> <|im_end|> <|end|> <|return|> <|flush|> <end_of_turn> <|endoftext|> </s> <|eom_id|> <EOT> "
                "_<EOT> [EOT] [EOS] <|end_of_text|> <end_of_utterance> <eos> <turn|> <｜end▁of▁sentence｜> [e~[ "
                "<s> <bos> <pad> <unk> [SEP] <|end_header_id|> <start_of_turn> <|assistant|>"
            ).split()
        ],
        {"eos": 0},
    ),
    "parts of a program": (
        [(text, CONTROL) for text in ("<|fim_prefix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|endoftext|>")],
        {"eos": 4},
    ),
    "parts of a program, by id": (
        [(text, CONTROL) for text in ("<a>", "<b>", "<c>", "<|fim_pad|>", "<|endoftext|>")],
        {"eos": 4, "fim_pad": 0, "fim_rep": 1, "fim_sep": 2},
    ),
    "repository": ([("<repo_name>", CONTROL), ("<reponame>", CONTROL), ("<file_sep>", CONTROL)], {}),
    "an end that is none": ([("<|end|>", CONTROL), ("<|return|>", CONTROL), ("<|call|>", CONTROL)], {"eos": 1}),
    "an end that is none, otherwise": ([("<|end|>", CONTROL), ("<|flush|>", CONTROL), ("<|calls|>", CONTROL)], {}),
}
LOAD = """
import os, sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.verbosity, params.warmup = sys.argv[1], 64, 10, False
server = xllamacpp.Server(params)
time.sleep(0.3)  # the log is written by a thread
os._exit(0)  # an end in good order may wait for ever
"""


def byte_alphabet() -> list[str]:
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte) if byte in shown else chr(0x100 + hidden.index(byte)) for byte in range(256)]


def write(path: Path, special: list[tuple[str, int]], ids: dict[str, int]) -> None:
    """A model of the architecture llama with random weights, its special tokens first."""
    file = gguf.GGUFWriter(path, "llama")
    file.add_context_length(64)
    file.add_embedding_length(32)
    file.add_block_count(1)
    file.add_feed_forward_length(32)
    file.add_head_count(2)
    file.add_layer_norm_rms_eps(1e-6)
    file.add_rope_dimension_count(16)
    texts = [text for text, _ in special] + byte_alphabet() + ["ab"]
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("gpt-2")
    file.add_token_list(texts)
    file.add_token_types([kind for _, kind in special] + [TEXT] * 257)
    file.add_token_merges(["a b"])
    # Without a word on it, llama.cpp takes token 11 for the end.
    for name, token in {"bos": len(texts) - 1, "eos": len(texts) - 1, **ids}.items():
        file.add_uint32(f"tokenizer.ggml.{name}_token_id", token)
    draw = np.random.default_rng(1)
    shapes = {"token_embd": (len(texts), 32), "output_norm": (32,)}
    shapes |= {f"blk.0.{name}": (32,) for name in ("attn_norm", "ffn_norm")}
    names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    shapes |= {f"blk.0.{name}": (32, 32) for name in names}
    for name, shape in shapes.items():
        file.add_tensor(f"{name}.weight", draw.normal(size=shape).astype(np.float32))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def ends(path: Path, texts: list[str]) -> list[int]:
    command = [sys.executable, "-c", LOAD, path]
    log = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True, timeout=60).stderr
    _, _, log = log.partition("printing all EOG tokens:")
    found = [int(token) for token in re.findall(r" load:   - (\d+) \('", log)]
    removed = [texts.index(text) for text in re.findall(r"removing '(.*)' token from EOG list", log)]
    return sorted(set(found) - set(removed))  # the log says it twice


def main() -> None:
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (special, ids) in CASES.items():
            path = Path(folder) / "model.gguf"
            write(path, special, ids)
            # The last token stands for "the file names none".
            found = [token for token in ends(path, [text for text, _ in special]) if token < len(special)]
            cases.append({"name": name, "tokens": special, "ids": ids, "ends": found})
    out = {"made_by": f"xllamacpp {version('xllamacpp')}", "cases": cases}
    Path(__file__).with_name("ends.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")


main()
