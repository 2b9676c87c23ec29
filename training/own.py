"""Between two runs of step 3: texts that a model tells itself, for its draft to learn from.

    python own.py NAME [--texts 2000]

A draft is judged where its target goes, which is not quite where the corpus goes. Samples from
the run NAME at temperature 1, from the empty prompt, until their end or the context's, and writes
them to `build/own.bin` as a part of the corpus.
"""

from __future__ import annotations

import argparse


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="a run that has been trained")
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    # Before the rest is imported, so that --help needs nothing installed.
    ARGUMENTS = read_arguments()

import numpy as np
import torch

from evaluate import sample
from paths import BUILD
from train import END, load_model

AT_ONCE = 200
SEED = 11  # not that of the samples which `evaluate.py` measures


def main(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(arguments.threads)
    model = load_model(arguments.name)
    ids: list[int] = []
    for begin in range(0, arguments.texts, AT_ONCE):
        count = min(AT_ONCE, arguments.texts - begin)
        longest = model.shape.context - 1
        for text in sample(model, count, SEED + begin, temperature=1.0, top_p=1.0, longest=longest):
            ids += [END, *text]
        print(f"{begin + count} texts, {len(ids):,} tokens", flush=True)
    np.array(ids, dtype="<u2").tofile(BUILD / "own.bin")


if __name__ == "__main__":
    main(ARGUMENTS)
