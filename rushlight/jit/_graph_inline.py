"""The graph of a script in which the scripts that it calls are written out: ``.inlined_graph``."""

import ast

from rushlight.jit._graph import Lowering, graph_of
from rushlight.jit._graph_nodes import Graph
from rushlight.jit.frontend import FrontendError, Late

__all__ = ["Inlining", "inlined_graph_of", "unit_of"]


def inlined_graph_of(unit, module=None):
    """The graph of a unit without calls, as far as what is called returns at its end alone."""
    if "_folded" in getattr(module, "__dict__", ()):
        return graph_of(unit, module)
    graph = Graph(unit.tree.name, unit, module)
    Inlining(graph, unit, module).function(unit.tree)
    return graph


class Inlining(Lowering):
    """Writes the operations of a call in place of it."""

    def __init__(self, graph, unit, module):
        super().__init__(graph, unit, module)
        self.within = [unit]  # a function that calls itself stays a call

    def called_method(self, node, name, values):
        module = self.modules.get(values[0], self.module if values[0]._name == "self" else None)
        unit = unit_of(module, name)
        arguments = unit and unit not in self.within and _bound(unit.tree, node, values[1:], 1)
        if isinstance(arguments, dict):
            made = self._body(unit, module, {unit.tree.args.args[0].arg: values[0], **arguments})
            if made is not None:
                return made
        return super().called_method(node, name, values)

    def called_function(self, node, name, values):
        called = self.unit.names.get(name)
        unit = called.unit if isinstance(called, Late) else None
        arguments = unit and unit not in self.within and _bound(unit.tree, node, values, 0)
        made = self._body(unit, None, arguments) if isinstance(arguments, dict) else None
        return super().called_function(node, name, values) if made is None else made

    def taken(self, body):
        """The statements of a body without those that no run reaches, where that is known."""
        return body

    def _body(self, unit, module, arguments):
        """The result of a call whose body is written out; None where it returns in several places."""
        outer = self.unit, self.module, self.scope
        self.unit, self.module, self.scope = unit, module, {}
        self.scope = {name: value for name, value in arguments.items() if not isinstance(value, ast.expr)}
        statements = self.taken(unit.tree.body)
        if not _returns_once(statements):
            self.unit, self.module, self.scope = outer
            return None
        self.within.append(unit)
        for name, value in arguments.items():
            self.scope[name] = self.expression(value) if isinstance(value, ast.expr) else value
        *body, last = statements
        self.statements(body)
        returns = isinstance(last, ast.Return)
        value = last.value if returns else None
        if not returns:
            self.statements([last])
        result = (
            self.expression(value) if value is not None else self.emit("prim::Constant", type_="NoneType")
        )
        self.within.pop()
        self.unit, self.module, self.scope = outer
        return result


def unit_of(module, name):
    """The text of a module's method; None where there is none to show."""
    own = getattr(module, "_unit", None)
    if own is None:
        return None
    try:
        return own(name)
    except (AttributeError, FrontendError, RuntimeError):
        return None


def _bound(tree, node, values, skipped):
    """Argument -> its value, or the expression of its default; None where the call can't be written out."""
    own = tree.args
    if own.vararg or own.kwarg or any(k.arg is None for k in node.keywords):
        return None
    names = [a.arg for a in (*own.posonlyargs, *own.args)][skipped:]
    given = dict(zip(names, values, strict=False))
    given.update(zip((k.arg for k in node.keywords), values[len(node.args) :], strict=True))
    defaults = dict(zip(names[::-1], own.defaults[::-1], strict=False))
    defaults.update({a.arg: d for a, d in zip(own.kwonlyargs, own.kw_defaults, strict=True) if d is not None})
    every = [*names, *(a.arg for a in own.kwonlyargs)]
    if any(name not in given and name not in defaults for name in every) or set(given) - set(every):
        return None
    return {name: given.get(name, defaults.get(name)) for name in every}


def _returns_once(body):
    found = [n for statement in body for n in ast.walk(statement) if isinstance(n, ast.Return)]
    return bool(body) and (not found or found == [body[-1]])
