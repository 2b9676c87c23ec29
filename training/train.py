"""Step 3: train one of the runs of `candidates.toml`.

    python train.py NAME [--minutes 60]

Stops after `--minutes` or when the run is complete, whichever is first; the same command
goes on from the checkpoint, with the same random numbers as if it had never stopped.
Writes to `build/NAME/`: `checkpoint.pt`, `log.jsonl` (one line an evaluation) and
`best.safetensors`, the weights that did best on the held-out `dev` texts so far: the lowest loss
or, where there is a teacher, the fewest tokens that it would refuse.

Weights of layers learn by Muon (momentum whose steps are made orthogonal by five
Newton-Schulz iterations; Jordan et al. 2024, <https://kellerjordan.github.io/posts/muon/>),
the embedding and the norms by AdamW. The learning rate rises for a few steps, stays, and
falls linearly to zero over the last part of the run.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
import tomllib
from pathlib import Path


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="a table of candidates.toml")
    parser.add_argument("--minutes", type=float, default=60.0, help="length of this stage")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    # Before the rest is imported, so that --help needs nothing installed.
    ARGUMENTS = read_arguments()

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from model import Model, Shape
from paths import BUILD, ROOT, WEIGHTS

VOCABULARY = 2048
END = 0  # the id of <|endoftext|>


@dataclasses.dataclass(frozen=True)
class Run:
    """One table of `candidates.toml`."""

    dim: int
    layers: int
    heads: int
    hidden: int
    steps: int
    mix: dict[str, float]
    context: int = 256
    batch: int = 16
    dropout: float = 0.0
    muon_rate: float = 0.02
    adam_rate: float = 0.003
    weight_decay: float = 0.1
    warmup: int = 40
    decay: float = 0.5  # the share of the steps over which the learning rate falls
    evaluate_every: int = 50
    seed: int = 1
    start: str | None = None
    teacher: str | None = None
    overlap: bool = False

    @property
    def shape(self) -> Shape:
        return Shape(VOCABULARY, self.dim, self.layers, self.heads, self.hidden, self.context)

    def rate(self, step: int) -> float:
        """The learning rate at a step, as a share of the full one."""
        rising = (step + 1) / self.warmup
        falling = (self.steps - step) / (self.decay * self.steps) if self.decay else 1.0
        return min(1.0, rising, falling)


def load_run(name: str) -> Run:
    runs = tomllib.loads((ROOT / "candidates.toml").read_text())
    if name not in runs:
        raise SystemExit(f"no run {name!r}: candidates.toml has {', '.join(runs)}")
    return Run(**runs[name])


def load_model(name: str) -> Model:
    """The best weights of a run so far, ready to predict."""
    model = Model(load_run(name).shape)
    model.load_state_dict(load_file(BUILD / name / "best.safetensors"), strict=True)
    return model.eval()


class Rows:
    """Draws training rows: each from a part of the corpus chosen by its share of the mix.

    Half of the rows begin at the beginning of a text, as generation does; the others begin
    anywhere. Texts shorter than a row are followed by the next one.
    """

    def __init__(self, run: Run) -> None:
        self.length = run.context + 1
        self.batch = run.batch
        self.generator = torch.Generator().manual_seed(run.seed)
        self.shares = torch.tensor(list(run.mix.values()))
        self.parts = [
            torch.from_numpy(np.fromfile(BUILD / f"{part}.bin", dtype="<u2").astype(np.int64))
            for part in run.mix
        ]
        self.starts = [(ids == END).nonzero()[:, 0] for ids in self.parts]

    def next(self) -> tuple[Tensor, Tensor]:
        rows = []
        chosen = torch.multinomial(self.shares, self.batch, True, generator=self.generator)
        for part in chosen.tolist():
            ids = self.parts[part]
            place, aligned = torch.rand(2, generator=self.generator).tolist()
            begin = int(place * (len(ids) - self.length))
            if aligned < 0.5:
                earlier = torch.searchsorted(self.starts[part], begin, right=True) - 1
                begin = int(self.starts[part][earlier])
            rows.append(ids[begin : begin + self.length])
        block = torch.stack(rows)
        return block[:, :-1], block[:, 1:]


class Muon(torch.optim.Optimizer):
    """Momentum with orthogonal steps, for matrices."""

    def __init__(self, parameters: list[nn.Parameter], momentum: float = 0.95) -> None:
        super().__init__(parameters, {"lr": 0.0, "momentum": momentum})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for weight in group["params"]:
                average = self.state[weight].setdefault("average", torch.zeros_like(weight))
                average.lerp_(weight.grad, 1 - group["momentum"])
                direction = orthogonal(weight.grad.lerp(average, group["momentum"]))
                scale = max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5
                weight.add_(direction, alpha=-group["lr"] * scale)


def orthogonal(matrix: Tensor, iterations: int = 5) -> Tensor:
    """Pushes every singular value of a matrix towards 1."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    x = x / (x.norm() + 1e-7)
    for _ in range(iterations):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x if matrix.shape[0] <= matrix.shape[1] else x.T


