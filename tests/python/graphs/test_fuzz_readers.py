"""A short run of tests/fuzz/readers.cpp: mutated files of every kind give a result or an error in C++."""

import json
import pathlib
import re
import subprocess

import numpy as np
import pytest
from one_file_models import GPT, ResNet, Translator

import rushlight as torch
from rushlight import nn, safetensors
from rushlight.export import Dim, save_file

FUZZER = pathlib.Path(torch.__file__).parent / "bin" / "rushlight-fuzz-readers"


class Counter(nn.Module):
    """Keeps state."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.ones(4))

    def forward(self, x):
        return self.total.add_(x.sum(0)) * 2


def tokenizers():
    """One on bytes, split by a pattern, and one in the manner of sentencepiece."""
    letters = [chr(i) for i in range(33, 127)] + ["Ġ", "Ċ", "Ã", "©"]
    words = [*letters, "It", "Ġa", "'s", "<s>"]
    split = {
        "type": "Split",
        "pattern": {"Regex": r"(?i:'s|'t)|[^\s\p{L}]?\p{L}++|\p{N}{1,3}|\s+(?!\S)|\s*[\r\n]+|."},
    }
    split |= {"behavior": "Isolated", "invert": False}
    yield {
        "added_tokens": [
            {"id": len(words) - 1, "content": "<s>", "special": True, "lstrip": True, "single_word": True}
        ],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [split, {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}],
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
            "special_tokens": {"<s>": {"ids": [len(words) - 1]}},
        },
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "ignore_merges": True,
            "vocab": {w: i for i, w in enumerate(words)},
            "merges": ["I t", "Ġ a", ["'", "s"]],
        },
    }
    words = ["<unk>", "<s>", *(f"<0x{i:02X}>" for i in range(256)), "▁", "a", "▁a", "b"]
    yield {
        "added_tokens": [{"id": 1, "content": "<s>", "special": True, "normalized": True}],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            ],
        },
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": {w: i for i, w in enumerate(words)},
            "merges": ["▁ a"],
        },
    }


def write_seeds(folder):
    torch.manual_seed(0)
    gpt, words = GPT(11, 8, 2, 1, 16).eval(), torch.randint(0, 9, (2, 3))
    save_file(ResNet(2, (1, 1), 3).eval(), folder / "resnet.rl", (torch.randn(2, 3, 16, 16),))
    shapes = (None, {4: Dim("T", max=14)})
    example = torch.zeros(1, 1, dtype=torch.int64), gpt.empty_cache(1, 5)
    save_file(gpt, folder / "gpt.rl", example, dynamic_shapes=shapes, optimize=False)
    save_file(Translator(9, 4).eval(), folder / "translator.rl", (words, words))
    state = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).state_dict()
    torch.save(state, folder / "state.pt")
    torch.save(
        [torch.arange(4), {"a": (1, 2.5, None, True)}, "text", torch.randn(2, 2)[:, 1]], folder / "mixed.pt"
    )
    x = {"a": (torch.ones(3, 4),), "b": (torch.ones(2, 4),)}
    save_file({"a": Counter(), "b": Counter()}, folder / "counter.rl", x)
    for i, described in enumerate(tokenizers()):
        (folder / f"tokenizer{i}.json").write_text(json.dumps(described))
    safetensors.save_file(state, folder / "state.safetensors")
    np.save(folder / "a.npy", np.arange(12, dtype=np.float32).reshape(3, 4))
    np.save(folder / "b.npy", np.asfortranarray(np.ones((2, 3), dtype=np.complex128)))
    return sorted(map(str, folder.iterdir()))


@pytest.mark.skipif(not FUZZER.exists(), reason="the fuzzer is not built here")
def test_mutated_files_are_refused_or_read(tmp_path):
    command = [FUZZER, "--cases", "4000", "--seed", "5", "--seconds", "40", *write_seeds(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-600:]
    cases, read, refused = map(int, re.findall(r"\d+", done.stdout))
    assert cases == read + refused and read and refused
