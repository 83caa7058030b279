"""Tensors without data over every operator row: meta and fake results are the real ones but for the data."""

import engine
import pytest
from loader import each, main_dtype, may_need_values, samples

import rushlight as rl
from rushlight._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)


def described(leaf):
    if isinstance(leaf, rl.Tensor):
        return tuple(leaf.shape), leaf.dtype, leaf.stride(), leaf.is_contiguous()
    return type(leaf)


def mapped(function, value):
    if isinstance(value, rl.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(function, v) for v in value)
    return {k: mapped(function, v) for k, v in value.items()} if isinstance(value, dict) else value


def to_meta(t):
    return rl.empty_strided(t.size(), t.stride(), dtype=t.dtype, device="meta")


def flat(value):
    return [leaf for v in value for leaf in flat(v)] if isinstance(value, (list, tuple)) else [value]


@each("meta")
def test_meta_result_is_the_real_one_without_data(row):
    function = engine.resolve(rl, row.name)
    for sample in samples(row):
        args, kwargs = engine.arguments(rl, sample, main_dtype(row))
        meta_args, meta_kwargs = mapped(to_meta, args), mapped(to_meta, kwargs)
        real = engine.flatten(function(*args, **kwargs))
        try:
            found = engine.flatten(function(*meta_args, **meta_kwargs))
        except (NotImplementedError, RuntimeError) as error:
            assert "meta" in str(error) and may_need_values(row), error
            pytest.skip(f"refused: {error}")
        assert [described(leaf) for leaf in found] == [described(leaf) for leaf in real]
        if any(isinstance(a, rl.Tensor) for a in flat(meta_args)):
            assert all(leaf.is_meta for leaf in found if isinstance(leaf, rl.Tensor))


@each("meta")
def test_fake_result_is_the_real_one_without_data(row):
    function = engine.resolve(rl, row.name)
    for sample in samples(row):
        args, kwargs = engine.arguments(rl, sample, main_dtype(row))
        real = engine.flatten(function(*args, **kwargs))
        with FakeTensorMode() as mode:
            fake = mapped(mode.from_tensor, args), mapped(mode.from_tensor, kwargs)
            try:
                found = engine.flatten(function(*fake[0], **fake[1]))
            except (DataDependentOutputException, DynamicOutputShapeException, NotImplementedError) as error:
                assert may_need_values(row), error
                pytest.skip(f"refused: {type(error).__name__}")
            assert [described(leaf) for leaf in found] == [described(leaf) for leaf in real]
            assert all(isinstance(leaf, FakeTensor) for leaf in found if isinstance(leaf, rl.Tensor))
