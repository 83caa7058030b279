"""Equal bits wherever a number stands: pointwise results of short pieces are those of the whole, which no
division among threads changes then, under every instruction set."""

import os
import subprocess
import sys
from pathlib import Path

import engine
import pytest
from loader import ROWS

import rushlight as rl

FAMILIES = ("pointwise", "special", "activation")
WHOLE, PIECE = 1003, 13
UNFIT = (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError)


def _of_length(make, n):
    """Every operand is a line of n numbers."""
    return lambda *shape, **domain: make(n, **domain)


def _slices(value, first):
    return value[first : first + PIECE] if isinstance(value, rl.Tensor) and value.dim() else value


def _bytes(t):
    return t.resolve_conj().resolve_neg().clone().untyped_storage().tolist()


def differing(dtype):
    """The rows of which a piece differs, and how many were compared."""
    found, compared = [], 0
    for row in ROWS:
        if row.family not in FAMILIES or dtype not in row.dtypes:
            continue
        function = engine.resolve(rl, row.name)
        try:
            sample = next(iter(row.samples(_of_length(engine.maker(row, dtype), WHOLE))))
            args, kwargs = engine.arguments(rl, sample, dtype)
            whole = function(*args, **kwargs)
        except UNFIT:
            continue
        if whole.shape != (WHOLE,):
            continue
        parts = [
            function(
                *(_slices(a, first) for a in args), **{k: _slices(v, first) for k, v in kwargs.items()}
            ).clone()
            for first in range(0, WHOLE, PIECE)
        ]
        compared += 1
        if _bytes(rl.cat(parts)) != _bytes(whole):
            found.append(row.id)
    return found, compared


@pytest.mark.parametrize("capability", ["baseline", "avx2", "avx512"])
def test_a_number_has_one_result_in_all_places(capability):
    program = (
        f"import sys; sys.path[:0] = {sys.path!r}\nimport test_same_places as t\n"
        "for dtype in ('float32', 'float64', 'float16', 'bfloat16'):\n"
        "    print(dtype, *t.differing(dtype)[::-1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "RUSHLIGHT_CPU_CAPABILITY": capability},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    counted = [line.split(" ", 2) for line in done.stdout.splitlines()]
    assert len(counted) == 4
    assert {dtype: rows for dtype, _, rows in counted if rows != "[]"} == {}
    assert all(int(compared) > 150 for _, compared, _ in counted), counted
