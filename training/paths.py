"""Where things lie: sources beside this file, everything derived under `build/`."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent
DATA = ROOT / "data"
WEIGHTS = ROOT / "weights"
BUILD = ROOT / "build"
TOKENIZER = BUILD / "tokenizer.json"

END_OF_TEXT = "<|endoftext|>"
PARTS = ("written", "grammar", "smol")
HELD_OUT = ("dev", "test")


def read_texts(name: str) -> list[str]:
    """The texts of one part of the corpus, as `corpus.py` wrote them."""
    return (BUILD / f"{name}.txt").read_text(encoding="ascii").split(END_OF_TEXT)
