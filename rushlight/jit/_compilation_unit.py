"""`CompilationUnit`: functions of TorchScript from text."""

from __future__ import annotations

import ast
import textwrap

from rushlight.jit._script import ScriptFunction
from rushlight.jit.frontend import unit_from_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CompilationUnit:
    """The functions that a text defines, as attributes; they may call each other and the library."""

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        self._functions, self._calls = {}, {}
        if lang is not None:
            self.define(lang)

    def define(self, lang, rcb=None, _frames_up=0):
        try:
            definitions = ast.parse(textwrap.dedent(lang)).body
        except (SyntaxError, ValueError) as error:
            raise RuntimeError(f"define: the text cannot be read: {error}") from None
        for tree in definitions:
            if not isinstance(tree, ast.FunctionDef):
                raise RuntimeError(f"expected def but found '{ast.unparse(tree)}' here")
            self._calls.setdefault(tree.name, _Call(self, tree.name))
        for tree in definitions:
            unit = unit_from_source(tree.name, ast.unparse(tree), self._calls, "<string>")
            self._functions[tree.name] = ScriptFunction(unit)

    def __getattr__(self, name):
        try:
            return self.__dict__["_functions"][name]
        except KeyError:
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'") from None

    def find_function(self, name: str) -> Any:
        """The function of this name, or None."""
        return self._functions.get(name)

    def get_functions(self) -> list[Any]:
        return list(self._functions.values())


class _Call:
    """A function by its name, which may be defined later."""

    def __init__(self, unit, name):
        self._unit, self._name = unit, name

    @property
    def unit(self):
        return self._unit._functions[self._name].unit

    def __call__(self, *args, **kwargs):
        return self.unit.function()(*args, **kwargs)
