"""The text of a script that computes what a graph says: how graphs that no script made are run and saved."""

import functools
import keyword
import math
import re

import rushlight
from rushlight import Tensor
from rushlight.jit._graph_nodes import Value

__all__ = ["source_of"]


def source_of(name, graph):
    """A function of TorchScript that takes a graph's inputs and gives its results."""
    writer = _Writer()
    inputs = [f"{writer.name(value)}: {value._annotation}" for value in graph._inputs]
    results = [writer.name(value) for value in graph._outputs]
    writer.nodes(graph)
    body = [*writer.lines, f"return {', '.join(results)}" if results else "pass"]
    return f"def {name}({', '.join(inputs)}):\n" + "".join(f"    {line}\n" for line in body)


_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "pow": "**", "remainder": "%",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "__and__": "and", "__or__": "or",
    "__is__": "is", "__isnot__": "is not", "__contains__": "in",
}  # fmt: skip
_PREFIX = {"neg": "-", "__not__": "not "}
_METHODS = {"append", "keys", "values", "items", "insert", "pop", "extend", "clear", "strip", "split", "join"}
_BUILTINS = {"len", "ord", "chr", "sorted"}
_NAMED = (rushlight.dtype, rushlight.layout, rushlight.memory_format)
_CONVERSIONS = {
    "Int": "int",
    "Float": "float",
    "Bool": "bool",
    "IntImplicit": "int",
    "FloatImplicit": "float",
}


