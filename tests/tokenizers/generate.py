"""Writes splits.json and pieces.json: what other implementations make of awkward texts.

splits.json: the words that Hugging Face's `tokenizers` cuts texts into, by the regular
expressions that each value of `tokenizer.ggml.pre` stands for. pieces.json: the ids that
`sentencepiece` gives, under a small byte-pair model trained here on a few sentences, with
that model's vocabulary. To run it again:

    pip install tokenizers==0.23.3 sentencepiece==0.2.3
    python tests/tokenizers/generate.py
"""

import io
import json
from importlib.metadata import version
from pathlib import Path

import sentencepiece
from tokenizers import Regex
from tokenizers.pre_tokenizers import Sequence, Split

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
RULES = {
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "llama-bpe": [LLAMA3],
    "qwen2": [LLAMA3.replace("{1,3}", "")],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
}
TEXTS = [
    "",
    " ",
    "   \n",
    "\n\n  \n x",
    "\t\tx\t",
    "Hello, World!  How's it going? I'LL we'Ve 'T 'x '",
    "it's they're I'd can't  'll",
    "a1b22c333d4444e55555 3.14 1,000,000 ½ Ⅷ ٣٤٥ 12a",
    "foo_bar-baz.qux(); x += $y << 3 | ~z ^ <b>&amp;</b>\n\n\nreturn;",
    "  leading and trailing  ",
    "naïve façade Straße é e\u0301 Ångström",
    "日本語のテキスト。한국어 문장, 中文！",
    "עברית العربية ไทย हिन्दी русский текст",
    "👨\u200d👩\u200d👧 🏳️\u200d🌈 \u200b\ufeffzero",
    "\u00a0non\u00a0breaking\u3000ideographic\u2028line\u0085next",
    "tabs\tand\r\nwindows\r\n\r\n lines\r",
    "ª º ʰ ˈ ǅ 𝒳 𐐀 ⓐ Ⓑ ͅ",
    "¡Hola! ¿Qué? «x» — “quoted” … %‰ #hash @at /path\\back",
    "\x00\x01\x7f control",
    "    return x\n\tif (a) {\n\t\tb;\n\t}\n",
    "!!!\n\n ???\r\n. .\n",
    "x" * 40 + " " * 9 + "9" * 11,
]
SENTENCES = [
    "the little dog ran over the hill and found a house with a red door",
    "she said that the weather would be better in the morning",
    "all of them wanted to know where the other children had gone",
    "naïve questions are often the best questions to ask",
] * 20


def splits() -> dict:
    rules = {}
    for name, expressions in RULES.items():
        cut = Sequence([Split(Regex(expression), "isolated") for expression in expressions])
        rules[name] = [[word for word, _ in cut.pre_tokenize_str(text)] for text in TEXTS]
    return {"made_by": f"tokenizers {version('tokenizers')}", "texts": TEXTS, "words": rules}


def pieces() -> dict:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_writer=model,
        vocab_size=360,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=True,
        character_coverage=1.0,
        minloglevel=2,
    )
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())

    def role(token: int) -> int:
        """The number that a GGUF file gives the token's type."""
        for test, code in (("is_unknown", 2), ("is_control", 3), ("is_unused", 5), ("is_byte", 6)):
            if getattr(tokenizer, test)(token):
                return code
        return 1

    texts = [text for text in TEXTS if "\0" not in text] + SENTENCES[:4] + ["<s>", "</s> the", "<0x41>"]
    return {
        "made_by": f"sentencepiece {version('sentencepiece')}",
        "tokens": [[tokenizer.id_to_piece(i), tokenizer.get_score(i), role(i)] for i in range(len(tokenizer))],
        "cases": [{"text": text, "ids": tokenizer.encode(text)} for text in texts],
    }


def main() -> None:
    for name, file in (("splits", splits()), ("pieces", pieces())):
        path = Path(__file__).with_name(f"{name}.json")
        path.write_text(json.dumps(file, ensure_ascii=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
