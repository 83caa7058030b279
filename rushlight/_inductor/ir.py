"""Names of the loops that PyTorch's compiler writes operators as.

Operators run by their kernels here, so no lowering is ever called with these; making one says so.
"""

__all__ = ["Pointwise", "TensorBox"]


class TensorBox:
    """A value of such a loop."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "torch._inductor.ir: this compiler has no loops of its own; write it with operators"
        )


class Pointwise(TensorBox):
    """A loop over elements."""

    @classmethod
    def create(cls, *args, **kwargs):
        return cls(*args, **kwargs)
