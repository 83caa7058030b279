"""What is known of an expression when code is written: modules, tuples of them, and constants."""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod

import rushlight
from rushlight import nn
from rushlight.jit._dialect._text import Unwritable
from rushlight.nn import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["ModuleValue", "Several", "Static", "UNKNOWN_VALUE"]

UNKNOWN_VALUE = object()


class ModuleValue:
    """A module and the text that leads to it."""

    def __init__(self, module: Any, text: str, by_name: bool = False) -> None:
        self.module, self.text, self.by_name = module, text, by_name  # `by_name`: its table of parts

    def child(self, name: str) -> ModuleValue:
        text = f"{self.text}.{name}" if name.isidentifier() else f'getattr({self.text}, "{name}")'
        return ModuleValue(self.module._modules[name], text)

    def children(self) -> list[tuple[str, Any]]:
        """What a container of parts or of parameters holds, by names.

        Raises:
            Unwritable: the module is no container, and what it is gone through for is not known."""
        if isinstance(self.module, (nn.ParameterList, nn.ParameterDict)):
            return [(n, f'getattr({self.text}, "{n}")') for n in self.module._parameters]
        if not isinstance(self.module, (nn.ModuleList, nn.Sequential, nn.ModuleDict)):
            raise Unwritable(f"the parts of {self.module.original_name}")
        return [(n, self.child(n)) for n, m in self.module._modules.items() if m is not None]


