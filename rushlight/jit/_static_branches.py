"""Branches that a script never takes: ``if not torch.jit.is_scripting()`` leads to no part of it."""

import ast
import types
import typing

import rushlight
from rushlight.jit._decorations import is_scripting

__all__ = ["argument_types", "drop_static_branches"]

_SIMPLE = (rushlight.Tensor, bool, int, float, complex, str)


def drop_static_branches(tree, outside, local_names, types_of):
    """Replace each branch whose condition is known by its side, and drop what stands behind a ``return``.

    So only what is left has to keep to the subset. Known are `is_scripting`, constants from outside, ``not``,
    ``and`` and ``or`` of these, and what the types of arguments (`types_of`) say of ``isinstance`` and ``is
    None``."""
    changed = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    types_of = {name: t for name, t in types_of.items() if name not in changed}
    dropper = _Dropper(outside, local_names, types_of)
    tree.body = dropper.block(tree.body)
    return tree


def argument_types(fn, commented=()):
    """The types of those arguments that can be nothing else: as written, and tensors where nothing is.
    `commented` are those whose type a comment may say."""
    import inspect

    try:
        hints = typing.get_type_hints(fn)
        parameters = inspect.signature(fn).parameters.values()
    except Exception:  # annotations may name what is not there
        return {}
    found = {}
    for parameter in parameters:
        hint = hints.get(parameter.name, rushlight.Tensor)
        hint = typing.get_origin(hint) or hint
        if (
            parameter.name != "self"
            and parameter.default is not None
            and hint in (*_SIMPLE, list, tuple, dict)
        ):
            unsaid = parameter.default is parameter.empty and parameter.name not in commented
            if parameter.name in hints or unsaid:
                found[parameter.name] = hint
    return found


class _Dropper(ast.NodeTransformer):
    def __init__(self, outside, local_names, types_of):
        self.outside, self.locals, self.types_of = outside, local_names, types_of

    def block(self, statements):
        """The statements that are left of a block."""
        left = []
        for statement in statements:
            made = self.visit(statement)
            left += made if isinstance(made, list) else [made]
            if left and isinstance(left[-1], (ast.Return, ast.Raise, ast.Break, ast.Continue)):
                break
        return left

    def generic_visit(self, node):
        for name in ("body", "orelse", "finalbody"):
            if isinstance(getattr(node, name, None), list):
                setattr(node, name, self.block(getattr(node, name)))
        return super().generic_visit(node)

    def visit_If(self, node):  # noqa: N802
        known = self.known(node.test)
        if known is None:
            return self.generic_visit(node)
        return self.block(node.body if known else node.orelse) or ast.copy_location(ast.Pass(), node)

    def visit_IfExp(self, node):  # noqa: N802
        known = self.known(node.test)
        return self.generic_visit(node) if known is None else self.visit(node.body if known else node.orelse)

    def known(self, test):
        """What a condition is in every run; None if only a run can tell."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            known = self.known(test.operand)
            return None if known is None else not known
        if isinstance(test, ast.BoolOp):
            decides = isinstance(test.op, ast.Or)
            values = [self.known(value) for value in test.values]
            return decides if decides in values else None if None in values else not decides
        if isinstance(test, ast.Call):
            return self.known_call(test)
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name):
            if isinstance(test.ops[0], (ast.Is, ast.IsNot)) and self.is_none(test.comparators[0]):
                return isinstance(test.ops[0], ast.IsNot) if test.left.id in self.types_of else None
        value = test.value if isinstance(test, ast.Constant) else self.value(test)
        return value if isinstance(value, bool) else None

    def known_call(self, call):
        if not call.args and not call.keywords:
            return True if self.value(call.func) is is_scripting else None
        if (
            len(call.args) != 2
            or self.value(call.func) is not isinstance
            or not isinstance(call.args[0], ast.Name)
        ):
            return None
        own = self.types_of.get(call.args[0].id)
        asked = call.args[1].elts if isinstance(call.args[1], ast.Tuple) else [call.args[1]]
        kinds = [self.value(kind) for kind in asked]
        if own is None or not all(isinstance(kind, type) for kind in kinds):
            return None
        return own in kinds

    @staticmethod
    def is_none(node):
        return isinstance(node, ast.Constant) and node.value is None

    def value(self, node):
        """What a name from outside, or one in its modules, stands for."""
        if isinstance(node, ast.Name):
            if node.id in self.locals:
                return None
            return self.outside[node.id] if node.id in self.outside else _BUILTIN.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            return getattr(owner, node.attr, None) if isinstance(owner, types.ModuleType) else None
        return None


_BUILTIN = {t.__name__: t for t in (bool, int, float, complex, str, list, tuple, dict)} | {
    "isinstance": isinstance
}
