"""Writes one tiny random model of each architecture, and the logits it must give.

The models and their logits are those of Hugging Face's `transformers` in float32; the
files are written with the Python package `gguf`. To run it again:

    pip install torch transformers==5.24.0 gguf==0.19.0
    python tests/architectures/generate.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import gguf
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

HERE = Path(__file__).parent
VOCABULARY = 260  # 256 bytes, and four tokens that merges or the file's format ask for
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
}
LLAMA3_SCALING = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
# Architecture, type of its matrices, model.
MODELS = {
    "llama": ("F16", lambda: LlamaForCausalLM(
        LlamaConfig(**SHAPE, tie_word_embeddings=False, rope_parameters=LLAMA3_SCALING))),
    "qwen2": ("BF16", lambda: Qwen2ForCausalLM(
        Qwen2Config(**SHAPE, tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1e6}))),
    # The head is wider than its share of the hidden size, as in the real ones.
    "qwen3": ("F32", lambda: Qwen3ForCausalLM(
        Qwen3Config(**SHAPE, head_dim=16, tie_word_embeddings=True,
                    rope_parameters={"rope_type": "default", "rope_theta": 1e6}))),
}  # fmt: skip
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def tensor_name(name: str) -> str:
    """The name that a GGUF file gives a parameter of transformers."""
    stem, kind = name.rsplit(".", 1)
    if stem.startswith("model.layers."):
        _, _, layer, part = stem.split(".", 3)
        return f"blk.{layer}.{NAMES[part]}.{kind}"
    return f"{NAMES[stem]}.{kind}"


def byte_alphabet() -> list[str]:
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte) if byte in shown else chr(0x100 + hidden.index(byte)) for byte in range(256)]


def write(path: Path, architecture: str, kind: str, model: torch.nn.Module) -> None:
    config = model.config
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    file = gguf.GGUFWriter(path, architecture)
    file.add_name(f"tiny random {architecture}")
    file.add_context_length(config.max_position_embeddings)
    file.add_embedding_length(config.hidden_size)
    file.add_block_count(config.num_hidden_layers)
    file.add_feed_forward_length(config.intermediate_size)
    file.add_head_count(config.num_attention_heads)
    file.add_head_count_kv(config.num_key_value_heads)
    file.add_key_length(head)
    file.add_value_length(head)
    file.add_layer_norm_rms_eps(config.rms_norm_eps)
    file.add_rope_freq_base(config.rope_parameters["rope_theta"])
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("qwen2" if architecture.startswith("qwen") else "llama-bpe")
    file.add_token_list([*byte_alphabet(), "ab", "abc", "<|begin|>", "<|end|>"])
    file.add_token_types([1] * 258 + [3, 3])
    file.add_token_merges(["a b", "ab c"])
    file.add_bos_token_id(258)
    file.add_eos_token_id(259)
    for name, parameter in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = parameter.detach().numpy()
        if architecture == "llama" and (".q_proj." in name or ".k_proj." in name):
            # Files of the llama architecture keep rotated pairs side by side.
            rows = values.reshape(-1, 2, head // 2, values.shape[-1])
            values = np.ascontiguousarray(rows.swapaxes(1, 2).reshape(values.shape))
        if values.ndim == 1 or kind == "F32":
            file.add_tensor(tensor_name(name), values)
        elif kind == "F16":
            file.add_tensor(tensor_name(name), values.astype(np.float16))
        else:
            packed = gguf.quants.quantize(values, gguf.GGMLQuantizationType.BF16)
            file.add_tensor(tensor_name(name), packed, raw_dtype=gguf.GGMLQuantizationType.BF16)
    if config.rope_parameters["rope_type"] == "llama3":
        plain = config.rope_parameters["rope_theta"] ** (-np.arange(0, head, 2) / head)
        factors = plain / model.model.rotary_emb.inv_freq.numpy()
        file.add_tensor("rope_freqs.weight", factors.astype(np.float32))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def main() -> None:
    torch.manual_seed(20261129)
    cases = {}
    for architecture, (kind, build) in MODELS.items():
        model = build().eval().float()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                # Larger than usual, so that positions matter; norms near one.
                parameter.normal_(1.0 if "norm" in name else 0.0, 0.2)
                if parameter.ndim == 2 and kind != "F32":
                    rounded = torch.float16 if kind == "F16" else torch.bfloat16
                    parameter.copy_(parameter.to(rounded).float())
            ids = torch.randint(0, VOCABULARY, (1, 100))
            logits = model(ids).logits[0].numpy()
        write(HERE / f"{architecture}.gguf", architecture, kind, model)
        rows = {str(position): [round(float(x), 6) for x in logits[position]] for position in (0, 50, 99)}
        cases[architecture] = {"ids": ids[0].tolist(), "logits": rows}
    made_by = f"transformers {version('transformers')}, torch {torch.__version__}, gguf {version('gguf')}"
    text = json.dumps({"made_by": made_by, "models": cases}, separators=(",", ":"))
    (HERE / "logits.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
