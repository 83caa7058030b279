"""Numbers as functions of named ones: sizes that may change, and numbers of a program's data."""

import operator

import rushlight as torch

SIGNS = {
    operator.lt: "<", operator.le: "<=", operator.eq: "==", operator.ne: "!=", operator.gt: ">",
    operator.ge: ">=", operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//",
    operator.mod: "%",
}  # fmt: skip
_CALLS = {torch.sym_max: "Max", torch.sym_min: "Min"}


class Expression:
    """A name, a number, or an operation on two expressions."""

    __slots__ = "first", "operation", "second"

    def __init__(self, operation, first, second=None):
        self.operation, self.first, self.second = operation, first, second

    def __str__(self):
        if self.operation is None:
            return str(self.first)
        sign = SIGNS.get(self.operation)
        if sign is None:
            operands = self.first if self.second is None else f"{self.first}, {self.second}"
            return f"{_CALLS.get(self.operation, self.operation.__name__)}({operands})"
        return f"{_wrapped(self.first)} {sign} {_wrapped(self.second)}"

    def __eq__(self, other):  # tables of ranges have names as keys
        return isinstance(other, (Expression, str)) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))

    def names(self):
        if self.operation is None:
            return {self.first} if isinstance(self.first, str) else set()
        return self.first.names() | (self.second.names() if self.second is not None else set())

    def value(self, samples_of):
        """The number that it is for some samples."""
        if self.operation is None:
            return samples_of(self.first) if isinstance(self.first, str) else self.first
        operands = [e.value(samples_of) for e in (self.first, self.second) if e is not None]
        return self.operation(*operands)

    def linear(self):
        """{name: coefficient}, with the constant under None; None where it is no such sum."""
        if self.operation is None:
            return {self.first: 1} if isinstance(self.first, str) else {None: self.first}
        a, b = self.first.linear(), self.second.linear() if self.second is not None else None
        if a is None or b is None:
            return None
        if self.operation in (operator.add, operator.sub):
            sign = 1 if self.operation is operator.add else -1
            return {name: a.get(name, 0) + sign * b.get(name, 0) for name in {*a, *b}}
        if self.operation is operator.mul:
            for some, factor in ((a, b), (b, a)):
                if set(factor) <= {None}:
                    return {name: c * factor.get(None, 0) for name, c in some.items()}
        return None


def _wrapped(expression):
    return f"({expression})" if expression.operation is not None else str(expression)
