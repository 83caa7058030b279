"""Functions whose results have the shape of their operands: run on the values as a whole in both layouts."""

import functools

from rushlight._operators.traits import names_of

__all__ = ["elementwise", "keeps_shape"]

# Python's operators on tensors that are no records of their own.
_OPERATORS = frozenset(
    """
    __and__ __or__ __xor__ __rpow__ __rdiv__ __rtruediv__ __rfloordiv__ __rsub__ __pow__ __truediv__
    __floordiv__ __eq__ __ne__
    """.split()
)
# Methods that are no records, and operators of which no trait says that shapes stay: a dropout is any
# composite that draws numbers, `type_as` reads only the dtype of its second operand.
_OTHERS = frozenset(
    "alpha_dropout bernoulli contiguous cpu cuda detach dropout pin_memory to type type_as".split()
)


@functools.cache
def elementwise():
    """Element by element: any number of operands, broadcast. Conversions are among them."""
    return names_of(lambda traits: traits.elementwise) | _OPERATORS


@functools.cache
def keeps_shape():
    """Of one operand: what fills it with random numbers or draws as many, copies, moves it elsewhere."""
    random = names_of(lambda traits: traits.random)
    return _OTHERS | {name for name in random if name.endswith(("_", "_like"))}