class Several:
    """What a loop goes through when code is written: module values, texts, and tuples of them."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items


_COMPARED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_PLAIN = (str, bool, int, float, tuple, type(None), list)


class Static(ABC):
    """Works out what is known; part of what writes a function."""

    unit: Any
    program: Any
    scope: dict[str, Any]

    def known(self, node: ast.expr) -> Any:
        """The ModuleValue, Several or None that an expression stands for."""
        if isinstance(node, ast.Name):
            found = self.scope.get(node.id)
            return found if isinstance(found, (ModuleValue, Several)) else None
        if isinstance(node, ast.Attribute):
            return self._known_attribute(node)
        if isinstance(node, ast.Subscript):
            return self._known_item(node)
        if isinstance(node, ast.Call):
            return self._known_call(node)
        return None

    def _known_attribute(self, node: ast.Attribute) -> Any:
        owner = self.known(node.value)
        if not isinstance(owner, ModuleValue) or owner.module is None:
            return None
        if owner.module._modules.get(node.attr) is not None:
            return owner.child(node.attr)
        if node.attr == "_modules":
            return ModuleValue(owner.module, owner.text, True)
        if node.attr == "_flat_weights":
            names = owner.module._flat_weights_names
            return Several([f"{owner.text}.{name}" for name in names])
        return None

    def _known_item(self, node: ast.Subscript) -> Any:
        owner = self.known(node.value)
        if owner is None:
            return None
        if isinstance(owner, ModuleValue) and owner.by_name:
            index = self.constant(node.slice)
            return owner.child(index) if index in owner.module._modules else None
        parts = owner.children() if isinstance(owner, ModuleValue) else list(enumerate(owner.items))
        if isinstance(node.slice, ast.Slice):
            ends = [self.constant(p) if p is not None else None for p in _ends(node.slice)]
            if UNKNOWN_VALUE in ends:
                return None
            return Several([part for _, part in parts[slice(*ends)]])
        index = self.constant(node.slice)
        if type(index) is int and -len(parts) <= index < len(parts):
            return parts[index][1]
        return dict(parts).get(index) if type(index) is str else None

    def _known_call(self, node: ast.Call) -> Any:
        function = node.func
        if isinstance(function, ast.Attribute) and not node.keywords and not node.args:
            owner = self.known(function.value)
            if isinstance(owner, ModuleValue) and owner.module is not None:
                children = owner.children()
                if function.attr in ("values", "children"):
                    return Several([module for _, module in children])
                if function.attr in ("items", "named_children"):
                    return Several([(f'"{name}"', module) for name, module in children])
                if function.attr == "keys":
                    return Several([f'"{name}"' for name, _ in children])
        name = getattr(function, "id", None)
        if name == "enumerate" and len(node.args) == 1 and (items := self.items(node.args[0])) is not None:
            return Several([(str(i), item) for i, item in enumerate(items)])
        if name == "zip" and not node.keywords:
            return self._zipped(node)
        if name == "reversed" and len(node.args) == 1 and (items := self.items(node.args[0])) is not None:
            return Several(items[::-1])
        if name in ("list", "tuple") and len(node.args) == 1:
            return self.known(node.args[0])
        return None

    def _zipped(self, node: ast.Call) -> Any:
        columns = [self.items(part) for part in node.args]
        known = [column for column in columns if column is not None]
        if not known:
            return None
        count = min(map(len, known))
        texts = [
            column if column is not None else [f"{self.simple(part)}[{i}]" for i in range(count)]
            for part, column in zip(node.args, columns, strict=True)
        ]
        return Several([tuple(column[i] for column in texts) for i in range(count)])

    def items(self, node: ast.expr) -> list[Any] | None:
        """What a loop goes through, where that is known when code is written."""
        found = self.known(node)
        if isinstance(found, ModuleValue):
            return [module for _, module in found.children()]
        return found.items if isinstance(found, Several) else None

    @abstractmethod
    def simple(self, node: ast.expr) -> str:
        """A text that may stand several times."""

    # --- constants

    def constant(self, node: ast.expr) -> Any:
        """The value of an expression, or UNKNOWN_VALUE."""
        method = getattr(self, f"constant_{type(node).__name__}", None)
        return UNKNOWN_VALUE if method is None else method(node)

    def constant_Constant(self, node: ast.Constant) -> Any:  # noqa: N802
        return node.value if isinstance(node.value, _PLAIN) else UNKNOWN_VALUE

    def constant_Tuple(self, node: ast.Tuple) -> Any:  # noqa: N802
        values = [self.constant(part) for part in node.elts]
        return UNKNOWN_VALUE if UNKNOWN_VALUE in values else tuple(values)

    constant_List = constant_Tuple  # noqa: N815

    def constant_Attribute(self, node: ast.Attribute) -> Any:  # noqa: N802
        owner = self.known(node.value)
        if not isinstance(owner, ModuleValue) or owner.module is None:
            return UNKNOWN_VALUE
        module, name = owner.module, node.attr
        if name in module._parameters or name in module._buffers:
            table = module._parameters if name in module._parameters else module._buffers
            return None if table[name] is None else UNKNOWN_VALUE
        if name in module._modules:
            return None if module._modules[name] is None else UNKNOWN_VALUE
        if self.program.is_constant(module, name):
            value = module.__dict__.get(name, getattr(type(module), name, UNKNOWN_VALUE))
            value = module.training and name != "training" if name == "training" else value
            if isinstance(value, (*_PLAIN, rushlight.Size)) and not isinstance(value, list):
                return value
        return UNKNOWN_VALUE

    def constant_UnaryOp(self, node: ast.UnaryOp) -> Any:  # noqa: N802
        value = self.constant(node.operand)
        if value is UNKNOWN_VALUE:
            return value
        if isinstance(node.op, ast.Not):
            return not value
        return -value if isinstance(node.op, ast.USub) and type(value) in (int, float) else UNKNOWN_VALUE

    def constant_BoolOp(self, node: ast.BoolOp) -> Any:  # noqa: N802
        decides = isinstance(node.op, ast.Or)
        for part in node.values:
            value = self.constant(part)
            if value is UNKNOWN_VALUE:
                return value
            if bool(value) is decides:
                return decides
        return not decides

    def constant_Compare(self, node: ast.Compare) -> Any:  # noqa: N802
        if len(node.ops) != 1:
            return UNKNOWN_VALUE
        sides = node.left, node.comparators[0]
        left, right = map(self.constant, sides)
        nothing = isinstance(node.ops[0], (ast.Is, ast.IsNot))
        if nothing and UNKNOWN_VALUE in (left, right):
            return self._is_module(node)
        if UNKNOWN_VALUE in (left, right):
            return UNKNOWN_VALUE
        try:
            return _COMPARED[type(node.ops[0])](left, right)
        except TypeError:
            return UNKNOWN_VALUE

    def _is_module(self, node: ast.Compare) -> Any:
        """A part that is there, or a parameter, is not None."""
        right = node.comparators[0]
        if not (isinstance(right, ast.Constant) and right.value is None):
            return UNKNOWN_VALUE
        owner = self.known(node.left.value) if isinstance(node.left, ast.Attribute) else None
        there = isinstance(self.known(node.left), ModuleValue)
        if isinstance(owner, ModuleValue) and owner.module is not None:
            name = getattr(node.left, "attr", "")
            tables = (owner.module._parameters, owner.module._buffers)
            there = there or any(table.get(name) is not None for table in tables)
        return isinstance(node.ops[0], ast.IsNot) if there else UNKNOWN_VALUE

    def constant_Call(self, node: ast.Call) -> Any:  # noqa: N802
        name = getattr(node.func, "id", None)
        if name == "torch.jit.is_scripting":
            return True
        if name == "torch.jit.is_tracing":
            return False
        if name == "len" and len(node.args) == 1:
            items = self.items(node.args[0])
            value = self.constant(node.args[0]) if items is None else items
            return len(value) if isinstance(value, (tuple, list, str)) else UNKNOWN_VALUE
        if name == "hasattr" and len(node.args) == 2:
            owner, attribute = self.known(node.args[0]), self.constant(node.args[1])
            if isinstance(owner, ModuleValue) and isinstance(attribute, str):
                own = owner.module
                return hasattr(own, attribute) if isinstance(own, Module) else UNKNOWN_VALUE
        return UNKNOWN_VALUE

    def constant_Name(self, node: ast.Name) -> Any:  # noqa: N802
        return UNKNOWN_VALUE


def _ends(node: ast.Slice) -> tuple[ast.expr | None, ...]:
    return node.lower, node.upper, node.step
