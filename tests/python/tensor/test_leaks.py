"""A short part of tests/fuzz/leaks.py, what longer runs found, and that the search finds what is there."""

import sys
from collections import deque
from pathlib import Path

import pytest

import rushlight as torch

sys.path.insert(0, str(Path(__file__).parents[2] / "fuzz"))

import failing_memory  # noqa: E402
import leak_programs  # noqa: E402
import leaks  # noqa: E402

PROGRAMS = {**failing_memory.PROGRAMS, **leak_programs.PROGRAMS}
SLOW = {"loaders with workers", "onnx", "process groups"}  # a second each time


@pytest.fixture(scope="module")
def meter():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:  # the flight recorder grows to its size
        patch.setattr("rushlight.distributed._recorder.entries", deque(maxlen=0))
        patch.setattr("rushlight.distributed._recorder._MANY", 0)
        yield leaks.Meter(torch)
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - SLOW))
def test_programs_leave_nothing(meter, name):
    _, left = leaks.measure(meter, PROGRAMS[name](torch), repeats=60, seconds=0.5)
    # In so few runs tables still grow to their size.
    assert left.pop("bytes of malloc", 0) < 1000 and not left


ROWS = (
    "^(add|matmul|cat|sort|unique|where|nn.functional.(conv2d|cross_entropy|embedding)|linalg.(svd|inv))(,|$)"
)


def test_operators_leave_nothing(meter):
    cases = 0
    for name, make in leaks.operator_cases(torch, ROWS):
        _, left = leaks.measure(meter, make(), repeats=300, seconds=0.05)
        assert not left, name
        cases += 1
    assert cases > 20


kept = []


@pytest.mark.parametrize(
    "leak, what",
    [
        (lambda: kept.append([]), "objects"),
        (lambda: kept.append(torch.ones(300)), "bytes of tensors"),
        (lambda: kept.append(torch.float32), "references to rushlight.float32"),
        (lambda: kept.append(open("/dev/null")), "open files"),  # noqa: SIM115
        (lambda: kept.append(bytearray(5000)), "bytes of malloc"),
    ],
    ids=["objects", "tensors", "references", "files", "memory"],
)
def test_leaks_are_found(meter, leak, what):
    try:
        _, left = leaks.measure(meter, leak, repeats=100, seconds=1)
    finally:
        for value in kept:
            if hasattr(value, "close"):
                value.close()
        kept.clear()
    assert left[what] >= 0.9
