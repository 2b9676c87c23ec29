"""Writes rows.json: packed rows of every tensor type, and the numbers they stand for.

The packing and the numbers are those of the Python package `gguf`, which is not part of
this project; the rows come from a seeded generator. To run it again:

    pip install gguf==0.19.0 numpy
    python tests/quant/generate.py

Types that `gguf` cannot pack (the K types) get random bytes with tame scales: unpacking
is what is tested.
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize

ROWS, COLUMNS = 2, 512
# Where the half floats lie in a superblock of each K type.
SCALES_AT = {"Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"]


def packed(name: str, random: np.random.Generator) -> np.ndarray:
    """Rows of one type, as bytes `[ROWS, bytes of a row]`."""
    kind = GGMLQuantizationType[name]
    if name in SCALES_AT:
        numbers, size = GGML_QUANT_SIZES[kind]
        blocks = random.integers(0, 256, (ROWS, COLUMNS // numbers, size), dtype=np.uint8)
        for at in SCALES_AT[name]:
            halves = random.normal(0, 0.01, blocks.shape[:2]).astype(np.float16)
            blocks[:, :, at : at + 2] = halves[..., None].view(np.uint8)
        return blocks.reshape(ROWS, -1)
    values = random.normal(0, 1, (ROWS, COLUMNS)).astype(np.float32)
    values[0, :32] = 0  # a block whose scale is zero
    return quantize(values, kind).view(np.uint8).reshape(ROWS, -1)


def main() -> None:
    random = np.random.default_rng(20261129)
    types = {}
    for name in TYPES:
        rows = packed(name, random)
        values = dequantize(rows, GGMLQuantizationType[name]).astype(np.float32).reshape(ROWS, COLUMNS)
        types[name] = [
            {"bytes": row.tobytes().hex(), "values": value.astype("<f4").tobytes().hex()}
            for row, value in zip(rows, values)
        ]
    made_by = f"gguf {version('gguf')}"
    file = {"made_by": made_by, "columns": COLUMNS, "values": "little-endian f32, in hexadecimal", "types": types}
    Path(__file__).with_name("rows.json").write_text(json.dumps(file, indent=1) + "\n")


if __name__ == "__main__":
    main()
