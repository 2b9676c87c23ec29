"""Step 4: keep the best weights of a run, and write them as GGUF.

    python export.py NAME --gguf ../models/NAME.gguf

Keeps `build/NAME/best.safetensors` as bf16 in `weights/NAME.safetensors`, with the log and
the tokenizer beside it: these are the masters, and they are committed. The GGUF file is made
from them alone, so `--from-weights` makes it again without training anything.

Matrices are stored as Q8_0, norms as F32. The query and key rows are put in the order that
GGUF's llama architecture expects: rotary pairs next to each other.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="a table of candidates.toml")
    parser.add_argument("--gguf", type=Path, help="where to write the GGUF file")
    parser.add_argument("--from-weights", action="store_true", help="use the committed masters")
    return parser.parse_args()


if __name__ == "__main__":
    # Before the rest is imported, so that --help needs nothing installed.
    ARGUMENTS = read_arguments()

import gguf
import numpy as np
import torch
from gguf.quants import quantize
from safetensors.torch import load_file, save_file
from torch import Tensor

from model import RMS_EPSILON, ROPE_BASE, Shape
from paths import BUILD, END_OF_TEXT, TOKENIZER, WEIGHTS
from train import load_run

TITLES = {
    "default": ("Logitscope default", "The small language model that the Logitscope page opens with"),
    "draft": ("Logitscope draft", "The draft model for speculative decoding with Logitscope default"),
}
LICENCE = "MIT OR Apache-2.0"
LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def keep(name: str) -> None:
    """Copies what a run has learned, as bf16, to the folder of committed masters."""
    WEIGHTS.mkdir(exist_ok=True)
    weights = load_file(BUILD / name / "best.safetensors")
    save_file({k: v.bfloat16() for k, v in weights.items()}, WEIGHTS / f"{name}.safetensors")
    shutil.copy(BUILD / name / "log.jsonl", WEIGHTS / f"{name}.log.jsonl")
    shutil.copy(TOKENIZER, WEIGHTS / "tokenizer.json")


def gguf_name(name: str) -> str:
    """The GGUF name of a parameter of `model.Model`."""
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{LAYER_NAMES[rest.removesuffix('.weight')]}.weight"


def interleave(weight: np.ndarray, heads: int) -> np.ndarray:
    """From rotary halves (Hugging Face) to rotary pairs (GGUF)."""
    rows, columns = weight.shape
    halves = weight.reshape(heads, 2, rows // heads // 2, columns)
    return halves.swapaxes(1, 2).reshape(rows, columns)


def add_tokenizer(writer: gguf.GGUFWriter) -> None:
    model = json.loads((WEIGHTS / "tokenizer.json").read_text())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([control if t == END_OF_TEXT else normal for t in tokens])
    writer.add_token_merges(
        [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    )
    end = tokens.index(END_OF_TEXT)
    writer.add_bos_token_id(end)
    writer.add_eos_token_id(end)
    writer.add_add_bos_token(True)


def add_metadata(writer: gguf.GGUFWriter, name: str, shape: Shape) -> None:
    title, description = TITLES.get(name, (name, "A Logitscope candidate model"))
    writer.add_name(title)
    writer.add_description(description)
    writer.add_author("The Logitscope project")
    writer.add_license(LICENCE)
    writer.add_languages(["en"])
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.dim)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_layer_norm_rms_eps(RMS_EPSILON)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_vocab_size(shape.vocab)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)


def write(name: str, weights: dict[str, Tensor], path: Path) -> None:
    shape = load_run(name).shape
    writer = gguf.GGUFWriter(path, "llama")
    add_metadata(writer, name, shape)
    add_tokenizer(writer)
    kind = gguf.GGMLQuantizationType.Q8_0
    for key, tensor in weights.items():
        values = np.ascontiguousarray(tensor.to(torch.float32).numpy())
        if key.endswith(("q_proj.weight", "k_proj.weight")):
            values = interleave(values, shape.heads)
        if values.ndim == 2:
            writer.add_tensor(gguf_name(key), quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(gguf_name(key), values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def main(arguments: argparse.Namespace) -> None:
    if not arguments.from_weights:
        keep(arguments.name)
    if arguments.gguf:
        write(arguments.name, load_file(WEIGHTS / f"{arguments.name}.safetensors"), arguments.gguf)


if __name__ == "__main__":
    main(ARGUMENTS)
