"""Small tokenizers of the kinds that language models have, trained by the tokenizers package; random text."""

import json
import random
import unicodedata

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
WORDS = (
    "the quick brown fox jumps over a lazy dog and then it's we'll they're I'm can't 12 345 2026 3.14 "
    "naïve café Straße привет мир 你好 世界 こんにちは नमस्ते مرحبا 🎉 👩‍👩‍👧 ﬁ Å Å ① ½ \u0301e"
).split()
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", " \n ", "\u00a0", "\u3000", ""]


def train(kind):
    """tokenizer.json of a kind as text."""
    from tokenizers import (
        AddedToken,
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        trainers,
    )
    from tokenizers.processors import ByteLevel, Sequence, TemplateProcessing

    draw = random.Random(1)
    lines = [text(draw, 30) for _ in range(400)]
    if kind in ("llama2", "mistral"):
        tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
        tokens = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
        trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=tokens, limit_alphabet=60)
        if kind == "llama2":
            tokenizer.normalizer = normalizers.Sequence(
                [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
            )
            tokenizer.decoder = decoders.Sequence(
                [
                    decoders.Replace("▁", " "),
                    decoders.ByteFallback(),
                    decoders.Fuse(),
                    decoders.Strip(" ", 1, 0),
                ]
            )
        else:
            tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
            tokenizer.decoder = decoders.Sequence(
                [
                    decoders.Replace("▁", " "),
                    decoders.ByteFallback(),
                    decoders.Fuse(),
                    decoders.Strip(" ", 1, 0),
                ]
            )
        tokenizer.train_from_iterator(lines, trainer)
        template = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
        tokenizer.post_processor = template
        described = json.loads(tokenizer.to_str())
        described["added_tokens"] = [t for t in described["added_tokens"] if t["id"] < 3]  # bytes are no text
        return json.dumps(described)
    tokenizer = Tokenizer(models.BPE(ignore_merges=kind == "llama3"))
    special = "<|endoftext|>", "<|im_start|>"
    if kind == "gpt2":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.post_processor = ByteLevel(trim_offsets=False)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(LLAMA3 if kind == "llama3" else QWEN2), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    if kind == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.post_processor = ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(lines, trainer)
    if kind == "llama3":
        begin = tokenizer.token_to_id("<|endoftext|>")
        tokenizer.post_processor = Sequence(
            [
                ByteLevel(trim_offsets=True),
                TemplateProcessing(single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", begin)]),
            ]
        )
    tokenizer.add_tokens(
        [
            AddedToken("<both>", lstrip=True, rstrip=True, normalized=False),
            AddedToken("word", single_word=True, normalized=False),
            AddedToken("élan", normalized=True),
        ]
    )
    return tokenizer.to_str()


KINDS = ["gpt2", "llama3", "qwen2", "llama2", "mistral"]


def assigned(draw):
    """A character that Unicode 14 knows; newer ones have other categories in newer tables."""
    while True:
        limit = draw.choice((0x80, 0x250, 0x3000, 0x11000, 0x1FB00, 0x32000))
        code = draw.randrange(limit)
        if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co"):
            return chr(code)


def text(draw, most):
    """Words, white space, single characters and special tokens in any order."""
    pieces = []
    for _ in range(draw.randrange(most + 1)):
        kind = draw.randrange(10)
        if kind < 5:
            pieces.append(draw.choice(WORDS))
        elif kind < 8:
            pieces.append(draw.choice(SPACES))
        elif kind < 9:
            pieces.append("".join(assigned(draw) for _ in range(draw.randrange(1, 5))))
        else:
            pieces.append(
                draw.choice(["<|endoftext|>", "<both>", "word", "élan", "e\u0301lan", "<s>", "'S", "'ſ"])
            )
    return "".join(pieces)
