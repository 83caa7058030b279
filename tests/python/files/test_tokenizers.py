"""Tokenizers of tokenizer.json: the tokenizers package's tokens on random text; damaged ones are errors."""

import json
import random

import pytest
from tokenizer_kinds import KINDS, text, train

import rushlight as torch

tokenizers = pytest.importorskip("tokenizers")


@pytest.mark.parametrize("kind", KINDS)
def test_equal_to_the_tokenizers_package(kind):
    described, draw = train(kind), random.Random(kind)
    expected, own = tokenizers.Tokenizer.from_str(described), torch._C._Tokenizer(described)
    assert len(own) == expected.get_vocab_size()
    for i in range(1500):
        given = text(draw, 12)
        for special in (True, False):
            ids = expected.encode(given, add_special_tokens=special).ids
            assert own.encode(given, special) == ids, given
        if i % 2:  # what no text gives: bytes that are no characters, say
            ids = [draw.randrange(len(own)) for _ in range(draw.randrange(9))]
        for skip in (True, False):
            assert own.decode(ids, skip) == expected.decode(ids, skip_special_tokens=skip), ids


def test_long_text_takes_no_longer_than_its_length():
    """Without splits a whole text is one word."""
    described = train("llama2")
    expected, own = tokenizers.Tokenizer.from_str(described), torch._C._Tokenizer(described)
    given = "the quick brown fox " * 10000
    assert own.encode(given) == expected.encode(given).ids


def _model(**changes):
    made = json.loads(train("gpt2"))
    for key, value in changes.items():
        part, _, name = key.rpartition("__")
        (made[part] if part else made)[name] = value
    return json.dumps(made)


def test_damaged_and_other_tokenizers_are_one_error():
    for described, message in [
        ("", "the tokenizer ends early"),
        ("{", "the tokenizer is not JSON"),
        ("[" * 200, "nested too deep"),
        ("[]", "the tokenizer has no vocabulary"),
        ('{"model": {"type": "Unigram"}}', "is Unigram; only BPE is covered"),
        (_model(model__vocab={"a": "b"}), "the token 'a' has no number|token 'a' has no number"),
        (_model(model__merges=["a"]), "merge 'a' is damaged"),
        (_model(model__merges=[["a", "nothing"]]), "needs the token 'nothing'"),
        (_model(normalizer={"type": "BertNormalizer"}), "normalizer 'BertNormalizer' is not covered"),
        (_model(pre_tokenizer={"type": "Whitespace"}), "pre-tokenizer 'Whitespace' is not covered"),
        (_model(decoder={"type": "WordPiece"}), "decoder 'WordPiece' is not covered"),
        (_model(post_processor={"type": "BertProcessing"}), "post-processor 'BertProcessing' is not covered"),
        (_model(model__dropout=0.1), "dropout is not covered"),
        (_model(added_tokens=[{"content": "x"}]), "an added token of the tokenizer is damaged"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            torch._C._Tokenizer(described)


def test_patterns_that_are_not_covered_or_never_end_are_errors():
    def splitting(pattern):
        split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        return _model(pre_tokenizer=split)

    for pattern in (
        "(",
        "[a",
        "a)",
        r"\p{Q}",
        r"\1",
        "(?<=a)b",
        "*",
        "a{5,2}",
        "(a{900}){900}",
        "(" * 99,
        "\\",
    ):
        with pytest.raises(RuntimeError, match="the pattern '"):
            torch._C._Tokenizer(splitting(pattern))
    own = torch._C._Tokenizer(splitting("(?:a|aa)+$b".replace("$", "")))
    with pytest.raises(RuntimeError, match="takes too long on this text"):
        own.encode("a" * 200 + "c")


def test_patterns_match_as_pythons():
    import re

    draw = random.Random(3)
    split = {"type": "Split", "behavior": "Isolated", "invert": False}
    bare = {"normalizer": None, "post_processor": None, "added_tokens": []}
    for pattern in (
        "a+?b|c*",
        "(?:ab|a)(?!c)",
        "[^ab]{2,3}|b{2}",
        "(?i:xa)|a(?=b)",
        "a?b?c",
        "(?:a*b)*c",
        r"\d+|\s",
    ):
        own = torch._C._Tokenizer(_model(pre_tokenizer={**split, "pattern": {"Regex": pattern}}, **bare))
        alone = {"type": "BPE", "vocab": {"#": 0}, "merges": [], "unk_token": "#", "fuse_unk": True}
        own = torch._C._Tokenizer(
            json.dumps({"model": alone, "pre_tokenizer": {**split, "pattern": {"Regex": pattern}}})
        )
        for _ in range(300):
            given = "".join(draw.choice("abcx1 XA") for _ in range(draw.randrange(12)))
            pieces, done = 0, 0  # each piece is one unknown token
            for match in re.finditer(pattern, given):
                if match.end() > match.start():
                    pieces += 1 + (match.start() > done)
                    done = match.end()
            assert len(own.encode(given)) == pieces + (done < len(given)), (pattern, given)
