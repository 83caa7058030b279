"""Python code from a graph: `CodeGen`, which may be replaced, and its form for nested inputs and outputs."""

import collections.abc
import enum
import keyword
import math
import re
import types
import typing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import rushlight as torch
from rushlight._command.names import show_from
from rushlight._ops import OpOverload, OpOverloadPacket
from rushlight.utils import _pytree as pytree
from rushlight.utils._dtype_abbrs import dtype_abbrs

from . import _pytree as fx_pytree
from ._names import (
    Namespace,
    _get_qualified_name,
    inplace_methods,
    is_from_torch,
    is_operator_function,
    magic_methods,
    type_name,
)
from .node import Node
from .tensor_type import Dyn, TensorType


class _CustomBuiltin(NamedTuple):
    """An object that generated code refers to by a fixed name, and how to import it."""

    import_str: str
    obj: Any


_custom_builtins = {
    "inf": _CustomBuiltin("from math import inf", math.inf),
    "nan": _CustomBuiltin("from math import nan", math.nan),
    "NoneType": _CustomBuiltin("NoneType = type(None)", type(None)),
    "torch": _CustomBuiltin("import torch", torch),
    "device": _CustomBuiltin("from torch import device", torch.device),
    "fx_pytree": _CustomBuiltin("import torch.fx._pytree as fx_pytree", fx_pytree),
    "pytree": _CustomBuiltin("import torch.utils._pytree as pytree", pytree),
}


def _register_custom_builtin(name, import_str, obj):
    """Let generated code refer to an object by a fixed name."""
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)


_OLD_GENERICS = {
    list: typing.List,  # noqa: UP006
    dict: typing.Dict,  # noqa: UP006
    set: typing.Set,  # noqa: UP006
    frozenset: typing.FrozenSet,  # noqa: UP006
    tuple: typing.Tuple,  # noqa: UP006
}


@dataclass
class PythonCode:
    """Source of a function, and the names that it needs."""

    src: str
    globals: dict
    _lineno_map: dict | None = None
    _prologue_start: int = 0


def _format_target(base, target):
    """`self`, `a.0.b` -> `getattr(self.a, "0").b`."""
    text = base
    for name in target.split("."):
        text = f"{text}.{name}" if name.isidentifier() else f'getattr({text}, "{name}")'
    return text


class _Globals:
    """What generated code refers to, under names of its own."""

    def __init__(self, namespace):
        self.namespace, self.table = namespace, {}

    def add(self, hint, obj):
        """The name for an object."""
        if is_from_torch(obj) and obj is not torch.device:
            return _type_or_function_name(obj)
        name = self.namespace.create_name(hint, obj)
        if name in self.table and self.table[name] is not obj:
            raise AssertionError(f"{name} already stands for {self.table[name]}, not for {obj}")
        self.table[name] = obj
        return name

    def instance(self, hint, obj):
        """The name for an object that is neither class nor function."""
        name = self.namespace.create_name(hint, obj)
        self.table[name] = obj
        return name

    def type(self, annotation):
        """An annotation as text."""
        if isinstance(annotation, (TensorType, type(Dyn))):
            return self.instance("tensor_type", annotation)
        text = type_name(annotation)
        if isinstance(annotation, types.UnionType) and "|" in text:
            return "|".join(self.type(a) for a in annotation.__args__)
        origin = getattr(annotation, "__origin__", None)
        if origin is None:
            return self.add(text, annotation)
        if isinstance(annotation, typing._GenericAlias):  # written with typing's own names
            origin = _OLD_GENERICS.get(origin, origin)
        name = self.add(type_name(origin), origin)
        arguments = getattr(annotation, "__args__", None)
        if origin is collections.abc.Callable and arguments and arguments[0] is not ...:
            *given, result = map(self.type, arguments)
            return f"{name}[[{','.join(given)}],{result}]"
        return f"{name}[{','.join(self.type(a) for a in arguments)}]" if arguments else name

    def value(self, arg):
        """An argument as text."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            # a named tuple's own repr does not name its class as code could
            return f"{self.add(_get_qualified_name(type(arg)), type(arg))}{tuple(arg)!r}"
        if isinstance(arg, (OpOverload, OpOverloadPacket, types.BuiltinFunctionType, types.FunctionType)):
            name = _get_qualified_name(arg)
            return self.add(name, arg)
        if isinstance(arg, type):
            return self.type(arg)
        if isinstance(arg, enum.Enum):
            return f"{self.add(type_name(type(arg)), type(arg))}.{arg.name}"
        if isinstance(arg, tuple):
            return f"({', '.join(map(self.value, arg))}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.value, arg))}]"
        if isinstance(arg, slice):
            return f"slice({self.value(arg.start)}, {self.value(arg.stop)}, {self.value(arg.step)})"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{k!r}: {self.value(v)}" for k, v in arg.items()) + "}"
        return repr(arg)

    def arguments(self, args, kwargs):
        return ", ".join([*map(self.value, args), *(f"{k} = {self.value(v)}" for k, v in kwargs.items())])


def _type_or_function_name(obj):
    return type_name(obj) if isinstance(obj, type) else _get_qualified_name(obj)


def _last_uses(nodes):
    """For each node, which of its inputs nobody needs afterwards."""
    seen, last = set(), {}
    for node in reversed(nodes):
        for used in node._input_nodes:
            if used not in seen:
                seen.add(used)
                last.setdefault(node, []).append(used)
    return last


def _shape_text(value, include_stride=False, include_device=False):
    """A tensor's type in a verbose listing, like `f32[2, 3]`; empty for other values."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        if isinstance(value, (torch.SymInt, torch.SymBool, torch.SymFloat)):
            return f"Sym({value})"
        return ""
    text = f"{dtype_abbrs.get(dtype, dtype)}[{', '.join(map(str, shape))}]"
    if include_stride:
        stride = value.stride() if callable(getattr(value, "stride", None)) else value.stride
        text += f"[{', '.join(map(str, stride))}]"
    return text + (f"{value.device}" if include_device and hasattr(value, "device") else "")


