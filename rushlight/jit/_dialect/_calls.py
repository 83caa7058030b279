"""The text of calls in the words of PyTorch's archives."""

from __future__ import annotations

import ast
import builtins
import enum
import functools

import rushlight
from rushlight.jit import _types as t
from rushlight.jit._dialect._library import functional_text, library_function
from rushlight.jit._dialect._static import UNKNOWN_VALUE, ModuleValue, Several, Static
from rushlight.jit._dialect._text import Unwritable, literal
from rushlight.jit._operator_match import operator_schemas
from rushlight.jit._script import ScriptFunction
from rushlight.jit._scripted_class import record_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Calls"]

_SAME = frozenset(
    """print len int float bool str range enumerate zip tuple list dict min max abs all any sorted round
    divmod ord chr hex oct bin sum complex hash id isinstance""".split()
)
_MATH = {"fabs": "fabs", "pow": "pow", "remainder": "mathremainder"}


class Calls(Static):
    """Writes calls."""

    annotations: Any
    module: Any
    record: Any
    lazy: int
    expression: Any
    operand: Any
    part: Any
    hoisted: Any
    fresh: Any
    line: Any
    index: Any
    listed: Any

    def text_of_Call(self, node: ast.Call) -> str:  # noqa: N802
        known = self.known(node)
        if isinstance(known, Several):
            return self.listed(known)
        value = self.constant(node)
        if value is not UNKNOWN_VALUE:
            return literal(value)
        if any(k.arg is None for k in node.keywords):
            raise Unwritable(f"a call with a dictionary of arguments in {self.unit.name}")
        owner = self.known(node.func)
        if isinstance(owner, ModuleValue):
            return self.call_of_module(owner, node)
        if isinstance(node.func, ast.Attribute):
            return self.call_of_attribute(node, node.func)
        if isinstance(node.func, ast.Name) and node.func.id not in self.scope:
            return self.call_of_name(node, node.func.id)
        if isinstance(node.func, ast.Name) and getattr(node.func, "script_type", t.UNKNOWN).kind == "Class":
            return f"{self.operand(node.func)}.__call__({self.arguments(node)})"
        raise Unwritable(f"a call of {ast.unparse(node.func)} in {self.unit.name}")

    def arguments(self, node: ast.Call, first: str = "") -> str:
        given = [first] if first else []
        given += map(self.part, node.args)
        given += [f"{k.arg}={self.expression(k.value)}" for k in node.keywords]
        return ", ".join(given)

    def operands(self, node: ast.Call, name: str, first: str = "") -> str:
        """Arguments of an operator: sizes as a list, also where they are given one by one."""
        parts = list(map(self.size_text, node.args))
        at = _place_of_sizes(name, len(parts) + bool(first))
        if at is not None:
            at -= bool(first)
            parts[at:] = [f"[{', '.join(parts[at:])}]"]
        elif len(parts) == 1 and _takes_sizes(name, bool(first)):
            kind = getattr(node.args[0], "script_type", None)
            if type(self.constant(node.args[0])) is int or kind == t.INT:
                parts = [f"[{parts[0]}]"]
        words = [f"{k.arg}={self.size_text(k.value)}" for k in node.keywords]
        return ", ".join([first, *parts, *words] if first else [*parts, *words])

    def size_text(self, node: ast.expr) -> str:
        """An argument; numbers in a tuple are a list."""
        if (
            isinstance(node, ast.Tuple)
            and node.elts
            and not any(isinstance(e, ast.Starred) for e in node.elts)
        ):
            return f"[{', '.join(map(self.expression, node.elts))}]"
        return self.part(node)

    # --- methods

    def call_of_module(self, owner: ModuleValue, node: ast.Call) -> str:
        """A call of a module: of its hooks, and of `forward`."""
        hooks = {} if owner.module is None else self.program.module(owner.module).hooks
        if not any(hooks.values()):
            return self.call_of_method(owner, "forward", node)
        if node.keywords:
            raise Unwritable(f"a call by keywords of a module with hooks in {self.unit.name}")
        given = [self.hoisted(self.expression(part)) for part in node.args]
        together = self.hoisted(f"({''.join(f'{text}, ' for text in given)})")
        for name, unit in hooks["_forward_pre_hooks"]:
            returns = unit.schema.returns
            result = self.hoisted(f"{owner.text}.{name}_called({together})")
            if returns not in (t.NONE, t.UNKNOWN):
                together = result if returns.kind == "Tuple" else self.hoisted(f"({result},)")
        parts = ", ".join(f"{together}[{i}]" for i in range(len(given)))
        result = self.hoisted(f"{owner.text}.forward({parts})")
        for name, unit in hooks["_forward_hooks"]:
            changed = self.hoisted(f"{owner.text}.{name}_called({together}, {result})")
            result = changed if unit.schema.returns not in (t.NONE, t.UNKNOWN) else result
        return result

    def call_of_method(self, owner: ModuleValue, name: str, node: ast.Call) -> str:
        module = owner.module
        if module is not None:
            self.program.method(self.program.module(module), name)
        return f"{owner.text}.{name}({self.arguments(node)})"

    def call_of_attribute(self, node: ast.Call, function: ast.Attribute) -> str:
        owner, name = self.known(function.value), function.attr
        if isinstance(owner, ModuleValue) and owner.module is not None:
            value = owner.module.__dict__.get(name)
            if isinstance(value, ScriptFunction):
                return (
                    f"{self.program.function(value.unit, f'__torch__.{value.name}')}({self.arguments(node)})"
                )
            if callable(value):
                return self.call_of_value(node, value)
            return self.call_of_method(owner, name, node)
        if isinstance(owner, Several):
            raise Unwritable(f"a method of several modules in {self.unit.name}")
        outside = self.unit.names.get(getattr(function.value, "id", None))
        if isinstance(outside, type) and getattr(function.value, "id", None) not in self.scope:
            return self.static_method(node, outside, name)
        kind = getattr(function.value, "script_type", t.UNKNOWN)
        base = self.operand(function.value)
        if isinstance(function.value, ast.Constant) and isinstance(function.value.value, str):
            return f"torch.{name}({self.arguments(node, self.expression(function.value))})"
        if kind.kind == "Class" and kind.python is not None:
            record = record_of(kind.python)
            if record is not None and record.is_static(name):
                return self.static_method(node, kind.python, name)
        if name == "norm" and kind.kind not in ("Class", "Interface"):
            tensor = ast.Call(node.func, [function.value, *node.args], node.keywords)
            return self.library_call(tensor, "torch.norm", rushlight.norm)
        if name in _OF_CONTAINERS or kind.kind in ("Class", "List", "Dict", "str"):
            return f"{base}.{name}({self.arguments(node)})"
        return f"{base}.{name}({self.operands(node, name, 'self').removeprefix('self').removeprefix(', ')})"

    def static_method(self, node: ast.Call, cls: Any, name: str) -> str:
        record = record_of(cls)
        unit = record.unit(name) if record is not None and record.is_static(name) else None
        if unit is None:
            raise Unwritable(f"the method {name} of {cls.__name__} in {self.unit.name}")
        path = self.program.function(unit, f"{self.program.class_path(cls)}_{name}")
        return f"{path}({self.arguments(node)})"

    # --- functions

    def call_of_name(self, node: ast.Call, name: str) -> str:
        value = self.unit.names.get(name)
        if name in _SPECIAL:
            return getattr(self, _SPECIAL[name])(node)
        if name == "torch.jit.isinstance" or name == "isinstance":
            return self.isinstance_text(node)
        if name.startswith("__python__."):
            raise Unwritable(f"the function {name.removeprefix('__python__.')}, which stays Python")
        if isinstance(value, type) and not isinstance(getattr(builtins, name, None), type):
            return self.made(node, name, value)
        unit = getattr(value, "unit", None)
        if name.startswith("__torch__.") and unit is not None:
            return f"{self.program.function(unit, name)}({self.arguments(node)})"
        if name in _SAME:
            return self.language(node, name)
        return self.library_call(node, name, value)

    def language(self, node: ast.Call, name: str) -> str:
        if name == "list" and len(node.args) == 1:
            known = self.known(node.args[0])
            if isinstance(known, Several):
                return self.listed(known)
        if name in ("list", "dict") and not node.args and not node.keywords:
            kind = getattr(node, "script_type", t.UNKNOWN)
            empty = "[]" if name == "list" else "{}"
            return f"annotate({self.program.type_text(kind)}, {empty})" if kind.known else empty
        if name == "float" and len(node.args) == 1 and self.constant(node.args[0]) in ("inf", "-inf", "nan"):
            return literal(float(self.constant(node.args[0])))
        return f"{name}({self.arguments(node)})"

    def call_of_value(self, node: ast.Call, value: Any) -> str:
        """A function of the library, or of the program, that an attribute of a module is."""
        from rushlight.jit._library import library_name

        name = library_name(value)
        if name is not None:
            return self.library_call(node, name, value)
        if getattr(value, "unit", None) is not None:
            return (
                f"{self.program.function(value.unit, f'__torch__.{value.unit.name}')}({self.arguments(node)})"
            )
        raise Unwritable(f"{getattr(value, '__name__', value)} in {self.unit.name}")

    def library_call(self, node: ast.Call, name: str, value: Any) -> str:
        home, _, short = name.rpartition(".")
        if home in ("math", "cmath"):
            return f"torch.{_MATH.get(short, short)}({self.arguments(node)})"
        if name.startswith("torch.ops."):
            space, operator = name.split(".")[2:4]
            return f"ops.{space}.{operator}({self.arguments(node)})"
        if home == "torch.nn.functional" and short.startswith("adaptive_"):
            return self.adaptive_pool(node, short)
        unit = library_function(name, value)
        if unit is not None:
            of_class = home.rpartition(".")[2][:1].isupper()
            path = self.program.function(unit, f"__torch__.{home}{'_' if of_class else '.'}{short}")
            return f"{path}({self.broadcast_arguments(node, unit.schema)})"
        if home == "torch.nn.functional":
            return functional_text(self, node, short)
        if home in ("torch", "torch.functional") and (operator_schemas(short) or short in _OPERATORS):
            return f"torch.{short}({self.operands(node, short)})"
        spaces = ("linalg", "fft", "special")
        for space in spaces:
            if home == f"torch.{space}" and operator_schemas(f"{space}_{short}"):
                return f"torch.{space}_{short}({self.operands(node, short)})"
        raise Unwritable(f"{name} in {self.unit.name}")

    def adaptive_pool(self, node: ast.Call, short: str) -> str:
        """Operators of scripts that the table has in other words."""
        if len(node.args) + len(node.keywords) != 2:
            raise Unwritable(f"places of maxima of torch.nn.functional.{short} in {self.unit.name}")
        text = f"torch.{short}({self.operands(node, short)})"
        return text if "avg" in short else f"({text})[0]"

    def broadcast_arguments(self, node: ast.Call, schema: Any) -> str:
        """Arguments where one number may stand for several: ``kernel_size=3``."""
        lengths = {a.name: a.length or int(_is_list(a.type)) for a in schema.arguments}
        real_lists = [a.name for a in schema.arguments if t.list_of(t.FLOAT) in t.options(a.type)]
        reals = [a.name for a in schema.arguments if t.FLOAT in t.options(a.type)]
        names = [a.name for a in schema.arguments]
        given = [(None, name, part) for name, part in zip(names, node.args, strict=False)]
        given += [(k.arg, k.arg, k.value) for k in node.keywords]  # type: ignore[misc]
        texts = []
        for word, name, part in given:
            length, text = lengths.get(name), self.size_text(part) if lengths.get(name) else self.part(part)
            kind = getattr(part, "script_type", t.UNKNOWN)
            if kind == t.INT or type(self.constant(part)) is int:
                text = f"float({text})" if name in real_lists else text
            if length and (type(self.constant(part)) in (int, float) or kind in (t.INT, t.FLOAT)):
                text = f"[{', '.join([text] * length)}]"
            if name in reals and (type(self.constant(part)) is int or kind == t.INT):
                text = f"float({text})"  # which operators take as it is, and scripts do not
            texts.append(text if word is None else f"{word}={text}")
        return ", ".join(texts)

    # --- special forms

    def annotated(self, node: ast.Call) -> str:
        kind = self.program.type_text(t.plain(self.annotations.type_of(node.args[0])))
        inner = node.args[1]
        empty = isinstance(inner, (ast.List, ast.Dict)) and not (
            getattr(inner, "elts", None) or getattr(inner, "keys", None)
        )
        text = ("[]" if isinstance(inner, ast.List) else "{}") if empty else self.expression(inner)
        return f"annotate({kind}, {text})"

    def isinstance_text(self, node: ast.Call) -> str:
        asked = node.args[1]
        kinds = asked.elts if isinstance(asked, ast.Tuple) else [asked]
        texts = [self._asked(kind) for kind in kinds]
        inside = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
        return f"isinstance({self.expression(node.args[0])}, {inside})"

    def _asked(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name) and node.id in ("list", "tuple"):
            return node.id
        return self.program.type_text(t.plain(self.annotations.type_of(node)))

    def waited(self, node: ast.Call) -> str:
        return f"torch.wait({self.arguments(node)})"

    def forked(self, node: ast.Call) -> str:
        """What is run is a function inside, which sees the values that it is given."""
        function, *given = node.args
        texts = [self.hoisted(self.expression(part)) for part in given]
        words = [(k.arg, self.hoisted(self.expression(k.value))) for k in node.keywords]
        names: list[ast.expr] = [ast.Name(text, ast.Load()) for text in texts]
        for text in (*texts, *(text for _, text in words)):
            self.scope[text] = text
        call = ast.Call(function, names, [ast.keyword(k, ast.Name(v, ast.Load())) for k, v in words])
        body = self.text_of_Call(call)
        if self.lazy:
            raise Unwritable(f"a fork in the middle of a condition of {self.unit.name}")
        name = f"__forked_function_{self.fresh().removeprefix('_v')}"
        self.line(f"def {name}():")
        self.line(f"  return {body}")
        return f"fork({name})"

    def unique_values(self, node: ast.Call) -> str:
        """`torch.unique` gives what its flags ask for, and the operators give all."""
        names = ("input", "sorted", "return_inverse", "return_counts", "dim")
        given = dict(zip(names, node.args, strict=False)) | {str(k.arg): k.value for k in node.keywords}
        flags = [self.constant(given[n]) if n in given else n == "sorted" for n in names[1:4]]
        if UNKNOWN_VALUE in flags:
            raise Unwritable(f"torch.unique with flags that are not constant in {self.unit.name}")
        value, rest = self.expression(given["input"]), ", ".join(map(str, flags))
        if "dim" in given and self.constant(given["dim"]) is not None:
            text = f"torch.unique_dim({value}, {self.expression(given['dim'])}, {rest})"
        else:
            text = f"torch._unique2({value}, {rest})"
        if not any(flags[1:]):
            return f"({text})[0]"
        found = self.hoisted(text)
        wanted = [i for i, flag in enumerate([True, *flags[1:]]) if flag]
        return f"({', '.join(f'{found}[{i}]' for i in wanted)})"

    def asserted(self, node: ast.Call) -> str:
        self.line(f"assert {', '.join(map(self.expression, node.args))}")
        return "None"

    def unwrapped(self, node: ast.Call) -> str:
        return f"ops.prim.unchecked_unwrap_optional({self.arguments(node)})"

    def got_attribute(self, node: ast.Call) -> str:
        name = self.constant(node.args[1])
        if not isinstance(name, str):
            raise Unwritable(f"an attribute without a known name in {self.unit.name}")
        access = ast.Attribute(node.args[0], name, ast.Load())
        if len(node.args) == 3:
            owner = self.known(node.args[0])
            if isinstance(owner, ModuleValue) and not hasattr(owner.module, name):
                return self.expression(node.args[2])
        return self.expression(access)

    def warned(self, node: ast.Call) -> str:
        return f"ops.aten.warn({self.expression(node.args[0])})"

    def made(self, node: ast.Call, name: str, cls: Any) -> str:
        """An object of a class of the program."""
        if cls is rushlight.device:
            return f"torch.device({self.arguments(node)})"
        if issubclass(cls, enum.Enum):
            raise Unwritable(f"a member of {cls.__name__} by its value in {self.unit.name}")
        if cls in (rushlight.no_grad, rushlight.enable_grad):
            return f"{self.program.grad_mode(cls)}()"
        if cls is rushlight.Size:
            return self.expression(node.args[0])
        record = record_of(cls)
        if record is None or record.kind not in ("class", "tuple"):
            raise Unwritable(f"{name} in {self.unit.name}")
        path = self.program.class_path(cls)
        if record.kind == "tuple":
            said = {*cls._fields[: len(node.args)], *(k.arg for k in node.keywords)}
            rest = [f"{n}={literal(v)}" for n, v in cls._field_defaults.items() if n not in said]
            return f"{path}({', '.join(filter(None, [self.arguments(node), *rest]))})"
        made = self.hoisted(f"{path}.__new__({path})")
        if record.has_method("__init__"):
            self.line(f"{made}.__init__({self.arguments(node)})")
        return made


