"""The text of a script as Python runs it: where the two mean different things, a helper is called."""

import ast
import copy
import re

from rushlight.jit._percent import percent

__all__ = ["BUILTINS", "HELPERS", "broadcast_length", "executable"]

# What the library itself loads on its first use is imported by the builtins of the frame that is running. No
# script can say this name: the compiler knows what each name stands for.
BUILTINS = {"__import__": __import__}


def executable(tree):
    """A copy of a function's tree for execution: annotations name types, which nothing reads at run time."""
    tree = copy.deepcopy(tree)
    tree.returns, tree.decorator_list = None, []
    spread = []
    for argument in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs):
        if (length := broadcast_length(argument.annotation)) is not None:
            spread += ast.parse(f"{argument.arg} = __broadcast__({argument.arg}, {length})").body
        argument.annotation = None
    tree.body = [*(ast.copy_location(statement, tree.body[0]) for statement in spread), *tree.body]
    return ast.fix_missing_locations(_Executable().visit(tree))


def broadcast_length(annotation):
    """The length of ``BroadcastingList3[int]``; None of another type."""
    text = "" if annotation is None else ast.unparse(annotation)
    found = re.search(r"\bBroadcastingList(\d+)\b", text)
    return found and int(found[1])


class _Executable(ast.NodeTransformer):
    def visit_AnnAssign(self, node):
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        self.generic_visit(node)
        return ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node)

    def visit_BinOp(self, node):
        self.generic_visit(node)
        text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        if not text or not isinstance(node.op, ast.Mod):
            return node
        return _helped("__percent__", [node.left, node.right], node)

    def visit_Call(self, node):
        self.generic_visit(node)
        views = isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "values", "items")
        return _helped("__listed__", [node], node) if views and not node.args and not node.keywords else node


def _helped(name, arguments, node):
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), arguments, []), node)


def _broadcast(value, length):
    """One number stands for so many."""
    if value is None or isinstance(value, list):
        return value
    return list(value) if isinstance(value, tuple) else [value] * length


_VIEWS = (type({}.keys()), type({}.values()), type({}.items()))


def _listed(value):
    """What a dictionary tells of itself is a list in scripts."""
    return list(value) if isinstance(value, _VIEWS) else value


HELPERS = {"__percent__": percent, "__broadcast__": _broadcast, "__listed__": _listed}
