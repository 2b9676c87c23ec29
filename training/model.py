"""The network: a LLaMA-style decoder with tied embeddings, small enough to read.

Parameter names are those of a Hugging Face `LlamaForCausalLM`, so that the committed
safetensors can be read by other tools; `export.py` maps them to GGUF names.

- RMSNorm before each branch, SwiGLU, rotary positions (base 10,000, half-split layout).
- Dropout on the embedding and on the output of each branch, during training only: the
  corpus is small and every text is seen several times.
"""

from __future__ import annotations

import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RMS_EPSILON = 1e-5
ROPE_BASE = 10_000.0


@dataclasses.dataclass(frozen=True)
class Shape:
    """Sizes of a model. Every row length must be a multiple of 32, the block of Q8_0."""

    vocab: int
    dim: int
    layers: int
    heads: int
    hidden: int
    context: int

    def __post_init__(self) -> None:
        for name in ("dim", "hidden"):
            if getattr(self, name) % 32:
                raise ValueError(f"{name} is {getattr(self, name)}, not a multiple of 32")
        if self.dim % (2 * self.heads):
            raise ValueError(f"dim {self.dim} does not divide into {self.heads} even heads")

    @property
    def head_dim(self) -> int:
        return self.dim // self.heads


class RmsNorm(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, RMS_EPSILON)


def rotary_tables(shape: Shape) -> tuple[Tensor, Tensor]:
    """Cosines and sines, `[context, head_dim]`, of the rotary position angles."""
    inverse = ROPE_BASE ** (-torch.arange(0, shape.head_dim, 2).float() / shape.head_dim)
    angles = torch.outer(torch.arange(shape.context).float(), inverse)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Past:
    """The keys and values of the tokens before, so that generation reads each token once.

    Hand the same one to every call; each call after the first has one token a row.
    """

    def __init__(self) -> None:
        self.seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    @property
    def length(self) -> int:
        return next(iter(self.seen.values()))[0].shape[2] if self.seen else 0

    def extend(self, layer: nn.Module, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if layer in self.seen:
            k, v = (torch.cat(pair, dim=2) for pair in zip(self.seen[layer], (k, v)))
        self.seen[layer] = (k, v)
        return k, v


class Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.q_proj = nn.Linear(shape.dim, shape.dim, bias=False)
        self.k_proj = nn.Linear(shape.dim, shape.dim, bias=False)
        self.v_proj = nn.Linear(shape.dim, shape.dim, bias=False)
        self.o_proj = nn.Linear(shape.dim, shape.dim, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, past: Past | None) -> Tensor:
        batch, length, dim = x.shape
        split = lambda y: y.view(batch, length, self.heads, -1).transpose(1, 2)
        q = rotate(split(self.q_proj(x)), cos, sin)
        k = rotate(split(self.k_proj(x)), cos, sin)
        v = split(self.v_proj(x))
        if past is not None:
            k, v = past.extend(self, k, v)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, dim))


class FeedForward(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.dim, shape.hidden, bias=False)
        self.up_proj = nn.Linear(shape.dim, shape.hidden, bias=False)
        self.down_proj = nn.Linear(shape.hidden, shape.dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.input_layernorm = RmsNorm(shape.dim)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = RmsNorm(shape.dim)
        self.mlp = FeedForward(shape)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, past: Past | None) -> Tensor:
        x = x + self.dropout(self.self_attn(self.input_layernorm(x), cos, sin, past))
        return x + self.dropout(self.mlp(self.post_attention_layernorm(x)))


class Body(nn.Module):
    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab, shape.dim)
        self.layers = nn.ModuleList(Layer(shape, dropout) for _ in range(shape.layers))
        self.norm = RmsNorm(shape.dim)


class Model(nn.Module):
    """Token ids `[batch, length]` to logits `[batch, length, vocab]`."""

    def __init__(self, shape: Shape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        self.model = Body(shape, dropout)
        self.dropout = nn.Dropout(dropout)
        cos, sin = rotary_tables(shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self._initialise()

    def _initialise(self) -> None:
        for name, weight in self.named_parameters():
            if weight.dim() != 2:
                continue
            if "embed" in name:
                std = 0.02
            elif name.endswith(("o_proj.weight", "down_proj.weight")):
                std = 0.02 / math.sqrt(2 * self.shape.layers)
            else:
                std = 0.7 * self.shape.dim**-0.5
            nn.init.normal_(weight, 0.0, std)

    def forward(self, ids: Tensor, past: Past | None = None) -> Tensor:
        begin = past.length if past else 0
        cos, sin = (table[begin : begin + ids.shape[1]] for table in (self.cos, self.sin))
        x = self.dropout(self.model.embed_tokens(ids))
        for layer in self.model.layers:
            x = layer(x, cos, sin, past)
        return F.linear(self.model.norm(x), self.model.embed_tokens.weight)
