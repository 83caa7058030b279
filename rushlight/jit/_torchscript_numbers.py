"""What code of TorchScript archives calls of numbers, text, lists and dictionaries."""

import math
import operator

from rushlight.jit._arithmetic import CALLS, MATH, OPERATORS, powered, remainder, rounded
from rushlight.jit._check_methods import MATH as NAMES
from rushlight.jit._check_methods import METHODS as KNOWN

__all__ = ["METHODS", "ON_NUMBERS"]

# Names that operators of tensors may have, too.
ON_NUMBERS = {
    **{name: MATH.get(name, getattr(math, name)) for name in NAMES},
    "mul": OPERATORS["Mult"],
    "neg": OPERATORS["USub"],
    "remainder": remainder,
    "mathremainder": math.remainder,
    "pow": powered,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "__and__": operator.and_,
    "__or__": operator.or_,
    "__xor__": operator.xor,
    "bitwise_not": operator.invert,
    "__lshift__": OPERATORS["LShift"],
    "__rshift__": operator.rshift,
    "abs": CALLS["abs"],
    "round": rounded,
    "log2": math.log2,
    "sum": CALLS["sum"],
    "any": any,
    "all": all,
    "max": CALLS["max"],
    "min": CALLS["min"],
    "trunc": math.trunc,
    "logical_not": operator.not_,
    "divmod": CALLS["divmod"],
}

# Methods that no tensor has, and those that the operators of tensors are asked for where one is the object.
METHODS = sorted(
    {name for kind in ("str", "List", "Dict") for name in KNOWN[kind] if not name.startswith("__")}
    - {"format", "sort", "copy", "count", "split", "index", "pop", "encode", "maketrans", "translate"}
)
