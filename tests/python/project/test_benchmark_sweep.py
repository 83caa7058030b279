"""benchmarks/sweep: cases from the operators' samples, enlarged calls, the pair of processes, the page."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from benchmarks.sweep import plan, results  # noqa: E402
from benchmarks.sweep.operands import Call, Operand, elements, enlarged  # noqa: E402
from benchmarks.sweep.page import page  # noqa: E402
from benchmarks.sweep.results import Operator, Results  # noqa: E402


def call(*shapes, args=(), **kwargs):
    random = np.random.default_rng(0)
    return Call("f", (*(Operand(random.random(shape) + 0.5) for shape in shapes), *args), kwargs)


def shapes(made):
    return [operand.values.shape for operand in made.args if isinstance(operand, Operand)]


def test_there_are_cases_enough_and_each_has_its_name():
    groups = plan.groups()
    names = [(group.name, case.name) for group in groups for case in group.cases()]
    assert len(names) == len(set(names)) > 15_000  # of which PyTorch refuses some
    assert {group.row.name for group in groups} == {row.name for row in __import__("loader").ROWS}


@pytest.mark.parametrize("way", ["all", "all and sizes", "image", "first image", "batch", "last"])
def test_enlarged_calls_have_the_size_that_is_asked_for(way):
    small = call((2, 3, 4, 4), (2, 3, 4, 4))
    large = enlarged(small, way, 20_000, 0)
    assert 10_000 < elements(large) < 40_000
    first, second = shapes(large)
    assert first == second


def test_ways_differ_in_what_grows():
    product = call((3, 4), (4, 2))
    (rows, inner), (same, _) = shapes(enlarged(product, "all", 10_000, 0))
    assert rows > 3 and inner == same > 4
    sized = enlarged(call((2, 8), args=((8,),)), "all and sizes", 10_000, 0)
    assert sized.args[1] == (shapes(sized)[0][1],)
    filtered = shapes(enlarged(call((2, 3, 9, 9), (4, 3, 2, 2)), "first image", 10_000, 0))
    assert filtered[0][:2] == (2, 3) and filtered[0][2] > 9 and filtered[1] == (4, 3, 2, 2)
    assert enlarged(call((3,)), "image", 10_000, 0) is None


def test_enlarged_values_keep_range_kind_and_structure():
    positive = np.eye(3) * 2 + 0.1
    made = enlarged(Call("f", (Operand(positive),), {}), "all", 900, 0).args[0].values
    assert np.allclose(made, made.T) and np.linalg.eigvalsh(made).min() > 0
    lower = enlarged(Call("f", (Operand(np.tril(positive)),), {}), "all", 900, 0).args[0].values
    assert np.allclose(lower, np.tril(lower))
    places = enlarged(Call("f", (Operand(np.array([0, 2, 1])),), {}), "all", 900, 0).args[0].values
    assert places.dtype == np.int64 and set(places) == {0, 1, 2}
    starts = enlarged(Call("f", (Operand(np.array([0, 2, 2])),), {}), "all", 900, 0).args[0].values
    assert starts[0] == 0 and (np.diff(starts) >= 0).all()
    unit = enlarged(Call("f", (Operand(np.array([0.25, 0.5, 0.75])),), {}), "all", 900, 0).args[0].values
    assert 0.25 <= unit.min() and unit.max() <= 0.75


def test_a_sweep_measures_resumes_and_prints_a_page(tmp_path, capsys):
    pytest.importorskip("torch")
    from benchmarks.sweep.__main__ import main

    path = tmp_path / "sweep.json"
    options = ["--filter", "^(exp|nn.functional.layer_norm)$", "--output", str(path), "--show", "0"]
    assert main([*options, "--cases", "float32 .* cache"]) == 0
    first = results.read(path)
    assert set(first.operators["exp"].cases) >= {
        f"float32 {layout} cache {direction}"
        for layout, direction in [
            ("contiguous", "forward"),
            ("strided", "forward"),
            ("transposed", "backward"),
        ]
    }
    assert not any(operator.refused for operator in first.operators.values())
    assert main([*options, "--cases", "(float32|int64) contiguous cache forward", "--resume"]) == 0
    second = results.read(path)
    assert first.operators["exp"].cases.items() <= second.operators["exp"].cases.items()
    assert "int64 contiguous cache forward" in second.operators["exp"].cases
    assert "int64 contiguous cache forward" not in second.operators["nn.functional.layer_norm"].cases
    assert "`exp`" in page([second]) and "geometric mean" in capsys.readouterr().out


def test_the_page_counts_and_names_losses():
    cases = {
        "float32 contiguous small forward": [2.0, 1.0, 2.0],
        "int64 strided large forward": [0.5, 8.0, 4.0],
    }
    operator = Operator("pointwise", cases, {"bool contiguous cache forward": "TypeError: a | b"})
    text = page([Results(operators={"f": operator})])
    assert "| **all cases** | 2 | 1.00 | 50.0% | 50.0% |" in text
    assert "| `f` | int64 strided large forward | 0.50 | 8 µs | 4 µs |" in text
    assert "TypeError: a \\| b" in text
