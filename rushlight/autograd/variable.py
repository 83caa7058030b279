"""``Variable``, which has been another name for Tensor since 0.4."""

import rushlight

__all__ = ["Variable"]


class VariableMeta(type):
    def __instancecheck__(cls, other):
        return isinstance(other, rushlight.Tensor)


class Variable(metaclass=VariableMeta):
    """``Variable(tensor, requires_grad)`` is the tensor, asked to require gradients."""

    def __new__(cls, data=None, requires_grad=False, volatile=False):
        data = rushlight.empty(0) if data is None else data
        return data.detach().requires_grad_(requires_grad)
