"""Questions about sizes that may be symbolic. In a trace every size is a number, so each has its answer at
once; what nodes of a graph describe may have symbols."""

import enum
import re
from dataclasses import dataclass, field
from typing import Any

import rushlight as torch
from rushlight._errors.capture import GuardOnDataDependentSymNode
from rushlight._subclasses.expressions import Expression
from rushlight._subclasses.size_numbers import SymNode, symbols_of

__all__ = [
    "CURRENT_NODE_KEY",
    "DimDynamic",
    "GuardOnDataDependentSymNode",
    "ShapeEnv",
    "StatefulSymbolicContext",
    "StatelessSymbolicContext",
    "SymbolicContext",
    "canonicalize_bool_expr",
    "check_consistent",
    "compute_unbacked_bindings",
    "create_contiguous",
    "definitely_false",
    "definitely_true",
    "expect_true",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_bool",
    "guard_float",
    "guard_int",
    "guard_or_false",
    "guard_or_true",
    "guard_scalar",
    "guard_size_oblivious",
    "guarding_hint_or_throw",
    "has_free_symbols",
    "has_free_unbacked_symbols",
    "has_hint",
    "has_static_value",
    "has_symbolic_sizes_strides",
    "hint_int",
    "is_accessor_node",
    "is_concrete_bool",
    "is_concrete_float",
    "is_concrete_int",
    "is_nested_int",
    "is_symbol_binding_fx_node",
    "is_symbolic",
    "optimization_hint",
    "parallel_and",
    "parallel_or",
    "rebind_unbacked",
    "resolve_unbacked_bindings",
    "statically_known_false",
    "statically_known_true",
    "sym_and",
    "sym_eq",
    "sym_or",
]

SHAPEENV_EVENT_KEY = "shapeenv_event"
CURRENT_NODE_KEY = "current_node"


# --- truths -----------------------------------------------------------------------------------------


def guard_bool(a):
    """The truth of a comparison of sizes."""
    return bool(a)


def _known(a):
    """The truth of a condition; None where it depends on data."""
    return a.numbers.answer(a) if isinstance(a, torch.SymBool) else bool(a)


def guard_or_false(a):
    return bool(_known(a))


def guard_or_true(a):
    return _known(a) is not False


def guard_size_oblivious(expr):
    return bool(expr)


def expect_true(a, skip=0):
    return a.expect() if isinstance(a, torch.SymBool) else bool(a)


def statically_known_true(x):
    return _known(x) is True


def statically_known_false(x):
    return _known(x) is False


definitely_true, definitely_false = statically_known_true, statically_known_false


def parallel_or(*conditions):
    """Whether some of the conditions (functions) hold."""
    return any(condition() for condition in conditions)


def parallel_and(*conditions):
    return all(condition() for condition in conditions)


def sym_and(x, *others):
    """Whether all hold."""
    return bool(x) and all(bool(other) for other in others)


def sym_or(x, *others):
    return bool(x) or any(bool(other) for other in others)


def sym_eq(x, y):
    """Whether two sizes, or two nested lists of sizes, are equal."""
    if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
        return len(x) == len(y) and all(sym_eq(a, b) for a, b in zip(x, y))
    return x == y


def canonicalize_bool_expr(expr):
    return expr


# --- numbers ----------------------------------------------------------------------------------------


def guard_int(a):
    """The size as a number."""
    if not isinstance(a, int):
        raise AssertionError(f"expected an int, got {type(a).__name__}")
    return int(a)


def guard_float(a):
    if not isinstance(a, (int, float)):
        raise AssertionError(f"expected a number, got {type(a).__name__}")
    return float(a)


def guard_scalar(a):
    """A bool, int or float as it is."""
    if not isinstance(a, (bool, int, float)):
        raise AssertionError(f"unrecognized scalar {a}")
    return a


def hint_int(a, fallback=None):
    return int(a)


def optimization_hint(a, fallback=None):
    return a


def guarding_hint_or_throw(a):
    return a


def has_hint(a):
    return True


def has_static_value(a):
    """Whether the value is known: of numbers it is."""
    if not isinstance(a, (bool, int, float)):
        raise AssertionError(f"expected a number, got {type(a).__name__}")
    return True


def is_concrete_bool(a):
    return isinstance(a, bool)


