"""The types of expressions of a script."""

from __future__ import annotations

import ast
import inspect
import types

from rushlight import nn
from rushlight._command.names import is_own
from rushlight.jit import _types as t
from rushlight.jit._annotations import value_type
from rushlight.jit._check_calls import Calls
from rushlight.jit._check_collections import Collections
from rushlight.jit._check_conditions import Conditions
from rushlight.jit._check_numbers import NUMERIC, of_operator
from rushlight.jit._check_values import Bound, Container, Iterated, Method, NotAValue, Python, declared_type
from rushlight.jit._interfaces import methods_of, misfit
from rushlight.jit._library import own_module
from rushlight.jit._operator_match import names_of_results
from rushlight.jit._scripted_class import enum_value_type, record_of
from rushlight.nn import Module

__all__ = ["METHODS_OF_OPERATORS", "Expressions"]

_TENSOR_VALUES = {
    **dict.fromkeys("H T data grad imag mH mT real".split(), t.TENSOR),
    **dict.fromkeys(
        "is_cpu is_cuda is_ipu is_leaf is_maia is_meta is_mkldnn is_mps is_mtia is_nested "
        "is_quantized is_sparse "
        "is_sparse_csr is_vulkan is_xla is_xpu requires_grad retains_grad".split(),
        t.BOOL,
    ),
    **dict.fromkeys("dtype itemsize layout nbytes ndim".split(), t.INT),
    "device": t.DEVICE,
    "shape": t.list_of(t.INT),
    "name": t.optional(t.STR),
    "grad": t.optional(t.TENSOR),
}
_LARGEST = 2**63 - 1
_DEVICE_VALUES = {"type": t.STR, "index": t.optional(t.INT)}


