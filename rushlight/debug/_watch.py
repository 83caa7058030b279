"""Modes that look at every operator that runs."""

from collections import defaultdict
from typing import NamedTuple
from weakref import WeakKeyDictionary

import rushlight as torch
from rushlight.debug._places import Modules, program_line
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._pytree import tree_leaves

__all__ = ["find_nonfinite", "strict_broadcasting", "track_inplace"]


def _tensors(value):
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _name(func):
    return func._schema.name.removeprefix("aten::")


def _holds(value, test):
    """Whether a tensor or a number among the values passes the test."""
    for leaf in tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            if (leaf.is_floating_point() or leaf.is_complex()) and bool(test(leaf).any()):
                return True
        elif isinstance(leaf, float) and bool(test(torch.tensor(leaf))):
            return True
    return False


def _statistics(tensor):
    text = f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
    if not tensor.is_floating_point():
        return text
    values = tensor.detach().double().flatten()
    values = values[values.isfinite()]
    if not values.numel():
        return f"{text}, nothing finite in it"
    return f"{text} from {values.min():.4g} to {values.max():.4g}, mean {values.mean():.4g}"


class _Watch(TorchDispatchMode):
    """A mode that knows which module runs."""

    def __init__(self):
        super().__init__()
        self.modules = Modules()

    def __enter__(self):
        self.modules.__enter__()
        return super().__enter__()

    def __exit__(self, *exc):
        super().__exit__(*exc)
        self.modules.__exit__(*exc)


class find_nonfinite(_Watch):
    """Raises at the first operator that makes a NaN, or an infinity, of numbers that were none.

    Sees forward and backward passes within the context; costs a look at every result. Infinities that the
    program writes itself (`masked_fill(mask, -inf)`) pass.

    Args:
        nan, inf: what to look for.

    Raises:
        FloatingPointError: names the operator, module and line, and tells the inputs' ranges.

    >>> with rushlight.debug.find_nonfinite():
    ...     loss_of(model(x)).backward()
    """

    def __init__(self, nan=True, inf=True):
        super().__init__()
        self._tests = [("NaN", torch.isnan)] * nan + [("infinity", torch.isinf)] * inf

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for kind, test in self._tests:
            if _holds(result, test) and not _holds((args, kwargs), test):
                raise FloatingPointError(self._describe(func, kind, test, result, args, kwargs))
        return result

    def _describe(self, func, kind, test, result, args, kwargs):
        made = next(t for t in _tensors(result) if bool(test(t).any()))
        lines = [
            f"{_name(func)} made {int(test(made).sum())} x {kind} among {made.numel()} numbers {self.modules}"
        ]
        names = [argument.name for argument in func._schema.arguments]
        given = dict(zip(names, args, strict=False)) | (kwargs or {})
        lines += [
            f"  {name}: {_statistics(tensor)}" for name, value in given.items() for tensor in _tensors(value)
        ]
        return "\n".join(lines)


_pointwise: set = set()


def _is_pointwise(func):
    if not _pointwise:
        records = torch._C._operator_records()
        _pointwise.update(r["name"] for r in records if r["family"] == "pointwise")
    return _name(func).removesuffix("_") in _pointwise


class strict_broadcasting(_Watch):
    """Makes pointwise operators of tensors whose shapes differ raise, as `x + bias` then does.

    Tensors of no dimensions and numbers go with every shape. Backward passes are left alone.

    Raises:
        RuntimeError: names the operator, the shapes, the module and the line.

    >>> with rushlight.debug.strict_broadcasting():
    ...     loss = ((predictions - targets) ** 2).mean()  # raises for (N, 1) and (N,)
    """

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if _is_pointwise(func) and not self.modules.is_backward:
            shapes = [list(t.shape) for t in _tensors((args, kwargs)) if t.dim()]
            if any(shape != shapes[0] for shape in shapes[1:]):
                listed = " and ".join(map(str, shapes))
                raise RuntimeError(
                    f"{_name(func)} would broadcast {listed} {self.modules}; "
                    "strict_broadcasting is on: reshape or expand() one of them"
                )
        return func(*args, **(kwargs or {}))


class Write(NamedTuple):
    """One change of a tensor's memory."""

    operator: str
    version: int  # of the tensor after it
    line: str
    module: str


class track_inplace(_Watch):
    """Remembers every operator that writes to a tensor within the context, with its line.

    >>> with rushlight.debug.track_inplace() as writes:
    ...     y = x.exp()
    ...     y += 1
    >>> writes.to(y)
    [Write(operator='add_', version=1, line='train.py:3', module='')]
    """

    def __init__(self):
        super().__init__()
        self._writes = defaultdict(list)
        self._keep = WeakKeyDictionary()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        names = [argument.name for argument in func._schema.arguments]
        given = dict(zip(names, args, strict=False)) | (kwargs or {})
        for argument in func._schema.arguments:
            if argument.alias_info is not None and argument.alias_info.is_write:
                for tensor in _tensors(given.get(argument.name)):
                    self._note(func, tensor)
        return result

    def _note(self, func, tensor):
        write = Write(_name(func), tensor._version, program_line(), self.modules.path)
        self._writes[tensor.untyped_storage()._cdata].append(write)
        self._keep[tensor] = tensor.untyped_storage()

    def to(self, tensor):
        """The writes to the tensor's memory, through whatever view, in order."""
        return list(self._writes[tensor.untyped_storage()._cdata])

    def __str__(self):
        rows = sorted((write for writes in self._writes.values() for write in writes), key=lambda w: w.line)
        return "\n".join(f"{w.line}: {w.operator}, version {w.version} {w.module}".rstrip() for w in rows)
