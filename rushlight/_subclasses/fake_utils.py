"""Fake tensors beside real ones: whether what an operator says of its results' shapes is what it gives."""

import rushlight as torch
from rushlight._ops import OpOverload
from rushlight._subclasses.fake_tensor import (
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import TorchDispatchMode

__all__ = ["CrossRefFakeMode", "MetadataMismatchError", "outputs_alias_inputs", "outputs_are_inputs"]


class MetadataMismatchError(RuntimeError):
    """What was foretold of a result differs from the result."""


def _storages(value):
    leaves = pytree.tree_leaves(value)
    return {
        t.untyped_storage()._cdata
        for t in leaves
        if isinstance(t, torch.Tensor) and t.layout is torch.strided and t.untyped_storage().nbytes() > 0
    }


def _identities(value):
    return {id(t) for t in pytree.tree_leaves(value) if isinstance(t, torch.Tensor)}


def outputs_alias_inputs(outputs, inputs):
    """Whether a result shares memory with an operand."""
    return bool(_storages(outputs) & _storages(inputs))


def outputs_are_inputs(outputs, inputs):
    """Whether a result is an operand."""
    return bool(_identities(outputs) & _identities(inputs))


def output_alias_each_other(outputs):
    """Whether two results share memory."""
    found = [s for t in pytree.tree_leaves(outputs) for s in _storages(t)]
    return len(found) != len(set(found))


def try_convert_fake_to_real(tensors):
    """Real tensors with the values of fake ones whose storages stand for real memory; others stay fake."""
    from rushlight._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

    mode = next((t.fake_mode for t in tensors if isinstance(t, FakeTensor)), None)
    if mode is None:
        return tensors
    known = {}
    for reference, fake in mode.fake_tensor_converter.tensor_memo.values():
        real = reference()
        if real is not None:
            known[fake.untyped_storage()._cdata] = real.untyped_storage()
    made = []
    with unset_fake_temporarily():
        for t in tensors:
            storage = known.get(t.untyped_storage()._cdata) if isinstance(t, FakeTensor) else None
            if storage is None:
                made.append(t)
            else:
                empty = torch.empty(0, dtype=t.dtype, device=storage.device)
                made.append(empty.set_(storage, t.storage_offset(), t.shape, t.stride()))
    return made


def _traits(t):
    return {
        "shape": tuple(t.shape),
        "dtype": t.dtype,
        "layout": t.layout,
        "device": t.device,
    }


def _compare(context, real, fake, check_strides):
    wanted, found = _traits(real), _traits(fake)
    if check_strides and real.layout is torch.strided:
        sizes = zip(real.shape, real.stride(), fake.stride(), strict=True)
        wanted["stride"] = tuple(real.stride())
        found["stride"] = tuple(b if size > 1 else a for size, a, b in sizes)
    for name, value in wanted.items():
        if found[name] != value:
            raise MetadataMismatchError(
                f"{context}: {name} of the result is {value}, and {found[name]} was foretold"
            )


class CrossRefFakeMode(TorchDispatchMode):
    """Runs each operator on fake tensors too, and compares shapes, types and aliases of what both give."""

    def __init__(
        self, ignore_op_fn=None, *, check_strides=True, check_aliasing=True, only_check_ops_with_meta=True
    ):
        super().__init__()
        self.ignore_op_fn = ignore_op_fn if ignore_op_fn is not None else lambda _: False
        self.check_strides = check_strides
        self.check_aliasing = check_aliasing
        self.only_check_ops_with_meta = only_check_ops_with_meta

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        foretold = self._foretell(func, args, kwargs)
        real = func(*args, **kwargs)
        if foretold is not None:
            self._check(func, args, kwargs, real, foretold)
        return real

    def _foretell(self, func, args, kwargs):
        """What fake tensors give, and whether operands share its memory; None where nothing is said."""
        builtin = isinstance(func, OpOverload) and func.namespace in ("aten", "prims", "prim")
        if self.ignore_op_fn(func) or not builtin and self.only_check_ops_with_meta:
            return None
        try:
            with FakeTensorMode(allow_non_fake_inputs=False) as mode:
                fake_args, fake_kwargs = pytree.tree_map_only(
                    torch.Tensor, lambda t: mode.from_tensor(t), (args, kwargs)
                )
                given = (fake_args, fake_kwargs)
                result = func(*fake_args, **fake_kwargs)
        except (
            DynamicOutputShapeException,
            UnsupportedFakeTensorException,
            UnsupportedOperatorException,
            NotImplementedError,
        ):
            return None
        return result, outputs_alias_inputs(result, given), outputs_are_inputs(result, given)

    def _check(self, func, args, kwargs, real, foretold):
        fake, shares, same = foretold
        context = f"When comparing the output of {func} on FakeTensor and concrete Tensors"
        if self.check_aliasing:
            if shares != outputs_alias_inputs(real, (args, kwargs)):
                raise MetadataMismatchError(f"{context}: mismatch in outputs_alias_inputs check")
            if same != outputs_are_inputs(real, (args, kwargs)):
                raise MetadataMismatchError(f"{context}: mismatch in outputs_are_inputs check")
        for a, b in zip(pytree.tree_leaves(real), pytree.tree_leaves(fake), strict=True):
            if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
                _compare(context, a, b, self.check_strides)