def held_out_windows(name: str, context: int) -> list[tuple[Tensor, Tensor, int]]:
    """A held-out part, text by text, as `(input, target, skipped)`.

    Every text is predicted from its own beginning, its end included. One longer than the
    context is read in windows that overlap by half; the targets `skipped` were counted in
    the window before.
    """
    ids = np.fromfile(BUILD / f"{name}.bin", dtype="<u2").astype(np.int64)
    begins = [*np.flatnonzero(ids == END), len(ids)]
    windows = []
    for begin, end in zip(begins, begins[1:]):
        text = torch.from_numpy(np.append(ids[begin:end], END))
        at, done = 0, 0
        while done < len(text) - 1:
            piece = text[at : at + context + 1]
            windows.append((piece[:-1], piece[1:], done - at))
            done = at + len(piece) - 1
            at += context // 2
    return windows


@torch.no_grad()
def held_out_logits(model: Model, name: str, batch: int = 16):
    """Yields `(logits, targets)` for every target of a held-out part, each exactly once."""
    windows = sorted(held_out_windows(name, model.shape.context), key=lambda w: len(w[0]))
    for at in range(0, len(windows), batch):
        group = windows[at : at + batch]
        longest = len(group[-1][0])
        ids = torch.stack([F.pad(x, (0, longest - len(x)), value=END) for x, _, _ in group])
        logits = model(ids)
        for row, (_, target, skipped) in zip(logits, group):
            yield row[skipped : len(target)], target[skipped:]


def overlap(p: Tensor, q: Tensor) -> Tensor:
    """The sum of min(p, q) of two distributions given as logits: the chance that a token which
    one of them draws is accepted for the other (Leviathan et al. 2022,
    <https://arxiv.org/abs/2211.17192>, corollary 3.6)."""
    return torch.minimum(p.softmax(-1), q.softmax(-1)).sum(-1)


def held_out_loss(model: Model, name: str) -> float:
    """Mean loss on a held-out part, in nats a token."""
    losses = [F.cross_entropy(*pair, reduction="none") for pair in held_out_logits(model, name)]
    return torch.cat(losses).mean().item()


def held_out_refusal(model: Model, teacher: Model, name: str) -> float:
    """The chance that the teacher refuses a token of the model's, on a held-out part."""
    pairs = zip(held_out_logits(model, name), held_out_logits(teacher, name))
    return 1 - torch.cat([overlap(p, q) for (q, _), (p, _) in pairs]).mean().item()