def _is_list(kind: t.Type) -> bool:
    return kind.kind == "List" or kind.kind == "Optional" and kind.args[0].kind == "List"


# Methods of lists, dictionaries and texts, whose arguments stay what they are.
_OF_CONTAINERS = frozenset("append insert remove index count get pop setdefault extend update format".split())


@functools.cache
def _takes_sizes(name: str, place: int) -> bool:
    """Whether one number for an operator may be taken for a type: it is a list of sizes."""
    names, kinds = set(), set()
    for schema in operator_schemas(name):
        plain = [a for a in schema.arguments if not a.kwarg_only and not a.is_out]
        names.update(a.name for a in plain[place : place + 1])
        kinds.update(str(a.type) for a in plain[place : place + 1])
    return "dtype" in names and any(kind.endswith("[]") for kind in kinds)


@functools.cache
def _place_of_sizes(name: str, count: int) -> int | None:
    """Which of so many arguments begins the sizes that are given one by one; None where none are."""
    place = None
    for schema in operator_schemas(name):
        plain = [a for a in schema.arguments if not a.kwarg_only and not a.is_out]
        if count <= len(plain):
            return None
        if plain and str(plain[-1].type).endswith("[]"):
            place = len(plain) - 1
    return place


_SPECIAL = {
    "torch.jit.annotate": "annotated",
    "torch.jit.wait": "waited",
    "torch.jit._wait": "waited",
    "torch.jit.fork": "forked",
    "torch.jit._fork": "forked",
    "torch.jit._unwrap_optional": "unwrapped",
    "torch._assert": "asserted",
    "torch.unique": "unique_values",
    "getattr": "got_attribute",
    "warnings.warn": "warned",
}
# Operators of scripts that are none of the table's.
_OPERATORS = frozenset(
    "tensor is_grad_enabled device manual_seed numel is_floating_point is_complex as_tensor "
    "is_tensor get_device".split()
)
