"""Step 5: measure and read what a model learned.

    python evaluate.py loss MODEL             # nats a byte on the held-out texts
    python evaluate.py entropy MODEL          # bits of the next-token distribution
    python evaluate.py samples MODEL          # 50 texts at temperature 0.8, top-p 0.95
    python evaluate.py acceptance MODEL DRAFT # expected share of accepted draft tokens
    python evaluate.py blind MODEL MODEL ...  # a shuffled sheet of samples to be scored
    python evaluate.py reveal SCORES          # whose samples got which scores

MODEL is a GGUF file, read as it is shipped, or the name of a run in `build/`.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

SAMPLES = 50
TEMPERATURE, TOP_P, SEED = 0.8, 0.95, 1


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["loss", "entropy", "samples", "acceptance", "blind", "reveal"])
    parser.add_argument("names", nargs="+", help="GGUF files or runs; for `reveal`, the scores")
    parser.add_argument("--count", type=int, default=SAMPLES)
    parser.add_argument("--seed", type=int, default=SEED)
    return parser.parse_args()


if __name__ == "__main__":
    # Before the rest is imported, so that --help needs nothing installed.
    ARGUMENTS = read_arguments()

import gguf
import numpy as np
import torch
import torch.nn.functional as F
from gguf.quants import dequantize
from tokenizers import Tokenizer, decoders, models
from torch import Tensor

from export import gguf_name
from model import Model, Past, Shape
from paths import BUILD, TOKENIZER, read_texts
from train import END, held_out_logits, load_model, overlap

LONGEST = 200  # tokens of a sample


def pair_halves(weight: Tensor, heads: int) -> Tensor:
    """From rotary pairs (GGUF) to rotary halves: undoes `export.interleave`."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)


def read_gguf(path: Path) -> Model:
    reader = gguf.GGUFReader(path)
    field = lambda key: reader.fields[key].contents()
    size = lambda key: field(f"llama.{key}")
    shape = Shape(
        vocab=len(field("tokenizer.ggml.tokens")), dim=size("embedding_length"),
        layers=size("block_count"), heads=size("attention.head_count"),
        hidden=size("feed_forward_length"), context=size("context_length"),
    )
    tensors = {t.name: np.array(dequantize(t.data, t.tensor_type)) for t in reader.tensors}
    model = Model(shape)
    state = {}
    for key, weight in model.state_dict().items():
        values = torch.from_numpy(tensors[gguf_name(key)]).reshape(weight.shape)
        rotary = key.endswith(("q_proj.weight", "k_proj.weight"))
        state[key] = pair_halves(values, shape.heads) if rotary else values
    model.load_state_dict(state)
    return model.eval()


def read_model(name: str) -> Model:
    return read_gguf(Path(name)) if name.endswith(".gguf") else load_model(name)


def read_tokenizer(name: str) -> Tokenizer:
    """The tokenizer inside a GGUF file, or that of the runs. Only good for decoding."""
    if not name.endswith(".gguf"):
        return Tokenizer.from_file(str(TOKENIZER))
    fields = gguf.GGUFReader(name).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = fields["tokenizer.ggml.merges"].contents()
    vocabulary = {token: number for number, token in enumerate(tokens)}
    words = Tokenizer(models.BPE(vocabulary, [tuple(merge.split(" ")) for merge in merges]))
    words.decoder = decoders.ByteLevel()
    return words


def entropy_bits(logits: Tensor) -> Tensor:
    logs = logits.log_softmax(-1)
    return -(logs.exp() * logs).sum(-1) / np.log(2)


def summary(values: Tensor) -> str:
    low, middle, high = values.quantile(torch.tensor([0.25, 0.5, 0.75])).tolist()
    return f"mean {values.mean():.2f}, quartiles {low:.2f} / {middle:.2f} / {high:.2f}"


def truncate(probabilities: Tensor, top_p: float) -> Tensor:
    """Keeps the likeliest tokens that together reach `top_p`."""
    ordered, order = probabilities.sort(descending=True)
    ordered[ordered.cumsum(-1) - ordered > top_p] = 0.0
    return torch.zeros_like(probabilities).scatter(-1, order, ordered)