class Training:
    """The state of a run, from which it can go on."""

    def __init__(self, name: str) -> None:
        self.run = load_run(name)
        self.folder = BUILD / name
        self.folder.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(self.run.seed)
        self.model = Model(self.run.shape, self.run.dropout)
        self.teacher = load_model(self.run.teacher) if self.run.teacher else None
        matrices = [w for n, w in self.model.named_parameters() if w.dim() == 2 and ".layers." in n]
        embedding = [w for w in self.model.parameters() if w.dim() == 2 and len(w) == VOCABULARY]
        norms = [w for w in self.model.parameters() if w.dim() == 1]
        self.muon = Muon(matrices)
        groups = [{"params": embedding, "weight_decay": self.run.weight_decay},
                  {"params": norms, "weight_decay": 0.0}]
        self.adam = torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=True)
        self.rows = Rows(self.run)
        self.step, self.best, self.cpu_seconds = 0, float("inf"), 0.0
        if self.checkpoint.exists():
            self._resume(self.checkpoint)
        elif self.run.start:
            self._start_from(self.run.start)

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint.pt"

    def _resume(self, checkpoint: Path) -> None:
        state = torch.load(checkpoint, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.muon.load_state_dict(state["muon"])
        self.adam.load_state_dict(state["adam"])
        self.rows.generator.set_state(state["rows"])
        torch.set_rng_state(state["dropout"])
        self.step, self.best = state["step"], state["best"]
        self.cpu_seconds = state["cpu_seconds"]

    def _start_from(self, name: str) -> None:
        """Goes on from another run, or from its committed weights if it was not run here."""
        checkpoint = BUILD / name / "checkpoint.pt"
        if checkpoint.exists():
            self._resume(checkpoint)
            self.step, self.best = 0, float("inf")
        else:
            self.model.load_state_dict(load_file(WEIGHTS / f"{name}.safetensors"))

    def save(self) -> None:
        state = {
            "model": self.model.state_dict(), "muon": self.muon.state_dict(),
            "adam": self.adam.state_dict(), "rows": self.rows.generator.get_state(),
            "dropout": torch.get_rng_state(),
            "step": self.step, "best": self.best, "cpu_seconds": self.cpu_seconds,
        }
        partial = self.checkpoint.with_suffix(".part")
        torch.save(state, partial)
        partial.replace(self.checkpoint)

    def loss(self) -> Tensor:
        inputs, targets = self.rows.next()
        logits = self.model(inputs).flatten(0, 1)
        loss = F.cross_entropy(logits, targets.flatten())
        if self.teacher is None:
            return loss
        with torch.no_grad():
            wanted = self.teacher(inputs).flatten(0, 1)
        if self.run.overlap:
            return 1 - overlap(wanted, logits).mean()
        wanted = wanted.log_softmax(-1)
        distance = F.kl_div(logits.log_softmax(-1), wanted, reduction="batchmean", log_target=True)
        return 0.1 * loss + 0.9 * distance

    def advance(self) -> float:
        rate = self.run.rate(self.step)
        for group in self.muon.param_groups:
            group["lr"] = rate * self.run.muon_rate
        for group in self.adam.param_groups:
            group["lr"] = rate * self.run.adam_rate
        loss = self.loss()
        self.model.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.muon.step()
        self.adam.step()
        self.step += 1
        return loss.item()

    def evaluate(self, train_loss: float) -> None:
        self.model.eval()
        dev = (held_out_loss(self.model, "dev") if self.teacher is None
               else held_out_refusal(self.model, self.teacher, "dev"))
        self.model.train()
        tokens = self.step * self.run.batch * self.run.context
        record = {"step": self.step, "tokens": tokens, "cpu_seconds": round(self.cpu_seconds),
                  "train": round(train_loss, 4), "dev": round(dev, 4)}
        line = json.dumps(record)
        print(line, flush=True)
        with (self.folder / "log.jsonl").open("a") as log:
            log.write(line + "\n")
        if dev < self.best:
            self.best = dev
            save_file(self.model.state_dict(), self.folder / "best.safetensors")
        self.save()

    def go_on(self, minutes: float) -> None:
        began, losses = time.monotonic(), []
        cpu_before = self.cpu_seconds - time.process_time()
        self.model.train()
        while self.step < self.run.steps:
            losses.append(self.advance())
            self.cpu_seconds = cpu_before + time.process_time()
            due = self.step % self.run.evaluate_every == 0 or self.step == self.run.steps
            if due:
                self.evaluate(sum(losses) / len(losses))
                losses = []
            if due and time.monotonic() - began > 60 * minutes:
                break


def main(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(arguments.threads)
    training = Training(arguments.name)
    parameters = sum(weight.numel() for weight in training.model.parameters())
    print(f"{arguments.name}: {parameters:,} parameters, step {training.step}", flush=True)
    training.go_on(arguments.minutes)


if __name__ == "__main__":
    main(ARGUMENTS)
