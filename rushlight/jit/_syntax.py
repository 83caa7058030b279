"""Which syntax of Python TorchScript takes. What it does not take is refused before any name is looked up."""

from __future__ import annotations

import ast

__all__ = ["FrontendError", "NotSupportedError", "UnsupportedNodeError", "check_syntax"]


class FrontendError(Exception):
    """A program that TorchScript cannot take; the message shows where."""


class NotSupportedError(FrontendError):
    """Python syntax outside the subset."""


class UnsupportedNodeError(NotSupportedError):
    """A kind of statement or expression outside the subset."""


_NAMES = {
    ast.FunctionDef: "function definitions",
    ast.ClassDef: "class definitions",
    ast.Import: "import statements",
    ast.ImportFrom: "import statements",
    ast.Global: "global variables",
    ast.Nonlocal: "nonlocal variables",
    ast.Try: "try blocks",
    ast.AsyncFunctionDef: "async function definitions",
    ast.AsyncFor: "async for loops",
    ast.AsyncWith: "async with statements",
}
_STATEMENTS = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Raise, ast.Assert, ast.While, ast.For, ast.If,
    ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.Delete, ast.With,
)  # fmt: skip
_EXPRESSIONS = (
    ast.Attribute, ast.Call, ast.Name, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp, ast.Compare,
    ast.Subscript, ast.List, ast.Tuple, ast.Dict, ast.Constant, ast.JoinedStr, ast.ListComp, ast.GeneratorExp,
    ast.DictComp, ast.Starred, ast.Slice,
)  # fmt: skip
_AUGMENTED = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.BitOr, ast.BitAnd, ast.BitXor, ast.LShift, ast.RShift,
    ast.Pow,
)  # fmt: skip
_RESERVED = "__jit"
_ARGUMENTS = (
    "Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults"
)


def check_syntax(unit):
    """Raise for the first construct of a function that TorchScript lacks."""
    _Syntax(unit).function(unit.tree)


class _Syntax:
    def __init__(self, unit):
        self.unit = unit

    def refuse(self, message, node, kind=NotSupportedError):
        self.unit.refuse(message, node, kind)

    def function(self, tree):
        arguments = tree.args
        given = next((d for d in arguments.kw_defaults if d is not None), None)
        culprit = arguments.kwarg or arguments.vararg or given
        if culprit is not None:
            self.refuse(_ARGUMENTS, culprit)
        for node in ast.walk(tree):
            self.stars(node)
        self.block(tree.body)

    def stars(self, node):
        """Starred names that Python itself refuses."""
        if isinstance(node, ast.For) and isinstance(node.target, ast.Starred):
            self.refuse("A Starred expression may only appear on the lhs within the presence of another "
                        "non-starred expression", node.target, RuntimeError)  # fmt: skip
        if isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Store):
            if sum(isinstance(part, ast.Starred) for part in node.elts) > 1:
                self.refuse("Only one starred expression is allowed on the lhs", node, RuntimeError)

    def block(self, statements):
        for statement in statements:
            if not isinstance(statement, _STATEMENTS):
                name = _NAMES.get(type(statement), type(statement).__name__)
                self.refuse(f"{name} aren't supported", statement, UnsupportedNodeError)
            getattr(self, f"check_{type(statement).__name__}", self.parts)(statement)

    def parts(self, node):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                self.block(value)
                continue
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, ast.expr):
                    self.expression(item)
                elif isinstance(item, ast.withitem):
                    self.expression(item.context_expr)

    def expression(self, node):
        if not isinstance(node, _EXPRESSIONS):
            self.refuse(f"{type(node).__name__} aren't supported", node, UnsupportedNodeError)
        getattr(self, f"check_{type(node).__name__}", self.parts)(node)

    # --- statements

    def check_AnnAssign(self, node):  # noqa: N802
        if node.value is None:
            message = "annotated assignments without assigned value aren't supported"
            self.refuse(message, node, UnsupportedNodeError)
        owner = node.target.value if isinstance(node.target, ast.Attribute) else None
        if isinstance(owner, ast.Name) and owner.id == "self" and self.unit.tree.name != "__init__":
            where = self.unit.source.shown(node)
            raise ValueError(
                "Type annotations on instance attributes must be declared in __init__, not "
                f"'{self.unit.tree.name}': {where}"
            )
        self.expression(node.value)
        self.expression(node.target)

    def check_AugAssign(self, node):  # noqa: N802
        if not isinstance(node.op, _AUGMENTED):
            self.refuse(f"unsupported kind of augmented assignment: {type(node.op).__name__}", node)
        self.parts(node)

    def check_While(self, node):  # noqa: N802
        if node.orelse:
            self.refuse("else branches of while loops aren't supported", node.orelse[0])
        self.parts(node)

    def check_For(self, node):  # noqa: N802
        if node.orelse:
            self.refuse("else branches of for loops aren't supported", node.orelse[0])
        self.parts(node)

    # --- expressions

    def check_Call(self, node):  # noqa: N802
        self.expression(node.func)
        for argument in node.args:
            self.expression(argument)
        for keyword in node.keywords:
            if keyword.arg is None:
                self.refuse("keyword-arg expansion is not supported", keyword.value)
            self.expression(keyword.value)

    def check_Name(self, node):  # noqa: N802
        if node.id.startswith(_RESERVED):
            self.refuse(f"names of variables used in JIT-ed functions can't start with {_RESERVED}", node)

    def check_BinOp(self, node):  # noqa: N802
        self.parts(node)

    def check_JoinedStr(self, node):  # noqa: N802
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                if value.conversion != -1:
                    self.refuse("Don't support conversion in JoinedStr", value.value)
                if value.format_spec is not None:
                    self.refuse("Don't support formatting in JoinedStr", value.value)
                self.expression(value.value)

    def check_ListComp(self, node):  # noqa: N802
        if len(node.generators) != 1:
            self.refuse("Only a single generator is currently supported", node)
        if node.generators[0].ifs:
            self.refuse("Comprehension ifs are not supported yet", node)
        for part in (*self._results(node), node.generators[0].target, node.generators[0].iter):
            self.expression(part)

    check_GeneratorExp = check_DictComp = check_ListComp  # noqa: N815

    @staticmethod
    def _results(node):
        return (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)

    def check_Dict(self, node):  # noqa: N802
        if node.keys and node.keys[0] is None:
            self.refuse("Dict expansion (e.g. `{**dict}`) is not supported", node)
        self.parts(node)

    def check_Constant(self, node):  # noqa: N802
        if not isinstance(node.value, (bool, int, float, complex, str, type(None), type(...))):
            self.refuse("Unknown Constant expression type", node, FrontendError)
