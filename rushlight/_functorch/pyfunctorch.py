"""Active function transforms as objects, for operators of programs that say what each transform makes of
them (`HigherOrderOperator.py_impl(TransformType.Vmap)`)."""

import rushlight
from rushlight._C import _functorch
from rushlight._extension.functorch_names import TransformType
from rushlight._functorch.autograd_function import _Outside
from rushlight.utils._pytree import tree_map_only

__all__ = ["FuncTorchInterpreter", "GradInterpreter", "JvpInterpreter", "VmapInterpreter"]


class FuncTorchInterpreter:
    """One level of a function transform that is active."""

    def __init__(self, kind, level, size, randomness):
        self._key, self._level, self._size, self._randomness = TransformType[kind], level, size, randomness

    def key(self):
        return self._key

    def level(self):
        return self._level

    def lower(self):
        """A context one level further out, in which gradients are recorded if both sides record."""
        return _Outside(rushlight.is_grad_enabled())

    def process(self, op, args, kwargs):
        """Call what the operator registered for this kind of transform."""
        return op.functorch_table[self._key](self, *args, **kwargs)


class VmapInterpreter(FuncTorchInterpreter):
    def batch_size(self):
        return self._size

    def randomness(self):
        return self._randomness


class GradInterpreter(FuncTorchInterpreter):
    """A level that records: what comes from further out is wrapped for it first."""

    def process(self, op, args, kwargs):
        def lift(t):
            return _functorch._wrap_for_grad(t, self._level)

        args, kwargs = tree_map_only(rushlight.Tensor, lift, (tuple(args), kwargs))
        return super().process(op, args, kwargs)


class JvpInterpreter(GradInterpreter):
    pass


_CLASSES = {"Vmap": VmapInterpreter, "Grad": GradInterpreter, "Jvp": JvpInterpreter}


def retrieve_current_functorch_interpreter():
    """The innermost transform that is active, None without one."""
    innermost = _functorch._innermost_transform()
    if innermost is None:
        return None
    return _CLASSES.get(innermost[0], FuncTorchInterpreter)(*innermost[:4])
