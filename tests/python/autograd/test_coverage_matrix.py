"""Operator by rule: written, derived, or refused with a reason; a page of the site shows it."""

import collections
import re
import sys
from pathlib import Path

import pytest

import rushlight as rl

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

from engine import arguments, flatten, resolve  # noqa: E402
from loader import each, main_dtype, may_need_values, records_of, samples  # noqa: E402
from reference import coverage  # noqa: E402

from rushlight.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from rushlight.utils._pytree import tree_flatten, tree_unflatten  # noqa: E402

TABLE = coverage.matrix(rl._C._operator_records())


def test_no_cell_is_empty(capsys):
    counts = collections.Counter()
    for schema, row in TABLE.items():
        assert set(row) == set(coverage.COLUMNS)
        for column, (state, text) in row.items():
            assert state in (coverage.RULE, coverage.DERIVED, coverage.REFUSED)
            assert text and text.strip(), f"{schema}: {column} is {state} without a word"
            counts[column, state] += 1
    with capsys.disabled():
        print()
        for column in coverage.COLUMNS:
            line = "  ".join(f"{state} {counts[column, state]:4}" for state in ("rule", "derived", "refused"))
            print(f"  {column:18} {line}")


def meta(value):
    """A tensor without data in place of each tensor."""
    if isinstance(value, rl.Tensor):
        return value.to("meta")
    if isinstance(value, (list, tuple)):
        return type(value)(map(meta, value))
    return value


def cells(row, column):
    """What the matrix says about a row's operator: the states of its overloads; none for compositions."""
    return {TABLE[r["schema"]][column][0] for r in records_of(row)}


@each("meta")
def test_the_meta_column_is_true(row):
    """Where the matrix promises shapes without data, they are the shapes with data."""
    if coverage.REFUSED in cells(row, "meta shape"):
        pytest.skip("refused for some overload")
    for sample in samples(row, main_dtype(row))[:2]:
        args, kwargs = arguments(rl, sample, main_dtype(row))
        real = flatten(resolve(rl, row.name)(*args, **kwargs))
        try:
            shapes = flatten(resolve(rl, row.name)(*meta(args), **{k: meta(v) for k, v in kwargs.items()}))
        except (NotImplementedError, RuntimeError) as error:
            assert "meta" in str(error) and may_need_values(row), f"{row.name}: {error}"
            continue
        for mine, theirs in zip(shapes, real, strict=True):
            if isinstance(theirs, rl.Tensor):
                assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)


@each()
def test_the_derivative_column_is_true(row):
    """Where the matrix promises a derivative, a floating result of a differentiable input has a grad_fn.

    Where it gives a reason instead, there is none, or the backward pass gives that reason."""
    if "gradcheck" in row.refused:
        pytest.skip(row.refused["gradcheck"])
    states = cells(row, "derivative")
    dtype = main_dtype(row)
    if not states or not dtype.startswith("float"):
        pytest.skip("not an operator with floating input")
    for sample in samples(row, dtype)[:1]:
        args, kwargs = arguments(rl, sample, dtype, requires_grad=True)
        inputs = [a for a in flatten(list(args)) if isinstance(a, rl.Tensor) and a.requires_grad]
        results = [t for t in flatten(resolve(rl, row.name)(*args, **kwargs)) if isinstance(t, rl.Tensor)]
        results = [t for t in results if t.is_floating_point() or t.is_complex()]
        recorded = any(t.grad_fn is not None for t in results)
        if any(r is a for r in results for a in inputs):
            continue  # the operand itself, history and all
        if states == {coverage.REFUSED}:
            if recorded:
                reasons = "|".join(re.escape(r["refusal"]) for r in records_of(row))
                with pytest.raises(NotImplementedError, match=reasons):
                    sum(t.sum() for t in results if t.grad_fn is not None).backward()
        elif inputs and results and coverage.REFUSED not in states:
            assert recorded


@each("trace")
def test_the_trace_column_is_true(row):
    """A recorded program shows an operator as itself or by what it calls, and computes the same."""
    states, dtype = cells(row, "trace"), main_dtype(row)
    args, kwargs = arguments(rl, samples(row, dtype)[0], dtype)
    leaves, spec = tree_flatten((args, kwargs))

    def program(*tensors):
        left = iter(tensors)
        values = [next(left) if isinstance(leaf, rl.Tensor) else leaf for leaf in leaves]
        args, kwargs = tree_unflatten(values, spec)
        return resolve(rl, row.name)(*args, **kwargs)

    def seeded(function):
        rl.manual_seed(0)
        return function(*(leaf.clone() for leaf in leaves if isinstance(leaf, rl.Tensor)))

    if states == {coverage.REFUSED}:
        with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
            seeded(make_fx(program))
        return
    module = seeded(make_fx(program))
    for mine, theirs in zip(flatten(seeded(module)), flatten(seeded(program)), strict=True):
        if isinstance(theirs, rl.Tensor):
            rl.testing.assert_close(mine, theirs, equal_nan=True)
    shown = {n.target._opname.rstrip("_") for n in module.graph.nodes if hasattr(n.target, "_opname")}
    if states == {coverage.RULE} and any(isinstance(leaf, rl.Tensor) for leaf in leaves):
        names = {n for r in records_of(row) for n in (r["name"], f"{r['space']}_{r['name']}")}
        assert shown & {name.rstrip("_") for name in names}


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.sum().item(),
        lambda x: x.sum().is_nonzero(),
        lambda x: rl.nn.functional.gaussian_nll_loss(x, x, x),
    ],
)
def test_programs_that_look_at_values_are_no_graphs(program):
    with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
        make_fx(program)(rl.ones(3))


def test_the_page_has_a_row_for_each_operator():
    rows = re.findall(r"^\| `([^`]+)` \|", coverage.page(rl._C._operator_records()), re.M)
    assert sorted(rows) == sorted(schema.split("(")[0] for schema in TABLE)
