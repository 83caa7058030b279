"""Meta tensors over every operator row: shapes, dtypes and strides are the real result's, nothing is read."""

import pytest
from test_ops import MAIN, ROWS, engine, rl, samples

# Operators whose result cannot be described without reading the operands: NotImplementedError, or what
# `item()` raises.
REFUSED = {r["name"] for r in rl._C._operator_records() if r.get("meta_refusal")}


def described(leaf):
    if isinstance(leaf, rl.Tensor):
        return tuple(leaf.shape), leaf.dtype, leaf.stride(), leaf.is_contiguous()
    return type(leaf)


def to_meta(value):
    if isinstance(value, rl.Tensor):
        return rl.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, (list, tuple)):
        return type(value)(to_meta(v) for v in value)
    return value


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_meta_result_is_the_real_one_without_data(row):
    dtype = MAIN[row.name]
    function = engine.resolve(rl, row.name)
    for sample in samples(row, dtype):
        args, kwargs = engine.arguments(rl, sample, dtype)
        meta_args, meta_kwargs = to_meta(args), {k: to_meta(v) for k, v in kwargs.items()}
        real = engine.flatten(function(*args, **kwargs))
        try:
            found = engine.flatten(function(*meta_args, **meta_kwargs))
        except (NotImplementedError, RuntimeError) as error:
            assert "meta" in str(error)
            pytest.skip(f"refused: {error}")
        assert [described(leaf) for leaf in found] == [described(leaf) for leaf in real]
        if any(isinstance(a, rl.Tensor) for a in flat(meta_args)):
            assert all(leaf.is_meta for leaf in found if isinstance(leaf, rl.Tensor))


def flat(value):
    return [leaf for v in value for leaf in flat(v)] if isinstance(value, (list, tuple)) else [value]
