"""The text of a function or method in the words of PyTorch's archives."""

from __future__ import annotations

import ast

from rushlight.jit import _types as t
from rushlight.jit._annotations import Annotations
from rushlight.jit._dialect._expressions import ExpressionText
from rushlight.jit._dialect._static import UNKNOWN_VALUE, ModuleValue, Several
from rushlight.jit._dialect._text import Unwritable, literal, quoted
from rushlight.jit._types import Argument
from rushlight.nn import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["FunctionText"]

# Names of the language, which no variable may have there.
_RESERVED = frozenset(
    "torch ops CONSTANTS fork awaitable annotate uninitialized unchecked_cast inf nan".split()
)
_SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@",
}  # fmt: skip


class FunctionText(ExpressionText):
    """Writes one function. ``module`` is the one whose method it is, ``record`` the class of the program."""

    def __init__(self, program: Any, unit: Any, module: Any = None, record: Any = None) -> None:
        self.program, self.unit, self.module, self.record = program, unit, module, record
        self.annotations = Annotations(unit, unit.outside)
        self.scope: dict[str, Any] = {}
        self.lines: list[str] = []
        self.indent, self.count, self.lazy = "", 0, 0

    def text(self, name: str, indent: str, static: bool = False) -> str:
        tree, schema = self.unit.tree, self.unit.schema
        own = (self.module is not None or self.record is not None) and not static
        arguments = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
        given = []
        if own:
            first = arguments.pop(0).arg
            self.scope[first] = ModuleValue(self.module, "self") if self.module is not None else "self"
            given.append("self")
        elif static:
            given.append("self")
        keywords = {a.arg for a in tree.args.kwonlyargs}
        for argument, said in zip(arguments, schema.arguments, strict=True):
            if argument.arg in keywords and "*" not in given:
                given.append("*")
            given.append(self.parameter(argument.arg, said))
        returns = ""
        if schema.returns is not None and tree.returns is not None and schema.returns.known:
            returns = f" -> {self.program.type_text(t.plain(schema.returns))}"
        self.indent = f"{indent}  "
        self.block(tree.body)
        body = "".join(self.lines)
        return f"{indent}def {name}({', '.join(given)}){returns}:\n{body}"

    def parameter(self, name: str, said: Argument) -> str:
        self.scope[name] = shown = self.variable(name)
        kind = said.type if said.type.known else self.unit_kind(name)
        text = f"{shown}: {self.program.type_text(t.plain(kind))}"
        if said.default is not Argument.REQUIRED:
            text += f"={self.default(said.default)}"
        return text

    def unit_kind(self, name: str) -> t.Type:
        """The type of an argument whose declaration says none: of traces, that of the example."""
        return getattr(self.unit, "example_kinds", {}).get(name, t.TENSOR)

    def default(self, value: Any) -> str:
        return literal(
            list(value)
            if isinstance(value, tuple)
            and value
            and len(set(map(type, value))) == 1
            and type(value[0]) is int
            else value
        )

    def variable(self, name: str) -> str:
        return f"{name}_1" if name in _RESERVED or name == "self" else name

    # --- lines

    def line(self, text: str) -> None:
        self.lines.append(f"{self.indent}{text}\n")

    def fresh(self) -> str:
        self.count += 1
        return f"_v{self.count}"

    def hoisted(self, text: str) -> str:
        """A variable for a value that is worked out before the statement that is being written."""
        if self.lazy:
            raise Unwritable(f"a step in the middle of a condition of {self.unit.name}")
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def block(self, body: list[ast.stmt]) -> bool:
        """Whether control leaves the block there."""
        start = len(self.lines)
        left = False
        for statement in body:
            method = getattr(self, f"statement_{type(statement).__name__}", None)
            if method is None:
                raise Unwritable(f"the statement {type(statement).__name__} in {self.unit.name}")
            if method(statement):
                left = True
                break
        if len(self.lines) == start:
            self.line("pass")
        return left

    def inner(self, body: list[ast.stmt]) -> None:
        outer, self.indent = self.indent, f"{self.indent}  "
        before = dict(self.scope)
        self.block(body)
        self.indent = outer
        for name, value in self.scope.items():  # what was a module outside may not be another one inside
            if isinstance(before.get(name), ModuleValue) and value is not before[name]:
                raise Unwritable(f"the module {name}, which a branch of {self.unit.name} replaces")

    # --- statements

    def statement_Pass(self, node: ast.Pass) -> None:  # noqa: N802
        pass

    def statement_Expr(self, node: ast.Expr) -> None:  # noqa: N802
        if not isinstance(node.value, ast.Constant):
            self.line(self.expression(node.value))

    def statement_Return(self, node: ast.Return) -> bool:  # noqa: N802
        self.line(f"return {self.expression(node.value)}" if node.value is not None else "return None")
        return True

    def statement_Break(self, node: ast.Break) -> bool:  # noqa: N802
        self.line("break")
        return True

    def statement_Continue(self, node: ast.Continue) -> bool:  # noqa: N802
        self.line("continue")
        return True

    def statement_Assign(self, node: ast.Assign) -> None:  # noqa: N802
        (target, *more) = node.targets
        known = self.known(node.value)
        if isinstance(target, ast.Name) and not more and known is not None:
            self.scope[target.id] = known
            return
        value = self.expression(node.value)
        if more:
            value = self.hoisted(value)
        for place in node.targets:
            self.line(f"{self.target(place)} = {value}")

    def statement_AnnAssign(self, node: ast.AnnAssign) -> None:  # noqa: N802
        if node.value is None:
            return
        kind = self.program.type_text(t.plain(self.annotations.type_of(node.annotation)))
        value = self.expression(node.value)
        if isinstance(node.target, ast.Name):
            self.line(f"{self.target(node.target)} : {kind} = {value}")
        else:
            self.line(f"{self.target(node.target)} = annotate({kind}, {value})")

    def statement_AugAssign(self, node: ast.AugAssign) -> None:  # noqa: N802
        sign = _SIGNS[type(node.op)]
        value = self.expression(node.value)
        target = self.target(node.target)
        if sign in ("+", "-", "*", "/", "%", "**", "|", "&", "^", "<<", ">>"):
            self.line(f"{target} {sign}= {value}")
        else:
            self.line(f"{target} = {target} {sign} {value}")

    def target(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            if isinstance(self.scope.get(node.id), ModuleValue):
                raise Unwritable(f"the name {node.id}, which stands for a module and for a value")
            self.scope[node.id] = shown = self.variable(node.id)
            return shown
        if isinstance(node, ast.Starred):
            return f"*{self.target(node.value)}"
        if isinstance(node, (ast.Tuple, ast.List)):
            parts = [self.target(part) for part in node.elts]
            inside = [
                f"({p})" if isinstance(e, (ast.Tuple, ast.List)) else p
                for e, p in zip(node.elts, parts, strict=True)
            ]
            return f"{', '.join(inside)}{',' if len(inside) == 1 else ''}"
        if isinstance(node, ast.Attribute):
            owner = self.known(node.value)
            if isinstance(owner, ModuleValue):
                self.attribute_of_module(owner, node.attr)
                return f"{owner.text}.{node.attr}"
            return f"{self.operand(node.value)}.{node.attr}"
        if isinstance(node, ast.Subscript):
            return f"{self.operand(node.value)}[{self.index(node.slice)}]"
        raise Unwritable(f"a target of an assignment in {self.unit.name}")

    def statement_If(self, node: ast.If) -> bool | None:  # noqa: N802
        known = self.constant(node.test)
        static = getattr(node, "script_static", None) if known is UNKNOWN_VALUE else bool(known)
        if static is not None:
            body = node.body if static else node.orelse
            return self.block(body) if body else None
        self.line(f"if {self.expression(node.test)}:")
        self.inner(node.body)
        if node.orelse:
            self.line("else:")
            self.inner(node.orelse)
        return None

    def statement_While(self, node: ast.While) -> None:  # noqa: N802
        self.lazy += 1
        test = self.expression(node.test)
        self.lazy -= 1
        self.line(f"while {test}:")
        self.inner(node.body)

    def statement_For(self, node: ast.For) -> bool | None:  # noqa: N802
        items = self.items(node.iter)
        if items is not None:
            for item in items:
                self.bind(node.target, item)
                if node.body and self.block(node.body):
                    return True
            return None
        over = self.iterated(node.iter)
        self.line(f"for {self.target(node.target)} in {over}:")
        self.inner(node.body)
        return None

    def bind(self, target: ast.expr, item: Any) -> None:
        """A name stands for an item of a loop that is written out."""
        if isinstance(item, tuple):
            if not isinstance(target, (ast.Tuple, ast.List)) or len(target.elts) != len(item):
                raise Unwritable(f"pairs of modules as values in {self.unit.name}")
            for part, value in zip(target.elts, item, strict=True):
                self.bind(part, value)
        elif isinstance(item, (ModuleValue, Several)):
            if not isinstance(target, ast.Name):
                raise Unwritable(f"a module that is taken apart in {self.unit.name}")
            self.scope[target.id] = item
        else:
            self.line(f"{self.target(target)} = {item}")

    def statement_With(self, node: ast.With) -> bool:  # noqa: N802
        outer = self.indent
        for item in node.items:
            named = f" as {self.target(item.optional_vars)}" if item.optional_vars is not None else ""
            self.line(f"with {self.context(item.context_expr)}{named}:")
            self.indent += "  "
        left = self.block(node.body)
        self.indent = outer
        return left

    def statement_Assert(self, node: ast.Assert) -> None:  # noqa: N802
        if self.constant(node.test) not in (UNKNOWN_VALUE, False, None):
            return
        message = self.expression(node.msg) if node.msg is not None else '""'
        self.line(f"assert {self.expression(node.test)}, {message}")

    def statement_Raise(self, node: ast.Raise) -> bool:  # noqa: N802
        """An operator raises; that no run comes past it, the statement after it says."""
        message, kind = self.raised(node.exc)
        self.line(f"ops.prim.RaiseException({message}, {quoted(kind)})")
        self.line('assert False, ""')
        return True

    def statement_Delete(self, node: ast.Delete) -> None:  # noqa: N802
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.line(f"del {self.operand(target.value)}[{self.index(target.slice)}]")

    def attribute_of_module(self, owner: ModuleValue, name: str) -> None:
        """Check that a value's attribute is written with the module."""
        if owner.module is None or not isinstance(owner.module, Module):
            return
        if self.program.attribute_of(owner.module, name) is None:
            raise Unwritable(f"the attribute {name} of {owner.module.original_name}")
