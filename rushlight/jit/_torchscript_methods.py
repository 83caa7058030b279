"""Methods of modules of PyTorch's archives as Python sees them: checked by their declarations, with text and
schema."""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize

from rushlight.jit._annotations import schema_of
from rushlight.jit._call_check import checked
from rushlight.jit._source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ArchiveUnit", "PublicMethod"]

_NUMBERED = re.compile(r"_\d+")


class ArchiveUnit:
    """A function of an archive: its tree, and the file that it stands in."""

    names: dict = {}
    overloaded = False
    is_serialized = True  # for errors, which then say so
    function: Any = None

    def __init__(self, node, filename, text):
        self.tree, self.filename = node, filename
        self.source = Source(filename, text.splitlines() if isinstance(text, str) else text)
        self.name = node.name

    @functools.cached_property
    def schema(self):
        tree: Any = ast.parse(ast.unparse(self.tree)).body[0]  # types are changed in a copy
        positional = [*tree.args.posonlyargs, *tree.args.args]
        for argument in (*positional, *tree.args.kwonlyargs):
            argument.annotation = argument.annotation and _Known().visit(argument.annotation)
        tree.returns = tree.returns and _Known().visit(tree.returns)
        values = self.function.__defaults__ or ()
        names = [a.arg for a in positional]
        defaults = dict(zip(names[len(names) - len(values) :], values, strict=True))
        return schema_of(
            _OfTree(self, tree), None, True, {**defaults, **(self.function.__kwdefaults__ or {})}
        )

    @functools.cached_property
    def code(self):
        """The text of the function by itself: its first argument without a type, temporaries from 0 on."""
        first, body = self.tree.lineno, self.tree.body[0].lineno
        text = ""
        for number in range(first, self.tree.end_lineno + 1):
            line = self.source.lines[number - 1]
            text += (line if first < number < body else line[self.tree.col_offset :]) + "\n"
        text = re.sub(r"\A(def \w+\(\w+): __torch__[\w.]*", r"\1", text)
        return _renumbered(text)

    @functools.cached_property
    def run(self):
        """The function for calls by Python."""
        return checked(self.function, self.schema, True)


class _OfTree:
    """What types are read of."""

    names: dict = {}
    overloaded = False

    def __init__(self, unit, tree):
        self.tree, self.source, self._unit = tree, unit.source, unit

    def refuse(self, message, node, kind=RuntimeError):
        raise kind(f"{message}:\n{self.source.shown(self._unit.tree)}")


class _Known(ast.NodeTransformer):
    """Types of the archive's own classes as `Any`: their methods check what they are given."""

    def visit_Attribute(self, node):
        return ast.copy_location(ast.Name("Any", ast.Load()), node)


def _renumbered(text):
    found, names = [], {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and _NUMBERED.fullmatch(token.string):
            found.append((token.start, token.string))
            names.setdefault(token.string, f"_{len(names)}")
    lines = text.splitlines(True)
    for (row, column), name in reversed(found):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + names[name] + line[column + len(name) :]
    return "".join(lines)


class PublicMethod:
    """What a class of an archive has under a method's name."""

    def __init__(self, unit):
        self.unit = unit

    def __get__(self, module, cls=None):
        return self if module is None else BoundMethod(module, self.unit)


class BoundMethod:
    """A method of a module; calls are checked."""

    __slots__ = ("_unit", "owner")

    def __init__(self, owner, unit):
        self.owner, self._unit = owner, unit

    def __call__(self, *args, **kwargs):
        return self._unit.run(self.owner, *args, **kwargs)

    @property
    def name(self):
        return self._unit.name

    @property
    def code(self):
        return self._unit.code

    @property
    def schema(self):
        return self._unit.schema.of_method(self.owner._c.qualified_name)

    @property
    def graph(self):
        return self.owner._graph_of(self._unit)
