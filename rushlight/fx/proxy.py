"""Proxies: values that record what is done with them as nodes of a graph."""

from __future__ import annotations

import copy
import dataclasses
import dis
import enum
import inspect
import operator
import os
import traceback
from collections import OrderedDict

import rushlight as torch
from rushlight._ops import OpOverload, OpOverloadPacket

from . import traceback as fx_traceback
from ._names import is_functional, is_method, magic_methods, reflectable_magic_methods
from .node import Node, base_types, map_aggregate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from rushlight.fx.node import Argument, Target

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]


@dataclasses.dataclass
class Scope:
    """Which module's forward is being traced."""

    module_path: str
    module_type: type | None


class ScopeContextManager:
    """Makes a scope the current one."""

    def __init__(self, scope, current_scope) -> None:
        self._scope, self._before = scope, copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self):
        return self._scope

    def __exit__(self, *exc) -> None:
        self._scope.module_path = self._before.module_path
        self._scope.module_type = self._before.module_type


class TraceError(ValueError):
    """The program does what a graph cannot express."""


_COPY_META_FIELDS = [
    "nn_module_stack",
    "torch_fn",
    "source_fn_stack",
    "original_aten",
    "recompute",
    "ac_graph_id",
    "from_node",
    "quantization_tag",
    "stack_trace",
    "custom",
]


