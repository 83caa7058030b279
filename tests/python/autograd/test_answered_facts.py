"""Classes that answer for the sizes, strides, device or layout of their tensors."""

import pytest

import rushlight as torch
from rushlight._command.names import is_aliased

aten, prim = torch.ops.aten, torch.ops.prim


def answering(answers, wrapper=True, **asked):
    """A tensor (3, 4) whose class gives these answers to operators, and the list of what it was asked."""
    calls = []

    class Answering(torch.Tensor):
        @staticmethod
        def __new__(cls):
            if not wrapper:
                return torch.Tensor._make_subclass(cls, torch.zeros(3, 4), True, **asked)
            return torch.Tensor._make_wrapper_subclass(cls, (3, 4), **asked)

        @classmethod
        def __torch_dispatch__(cls, func, types, args, kwargs=None):
            calls.append(func)
            assert types == (cls,) and isinstance(args[0], cls)
            return answers[func] if func in answers else NotImplemented

    return Answering(), calls


@pytest.mark.parametrize("wrapper", [True, False])
def test_sizes(wrapper):
    answers = {
        aten.dim.default: 2,
        aten.sym_size.default: (5, 6),
        aten.sym_numel.default: 30,
        aten.sym_stride.default: (6, 1),
        aten.sym_storage_offset.default: 7,
        aten.is_contiguous.default: True,
        aten.is_contiguous.memory_format: None,
    }
    t, calls = answering(answers, wrapper, dispatch_sizes_strides_policy="sizes")
    assert t.dim() == t.ndim == 2 and t.shape == t.size() == (5, 6) and type(t.shape) is torch.Size
    assert t.size(-1) == 6 and t.numel() == 30 and t.stride() == (6, 1) and t.stride(0) == 6
    assert t.storage_offset() == 7 and t.is_contiguous() and t.contiguous() is t
    assert not t.is_contiguous(memory_format=torch.channels_last)
    assert aten.dim.default(t) == 2 and aten.sym_size.default(t) == [5, 6]
    assert set(calls) == set(answers)
    with torch._C._DisableTorchDispatch():
        assert t.shape == (3, 4) and t.stride() == (4, 1)


@pytest.mark.parametrize("wrapper", [True, False])
def test_strides(wrapper):
    t, calls = answering({aten.sym_stride.default: None}, wrapper, dispatch_sizes_strides_policy="strides")
    assert t.shape == (3, 4) and t.dim() == 2 and not calls  # asked for strides alone
    assert t.stride() == (4, 1) and calls == [aten.sym_stride.default]
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.ops.aten.is_contiguous'"):
        t.is_contiguous()
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.ops.aten.is_contiguous'"):
        t.contiguous()
    answers = {aten.is_strides_like_format.default: True, aten.is_non_overlapping_and_dense.default: False}
    t, _ = answering(answers, wrapper, dispatch_sizes_strides_policy="strides")
    assert aten.is_strides_like_format.default(t, torch.channels_last)
    assert not aten.is_non_overlapping_and_dense.default(t)
    with pytest.raises(RuntimeError, match="Unknown sizes_strides_policy"):
        answering({}, wrapper, dispatch_sizes_strides_policy="neither")


@pytest.mark.parametrize("wrapper", [True, False])
def test_device_and_layout(wrapper):
    meta = torch.device("meta")
    t, _ = answering({prim.device.default: meta}, wrapper, dispatch_device=True)
    assert t.device == meta and torch.ones(2).type_as(t).device == meta and t.layout is torch.strided
    assert prim.device.default(t) == meta and prim.device.default(torch.ones(1)).type == "cpu"
    t, _ = answering({prim.layout.default: torch.sparse_csr}, wrapper, dispatch_layout=True)
    assert t.layout is torch.sparse_csr and t.device.type == "cpu"
    t, _ = answering({}, wrapper, dispatch_device=True)
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.ops.prim.device'"):
        _ = t.device


def test_nothing_is_asked_of_others():
    t, calls = answering({})
    assert t.shape == (3, 4) and t.stride() == (4, 1) and t.device.type == "cpu" and not calls
    for read in (t.tolist, t.numpy):
        with pytest.raises(RuntimeError, match="is not supported for tensor subclasses"):
            read()


def test_storage_size():
    class Sized(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args, kwargs=None):
            return NotImplemented

    made = torch.Tensor._make_wrapper_subclass(Sized, (2, 3), storage_size=400)
    assert made.untyped_storage().nbytes() == 400


def test_facts_as_operators():
    x = torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert aten.sym_size.default(x) == [2, 3, 4, 5] and aten.sym_stride.default(x) == list(x.stride())
    assert aten.size.default(x) == [2, 3, 4, 5] and aten.numel.default(x) == 120
    assert aten.sym_stride.int(x, 1) == 1 and aten.storage_offset.default(x[1:]) == 60
    assert aten.is_strides_like_format.default(x, torch.channels_last)
    assert not aten.is_strides_like_format.default(x.contiguous(), torch.channels_last)
    assert aten.is_non_overlapping_and_dense.default(x)
    assert not aten.is_non_overlapping_and_dense.default(x[:, :, ::2])
    copied = aten.lift_fresh_copy.default(x)
    assert torch.equal(copied, x) and copied.data_ptr() != x.data_ptr()


@pytest.mark.skipif(is_aliased(), reason="import torch is this library")
def test_layouts_as_in_pytorch():
    oracle = pytest.importorskip("torch")
    for shape, strides in (
        ((2, 3, 4, 5), (60, 1, 15, 3)),
        ((2, 3, 4, 5), (60, 20, 5, 1)),
        ((1, 3, 1, 1), (3, 1, 3, 3)),
        ((2, 1, 4, 5), (20, 1, 5, 1)),
        ((2, 3, 4, 5), (120, 1, 30, 6)),
        ((2, 3, 1, 5), (15, 1, 1, 3)),
        ((0, 3, 4, 5), (60, 1, 15, 3)),
        ((3, 3), (1, 3)),
        ((3, 3), (0, 1)),
    ):
        mine = torch.empty_strided(shape, strides)
        right = oracle.empty_strided(shape, strides)
        ops = oracle.ops.aten
        assert aten.is_non_overlapping_and_dense.default(mine) == ops.is_non_overlapping_and_dense.default(
            right
        )
        expected = ops.is_strides_like_format.default(right, oracle.channels_last)
        assert aten.is_strides_like_format.default(mine, torch.channels_last) == expected


def test_handlers_that_are_methods():
    class Holding(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = torch.Tensor._make_wrapper_subclass(
                cls, inner.shape, dispatch_sizes_strides_policy="sizes"
            )
            made.inner = inner
            return made

        def __torch_dispatch__(self, func, types, args, kwargs=None):
            return func(self.inner, *args[1:], **(kwargs or {}))

    held = Holding(torch.ones(2, 3))
    assert type(held * 2) is torch.Tensor and float((held * 2).sum()) == 12
    held.inner = torch.ones(5)
    assert held.shape == (5,) and held.numel() == 5


def test_detached_wrappers_count_writes():
    class Holding(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = torch.Tensor._make_wrapper_subclass(cls, inner.shape)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args, kwargs=None):
            made = func(*(a.inner if isinstance(a, cls) else a for a in args), **(kwargs or {}))
            return cls(made)

    x = Holding(torch.ones(3))
    x.detach().add_(1)
    assert x._version == 1
    x.data.add_(1)
    assert x._version == 1
    result = Holding(torch.ones(3)).requires_grad_().exp()
    result.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()
