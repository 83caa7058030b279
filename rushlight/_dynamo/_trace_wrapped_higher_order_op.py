"""Indexing by tensors of no dimensions inside a function that is mapped over examples."""

import rushlight as torch
from rushlight.overrides import TorchFunctionMode

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(TorchFunctionMode):
    """A context in which ``x[i, j]`` with tensors and numbers gathers: no tensor is asked for its value."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.__getitem__:
            x, index = args
            index = index if isinstance(index, tuple) else (index,)
            if all(isinstance(i, (torch.Tensor, int)) and not isinstance(i, bool) for i in index):
                where = [torch.tensor(i) if isinstance(i, int) else i for i in index]
                return torch.ops.aten.index(x, where)
        return func(*args, **(kwargs or {}))