_STACK_LINE = re.compile(r'File "(.+)", line (\d+), in (.+)')


@dataclass
class _ParsedStackTrace:
    file: str
    lineno: str
    name: str
    code: str

    def get_summary_str(self):
        return f"File: {self.file}:{self.lineno} in {self.name}, code: {self.code}"


def _parse_stack_trace(stack_trace, filter_fn=None):
    """The innermost frame that a stack trace names."""
    if stack_trace is None:
        return None
    lines = stack_trace.strip().split("\n")
    for i in range(len(lines) - 2, -1, -1):
        match = _STACK_LINE.match(lines[i].strip())
        if match and (filter_fn is None or filter_fn(match[1], match[3], lines[i + 1].strip())):
            return _ParsedStackTrace(match[1], match[2], match[3], lines[i + 1].strip())
    return None


_COLORS = {"blue": "\033[34m", "green": "\033[32m", "dim": "\033[2m", "reset": "\033[0m"}


@dataclass
class _Writer:
    """The body of the function, statement by statement."""

    names: _Globals
    root_module: str
    verbose: bool = False
    include_stride: bool = False
    include_device: bool = False
    colored: bool = False
    body: list = field(default_factory=list)
    line_of: dict = field(default_factory=dict)
    parameters: list = field(default_factory=list)
    parameter_types: list = field(default_factory=list)
    wrapped: dict = field(default_factory=dict)
    returns: str = ""
    last_trace: str | None = None

    def color(self, name, text):
        return f"{_COLORS[name]}{text}{_COLORS['reset']}" if self.colored else text

    def annotation(self, node):
        if self.verbose:
            meta = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
            text = _shape_text(meta, self.include_stride, self.include_device)
            if text:
                return f': "{self.color("blue", text)}"'
        return "" if node.type is None else f" : {self.names.type(node.type)}"

    def comment_origin(self, node):
        """A comment where the origin in the user's program changes."""
        if node.op in ("placeholder", "output"):
            return
        if not node.stack_trace:
            if self.last_trace != "":
                self.last_trace = ""
                self.body.append(f"\n{self.color('dim', '# No stacktrace found for following nodes')}\n")
        elif node.stack_trace != self.last_trace:
            self.last_trace = node.stack_trace
            parsed = _parse_stack_trace(node.stack_trace)
            text = parsed.get_summary_str() if parsed else ""
            self.body.append(f"\n{self.color('dim', '# ' + text)}\n")

    def assign(self, node, text):
        self.body.append(f"{self.color('green', repr(node)) if self.colored else node!r}"
                         f"{self.annotation(node)} = {text}")  # fmt: skip

    def placeholder(self, node):
        default = f" = {self.names.value(node.args[0])}" if node.args else ""
        self.parameters.append(f"{node.target}{self.annotation(node)}{default}")
        raw = node.target.replace("*", "")
        if raw != repr(node):
            self.body.append(f"{node!r} = {raw}\n")

    def call_method(self, node):
        callee = _format_target(self.names.value(node.args[0]), node.target)
        self.assign(node, f"{callee}({self.names.arguments(node.args[1:], node.kwargs)})")

    def call_module(self, node):
        callee = _format_target(self.root_module, node.target)
        self.assign(node, f"{callee}({self.names.arguments(node.args, node.kwargs)})")

    def get_attr(self, node):
        self.assign(node, _format_target(self.root_module, node.target))

    def call_function(self, node):
        target, name = node.target, getattr(node.target, "__name__", "")
        if is_operator_function(target) and not node.kwargs:
            values = [self.names.value(a) for a in node.args]
            if name in magic_methods:
                return self.assign(node, magic_methods[name].format(*values))
            if name in inplace_methods:
                self.body.append(f"{inplace_methods[name].format(*values)};  ")
                return self.assign(node, values[0])
        global_name = self.names.add(_get_qualified_name(target), target)
        space, _, last = global_name.rpartition(".")
        if keyword.iskeyword(last):  # aten.random_.from
            global_name = f"getattr({space}, {last!r})"
        if global_name == "getattr" and len(node.args) == 2 and not node.kwargs:
            owner, attribute = node.args
            if isinstance(attribute, str) and attribute.isidentifier():
                return self.assign(node, _format_target(self.names.value(owner), attribute))
        self.assign(node, f"{global_name}({self.names.arguments(node.args, node.kwargs)})")
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(global_name)

    def release(self, node, unused):
        """End the line; values that nobody needs any more are let go."""
        gone = list(unused) + ([] if node.users else [node])
        text = f";  {' = '.join([*map(repr, gone), 'None'])}" if gone else ""
        self.body.append(self.color("dim", text) + "\n" if text else "\n")


