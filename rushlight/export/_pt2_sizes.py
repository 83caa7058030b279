"""Sizes that change, as PyTorch's archives write them: expressions of symbols, and the example's number."""

import ast
import functools
import operator
import re
from typing import Any

import rushlight as torch
from rushlight._subclasses.expressions import Expression
from rushlight._subclasses.fake_tensor import FakeTensor
from rushlight._subclasses.size_numbers import SizeInt

_PREFIX = "s_"  # PyTorch tells kinds of symbols by their first letter; sizes of inputs begin with s
_CALLS = {
    operator.floordiv: "FloorDiv",
    operator.mod: "Mod",
    torch.sym_max: "Max",
    torch.sym_min: "Min",
    operator.add: "Add",
    operator.mul: "Mul",
}
_OPERATIONS = {name: operation for operation, name in _CALLS.items()}


class UnknownSize(Exception):
    """The size is known only when the program runs."""


def symbol_name(name):
    """The name that a symbol of inputs has in archives."""
    return name if name.startswith("s") else _PREFIX + name


def own_name(name):
    """The name that a symbol of an archive has here."""
    return name.removeprefix(_PREFIX)


def size_of(record):
    """A size in the example: the number itself, or what is noted beside an expression of symbols."""
    if "as_int" in record:
        return record["as_int"]
    hint = record["as_expr"].get("hint")
    if hint is None:
        raise UnknownSize(record["as_expr"]["expr_str"])
    return hint["as_int"]


# --- writing ----------------------------------------------------------------------------------------


class SizeWriter:
    """Writes sizes; ``names`` are the symbols of inputs, as archives call them. Others depend on data."""

    def __init__(self, names):
        self.names = names

    def record(self, size):
        if not isinstance(size, SizeInt):
            return {"as_int": int(size)}
        names = size.expression.names()
        if not all(name in self.names or re.fullmatch(r"u\d+", name) for name in names):
            return {"as_int": int(size)}
        hint = {"as_int": int(size)} if names <= set(self.names) else None
        return {"as_expr": {"expr_str": self._text(size.expression), "hint": hint}}

    def _text(self, expression):
        terms = expression.linear()
        if terms is not None:
            return _joined("Add", [self._term(name, c) for name, c in terms.items() if c]) or "Integer(0)"
        first, second = self._text(expression.first), self._text(expression.second)
        if expression.operation is operator.sub:
            return f"Add({first}, Mul(Integer(-1), {second}))"
        return f"{_CALLS[expression.operation]}({first}, {second})"

    def _term(self, name, factor):
        if name is None:
            return f"Integer({factor})"
        known = self.names.get(name)
        positive = "" if known is None else "positive=True, "
        symbol = f"Symbol('{known or name}', {positive}integer=True)"
        return symbol if factor == 1 else f"Mul(Integer({factor}), {symbol})"

    def shape(self, tensor):
        """Records of the sizes and of the strides of a tensor."""
        sizes = list(tensor.shape)
        return [self.record(n) for n in sizes], [self.record(n) for n in _strides(sizes, tensor.stride())]


def _joined(name, parts):
    return parts[0] if len(parts) == 1 else f"{name}({', '.join(parts)})" if parts else ""


def _strides(sizes, strides):
    """The strides as products of sizes, where the elements lie side by side in some order."""
    found, expected = list(strides), 1
    for d in sorted(range(len(sizes)), key=lambda d: (strides[d], -d)):
        if int(expected) != strides[d]:
            return strides
        found[d] = expected
        expected = sizes[d] * expected
    return found


# --- reading ----------------------------------------------------------------------------------------


class SizeReader:
    """Reads sizes; of those that depend on data each symbol has a sample."""

    def __init__(self):
        self.samples = {}

    def size(self, record):
        """A number, which knows what it is of symbols."""
        if "as_int" in record:
            return record["as_int"]
        expression, hint = expression_of(record), record["as_expr"].get("hint")
        return SizeInt(expression.value(self._sample) if hint is None else hint["as_int"], expression)

    def _sample(self, name):
        return self.samples.setdefault(name, 2 + len(self.samples))

    def shape(self, tensor, sizes):
        """Let a tensor tell what its sizes are of symbols."""
        found = {d: self.size(record) for d, record in enumerate(sizes) if "as_expr" in record}
        if found and isinstance(tensor, FakeTensor):
            tensor.size_numbers = found


def expression_of(record):
    """What a size is of symbols."""
    text = record["as_expr"]["expr_str"]
    found = _expression(ast.parse(text, mode="eval").body)
    if found is None:
        raise UnknownSize(text)
    return found


def _expression(node: Any):
    """The expression of a text, or None where it is of another kind."""
    if isinstance(node, ast.Constant):
        return Expression(None, node.value)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    name, operands = node.func.id, node.args
    if name == "Symbol":
        return Expression(None, own_name(ast.literal_eval(operands[0])))
    if name == "Integer":
        return Expression(None, ast.literal_eval(operands[0]))
    parts = [_expression(operand) for operand in operands]
    if None in parts or len(parts) < 2:
        return None
    if name == "Pow" and type(parts[1].first) is int and parts[1].first > 0:
        name, parts = "Mul", parts[:1] * parts[1].first
    if name not in _OPERATIONS:
        return None
    return functools.reduce(lambda a, b: Expression(_OPERATIONS[name], a, b), parts)
