"""The modules below a traced one stay callable: the lines that a part's call recorded are its `forward`.

The trace itself is one flat text. A part whose lines need what neither its arguments nor its own tensors give
has no method of its own."""

import ast
import contextlib
import functools
import textwrap

from rushlight import Tensor
from rushlight.jit._traced_sizes import TracedSize
from rushlight.utils._pytree import tree_leaves

__all__ = ["Part", "method_tree", "watching_parts"]


class Part:
    """The first call of a module below the traced one: its lines, what went in and what came out."""

    def __init__(self, path, text, arguments, lines, result):
        self.path, self.text, self.arguments, self.lines, self.result = path, text, arguments, lines, result


@contextlib.contextmanager
def watching_parts(module, recorder, module_text, parameters_of):
    """Gives the dict that the calls of a module's children go to, by their paths."""
    parts, replaced = {}, []
    for path, child in module.named_modules():
        if path and "forward" not in vars(child):
            text = module_text("self", path)
            watched = functools.partial(_watched, recorder, parts, path, text, parameters_of, child.forward)
            child.__dict__["forward"] = watched
            replaced.append(child)
    try:
        yield parts
    finally:
        for child in replaced:
            del child.__dict__["forward"]


def _watched(recorder, parts, path, text, parameters_of, forward, *args, **kwargs):
    begin = len(recorder.lines)
    positional, by_name = parameters_of(forward, args, kwargs)
    named = zip([*positional, *by_name], (*args, *kwargs.values()), strict=False)
    arguments = [
        (name, value, recorder.text(value)) for name, value in named if _is_followed(recorder, value)
    ]
    result = forward(*args, **kwargs)
    if path not in parts and _is_followed(recorder, result):
        parts[path] = Part(path, text, arguments, recorder.lines[begin:], recorder.text(result))
    return result


def _is_followed(recorder, value):
    """Whether a value is made of tensors that the trace knows, and of constants."""
    leaves = tree_leaves(value)
    known = all(leaf is None or isinstance(leaf, _PLAIN) or recorder.knows(leaf) for leaf in leaves)
    return known and any(isinstance(leaf, (Tensor, TracedSize)) for leaf in leaves)


_PLAIN = (bool, int, float, str)


def method_tree(part, head, reserved):
    """The tree of the part's `forward`; None where its lines need more than it has. ``head`` gives an
    argument as it is declared, ``reserved`` has all variables of the trace."""
    body = ast.parse("\n".join([*part.lines, f"return {part.result}"])).body
    renamed = {ast.unparse(ast.parse(text, mode="eval").body): name for name, _, text in part.arguments}
    names = _Names({**renamed, part.text: "self"})
    body = [names.visit(statement) for statement in body]
    given = {name for name, _, _ in part.arguments}
    if names.missing or (names.loaded & reserved) - names.stored - given or names.stored & given:
        return None
    arguments = ", ".join(["self", *(head(name, value) for name, value, _ in part.arguments)])
    text = "\n".join(ast.unparse(statement) for statement in body)
    return ast.parse(f"def forward({arguments}):\n{textwrap.indent(text, '    ')}").body[0]


class _Names(ast.NodeTransformer):
    """Puts names in place of expressions, and notes which names are left."""

    def __init__(self, replaced):
        self.replaced, self.loaded, self.stored, self.missing = replaced, set(), set(), False

    def visit(self, node):
        if isinstance(node, ast.expr) and (name := self.replaced.get(ast.unparse(node))) is not None:
            return ast.Name(name, getattr(node, "ctx", ast.Load()))
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("self._constant"):
            return node  # a tensor that the trace found: the part has it under the same name
        return super().visit(node)

    def visit_Name(self, node):  # noqa: N802
        (self.stored if isinstance(node.ctx, ast.Store) else self.loaded).add(node.id)
        self.missing |= node.id == "self"
        return node