@torch.no_grad()
def sample(
    model: Model, count: int, seed: int, temperature: float = TEMPERATURE, top_p: float = TOP_P,
    longest: int = LONGEST,
) -> list[list[int]]:
    """Token ids of texts from the empty prompt, each until its end or `longest` tokens."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.full((count, 1), END)
    ended = torch.zeros(count, dtype=torch.bool)
    past = Past()
    while len(ids[0]) <= longest and not ended.all():
        logits = model(ids[:, -1:], past)[:, -1]
        chances = truncate((logits / temperature).softmax(-1), top_p)
        chosen = torch.multinomial(chances, 1, generator=generator)
        chosen[ended] = END
        ids = torch.cat((ids, chosen), dim=1)
        ended |= chosen[:, 0] == END
    texts = []
    for row in ids[:, 1:].tolist():
        texts.append(row[: row.index(END)] if END in row else row)
    return texts


def print_loss(model: Model) -> None:
    for name in ("dev", "test"):
        total, count = 0.0, 0
        for logits, target in held_out_logits(model, name):
            total += F.cross_entropy(logits, target, reduction="sum").item()
            count += len(target)
        size = sum(len(text) for text in read_texts(name))
        print(f"{name}: {total / count:.3f} nats a token, {total / size:.4f} nats a byte, "
              f"{total / size / np.log(2):.3f} bits a byte")


def print_entropy(model: Model) -> None:
    on_test = torch.cat([entropy_bits(logits) for logits, _ in held_out_logits(model, "test")])
    print(f"on held-out written texts: {summary(on_test)}")
    own = torch.cat([entropy_bits(logits) for logits in own_logits(model, SAMPLES, SEED)])
    print(f"on its own {SAMPLES} samples: {summary(own)}")


@torch.no_grad()
def own_logits(model: Model, count: int, seed: int, **how: float):
    """The distributions along the model's own samples."""
    for text in sample(model, count, seed, **how):
        yield model(torch.tensor([[END, *text]]))[0]


def print_samples(name: str, count: int, seed: int) -> None:
    words = read_tokenizer(name)
    for number, text in enumerate(sample(read_model(name), count, seed), 1):
        cut = "" if len(text) < LONGEST else " [...]"
        print(f"### {number}\n\n{words.decode(text)}{cut}\n")


@torch.no_grad()
def print_acceptance(target: Model, draft: Model) -> None:
    """Mean over positions of sum(min(p, q)): the chance that a draft token is accepted."""
    own = sample(target, SAMPLES, SEED, temperature=1.0, top_p=1.0)
    rows = [torch.tensor([[END, *text]]) for text in own]
    mine = torch.cat([overlap(target(row)[0], draft(row)[0]) for row in rows])
    print(f"on the target's own {SAMPLES} samples at temperature 1: {mine.mean():.3f}")
    pairs = zip(held_out_logits(target, "test"), held_out_logits(draft, "test"))
    test = torch.cat([overlap(p, q) for (p, _), (q, _) in pairs])
    print(f"on held-out written texts: {test.mean():.3f}")


def write_blind_sheet(names: list[str], count: int) -> None:
    """Samples of several models in one shuffled sheet, and the key to it in another file."""
    entries = []
    for name in names:
        words = read_tokenizer(name)
        for text in sample(read_model(name), count, SEED, longest=70):
            entries.append((name, words.decode(text)))
    random.Random(SEED).shuffle(entries)
    sheet = [f"[{number}] {text}\n" for number, (_, text) in enumerate(entries, 1)]
    (BUILD / "blind.txt").write_text("\n".join(sheet))
    (BUILD / "blind.key.json").write_text(json.dumps([name for name, _ in entries]))
    print(f"{BUILD / 'blind.txt'}: score each sample in a line `number grammar consistency`, "
          "0 to 2 each")


def reveal(scores: Path) -> None:
    key = json.loads((BUILD / "blind.key.json").read_text())
    found: dict[str, list[tuple[int, int]]] = {name: [] for name in key}
    for line in scores.read_text().splitlines():
        number, grammar, consistency = map(int, line.split())
        found[key[number - 1]].append((grammar, consistency))
    for name, pairs in found.items():
        grammar, consistency = np.array(pairs).mean(axis=0)
        print(f"{name}: {len(pairs)} samples, grammar {grammar:.2f}, consistency {consistency:.2f}")


def main(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    first = arguments.names[0]
    match arguments.what:
        case "loss":
            print_loss(read_model(first))
        case "entropy":
            print_entropy(read_model(first))
        case "samples":
            print_samples(first, arguments.count, arguments.seed)
        case "acceptance":
            print_acceptance(read_model(first), read_model(arguments.names[1]))
        case "blind":
            write_blind_sheet(arguments.names, arguments.count)
        case "reveal":
            reveal(Path(first))


if __name__ == "__main__":
    main(ARGUMENTS)
