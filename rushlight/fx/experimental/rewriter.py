"""`RewritingTracer`: asserts of a program become nodes, by changing its source before it is traced."""

import ast
import copy
import functools
import inspect
import textwrap
import types
from typing import Any

import rushlight as torch
from rushlight._command.names import is_own
from rushlight.fx import Tracer

__all__ = ["AST_Rewriter", "RewritingTracer"]


class AST_Rewriter(ast.NodeTransformer):
    """Turns ``assert condition, message`` into ``torch._assert(condition, message)``."""

    def rewrite(self, fn):
        """The function with its asserts as calls."""
        source = textwrap.dedent(inspect.getsource(fn))
        tree = ast.fix_missing_locations(self.visit(ast.parse(source)))
        names = {**fn.__globals__, "torch": torch}
        exec(compile(tree, "", "exec"), names)
        code = names[fn.__name__].__code__
        if (
            fn.__globals__.get("torch") is torch
        ):  # the program's own names, in which `wrap` replaces functions
            names = fn.__globals__
        result = types.FunctionType(code, names, fn.__name__, fn.__defaults__, fn.__closure__)
        result.__kwdefaults__ = copy.copy(fn.__kwdefaults__)
        return functools.update_wrapper(result, fn, assigned=("__annotations__", "__doc__", "__qualname__"))

    def visit_Assert(self, node):
        """`assert x, "message"` as a call."""
        call: Any = ast.parse("torch._assert()", mode="eval").body
        message = node.msg or ast.Constant(value="", kind=None)
        call.args = [node.test, message]
        return ast.copy_location(ast.Expr(value=call), node)

    def visit_AnnAssign(self, node):
        """`x: T = value` as `x = annotate(value, T)`."""
        call: Any = ast.parse("torch.fx.annotate.annotate()", mode="eval").body
        call.args = [node.value, node.annotation]
        return ast.copy_location(ast.Assign(targets=[node.target], value=call), node)


class RewritingTracer(Tracer):
    """Traces a copy of the module whose programs are rewritten."""

    def trace(self, root, concrete_args=None):
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn):
    if not isinstance(fn, torch.nn.Module):
        return AST_Rewriter().rewrite(fn)
    return _rewritten_module(fn)


def _rewritten_module(module):
    class RewrittenModule(torch.nn.Module):
        def __init__(self, original):
            super().__init__()
            self.__dict__.update({name: copy.copy(value) for name, value in original.__dict__.items()})

    own = is_own(type(module).__module__, "nn")
    if own and not isinstance(module, torch.nn.Sequential):
        return module
    RewrittenModule.forward = AST_Rewriter().rewrite(type(module).forward)
    made = RewrittenModule(module)
    made._modules = {name: child and _rewritten_module(child) for name, child in module._modules.items()}
    return made
