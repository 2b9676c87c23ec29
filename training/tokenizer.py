"""Step 2: train the tokenizer and encode the corpus with it.

    python tokenizer.py

A byte-level BPE of 2,048 tokens, of which token 0 is `<|endoftext|>`. It learns from the
written and the generated texts, not from the grammar, so that the vocabulary does not
depend on how many stories the grammar is asked for. Writes `build/tokenizer.json` and, for
each part of the corpus, `build/<part>.bin`: token ids as little-endian uint16, each text
preceded by `<|endoftext|>`.
"""

from __future__ import annotations

import argparse


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    return parser.parse_args()


if __name__ == "__main__":
    # Before the rest is imported, so that --help needs nothing installed.
    read_arguments()

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from paths import BUILD, END_OF_TEXT, HELD_OUT, PARTS, TOKENIZER, read_texts

VOCABULARY = 2048


def train(texts: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def encode(tokenizer: Tokenizer, texts: list[str]) -> np.ndarray:
    end = tokenizer.token_to_id(END_OF_TEXT)
    ids = [id for encoding in tokenizer.encode_batch(texts) for id in (end, *encoding.ids)]
    return np.array(ids, dtype="<u2")


def main() -> None:
    tokenizer = train(read_texts("written") + read_texts("smol"))
    tokenizer.save(str(TOKENIZER))
    for part in (*PARTS, *HELD_OUT):
        texts = read_texts(part)
        ids = encode(tokenizer, texts)
        ids.tofile(BUILD / f"{part}.bin")
        characters = sum(map(len, texts))
        print(f"{part}: {len(ids):,} tokens, {characters / len(ids):.3f} characters a token")


if __name__ == "__main__":
    main()
