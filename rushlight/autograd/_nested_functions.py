"""Functions over nested lists and tuples of tensors: the older kind of autograd functions, and the walks that
it and packages use."""

import rushlight
from rushlight.autograd.function import Function


def _unknown(obj, condition_msg):
    accepted = f". Accepted types: {condition_msg}, or lists/tuples of them" if condition_msg else ""
    return ValueError(
        "Auto nesting doesn't know how to process an input object of type "
        f"{rushlight.typename(obj)}{accepted}"
    )


def _nested_map(condition, fn, condition_msg=None):
    """A function that applies `fn` to what meets `condition` in nested containers."""

    def walk(obj):
        if condition(obj):
            return fn(obj)
        if obj is None:
            return None
        if isinstance(obj, dict):
            return {key: walk(value) for key, value in obj.items()}
        if not isinstance(obj, (list, tuple)):
            raise _unknown(obj, condition_msg)
        mapped = map(walk, obj)
        return type(obj)(*mapped) if hasattr(obj, "_fields") else type(obj)(mapped)

    return walk


def _iter_filter(condition, allow_unknown=False, condition_msg=None, conversion=None):
    """A function that yields what meets `condition` in nested containers, in order."""

    def walk(obj):
        if conversion is not None:
            obj = conversion(obj)
        if condition(obj):
            yield obj
        elif obj is None:
            return
        elif isinstance(obj, (list, tuple, dict)):
            for part in obj.values() if isinstance(obj, dict) else obj:
                yield from walk(part)
        elif allow_unknown:
            yield obj
        else:
            raise _unknown(obj, condition_msg)

    return walk


def _jit_unwrap_structured(obj):
    return obj._jit_unwrap() if hasattr(obj, "_jit_unwrap") else obj


def _unflatten(input, proto):
    """The flat `input` in the nested lists and tuples of `proto`, whose Nones stay."""
    flat = iter(input)

    def build(like):
        if isinstance(like, (list, tuple)):
            return type(like)([None if part is None else build(part) for part in like])
        return next(flat)

    return build(proto)


def _is_tensor(obj):
    return isinstance(obj, rushlight.Tensor)


_iter_tensors = _iter_filter(_is_tensor, condition_msg="Tensors", conversion=_jit_unwrap_structured)
_iter_tensors_permissive = _iter_filter(_is_tensor, allow_unknown=True, condition_msg="Tensors (permissive)")
_iter_None_tensors = _iter_filter(lambda o: o is None or _is_tensor(o), condition_msg="Tensors or None")
_map_tensor_data = _nested_map(_is_tensor, lambda o: o.data, condition_msg="Tensors")


class InplaceFunction(Function):
    """Kept for older programs: a Function that was made with `inplace`."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Kept for older programs, which give ``forward_extended`` and ``backward_extended`` over nested lists
    and tuples of tensors. New ones use `Function`."""

    def backward(self, *gradients):
        result = self.backward_extended(*_unflatten(gradients, self._nested_output))
        return tuple(_iter_None_tensors(result))

    def forward(self, *args):
        result = self.forward_extended(*_map_tensor_data(self._nested_input))
        del self._nested_input
        self._nested_output = result
        return tuple(_iter_tensors(result))

    def save_for_backward(self, *args):
        self.to_save = tuple(_iter_tensors(args))
        self._to_save_nested = args

    @property
    def saved_tensors(self):
        return _unflatten(super().saved_tensors, self._to_save_nested)

    def mark_dirty(self, *args, **kwargs):
        self.dirty_tensors = tuple(_iter_tensors((args, kwargs)))

    def mark_non_differentiable(self, *args, **kwargs):
        self.non_differentiable = tuple(_iter_tensors((args, kwargs)))

    def forward_extended(self, *input):
        raise NotImplementedError("NestedIOFunction: give forward_extended(self, *input)")

    def backward_extended(self, *grad_output):
        raise NotImplementedError("NestedIOFunction: give backward_extended(self, *grad_output)")
