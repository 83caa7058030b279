"""RUSHLIGHT_CPU_CAPABILITY: what it allows, and that results do not depend on it."""

import json
import os
import subprocess
import sys

import pytest

import rushlight as rl

PROGRAM = """
import json
import os

import rushlight as torch

def told(name):
    return os.popen("echo $" + name).read().strip()  # in the process, where C sets it

torch.manual_seed(0)
x, w = torch.randn(2, 32, 16, 16), torch.randn(64, 32, 3, 3)
product = x.flatten(1) @ x.flatten(1).t()
print(json.dumps({
    "set": torch.backends.cpu.get_cpu_capability(),
    "shown": torch.__config__.show(),
    "libraries": [told("ONEDNN_MAX_CPU_ISA"), told("MKL_ENABLE_INSTRUCTIONS")],
    "values": [t.item() for t in (x.exp().sum(), torch.nn.functional.conv2d(x, w).std(), product.sum())],
    "draws": torch.randn(1000).tolist(),
}))
"""
ORDER = ["DEFAULT", "AVX2", "AVX512"]


def run(value, **others):
    environment = {**os.environ, **others}
    for name in ("RUSHLIGHT_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS"):
        if name not in others:
            environment.pop(name, None)
    if value is not None:
        environment["RUSHLIGHT_CPU_CAPABILITY"] = value
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def unlimited():
    return run(None)[0]


@pytest.mark.parametrize(
    ("value", "most", "libraries"),
    [
        ("baseline", "DEFAULT", ["SSE41", "SSE4_2"]),
        ("avx2", "AVX2", ["AVX2", "AVX2"]),
        ("avx512", "AVX512", ["AVX512_CORE_FP16", "AVX512"]),
        ("amx", "AVX512", ["", ""]),
    ],
)
def test_a_limit_holds_for_the_kernels_and_the_libraries(value, most, libraries, unlimited):
    found, errors = run(value)
    assert found["set"] == min(most, unlimited["set"], key=ORDER.index)
    assert f"RUSHLIGHT_CPU_CAPABILITY={value}" in found["shown"]
    assert found["libraries"] == libraries and "rushlight:" not in errors
    assert found["values"] == pytest.approx(unlimited["values"], rel=1e-4)
    assert found["draws"] == pytest.approx(unlimited["draws"], rel=1e-4, abs=1e-5)


def test_without_a_limit_nothing_is_said(unlimited):
    assert "RUSHLIGHT_CPU_CAPABILITY" not in unlimited["shown"]
    assert unlimited["libraries"] == ["", ""]
    assert unlimited["set"] in ORDER and rl.backends.cpu.get_cpu_capability() in ORDER


def test_what_the_program_sets_for_the_libraries_counts():
    found, _ = run("avx2", ONEDNN_MAX_CPU_ISA="SSE41")
    assert found["libraries"] == ["SSE41", "AVX2"]


def test_another_word_is_told_once_and_ignored(unlimited):
    found, errors = run("avx1024")
    assert errors.count("RUSHLIGHT_CPU_CAPABILITY is 'avx1024'") == 1
    assert "baseline, avx2, avx512 or amx" in errors and found["set"] == unlimited["set"]
