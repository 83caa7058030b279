"""Lowerings that packages register: noted, and never called, because operators run by their kernels here."""

__all__ = ["lowerings", "register_lowering", "to_dtype"]

lowerings: dict = {}


def register_lowering(
    aten_fn, broadcast=False, type_promotion_kind=None, convert_input_to_bool=False, lowering_dict=None
):
    """Note how an operator, or each of several, would be written as a loop."""

    def note(function):
        for one in aten_fn if isinstance(aten_fn, (list, tuple)) else [aten_fn]:
            (lowerings if lowering_dict is None else lowering_dict)[one] = function
        return function

    return note


def to_dtype(x, dtype, copy=False):
    """A value of a loop in another dtype: there are no loops here."""
    from .ir import Pointwise

    return Pointwise.create(x, dtype)
