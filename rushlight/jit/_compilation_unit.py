"""`CompilationUnit`: functions of TorchScript from text."""

from __future__ import annotations

import ast
import sys
import textwrap

import rushlight
from rushlight._command.names import show_from
from rushlight.jit._script import ScriptFunction
from rushlight.jit.frontend import CallByName, _local_names, unit_from_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CompilationUnit:
    """The functions that a text defines, as attributes; they may call each other, the library, and what has a
    name where the text stands."""

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        self._functions = {}
        if lang is not None:
            self.define(lang, None, _frames_up + 1)

    def define(self, lang, rcb=None, _frames_up=0):
        """Add the functions of a text; ``rcb`` gives what a name from outside of it stands for."""
        text = textwrap.dedent(lang)
        try:
            definitions = ast.parse(text).body
        except (SyntaxError, ValueError) as error:
            raise RuntimeError(f"define: the text cannot be read: {_told(error)}{error}") from None
        for tree in definitions:
            if not isinstance(tree, ast.FunctionDef):
                raise RuntimeError(f"expected def but found '{ast.unparse(tree)}' here")
        names = _names_by(rcb, text) if rcb is not None else _names_of(sys._getframe(_frames_up + 1))
        _refuse_circles({tree.name: tree for tree in definitions})
        names.update((tree.name, CallByName(self._functions, tree.name)) for tree in definitions)
        names.update((name, CallByName(self._functions, name)) for name in self._functions)
        for tree in definitions:
            self._functions[tree.name] = ScriptFunction(unit_from_text(tree, text.splitlines(), names, {}))

    def __getattr__(self, name):
        try:
            return self.__dict__["_functions"][name]
        except KeyError:
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'") from None

    def create_function(self, qualified_name: str, graph: Any, shouldMangle: bool = False) -> Any:  # noqa: N803
        """Add what a graph computes as a function of this name."""
        from rushlight.jit._graph_passes import _create_function_from_graph

        made = self._functions[qualified_name] = _create_function_from_graph(qualified_name, graph)
        return made

    def find_function(self, name: str) -> Any:
        """The function of this name, or None."""
        return self._functions.get(name)

    def get_functions(self) -> list[Any]:
        return list(self._functions.values())


# What TorchScript's parser says where Python's says that.
_WORDS = {
    "unterminated string literal": "expected a valid token here",
    "invalid character": "expected a valid token here",
    "cannot assign to literal": "Cannot pack a tuple into a non-variable",
    "cannot assign to": "unexpected expression on the left-hand side",
    "is an illegal expression for augmented": "augmented assignment can only have one LHS expression",
}


def _told(error):
    said = next((words for known, words in _WORDS.items() if known in str(error)), None)
    line = (getattr(error, "text", None) or "")[: getattr(error, "offset", 0) or 0]
    if said is None and line.rfind("[") > line.rfind("]") and "forgot a comma" in str(error):
        said = "expected ] here"
    return f"{said}: " if said else ""


def _refuse_circles(trees):
    """Raise where a function of a text calls itself, by others or not."""
    named = {
        name: {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - _local_names(tree)
        for name, tree in trees.items()
    }
    for name in trees:
        reached, found = set(), [name]
        while found:
            new = named[found.pop()] & trees.keys() - reached
            reached |= new
            found += new
        if name in reached:
            raise RuntimeError(f"function '{name}' is called recursively. Recursive calls are not supported")


def _names_of(frame):
    return {"torch": rushlight, **frame.f_globals, **frame.f_locals}


def _names_by(rcb, text):
    names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    found = {name: rcb(name) for name in names}
    return {"torch": rushlight, **{name: value for name, value in found.items() if value is not None}}


show_from("jit", CompilationUnit)
