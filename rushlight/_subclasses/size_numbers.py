"""Sizes that a graph's nodes describe by symbols: the example's number, and what it is of the symbols."""

import operator

import rushlight as torch
from rushlight._subclasses.expressions import Expression

__capture__ = "skip"  # Note [Capture marks]


class SizeInt(int, torch.SymInt):
    """The example's size, which stands for all that the expression may be. Comparisons are of the numbers."""

    expression: Expression

    def __new__(cls, value, expression):
        made = int.__new__(cls, value)
        made.expression = expression
        return made

    @property
    def node(self):
        return SymNode(self.expression, None, int, int(self))

    def __reduce__(self):
        return SizeInt, (int(self), self.expression)

    def __str__(self):
        return str(self.expression)

    __repr__ = __str__

    __hash__ = int.__hash__

    def __format__(self, spec):
        return format(int(self), spec) if spec else str(self)

    def __neg__(self):
        return 0 - self

    def __sym_max__(self, other):
        return _combined(torch.sym_max, max, self, other)

    def __sym_min__(self, other):
        return _combined(torch.sym_min, min, self, other)


def _combined(operation, compute, a, b):
    return SizeInt(compute(int(a), int(b)), Expression(operation, _expression(a), _expression(b)))


class SymNode:
    """What stands behind a symbolic number: an expression of symbols, and the number in the example."""

    __module__ = "rushlight.fx.experimental.sym_node"

    def __init__(self, expr, shape_env, pytype, hint=None, constant=None, fx_node=None):
        self.expr, self.shape_env, self.pytype, self.hint = expr, shape_env, pytype, hint
        self.constant, self.fx_node = constant, fx_node

    def is_int(self):
        return self.pytype is int

    def is_float(self):
        return self.pytype is float

    def is_bool(self):
        return self.pytype is bool

    def is_constant(self):
        return self.constant is not None

    def has_hint(self):
        return self.hint is not None

    def maybe_as_int(self):
        return self.constant if self.pytype is int else None

    def require_hint(self, fallback=None):
        return fallback if self.hint is None else self.hint

    def __str__(self):
        return str(self.expr)

    __repr__ = __str__


def named(name, value):
    """The size that has a name."""
    return SizeInt(value, Expression(None, name))


def symbols_of(value):
    """The names on which the sizes in a value depend."""
    if isinstance(value, torch.Tensor):
        value = value.shape
    if isinstance(value, (list, tuple)):
        return {name for item in value for name in symbols_of(item)}
    expression = getattr(value, "expression", None)
    return expression.names() if isinstance(value, torch.SymInt) and expression is not None else set()


def _expression(number):
    return number.expression if isinstance(number, SizeInt) else Expression(None, int(number))


_NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "floordiv": 1}  # the second operand that changes nothing


def _define(name):
    operation = getattr(operator, name)
    plain, reflected = getattr(int, f"__{name}__"), getattr(int, f"__r{name}__")

    def run(self, other):
        if type(other) is int and other == _NEUTRAL.get(name):
            return self
        value = plain(self, other)
        if type(value) is not int or isinstance(other, bool):
            return value
        return SizeInt(value, Expression(operation, self.expression, _expression(other)))

    def run_reflected(self, other):
        if name in ("add", "mul") and type(other) is int and other == _NEUTRAL[name]:
            return self
        value = reflected(self, other)
        if type(value) is not int or isinstance(other, bool):
            return value
        return SizeInt(value, Expression(operation, _expression(other), self.expression))

    setattr(SizeInt, f"__{name}__", run)
    setattr(SizeInt, f"__r{name}__", run_reflected)


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    _define(_name)