def is_concrete_int(a):
    return isinstance(a, int) and not isinstance(a, torch.SymInt)


def is_concrete_float(a):
    return isinstance(a, float)


def is_nested_int(s):
    """Whether a size is that of a ragged dimension."""
    from rushlight.nested._internal.nested_tensor import NestedInt

    return isinstance(s, NestedInt)


def is_symbolic(value):
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def create_contiguous(shape):
    """The strides of a contiguous tensor."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(size * strides[-1])
    return strides[::-1]


# --- symbols of what nodes describe -----------------------------------------------------------------


def free_symbols(val):
    """The names of the symbols that a value depends on."""
    return symbols_of(val)


def free_unbacked_symbols(x):
    """Those of them that are numbers of the program's data."""
    return {name for name in symbols_of(x) if re.fullmatch(r"u\d+", name)}


def has_free_symbols(val):
    return bool(free_symbols(val))


def has_free_unbacked_symbols(x):
    return bool(free_unbacked_symbols(x))


def has_symbolic_sizes_strides(elem):
    return has_free_symbols(elem)


def is_symbol_binding_fx_node(node):
    """The symbol that a node stands for, or None."""
    return None


def is_accessor_node(node):
    """Whether a node reads a size, stride or offset of its input."""
    if node.op == "call_method":
        return node.target in ("size", "stride", "storage_offset", "item")
    names = {"sym_size", "sym_stride", "sym_storage_offset", "size", "stride", "storage_offset"}
    return node.op == "call_function" and getattr(node.target, "__name__", "").partition(".")[0] in names


def compute_unbacked_bindings(shape_env, example_value, old_example_value=None, peek=False):
    return None


def resolve_unbacked_bindings(shape_env, bindings):
    return bindings


def rebind_unbacked(shape_env, n, result):
    """Give symbols of a node the values that a run gave: there are none to give."""


def check_consistent(new, old):
    """Raise if a value does not fit what was known of it."""
    if isinstance(new, torch.Tensor):
        if new.dim() != old.dim():
            raise AssertionError(f"{tuple(old.shape)} != {tuple(new.shape)} (old != new)")
    elif isinstance(new, (int, float)) and new != old:
        raise AssertionError(f"{old} != {new} (old != new)")


# --- how dimensions were to be treated --------------------------------------------------------------


class DimDynamic(enum.Enum):
    """How a dimension of an input is to be treated."""

    DYNAMIC = 0
    DUCK = 1
    STATIC = 2
    SIZE_LIKE_UNBACKED = 3
    INFER_STRIDE = 4
    OBLIVIOUS_SIZE = 5
    UNBACKED = 6


@dataclass(frozen=True)
class SymbolicContext:
    """What a program says of the dimensions of an input."""


@dataclass(frozen=True)
class StatelessSymbolicContext(SymbolicContext):
    dynamic_sizes: Any = ()
    dynamic_strides: Any = None
    constraint_sizes: Any = None
    constraint_strides: Any = None
    specialize_on: Any = None
    view_base_context: Any = None
    shape_ids: Any = None
    unbacked_bounds: Any = None


@dataclass(frozen=True)
class StatefulSymbolicContext(StatelessSymbolicContext):
    tensor_source: Any = None
    shape_env_to_source_to_symbol_cache: dict = field(default_factory=dict)
    excluded_sizes: Any = None


class ShapeEnv:
    """The symbols that a program makes; the sizes in a trace are numbers, of which it has nothing to keep."""

    def __init__(self, **settings):
        self.settings = settings
        self.guards: list = []
        self.var_to_val: dict = {}
        self.var_to_range: dict = {}

    def create_symbol(self, val, source, *settings, **more):
        """A symbol whose value in the example is known."""
        symbol = Expression(None, f"s{len(self.var_to_val)}")
        self.var_to_val[symbol] = val
        return symbol

    def create_symintnode(self, sym, *, hint, source=None):
        """The integer that an expression of symbols is."""
        return torch.SymInt(SymNode(sym, self, int, hint))

    def create_symbolic_sizes_strides_storage_offset(self, ex, source=None, *, symbolic_context=None):
        """The sizes, strides and offset of a tensor."""
        return tuple(ex.size()), tuple(ex.stride()), ex.storage_offset()

    def produce_guards(self, *args, **kwargs):
        return []

    def freeze(self):
        return None