class _Writer:
    """Writes one statement for each node, innermost blocks further to the right."""

    def __init__(self):
        self.lines, self.indent, self._names = [], "", {}

    def name(self, value):
        """A variable for a value: its own name where that is one."""
        if value not in self._names:
            stem = re.sub(r"\W", "_", value.debugName())
            if not stem.isidentifier() or keyword.iskeyword(stem) or stem in ("torch", "self"):
                stem = f"v_{stem}"
            taken = set(self._names.values())
            self._names[value] = next(n for n in _numbered(stem) if n not in taken)
        return self._names[value]

    def line(self, text):
        self.lines.append(self.indent + text)

    def nodes(self, block):
        for node in block._nodes:
            self.node(node)

    def node(self, node):
        space, _, kind = node.kind().partition("::")
        special = getattr(self, f"node_{kind}", None) if space == "prim" else None
        if special is not None:
            return special(node)
        text = self.primitive(node, kind) if space == "prim" else self.call(node, space, kind)
        targets = ", ".join(map(self.name, node._outputs))
        self.line(f"{targets} = {text}" if targets else text)

    def call(self, node, space, kind):
        """An operator: of Python's where no tensor is among the operands."""
        given = list(map(self.name, node._inputs))
        if space == "aten":
            text = self.python_call(node, kind, given)
            if text is not None:
                return text
        names = _keywords(space, kind, len(given))
        first = len(given) - len(names)
        given[first:] = [f"{name}={value}" for name, value in zip(names, given[first:], strict=True)]
        return f"torch.ops.{space}.{kind}({', '.join(given)})"

    def python_call(self, node, kind, given):
        """The text of what Python computes itself: on numbers, text, lists and dictionaries; else None."""
        if kind in _CONVERSIONS:
            return f"{_CONVERSIONS[kind]}({given[0]})"
        if kind == "__getitem__":
            return f"{given[0]}[{given[1]}]"
        if kind == "slice" and not _is_tensor(node._inputs[0]):
            return f"{given[0]}[{':'.join(given[1:])}]"
        if kind == "__range_length":
            return f"len(list(range({', '.join(given)})))"
        if kind == "__derive_index":
            return f"{given[1]} + {given[0]} * {given[2]}"
        if kind in _METHODS and not _is_tensor(node._inputs[0]):
            return f"{given[0]}.{kind}({', '.join(given[1:])})"
        if any(map(_is_tensor, node._inputs)):
            return f"len({given[0]})" if kind == "len" else None
        if kind in _INFIX and len(given) == 2:
            left, right = reversed(given) if kind == "__contains__" else given
            return f"{left} {_INFIX[kind]} {right}"
        if kind in _PREFIX:
            return f"{_PREFIX[kind]}{given[0]}"
        return f"{kind}({', '.join(given)})" if kind in _BUILTINS else None

    def primitive(self, node, kind):
        given = list(map(self.name, node._inputs))
        if kind in ("TupleUnpack", "ListUnpack", "NumToTensor", "unchecked_cast"):
            return f"torch.tensor({given[0]})" if kind == "NumToTensor" else given[0]
        if kind == "TupleIndex":
            return f"{given[0]}[{given[1]}]"
        if kind in ("dtype", "device", "shape", "layout"):
            return f"{given[0]}.{kind}"
        if kind in ("min", "max", "abs"):
            return f"{kind}({', '.join(given)})"
        raise RuntimeError(f"a graph with {node.kind()} does not say how that is computed")

    def node_Constant(self, node):  # noqa: N802
        (result,) = node._outputs
        value = node._attributes.get("value")
        if isinstance(value, Tensor):
            return self.line(f"{self.name(result)} = {_tensor_text(value)}")
        if result._type == "bool":
            value = bool(value)
        if isinstance(value, _NAMED):
            return self.line(f"{self.name(result)} = torch.{str(value).rpartition('.')[2]}")
        said = "" if value is None else f": {result._annotation}"
        self.line(f"{self.name(result)}{said} = {_literal(value)}")

    def node_ListConstruct(self, node):  # noqa: N802
        (result,) = node._outputs
        self.line(f"{self.name(result)}: {result._annotation} = [{', '.join(map(self.name, node._inputs))}]")

    def node_TupleConstruct(self, node):  # noqa: N802
        given = "".join(f"{self.name(value)}, " for value in node._inputs)
        self.line(f"{self.name(node.output())} = ({given.rstrip() if given.count(',') == 1 else given[:-2]})")

    def node_DictConstruct(self, node):  # noqa: N802
        names = list(map(self.name, node._inputs))
        pairs = ", ".join(f"{k}: {v}" for k, v in zip(names[::2], names[1::2], strict=True))
        self.line(f"{self.name(node.output())}: {node.output()._annotation} = {{{pairs}}}")

    def node_RaiseException(self, node):  # noqa: N802
        self.line(f"raise RuntimeError({self.name(node._inputs[0]) if node._inputs else ''})")

    def node_If(self, node):  # noqa: N802
        for head, block in zip((f"if {self.name(node.input())}:", "else:"), node._blocks, strict=True):
            self.line(head)
            self.inner(block, node._outputs, "")

    def node_Loop(self, node):  # noqa: N802
        """Inputs are the most turns, whether there is a first one, and what turns hand on."""
        trips, go, *first = node._inputs
        body = node._blocks[0]
        turn, *carried = body._inputs
        self.assign(node._outputs, first)
        goes = Value(f"{turn.debugName()}_goes", "bool")
        self.assign([goes], [go])
        self.line(f"for {self.name(turn)} in range({self.name(trips)}):")
        self.inner(body, [goes, *node._outputs], f"if not {self.name(goes)}:\n    break", carried)

    def inner(self, block, outputs, before, carried=()):
        outer, self.indent = self.indent, self.indent + "    "
        for line in before.splitlines():
            self.line(line)
        self.assign(carried, outputs[len(outputs) - len(carried) :])
        self.nodes(block)
        self.assign(outputs, block._outputs)
        if not (before or carried or block._nodes or outputs):
            self.line("pass")
        self.indent = outer

    def assign(self, targets, values):
        """All at once: a target may be among the values."""
        if len(targets):
            self.line(f"{', '.join(map(self.name, targets))} = {', '.join(map(self.name, values))}")


@functools.cache
def _keywords(space, kind, count):
    """The names of the last of so many arguments of an operator: those that are given by name only."""
    packet = getattr(getattr(rushlight.ops, space), kind, None)
    for overload in packet.overloads() if packet is not None else ():
        arguments = getattr(packet, overload)._schema.arguments
        if len(arguments) >= count and not any(a.is_out for a in arguments):
            return [a.name for a in arguments[:count] if a.kwarg_only]
    raise RuntimeError(f"there is no operator {space}::{kind} that takes {count} arguments")


def _numbered(stem):
    yield stem
    number = 1
    while True:
        number += 1
        yield f"{stem}_{number}"


def _is_tensor(value):
    return value._type == "Tensor" or value._complete is not None


def _literal(value):
    return f"float('{value}')" if value in (math.inf, -math.inf) or value != value else repr(value)


def _tensor_text(value):
    """A tensor of one value as a call that makes it."""
    if value.numel() != 1:
        raise RuntimeError("a tensor of many values among a graph's constants cannot be written as text")
    number = _literal(value.item())
    return f"torch.full({list(value.shape)}, {number}, dtype={value.dtype}, device='{value.device}')"
