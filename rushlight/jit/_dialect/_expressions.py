"""The text of expressions in the words of PyTorch's archives."""

from __future__ import annotations

import ast
import enum
import inspect
import re
from abc import abstractmethod

import rushlight
from rushlight.jit import _types as t
from rushlight.jit._check_expressions import METHODS_OF_OPERATORS
from rushlight.jit._dialect._calls import Calls
from rushlight.jit._dialect._static import UNKNOWN_VALUE, ModuleValue, Several
from rushlight.jit._dialect._text import Unwritable, literal, quoted
from rushlight.jit._scripted_class import record_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ExpressionText"]

_SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in",
}  # fmt: skip
_UNARY = {ast.USub: "-", ast.Invert: "~"}
_SIMPLE = re.compile(r"[\w.]+|CONSTANTS\.c\d+")


class ExpressionText(Calls):
    """Writes expressions; statements are written by the class below."""

    def expression(self, node: ast.expr) -> str:
        method = getattr(self, f"text_of_{type(node).__name__}", None)
        if method is None:
            raise Unwritable(f"the expression {type(node).__name__} in {self.unit.name}")
        return method(node)

    def operand(self, node: ast.expr) -> str:
        """An expression that something may follow: `(a + b).sum`."""
        text = self.expression(node)
        return text if _SIMPLE.fullmatch(text) and not text[0].isdigit() else f"({text})"

    def simple(self, node: ast.expr) -> str:
        """A text that may stand several times."""
        text = self.expression(node)
        return text if _SIMPLE.fullmatch(text) else self.hoisted(text)

    def text_of_Constant(self, node: ast.Constant) -> str:  # noqa: N802
        return "..." if node.value is ... else literal(node.value)

    def text_of_Name(self, node: ast.Name) -> str:  # noqa: N802
        found = self.scope.get(node.id)
        if isinstance(found, str):
            return found
        if isinstance(found, ModuleValue):
            if found.module is not None and found.text == "self":
                raise Unwritable(f"the module itself as a value in {self.unit.name}")
            return found.text
        if isinstance(found, Several):
            return self.listed(found)
        if node.id in self.unit.names:
            return self.outside(node.id, self.unit.names[node.id])
        raise Unwritable(f"the name {node.id} in {self.unit.name}")

    def listed(self, several: Several) -> str:
        parts = [part.text if isinstance(part, ModuleValue) else part for part in several.items]
        if not parts or not all(isinstance(part, str) for part in parts):
            raise Unwritable(f"a list of modules as a value in {self.unit.name}")
        return f"[{', '.join(parts)}]"

    def outside(self, name: str, value: Any) -> str:
        """What a name from outside stands for."""
        if isinstance(value, enum.Enum):
            return f"{self.program.class_path(type(value))}.{value.name}"
        if isinstance(value, rushlight.Tensor):
            return self.program.constant(value)
        if isinstance(value, (bool, int, float, complex, str, rushlight.device, *t.DTYPE_LIKE)):
            return literal(value)
        raise Unwritable(f"{name} as a value in {self.unit.name}")

    def text_of_Attribute(self, node: ast.Attribute) -> str:  # noqa: N802
        known = self.known(node)
        if isinstance(known, ModuleValue):
            return known.text
        if isinstance(known, Several):
            return self.listed(known)
        value = self.constant(node)
        if value is not UNKNOWN_VALUE:
            return literal(list(value) if self.is_sizes(value) else value)
        owner = self.known(node.value)
        if isinstance(owner, ModuleValue) and owner.module is not None:
            return self.attribute_text(owner, node.attr)
        name = getattr(node.value, "id", None)
        outside = self.unit.names.get(name) if name not in self.scope else None
        if isinstance(outside, type):
            if issubclass(outside, enum.Enum):
                return f"{self.program.class_path(outside)}.{node.attr}"
            return literal(getattr(outside, node.attr))
        kind = getattr(node.value, "script_type", t.UNKNOWN)
        if kind.kind == "Class" or name is not None and self.scope.get(name) == "self" and self.record:
            cls = kind.python if kind.kind == "Class" else self.record.cls
            return self.field_text(cls, self.operand(node.value), node.attr)
        return f"{self.operand(node.value)}.{node.attr}"

    @staticmethod
    def is_sizes(value: Any) -> bool:
        """Whether a tuple of the library's is what operators take as a list of numbers."""
        whole = isinstance(value, tuple) and len(value) > 0 and all(type(v) is int for v in value)
        return whole or isinstance(value, rushlight.Size)

    def field_text(self, cls: Any, owner: str, name: str) -> str:
        """An attribute of an object of the program's class: of its own, of the class, or what is computed."""
        record = record_of(cls)
        if record is not None and isinstance(record.member(name), property):
            return f"{owner}.{name}()"
        if record is not None and name not in record.attributes and name in vars(cls):
            return literal(vars(cls)[name])
        return f"{owner}.{name}"

    def attribute_text(self, owner: ModuleValue, name: str) -> str:
        module = owner.module
        member = inspect.getattr_static(type(module), name, None)
        if isinstance(member, property) and name not in module.__dict__:
            self.program.method(self.program.module(module), name)
            return f"{owner.text}.{name}()"
        python = getattr(type(module), "_python_class", type(module))
        in_class = getattr(type(module), name, getattr(python, name, None))
        if self.program.attribute_of(module, name) is None and isinstance(
            in_class, (bool, int, float, str, tuple)
        ):
            return literal(in_class)
        self.attribute_of_module(owner, name)
        return f"{owner.text}.{name}"

    @abstractmethod
    def attribute_of_module(self, owner: ModuleValue, name: str) -> None:
        """Check that a value's attribute is written with the module."""

    # --- operators

    def side(self, node: ast.expr) -> str:
        """An operand of an operator."""
        text = self.expression(node)
        return text if _SIMPLE.fullmatch(text) else f"({text})"

    def text_of_BinOp(self, node: ast.BinOp) -> str:  # noqa: N802
        text = getattr(node.left, "script_type", t.UNKNOWN) == t.STR
        if isinstance(node.op, ast.Mod) and (text or isinstance(getattr(node.left, "value", None), str)):
            return f"torch.percentFormat({self.expression(node.left)}, {self.expression(node.right)})"
        kind, name = getattr(node.left, "script_type", t.UNKNOWN), METHODS_OF_OPERATORS.get(type(node.op))
        if kind.kind == "Class" and name is not None:
            return f"{self.operand(node.left)}.{name}({self.expression(node.right)})"
        left, right = self.side(node.left), self.side(node.right)
        return f"{left} {_SIGNS[type(node.op)]} {right}"

    def text_of_UnaryOp(self, node: ast.UnaryOp) -> str:  # noqa: N802
        if isinstance(node.op, ast.Not):
            known = self.constant(node.operand)
            return str(not known) if known is not UNKNOWN_VALUE else f"not {self.operand(node.operand)}"
        if isinstance(node.op, ast.UAdd):
            return self.expression(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return f"-{self.expression(node.operand)}"
        return f"{_UNARY[type(node.op)]}{self.operand(node.operand)}"

    def text_of_BoolOp(self, node: ast.BoolOp) -> str:  # noqa: N802
        known = self.constant(node)
        if known is not UNKNOWN_VALUE:
            return str(bool(known))
        word = "and" if isinstance(node.op, ast.And) else "or"
        neutral = isinstance(node.op, ast.And)
        parts: list[str] = []
        for part in node.values:
            value = self.constant(part)
            if value is not UNKNOWN_VALUE and bool(value) is neutral:
                continue
            if value is not UNKNOWN_VALUE and not parts:
                return str(bool(value))
            self.lazy += bool(parts)
            parts.append(self.operand(part))
            self.lazy -= len(parts) > 1
        return f" {word} ".join(parts)

    def text_of_Compare(self, node: ast.Compare) -> str:  # noqa: N802
        known = self.constant(node)
        if known is not UNKNOWN_VALUE:
            return str(bool(known))
        sides = [node.left, *node.comparators]
        if len(sides) == 2:
            return self.compared(node.ops[0], self.side(sides[0]), self.side(sides[1]))
        texts = [self.side(sides[0]), *map(self.simple, sides[1:-1]), self.side(sides[-1])]
        pairs = zip(node.ops, texts, texts[1:], strict=False)
        return " and ".join(f"({self.compared(op, left, right)})" for op, left, right in pairs)

    @staticmethod
    def compared(op: ast.cmpop, left: str, right: str) -> str:
        if isinstance(op, ast.NotIn):
            return f"not ({left} in {right})"
        return f"{left} {_SIGNS[type(op)]} {right}"

    def text_of_IfExp(self, node: ast.IfExp) -> str:  # noqa: N802
        known = self.constant(node.test)
        if known is not UNKNOWN_VALUE:
            return self.expression(node.body if known else node.orelse)
        test = self.operand(node.test)
        self.lazy += 1
        body, other = self.operand(node.body), self.operand(node.orelse)
        self.lazy -= 1
        return f"{body} if {test} else {other}"

    # --- containers

    def text_of_Tuple(self, node: ast.Tuple) -> str:  # noqa: N802
        parts = list(map(self.part, node.elts))
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def text_of_List(self, node: ast.List) -> str:  # noqa: N802
        kind = getattr(node, "script_type", t.UNKNOWN)
        text = f"[{', '.join(map(self.part, node.elts))}]"
        if not node.elts and kind.known and kind.kind == "List":
            return f"annotate({self.program.type_text(kind)}, {text})"
        return text

    def part(self, node: ast.expr) -> str:
        if isinstance(node, ast.Starred):
            return f"*{self.operand(node.value)}"
        return self.expression(node)

    def text_of_Dict(self, node: ast.Dict) -> str:  # noqa: N802
        pairs = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise Unwritable(f"a dictionary that takes in another one in {self.unit.name}")
            pairs.append(f"{self.expression(key)}: {self.expression(value)}")
        kind = getattr(node, "script_type", t.UNKNOWN)
        text = f"{{{', '.join(pairs)}}}"
        if not pairs and kind.known and kind.kind == "Dict":
            return f"annotate({self.program.type_text(kind)}, {text})"
        return text

    def text_of_Subscript(self, node: ast.Subscript) -> str:  # noqa: N802
        known = self.known(node)
        if isinstance(known, ModuleValue):
            return known.text
        if isinstance(known, (Several, str)):
            return known if isinstance(known, str) else self.listed(known)
        return f"{self.operand(node.value)}[{self.index(node.slice)}]"

    def index(self, node: ast.expr) -> str:
        if isinstance(node, ast.Slice):
            ends = [self.expression(p) if p is not None else "" for p in (node.lower, node.upper)]
            step = f":{self.expression(node.step)}" if node.step is not None else ""
            return f"{':'.join(ends)}{step}"
        if isinstance(node, ast.Tuple):
            return ", ".join(map(self.index, node.elts))
        return self.expression(node)

    def text_of_ListComp(self, node: ast.ListComp) -> str:  # noqa: N802
        (generator,) = node.generators
        items = self.items(generator.iter)
        before = dict(self.scope)
        if items is not None:
            parts = []
            for item in items:
                self.bind(generator.target, item)
                parts.append(self.expression(node.elt))
            self.scope = before
            return f"[{', '.join(parts)}]"
        over = self.iterated(generator.iter)
        target = self.target(generator.target)
        self.lazy += 1
        element = self.expression(node.elt)
        self.lazy -= 1
        self.scope = before
        return f"[{element} for {_together(target)} in {over}]"

    def text_of_DictComp(self, node: ast.DictComp) -> str:  # noqa: N802
        (generator,) = node.generators
        before = dict(self.scope)
        over = self.iterated(generator.iter)
        target = self.target(generator.target)
        self.lazy += 1
        key, value = self.expression(node.key), self.expression(node.value)
        self.lazy -= 1
        self.scope = before
        return f"{{{key}: {value} for {_together(target)} in {over}}}"

    def text_of_JoinedStr(self, node: ast.JoinedStr) -> str:  # noqa: N802
        text, given = "", []
        for part in node.values:
            if isinstance(part, ast.Constant):
                text += str(part.value)
            elif isinstance(part, ast.FormattedValue):
                if part.format_spec is not None or part.conversion not in (-1, 115):
                    raise Unwritable(f"a format of a value in a text in {self.unit.name}")
                text += "{}"
                given.append(self.expression(part.value))
        return f"torch.format({', '.join([quoted(text), *given])})"

    def iterated(self, node: ast.expr) -> str:
        """What a loop goes through when the code runs."""
        return self.expression(node)

    # --- what statements ask for

    def context(self, node: ast.expr) -> str:
        function = node.func if isinstance(node, ast.Call) else None
        value = self.unit.names.get(getattr(function, "id", None))
        if value in (rushlight.no_grad, rushlight.enable_grad):
            return f"{self.program.grad_mode(value)}()"
        return self.expression(node)

    def raised(self, node: ast.expr | None) -> tuple[str, str]:
        """(text of the message, name of the class) of what is raised."""
        given: list[ast.expr] = []
        if isinstance(node, ast.Call):
            given, node = list(node.args), node.func
            if getattr(node, "id", "").endswith("advice.advised"):  # the library's own hints
                return self.raised(given[0])
        value = self.unit.names.get(getattr(node, "id", None))
        if not (isinstance(value, type) and issubclass(value, BaseException)):
            raise Unwritable(f"an error whose class is not known in {self.unit.name}")
        texts = [self.expression(part) for part in given]
        message = '""' if not texts else texts[0] if len(texts) == 1 else f"torch.str(({', '.join(texts)}))"
        plain = given and isinstance(given[0], (ast.JoinedStr, ast.Constant))
        if len(given) == 1 and not plain:
            message = f"torch.str({message})" if not _is_text(given[0]) else message
        home = value.__module__ if isinstance(value.__module__, str) else ""
        return message, f"{home}.{value.__qualname__}"

    @abstractmethod
    def bind(self, target: ast.expr, item: Any) -> None:
        """Let a name stand for an item of a loop that is written out."""

    @abstractmethod
    def target(self, node: ast.expr) -> str:
        """The text of what an assignment writes to."""


def _together(target: str) -> str:
    return f"({target})" if "," in target else target


def _is_text(node: ast.expr) -> bool:
    kind = getattr(node, "script_type", t.UNKNOWN)
    return kind == t.STR