class TracerBase:
    """Makes nodes from calls: what all tracers share."""

    record_stack_traces = False
    _record_forward_stack_traces_only = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    node_name_to_scope: dict[Any, Any]
    traced_func_name = "forward"

    graph: torch.fx.Graph

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Make a node; the place to override for checks or other node types."""
        if kind == "call_function" and self.check_mutable_operations:
            _refuse_mutation(target, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scope = self.__dict__.get("scope")
        if scope is not None:
            self.node_name_to_scope[node.name] = (scope.module_path, scope.module_type)
        self._describe(node, kind)
        return node

    def _describe(self, node, kind):
        if fx_traceback.has_preserved_node_meta():
            current = fx_traceback.get_current_meta()
            node.meta.update({f: copy.copy(current[f]) for f in _COPY_META_FIELDS if f in current})
        elif fx_traceback.current_meta.get("custom"):
            node.meta["custom"] = dict(fx_traceback.current_meta["custom"])
        if self.__dict__.get("module_stack"):
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and kind not in ("placeholder", "output") and not node.stack_trace:
            node.stack_trace = _user_stack()

    def proxy(self, node: Node) -> Proxy:
        """The proxy for a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Make a node of arguments that may hold proxies, and a proxy for it."""
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, tuple(args_), dict(kwargs_), name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Argument) -> Argument:
        """A value as an argument of nodes: proxies become nodes, the rest must be constant."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return _create_dict_arg(self, a)
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, (Node, OpOverload, OpOverloadPacket)):
            return a
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            kwargs = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), kwargs)
        if a is None or a is ... or isinstance(a, (*base_types, enum.Enum)):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """A proxy is asked for its truth."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """A proxy is iterated over."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a "
            "*args or **kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed "
            "explanation of what types of control flow can be traced, and check out the Proxy docstring for "
            "help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """A proxy is asked for its keys: for `**` it must give an iterator."""
        return Attribute(obj, "keys")()


def _create_dict_arg(tracer, d):
    result = {}
    for key, value in d.items():
        key = tracer.create_arg(key)

        def refuse(node, key=key):
            raise RuntimeError(
                "Keys for dictionaries used as an argument cannot contain a Node. Got key: " + str(key)
            )

        map_aggregate(key, lambda x: refuse(x) if isinstance(x, Node) else x)
        result[key] = tracer.create_arg(value)
    return result


def _refuse_mutation(target, kwargs):
    """Functions that write to an argument do what a graph cannot express; tracers may ask for this check."""
    if isinstance(target, OpOverload):
        schemas = [target._schema]
    else:
        name = getattr(target, "__name__", "")
        inplace = name.endswith("_") and not name.endswith("__")
        if getattr(target, "__module__", "") == "_operator" or not (inplace or kwargs.get("out") is not None):
            return
        schemas = getattr(getattr(torch.ops.aten, name, None), "_schemas", {}).values()
    shown = next((schema for schema in schemas if schema.is_mutable), None)
    if shown is None:  # a function of a program, which may be called as it likes
        return
    raise RuntimeError(
        f"Tried to trace mutable operation {shown}. FX only supports functional code, so operations that "
        "mutate operands in-place (e.g. via `out` arguments) are not supported"
    )


_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_TRACERS = (
    *(os.path.join(_PACKAGE, name, "") for name in ("fx", "export", "_subclasses")),
    os.path.join(_PACKAGE, "_functions", "helpers.py"),
)


def _user_stack():
    """The frames outside of the tracers, as text; the innermost last."""
    frames = [frame for frame in traceback.extract_stack() if not frame.filename.startswith(_TRACERS)]
    return "".join(traceback.StackSummary.from_list(frames).format()).strip()


class GraphAppendingTracer(TracerBase):
    """Appends to a graph that exists."""

    def __init__(self, graph):
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x: Node):
    assert x


class Proxy:
    """Stands for a node: attribute accesses, operators and torch functions on it make further nodes."""

    def __init__(self, node, tracer=None):
        if tracer is None:
            tracer = GraphAppendingTracer(node.graph)
        self.tracer, self.node = tracer, node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k):
        # a record that is not an attribute yet, for its result may only be called
        return Attribute(self, k)

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, state):
        self.__dict__.update(state)

    def __deepcopy__(self, memo):
        made = Proxy.__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update({key: copy.deepcopy(value, memo) for key, value in self.__dict__.items()})
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        frame = inspect.currentframe().f_back
        if frame is None:
            raise RuntimeError("failed to obtain calling frame for iter() on Proxy")
        instruction = _instruction_at(frame)
        if instruction is not None and instruction.opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(instruction.argval))
        return self.tracer.iter(self)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self):
        if self.tracer.trace_asserts:
            frame = inspect.currentframe().f_back
            if frame is not None and _is_assert(frame):
                self.tracer.create_proxy("call_function", assert_fn, (self,), {})
                return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, "
            "please call torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        args, kwargs = args or (), kwargs or {}
        tracer = _common_tracer(orig_method, args, kwargs)
        if is_method(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        if is_functional(orig_method):
            args, kwargs = _as_functional_passes(orig_method, args, kwargs)
        name = tracer.graph._target_to_str(orig_method)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


def _common_tracer(orig_method, args, kwargs):
    found = {}

    def note(x):
        if isinstance(x, Proxy):
            found[x.tracer] = None
        return x

    map_aggregate(args, note)
    map_aggregate(kwargs, note)
    if len(found) > 1:
        raise RuntimeError(
            f"Found multiple different tracers {list(found)} while trying to trace operations {orig_method}"
        )
    return next(iter(found))


def _as_functional_passes(function, args, kwargs):
    """Functions that PyTorch writes in Python hand on optional arguments by keyword, with their defaults."""
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        return args, kwargs
    bound.apply_defaults()
    positional, keyword = [], {}
    takes_rest = any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values())
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += value
        elif parameter.kind is parameter.VAR_KEYWORD:
            keyword.update(value)
        elif parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
            positional.append(value)
        elif not (name == "out" and value is None and takes_rest):
            keyword[name] = value
    return tuple(positional), keyword


def _instruction_at(frame):
    return next((i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None)


def _is_assert(frame):
    """Whether the frame asks for a truth value just to assert it."""
    instructions = list(dis.get_instructions(frame.f_code))
    at = next((k for k, i in enumerate(instructions) if i.offset == frame.f_lasti), None)
    if at is None or not instructions[at].opname.startswith(("POP_JUMP", "TO_BOOL")):
        return False
    following = instructions[at + 1 :]
    while following and following[0].opname.startswith(("POP_JUMP", "CACHE", "NOT_TAKEN")):
        following = following[1:]
    return bool(following) and following[0].opname.startswith(
        ("LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT")
    )


class Attribute(Proxy):
    """`proxy.name`: a method if it is called, and else a node that reads the attribute."""

    def __init__(self, root: Any, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node = None

    @property
    def node(self):
        # made at first use, so that reading an attribute and calling it makes one node
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter whose shape is known, so that asking for it makes no nodes."""

    def __init__(self, tracer: Any, node: Node, name: str, param) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, torch.nn.Parameter):
            raise AssertionError(f"expected a Parameter, got {type(param).__name__}")
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        return self.param.shape

    def size(self):
        return self.param.size()

    def dim(self):
        return self.param.dim()

    @property
    def ndim(self):
        return self.param.ndim

    def numel(self):
        return self.param.numel()

    def nelement(self):
        return self.param.nelement()


class MetaProxy(Proxy):
    """A proxy that also carries a fake tensor, to answer for its shape."""

    def __init__(self, node: Node, tracer: Any = None, fake_mode: Any = None) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"


def _operator_method(name, reflected=False):
    target = getattr(operator, name)

    def method(*args, **kwargs):
        return args[0].tracer.create_proxy("call_function", target, args, kwargs)

    def reflected_method(self, other):
        return self.tracer.create_proxy("call_function", target, (other, self), {})

    made = reflected_method if reflected else method
    made.__name__ = f"__{'r' if reflected else ''}{name.strip('_')}__"
    return made


for _name in magic_methods:
    if hasattr(operator, _name):
        _method = _operator_method(_name)
        setattr(Proxy, _method.__name__, _method)
for _name in reflectable_magic_methods:
    if hasattr(operator, _name):
        _method = _operator_method(_name, reflected=True)
        setattr(Proxy, _method.__name__, _method)
setattr(Proxy, "__div__", _operator_method("truediv"))  # noqa: B010 - it is not in the class's text
setattr(Proxy, "__rdiv__", _operator_method("truediv", reflected=True))  # noqa: B010
