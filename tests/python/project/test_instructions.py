"""Small operations stay small: their instructions lie under the ceilings that instructions.py keeps."""

import json
import subprocess
import sys

import instructions
import pytest

import rushlight as torch


@pytest.fixture(scope="module")
def counts():
    reason = instructions.missing()
    if reason is None and not torch.backends.mkl.is_available():
        reason = "the ceilings are those of the build with MKL and oneDNN"
    if reason:
        pytest.skip(reason)
    try:
        return {**instructions.count(), **instructions.count_starts()}
    except subprocess.TimeoutExpired:
        pytest.skip("the machine is too busy to count within the time")


def test_no_call_exceeds_its_ceiling(counts):
    ceilings = json.loads(instructions.CEILINGS.read_text())
    assert counts.keys() == ceilings.keys()
    # What the interpreter itself takes is another number in each version of Python.
    kinds = ["all", "core"] if sys.version_info[:2] == (3, 11) else ["core"]
    above = {
        f"{name}, {kind}": (found[kind], ceilings[name][kind])
        for name, found in counts.items()
        for kind in kinds
        if found[kind] > ceilings[name][kind]
    }
    assert not above, (
        "instructions (found, allowed); see tests/python/project/instructions.py on how to raise a ceiling"
    )


def test_the_counter_sees_the_core(counts):
    assert all(0 < found["core"] < found["all"] for name, found in counts.items() if name != "shape")
    assert counts["training step"]["core"] > 20 * counts["a + b"]["core"]