class CodeGen:
    """How a graph becomes a function; override parts to change its signature or its result."""

    _func_name = "forward"

    def __init__(self):
        self._body_transformer = None

    def _format_multiline_args(self, args):
        return "".join(f"\n    {arg}," for arg in args) + "\n" if args else ""

    def gen_fn_def(self, free_vars, maybe_return_annotation, *, expanded_def=False):
        """The line that opens the function."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        inside = self._format_multiline_args(free_vars) if expanded_def else ", ".join(free_vars)
        return f"def {self._func_name}({inside}){maybe_return_annotation}:"

    def generate_output(self, output_args, *, names=None):
        """The line that returns."""
        return f"return {names.value(output_args) if names else repr(output_args)}"

    def process_inputs(self, *args):
        """What the graph's placeholders get for the function's arguments."""
        return args

    def process_outputs(self, outputs):
        return outputs

    def additional_globals(self):
        """More names for the generated code: pairs of identifier and object."""
        return []

    def _write(self, nodes, writer):
        last = _last_uses(nodes)
        for i, node in enumerate(nodes):
            if writer.verbose:
                writer.comment_origin(node)
            writer.line_of[i] = len(writer.body)
            if node.op == "output":
                if node.type is not None:
                    writer.returns = f" -> {writer.names.type(node.type)}"
                writer.body.append(self._output_line(node.args[0], writer.names))
                writer.body.append("\n")
                continue
            getattr(writer, node.op)(node)
            if node.op != "placeholder":
                writer.release(node, last.get(node, ()))

    def _output_line(self, value, names):
        if type(self).generate_output in (CodeGen.generate_output, _PyTreeCodeGen.generate_output):
            return self.generate_output(value, names=names)
        return self.generate_output(value)  # a user's own, which knows only of the value

    def _gen_python_code(
        self,
        nodes,
        root_module,
        namespace,
        *,
        verbose=False,
        include_stride=False,
        include_device=False,
        colored=False,
        expanded_def=False,
    ):
        names = _Globals(namespace)
        for name, builtin in _custom_builtins.items():
            names.table[namespace.create_name(name, builtin.obj)] = builtin.obj
        writer = _Writer(names, root_module, verbose, include_stride, include_device, colored)
        nodes = list(nodes)
        self._write(nodes, writer)
        if not writer.body:
            writer.body.append("pass\n")  # a function's body can't be empty
        for name, value in self.additional_globals():
            names.add(name, value)
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
        options = {"expanded_def": True} if expanded_def else {}
        prologue = self.gen_fn_def(writer.parameters, writer.returns, **options)
        body, starts = writer.body, {at: i for i, at in writer.line_of.items()}
        if self._body_transformer is not None:
            body = self._body_transformer(list(writer.body))
            starts = _moved(starts, writer.body, body)
        line_of = _lines(body, starts)
        code = "\n".join("    " + line for line in "".join(body).lstrip("\n").split("\n"))
        start = wraps.count("\n") + 4
        lines = {start_line + prologue.count("\n"): node for start_line, node in line_of.items()}
        return PythonCode(f"\n{wraps}\n\n{prologue}\n{code}", names.table, lines, start)


def _lines(body, starts):
    """Which line of a body (from 1) belongs to which node; ``starts`` has the nodes by their first parts."""
    lines, line, current = {}, 1, None
    for at, text in enumerate(body):
        current = starts.get(at, current)
        lines[line] = current
        line += text.count("\n")
    return lines


def _moved(starts, before, after):
    """``starts`` for a body that a transformer made of another one, by the parts that it kept."""
    moved, at = {}, 0
    places = {}
    for place, part in enumerate(before):
        places.setdefault(id(part), []).append(place)
    for now, part in enumerate(after):
        place = next((p for p in places.get(id(part), ()) if p >= at), None)
        if place is not None:
            at = place + 1
            if place in starts:
                moved[now] = starts[place]
    return moved


class _BoxedCodeGen(CodeGen):
    """Takes all inputs in one list, which it empties."""

    def gen_fn_def(self, free_vars, maybe_return_annotation, *, expanded_def=False):
        names = [v.split(":")[0].split("=")[0].strip() for v in free_vars]
        head = f"def {self._func_name}(self, args_list){maybe_return_annotation}:"
        unpack = f"\n    {', '.join(names)}, = args_list" if names else ""
        return f"{head}{unpack}\n    args_list.clear()"


class _PyTreeInfo(NamedTuple):
    """The function's own arguments, and how they and its result nest."""

    orig_args: list
    in_spec: Any
    out_spec: Any