class Expressions(Conditions, Calls, Collections):
    """Types of expressions; names are looked up by the class below."""

    def expression(self, node, hint=None):
        """The type of a node, or something that is not a value."""
        method = getattr(self, f"expression_{type(node).__name__}", None)
        if method is None:
            return t.UNKNOWN
        found = method(node, hint)
        if isinstance(found, t.Type):
            node.script_type = found  # which `.graph` shows
        return found

    def simple(self, node, hint=None):
        """The type of a node that must be a value."""
        found = self.expression(node, hint)
        if isinstance(found, NotAValue):
            return self.not_a_value(found, node)
        return t.plain(found)

    def not_a_value(self, found, node, argument=False):
        if isinstance(found, Iterated) and not argument:
            if found.name == "range":
                self.refuse("range cannot be used as a value", node)
            return t.UNKNOWN
        if isinstance(found, Bound) and found.owner.kind != "Class" and not argument:
            self.refuse("builtin cannot be used as a value", node)
        if isinstance(found, Python):
            value = found.value
            if isinstance(value, type) and issubclass(value, BaseException):
                self.refuse("Python exception cannot be used as a value", node)
            outside = isinstance(value, type) and not argument and found.name.startswith("__python__.")
            if isinstance(value, types.ModuleType) or outside:
                self.refuse(
                    f"python value of type '{type(value).__name__}' cannot be used as a value. "
                    "Perhaps it is a "
                    "closed over global variable? If so, please consider passing it in as an argument or use "
                    "a local variable instead.",
                    node,
                )
        return t.UNKNOWN

    def expression_Constant(self, node, hint):  # noqa: N802
        if type(node.value) is int and node.value > _LARGEST:
            self.refuse("Integral constant out of range for a signed number of 64 bits", node)
        return t.UNKNOWN if node.value is ... else value_type(node.value)

    def expression_JoinedStr(self, node, hint):  # noqa: N802
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.simple(part.value)
        return t.STR

    def expression_Name(self, node, hint):  # noqa: N802
        found = self.name(node)
        if found is not None:
            return found
        if node.id in self.unit.names:
            value = self.unit.names[node.id]
            kind = t.UNKNOWN if callable(value) else value_type(value)
            return kind if kind.known else Python(value, node.id)
        if not node.id.startswith("__") and "." not in node.id:
            self.refuse(f"undefined value {node.id}", node)
        return t.UNKNOWN

    def expression_Attribute(self, node, hint):  # noqa: N802
        owner = self.expression(node.value)
        if isinstance(owner, Container):
            return self.module_attribute(owner.module, node)
        if isinstance(owner, Bound) and owner.owner.kind != "Class":
            self.refuse("attribute lookup is not defined on builtin", node)
        if isinstance(owner, NotAValue):
            return t.UNKNOWN
        if owner.kind == "Await":  # attributes are those of the result
            owner = owner.args[0]
        return self.attribute(owner, node)

    def module_attribute(self, module, node):
        said = declared_type(module, node.attr)
        if said is not None and said.kind == "Interface":
            return said
        value = module.__dict__.get(node.attr, self)
        if value is self:
            for table in ("_parameters", "_buffers", "_modules"):
                if node.attr in module.__dict__.get(table, {}):
                    value = module.__dict__[table][node.attr]
        if value is self:
            return self.method_of_module(module, node)
        if isinstance(value, Module) or callable(value):
            return Container(value) if isinstance(value, Module) else t.UNKNOWN
        if value is None:  # a None may be set to something: only what never changes is known
            return t.UNKNOWN if node.attr in module.__dict__ else t.NONE
        kind = value_type(value)
        return t.UNKNOWN if said is not None or kind.kind in ("List", "Dict") else kind

    def method_of_module(self, module, node):
        """A method that scripts call, or the value of a property."""
        member = inspect.getattr_static(type(module), node.attr, None)
        written = inspect.getattr_static(getattr(type(module), "_python_class", None), node.attr, None)
        if is_own(own_module(written)):  # not all of the library's methods say their types
            return t.UNKNOWN
        unit = getattr(type(module), "_script_methods", {}).get(node.attr)
        if isinstance(member, property) and unit is not None:
            schema = self.schema_of_method(Method(module, unit), node)
            return t.UNKNOWN if schema is None else schema.returns
        if not isinstance(member, types.FunctionType):
            return t.UNKNOWN
        if unit is None and not hasattr(member, "_torchscript_modifier"):
            return t.UNKNOWN
        return Method(module, unit, member)

    def attribute(self, owner, node):
        """An attribute of a value: a value of its own, or a method."""
        name = node.attr
        if owner.kind in ("Tensor", "Inferred"):
            if name in _TENSOR_VALUES:
                return _TENSOR_VALUES[name]
            if self.has_tensor_method(name):
                return Bound(owner, name)
        elif owner.kind in ("List", "Dict", "str", "Tuple"):
            if name in self.METHODS[owner.kind]:
                return Bound(owner, name)
        elif owner.kind == "NamedTuple":
            fields = names_of_results(owner) if owner.python is None else owner.python._fields
            if name in fields:
                return owner.args[fields.index(name)]
            if owner.python is not None:
                return t.UNKNOWN
        elif owner == t.DEVICE and name in _DEVICE_VALUES:
            return _DEVICE_VALUES[name]
        elif owner.kind == "Enum":
            return (
                t.STR if name == "name" else enum_value_type(owner.python) if name == "value" else t.UNKNOWN
            )
        elif owner.kind == "Class":
            return self.field(owner, node)
        elif owner.kind == "Interface":
            if name in methods_of(owner.python):
                return t.UNKNOWN
        elif owner.kind not in ("int", "float", "bool", "complex", "NoneType", "Optional", "Device", "Any"):
            return t.UNKNOWN
        more = "" if owner.kind != "Optional" else ""
        self.refuse(f"'{owner}' object has no attribute or method '{name}'.{more}", node)

    def field(self, owner, node):
        """An attribute or a method of a class of the program."""
        name, record = node.attr, record_of(owner.python)
        if record is None:
            return t.UNKNOWN
        if record.has_method(name) and not isinstance(record.member(name), property):
            return Bound(owner, name)
        kind = record.attribute(name)
        if kind is not None:
            return kind
        more = "Did you forget to initialize an attribute in __init__()?"
        if record.member(name) is not None:
            more = (
                f"'{name}' is defined as a class attribute, which scripts do not read: set it in __init__()"
            )
        self.refuse(f"'{owner}' object has no attribute or method '{name}'. {more}", node)

    # --- containers

    def expression_Tuple(self, node, hint):  # noqa: N802
        hints = hint.args if hint is not None and hint.kind == "Tuple" else ()
        hints = hints if len(hints) == len(node.elts) else [None] * len(node.elts)
        parts = []
        for element, wanted in zip(node.elts, hints, strict=True):
            if isinstance(element, ast.Starred):
                inner = self.simple(element.value)
                if inner.kind == "List":
                    self.refuse(
                        "cannot statically infer the expected size of a list in this context", element
                    )
                return t.UNKNOWN
            parts.append(self.simple(element, wanted))
        return t.tuple_of(parts)

    def unrolled(self, value):
        """The items of what is gone through item by item when the script is made, else None."""
        if isinstance(value, t.Type):
            return value.args if value.kind in ("Tuple", "NamedTuple") else None
        if isinstance(value, Iterated):
            return value.fixed
        if isinstance(value, Container) and isinstance(value.module, Module):
            items = list(value.module._modules.values())
            return [Container(item) for item in items] if len(items) <= 64 else []
        return None

    def element(self, value, node):
        """What one step of a loop over a value gives."""
        if isinstance(value, Iterated):
            return value.element
        if isinstance(value, NotAValue):
            return t.UNKNOWN
        if value.kind in ("List", "Dict"):
            return value.args[0]
        if value.kind in ("Tensor", "Inferred"):
            return t.TENSOR
        if value == t.STR:
            return t.STR
        if value.known and value.kind in (
            "int",
            "float",
            "bool",
            "complex",
            "NoneType",
            "Optional",
            "Device",
        ):
            self.refuse(f"'{value}' object is not iterable", node)
        return t.UNKNOWN

    # --- operators

    def expression_BinOp(self, node, hint):  # noqa: N802
        return self.operation(node.op, self.simple(node.left), self.simple(node.right), node)

    def operation(self, op, left, right, node):
        sides = (left, right)
        tensors = [s.kind in ("Tensor", "Inferred") for s in sides]
        if "Unknown" in (left.kind, right.kind) or not (left.known and right.known):
            return (
                t.TENSOR
                if any(tensors) and all(s.kind in ("Tensor", "Unknown") for s in sides)
                else t.UNKNOWN
            )
        if any(tensors):
            if all(s in (t.TENSOR, t.INFERRED, *NUMERIC) and s != t.BOOL for s in sides):
                return t.TENSOR
            if any(s.kind in ("bool", "str", "NoneType", "Dict", "Optional", "List", "Tuple") for s in sides):
                self.no_operator(op, sides, node)
            return t.UNKNOWN
        if left in NUMERIC and right in NUMERIC:
            return of_operator(op, sides)
        if isinstance(op, ast.Mod) and left == t.STR:
            return t.STR
        if isinstance(op, ast.Add) and left == right and left.kind in ("str", "List"):
            return left
        if isinstance(op, ast.Add) and left.kind == right.kind == "List" and not t.same(left, right):
            self.refuse(
                f"\naten::add.t(t[] a, t[] b) -> t[]:\nCould not match type {right} to List[t] in argument "
                f"'b': Type variable 't' previously matched to type {left.args[0]} is matched to type "
                f"{right.args[0]}.\n",
                node,
            )
        if isinstance(op, ast.Add) and left.kind == right.kind == "Tuple":
            return t.tuple_of((*left.args, *right.args))
        if isinstance(op, ast.Mult) and "List" in (left.kind, right.kind) and t.INT in sides:
            return right if left == t.INT else left
        if left.kind == "Class":
            return self.overloaded(op, left, right, node)
        kinds = {left.kind, right.kind}
        if kinds & {"NoneType", "Optional", "Dict"} or (t.STR in sides and left != right):
            self.no_operator(op, sides, node)
        if "Tuple" in kinds and any(s in NUMERIC for s in sides) and not isinstance(op, ast.Mult):
            self.no_operator(op, sides, node)
        return t.UNKNOWN

    def overloaded(self, op, left, right, node):
        """An operator on a value of a class of the program, which one of its methods works out."""
        name, record = METHODS_OF_OPERATORS.get(type(op)), record_of(left.python)
        if record is None or name is None or record.read_from_file:
            return t.UNKNOWN
        if not record.has_method(name):
            self.refuse(f"'{left}' object has no attribute or method '{name}'", node)
        return self.call_unit(record.schema(name), node, [right], {})

    def no_operator(self, op, sides, node):
        name = _OPERATORS.get(type(op), type(op).__name__.lower())
        culprit = 0 if sides[0].kind not in ("Tensor", "int", "float", "str") else 1
        self.refuse(
            f"Arguments for call are not valid.\naten::{name}: expected other types than '{sides[0]}' and "
            f"'{sides[1]}'; '{sides[culprit]}' does not fit.\nThe original call is",
            node,
        )

    def expression_UnaryOp(self, node, hint):  # noqa: N802
        if isinstance(node.op, ast.Not):
            self.condition(node)
            return t.BOOL
        if isinstance(node.op, ast.USub) and getattr(node.operand, "value", None) == _LARGEST + 1:
            return t.INT
        value = self.simple(node.operand)
        return t.TENSOR if value.kind == "Inferred" else value if value != t.BOOL else t.UNKNOWN

    def expression_BoolOp(self, node, hint):  # noqa: N802
        self.condition(node)
        return t.BOOL

    def expression_Compare(self, node, hint):  # noqa: N802
        if any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            self.condition(node)
            return t.BOOL
        kinds = [self.simple(node.left), *map(self.simple, node.comparators)]
        if any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
            return t.BOOL
        for i, op in enumerate(node.ops):
            sides = kinds[i : i + 2]
            ordered = not isinstance(op, (ast.Eq, ast.NotEq))
            optional = [s for s in sides if s.kind == "Optional" or s == t.NONE]
            if (
                optional
                and all(s.known for s in sides)
                and (ordered or optional[0] != t.NONE)
                and len(optional) == 1
            ):
                other = next(s for s in sides if s is not optional[0])
                if other.kind in ("int", "float", "str", "Tensor", "bool") and optional[0] != t.NONE:
                    self.no_operator(op, sides, node)
        if len(node.ops) > 1:
            return t.BOOL
        if any(k.kind in ("Tensor", "Inferred") for k in kinds):
            return t.TENSOR
        return t.BOOL if all(k.known for k in kinds) else t.UNKNOWN

    def expression_IfExp(self, node, hint):  # noqa: N802
        refined = self.condition(node.test)
        if refined.static is not None:
            self.frames.append({})
            self.refine(refined.when_true if refined.static else refined.when_false)
            found = self.simple(node.body if refined.static else node.orelse, hint)
            self.frames.pop()
            return found
        found = []
        for side, refinement in ((node.body, refined.when_true), (node.orelse, refined.when_false)):
            self.frames.append({})
            self.refine(refinement)
            found.append(self.simple(side, hint))
            self.frames.pop()
        merged = t.unify(
            found[0], found[1], to_union=hint is not None and hint.kind in ("Union", "Any", "number")
        )
        if merged is None:
            self.refuse(
                f"if-expression's true branch has type {found[0]} but false branch has type {found[1]}", node
            )
        return merged

    # --- indices

    def expression_Subscript(self, node, hint):  # noqa: N802
        owner = self.expression(node.value)
        parts = self.index_parts(node.slice)
        if isinstance(owner, NotAValue):
            return self.item_of_module(owner, node, hint)
        if owner.kind in ("Tensor", "Inferred"):
            for part, written in parts:
                if part.kind in ("str", "float", "Dict") or part.kind == "List" and part.args[0] == t.STR:
                    self.refuse(
                        f"Unsupported operation: indexing tensor with unsupported index type '{part}'. Only "
                        "ints, slices, lists and tensors are supported",
                        written,
                    )
            return t.TENSOR
        sliced = isinstance(node.slice, ast.Slice) or self.made_slice(node.slice)
        if owner.kind == "List":
            return owner if sliced else owner.args[0]
        if owner.kind == "Dict":
            self.check_key(owner, parts, node)
            return owner.args[1]
        if owner.kind in ("Tuple", "NamedTuple"):
            index = node.slice
            if not sliced and parts[0][0] in (t.FLOAT, t.STR):
                self.refuse("tuple index must be an integer", node)
            negative = isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub)
            index = index.operand if negative else index
            if isinstance(index, ast.Constant) and type(index.value) is int and not sliced:
                number = -index.value if negative else index.value
                if not -len(owner.args) <= number < len(owner.args):
                    self.refuse("Tuple index out of range", node)
                return owner.args[number]
            if not sliced and owner.known and len(set(owner.args)) > 1:
                self.refuse(
                    "Cannot index into a tuple with a non-integer literal because we cannot resolve the "
                    "output type",
                    node,
                )
            return t.UNKNOWN
        if owner == t.STR:
            return t.STR
        if owner.known and owner.kind in ("int", "float", "bool", "NoneType", "Optional", "Any"):
            self.refuse(f"'{owner}' object is not subscriptable", node)
        return t.UNKNOWN

    def check_key(self, owner, parts, node):
        for part, _ in parts:
            if not t.is_subtype(self.converted(part, owner.args[0]), owner.args[0]):
                key, value = owner.args
                self.refuse(
                    f"\naten::__getitem__.Dict_{key}({owner.schema()} self, {key} key) -> {value}:\nExpected "
                    f"a value of type '{key}' for argument 'key' but instead found type '{part}'.\n",
                    node,
                )

    def made_slice(self, node):
        if not (isinstance(node, ast.Call) and self.named(node.func) == "slice"):
            return False
        if node.keywords:
            self.refuse("Slice does not accept any keyword arguments", node)
        return True

    def item_of_module(self, owner, node, hint):
        """A child of a list or dictionary of modules, which a literal names."""
        module = owner.module if isinstance(owner, Container) else None
        if hint is not None and hint.kind == "Interface" and isinstance(module, Module):
            for name, child in module._modules.items():
                if (reason := misfit(child, hint.python)) is not None:
                    self.refuse(f"Attribute {name} is not of annotated type {hint}: {reason}", node)
        index = node.slice
        if isinstance(index, ast.UnaryOp) and isinstance(index.operand, ast.Constant):
            index = ast.Constant(ast.literal_eval(index))
        literal = index.value if isinstance(index, ast.Constant) else None
        if isinstance(module, nn.ModuleDict):
            if isinstance(literal, str):
                if literal not in module._modules:
                    self.refuse(f"Key Error, {literal}", node)
                return Container(module._modules[literal])
            if hint is None and literal is None and not isinstance(index, ast.Slice):
                self.refuse(
                    "Unable to extract string literal index. ModuleDict indexing is only supported with "
                    "string literals. For example, 'i = \"a\"; self.layers[i](x)' will fail because i is not "
                    "a literal. Enumeration of ModuleDict is supported, e.g. 'for k, v in self.items(): ...'",
                    node,
                )
        elif isinstance(module, (nn.ModuleList, nn.Sequential)):
            items = list(module._modules.values())
            if type(literal) is int:
                if not -len(items) <= literal < len(items):
                    self.refuse(f"Index {literal} out of range", node)
                return Container(items[literal])
            if hint is None and literal is None and not isinstance(index, ast.Slice):
                self.refuse(
                    "Expected integer literal for index. ModuleList/Sequential indexing is only supported "
                    "with integer literals. For example, 'i = 4; self.layers[i](x)' will fail because i is "
                    "not a literal. Enumeration is supported, e.g. 'for index, v in enumerate(self): ...'",
                    node,
                )
        return t.UNKNOWN

    def index_parts(self, node):
        """(type, node) of each index."""
        if isinstance(node, ast.Tuple):
            return [pair for element in node.elts for pair in self.index_parts(element)]
        if isinstance(node, ast.Slice):
            for part in (node.lower, node.upper, node.step):
                if part is not None:
                    self.simple(part)
            return []
        return [(self.simple(node), node)]


METHODS_OF_OPERATORS = {
    ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__", ast.Div: "__truediv__", ast.Pow: "__pow__",
    ast.Mod: "__mod__", ast.MatMult: "__matmul__", ast.FloorDiv: "__floordiv__",
    ast.BitAnd: "__and__", ast.BitOr: "__or__", ast.BitXor: "__xor__",
}  # fmt: skip
_OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Pow: "pow",
    ast.Mod: "remainder", ast.MatMult: "matmul", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le",
    ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
