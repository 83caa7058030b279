"""``Variable``, which has been another name for Tensor since 0.4."""

import rushlight

__all__ = ["Variable"]


class _ExecutionEngine:
    """What programs ask of the engine itself."""

    @staticmethod
    def queue_callback(callback):
        """Call `callback` when the backward pass that is running has ended."""
        passes = getattr(rushlight.autograd._running, "passes", None)
        if not passes:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        passes[-1].append(callback)

    @staticmethod
    def is_checkpoint_valid():
        return True


class VariableMeta(type):
    def __instancecheck__(cls, other):
        return isinstance(other, rushlight.Tensor)


class Variable(metaclass=VariableMeta):
    """The old name of a tensor: `Variable(tensor, requires_grad)` is the tensor, asked to require gradients.

    Args:
        data (Tensor): the tensor.
        requires_grad (bool): whether it gets a gradient.
        volatile (bool): is not used any more.

    Example:
        >>> torch.autograd.Variable(torch.ones(1), requires_grad=True)
        tensor([1.], requires_grad=True)
    """

    _execution_engine = _ExecutionEngine()

    def __new__(cls, data=None, requires_grad=False, volatile=False):
        if volatile:
            import warnings

            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                stacklevel=2,
            )
        data = rushlight.empty(0) if data is None else data
        return data.detach().requires_grad_(requires_grad)