class _PyTreeCodeGen(CodeGen):
    """Takes and returns nested containers; the graph inside sees their leaves."""

    def __init__(self, pytree_info):
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs):
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, out):
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return out
        leaves = out if isinstance(out, (list, tuple)) else [out]
        return pytree.tree_unflatten(leaves, self.pytree_info.out_spec)

    def _takes_kwargs(self):
        spec = self.pytree_info.in_spec
        return (
            spec.type is tuple
            and spec.num_children == 2
            and spec.child(0).type is tuple
            and spec.child(1).type is dict
        )

    def _spec_arguments(self, arguments):
        """The arguments as `tree_flatten_spec` takes them apart."""
        if not self._takes_kwargs():
            return f"[{', '.join(arguments)}]"
        positional = self.pytree_info.in_spec.child(0).num_children
        keys = self.pytree_info.in_spec.child(1).context
        pairs = ", ".join(f"'{key}':{arg}" for key, arg in zip(keys, arguments[positional:]))
        return f"([{', '.join(arguments[:positional])}], {{{pairs}}})"

    def gen_fn_def(self, free_vars, maybe_return_annotation, *, expanded_def=False):
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        arguments = list(self.pytree_info.orig_args)
        if arguments and arguments[0] == "self":
            free_vars.insert(0, "self")
        head = super().gen_fn_def(arguments[:], maybe_return_annotation, expanded_def=expanded_def)
        if not free_vars:
            return head
        bare = [re.sub(r"\s*[:=].*", "", v) for v in free_vars]
        flat = f"fx_pytree.tree_flatten_spec({self._spec_arguments(arguments)}, self._in_spec)"
        return f"{head}\n    {', '.join(bare)}, = {flat}"

    def generate_output(self, output_args, *, names=None):
        value = names.value(output_args) if names else repr(output_args)
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return f"return {value}"
        return f"return pytree.tree_unflatten({value}, self._out_spec)"


__all__ = ["CodeGen", "Namespace", "PythonCode"]


show_from("fx.graph", CodeGen)
