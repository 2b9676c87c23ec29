"""Writes splits.json and pieces.json: what other implementations make of awkward texts.

splits.json: the words that Hugging Face's `tokenizers` cuts texts into, by the regular
expressions that each value of `tokenizer.ggml.pre` stands for, as their lengths in characters. pieces.json: the ids that
`sentencepiece` gives, under a small byte-pair model trained here on a few sentences, with
that model's vocabulary. To run it again:

    pip install tokenizers==0.23.3 sentencepiece==0.2.3
    python tests/tokenizers/generate.py
"""

import io
import json
import random
from importlib.metadata import version
from pathlib import Path

import sentencepiece
from tokenizers import Regex
from tokenizers.pre_tokenizers import Sequence, Split

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + REST
QWEN2 = LLAMA3.replace("{1,3}", "")
HEAD, TAIL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TEKKEN = rf"[^\r\n\p{{L}}\p{{N}}]?{HEAD}*{TAIL}+|[^\r\n\p{{L}}\p{{N}}]?{HEAD}+{TAIL}*|\p{{N}}|" + REST.replace(
    r"\r\n]*", r"\r\n/]*"
)
GPT4O = (
    TEKKEN.replace(f"{TAIL}+|", f"{TAIL}+{CONTRACTION}?|")
    .replace(f"{TAIL}*|", f"{TAIL}*{CONTRACTION}?|")
    .replace(r"|\p{N}|", r"|\p{N}{1,3}|")
)
SIGNS = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CLAUSES = r" ?[^(\s|[.,!?…。，、।۔،])]+"
EAST_ASIAN = "[一-龥ࠀ-一가-퟿]+"
# The cased letters that DeepSeek LLM lists one by one; some are missing, such as Armenian small ones.
DEEPSEEK_LETTERS = (
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-"
    "ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ"
    "-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓ"
    "ℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ"
    "-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"
)
# One name for each kind; the others of the kind are in src/model/tokenizer/split.rs.
RULES = {
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "llama-bpe": [LLAMA3],
    "minicpm5": [r"\p{N}{1,3}", LLAMA3.replace("{1,3}", "+")],
    "qwen2": [QWEN2],
    "qwen35": [QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")],
    "seed-coder": [QWEN2.replace(r" ?[^\s\p{L}\p{N}]+[\r\n]*", r" ?[^\s\p{L}\p{N}\r\n]+")],
    "ufakzeka": [QWEN2.removeprefix(CONTRACTION + "|")],
    "bailingmoe": [
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*"
        r"|\s*[\r\n]|\s+(?!\S)|\s+"
    ],
    "laguna": [r"[^\n]+|[\n]+", QWEN2],
    "gpt-4o": [GPT4O],
    "tekken": [TEKKEN],
    "deepseek-llm": [
        r"[\r\n]", rf"\s?[{DEEPSEEK_LETTERS}]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", EAST_ASIAN, r"\p{N}+",
    ],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", EAST_ASIAN, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", SIGNS],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
    "bloom": [CLAUSES],
    "viking": [CLAUSES, r"\p{N}"],
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
# What random texts are made of: each expression treats some of these apart.
PIECES = [*" \n\r\t'\"sStrReElLdDmM019AaBz.,!?-_/\\|()$+<=>^~`%#éÉßǅªʰ日本語한국ア、。！～½Ⅷⅷⓐ٣ाकกſ’“𝒳𐐀🏳՛աԱ؟،।"] + [
    "\u0301", "\u05b0", "\u3000", "\u00a0", "\u2028", "\u0085", "\u200b", "\u200d", "\x00", "\x1c", "\u180e",
    "'s", "'LL", "\r\n", "  ", "123456", "ABc",
]
SENTENCES = [
    "the little dog ran over the hill and found a house with a red door",
    "she said that the weather would be better in the morning",
    "all of them wanted to know where the other children had gone",
    "naïve questions are often the best questions to ask",
] * 20


def random_texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    texts = []
    for _ in range(count):
        # Few different pieces, so that neighbours meet often.
        pieces = draw.sample(PIECES, draw.choice([4, 8, 16]))
        texts.append("".join(draw.choices(pieces, k=draw.choice([3, 6, 12, 24]))))
    return texts


def splits(texts: list[str]) -> dict:
    rules = {}
    for name, expressions in RULES.items():
        cut = Sequence([Split(Regex(expression), "isolated") for expression in expressions])
        rules[name] = [[len(word) for word, _ in cut.pre_tokenize_str(text)] for text in texts]
    return {"made_by": f"tokenizers {version('tokenizers')}", "texts": texts, "lengths": rules}


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
    for name, file in (("splits", splits(TEXTS + random_texts(80, seed=1))), ("pieces", pieces())):
        path = Path(__file__).with_name(f"{name}.json")
        path.write_text(json.dumps(file, ensure_ascii=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
