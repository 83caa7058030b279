"""`Tracer`: runs a program with proxies for its inputs, and keeps what happens as a graph."""

from __future__ import annotations

import copy
import functools
import inspect
import math
import warnings
from collections import OrderedDict

import rushlight as torch
from rushlight._command.names import is_own
from rushlight.utils import _pytree as pytree

from ._codegen import _PyTreeCodeGen, _PyTreeInfo
from ._patching import (  # noqa: F401
    _create_wrapped_func,
    _create_wrapped_method,
    _Patcher,
    _wrapped_fns_to_patch,
    _wrapped_methods_to_patch,
    autowrap_check,
    find_proxy,
    patch_wrapped_functions,
    without_varargs,
    wrap,
)
from ._script_calls import patch_scripts
from .graph import Graph
from .graph_module import GraphModule
from .node import base_types
from .proxy import ParameterProxy, Scope, ScopeContextManager, TracerBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rushlight.fx.node import Argument
    from rushlight.nn import Module

__all__ = ["PH", "PHBase", "PHWithMeta", "ProxyableClassMeta", "Tracer", "symbolic_trace", "wrap"]

HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_orig_module_call = torch.nn.Module.__call__
_orig_module_getattr = torch.nn.Module.__getattr__
_proxyable_classes: dict = {}
_autowrap_check, _find_proxy = autowrap_check, find_proxy
_patch_function = without_varargs
_is_fx_tracing_flag = False


def is_fx_tracing():
    """Whether a symbolic trace is under way."""
    return _is_fx_tracing_flag


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """Metaclass of classes whose construction from proxies is a node."""

    def __init__(cls, name: str, bases, attrs) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args, **kwargs):
        instance = cls.__new__(cls)
        proxy = find_proxy(args, kwargs)
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(instance, *args, **kwargs)
        return instance


class PHBase:
    """Marks an input among concrete arguments."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """Marks an input, and says something of it."""

    def __init__(self, ph_key=None) -> None:
        super().__init__()
        self.ph_key = ph_key


def _transfer_attrs(fr, to):
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


def _assert_is_none(value, msg):
    assert value is None, msg


def _place_of(code):
    """Where a program was written, as tracebacks of the code that is generated from it name it."""
    return {
        "co_name": code.co_name,
        "co_filename": code.co_filename,
        "co_firstlineno": code.co_firstlineno,
    }


def _calling(operator):
    """A Python function of an operator's parameters, but for ``out``, that calls it."""
    name = getattr(operator, "__name__", type(operator).__name__)
    try:
        parameters = dict(inspect.signature(operator).parameters)
    except (TypeError, ValueError) as error:
        raise AssertionError(
            f"symbolic_trace takes a module or a function whose parameters are known, and not {name}: trace "
            f"a function that calls it, lambda x: {name}(x)"
        ) from error
    parameters.pop("out", None)
    given = [
        p.name if p.default is p.empty and p.kind is not p.KEYWORD_ONLY else f"{p.name}={p.name}"
        for p in parameters.values()
    ]
    signature = inspect.Signature([p.replace(annotation=p.empty) for p in parameters.values()])
    source = f"def {name}{signature}: return operator({', '.join(given)})"
    scope = {"operator": operator}
    exec(source, scope)
    return scope[name]


class Tracer(TracerBase):
    """Records one run of a module's forward; subclasses decide what is a leaf and what a node."""

    def __init__(
        self,
        autowrap_modules: tuple[Any, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap_function_ids = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        }
        self._autowrap_function_ids.update(id(f) for f in autowrap_functions)
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.num_calls = {}
        self.node_name_to_scope = {}
        self._qualname_counter = {}

    # -- constants

    def get_fresh_qualname(self, prefix):
        """An attribute name that the root does not have yet."""
        i = self._qualname_counter.get(prefix, 0)
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        self._qualname_counter[prefix] = i + 1
        return f"{prefix}{i}"

    def create_arg(self, a: Argument) -> Argument:
        if isinstance(a, torch.nn.Parameter):
            for name, param in self.root.named_parameters():
                if a is param:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, torch.Tensor):
            for name, buffer in self.root.named_buffers():
                if a is buffer:
                    return self.create_node("get_attr", name, (), {})
        elif isinstance(a, torch.nn.Module):
            for name, module in self.root.named_modules():
                if a is module:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            args = tuple(self.create_arg(item) for item in a)
            return self.create_node("call_function", type(a), args, {})
        if isinstance(a, torch.Tensor):
            return self._constant(a, "_tensor_constant")
        if type(a) in _proxyable_classes:
            return self._constant(a, f"_{type(a).__name__}_constant_")
        if type(a).__name__ == "ScriptObject" and isinstance(a, torch.ScriptObject):
            for path, module in self.root.named_modules():
                for name, value in vars(module).items():
                    if value is a:
                        return self.create_node("get_attr", f"{path}.{name}" if path else name, (), {})
            return self._constant(a, "_torchbind_obj")
        return super().create_arg(a)

    def _constant(self, value, prefix):
        """Keep a constant as an attribute of the root, each object once."""
        name = next((n for held, n in self.tensor_attrs.values() if held is value), None)
        if name is None:
            name = self.get_fresh_qualname(prefix)
            self.tensor_attrs[id(value)] = value, name
            setattr(self.root, name, value)
        return self.create_node("get_attr", name, (), {})

    # -- modules

    def is_leaf_module(self, m: Module, module_qualified_name) -> bool:
        """Whether a module's call stays one node: PyTorch's own do, except containers."""
        own = is_own(m.__module__, "nn", "ao.nn")
        return own and not isinstance(m, torch.nn.Sequential)

    def path_of_module(self, mod: Any) -> str:
        """The qualified name of a module below the root."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError(f"module {mod._get_name()} is not installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if mod is module:
                return name
        raise NameError(f"module {mod._get_name()} is not installed as a submodule")

    def call_module(self, m: Module, forward, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Any:
        """A module is called: make a node, or let `forward` run with proxies."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            count = self.num_calls[path] = self.num_calls.get(path, 0) + 1
            key = f"{path}@{count - 1}" if count > 1 else path
            self.module_stack[key] = (path, type(m))
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                popped, _ = self.module_stack.popitem(last=True)
                if popped != key:
                    raise AssertionError(f"left module {popped} while inside {key}")

    def getattr(self, attr: str, attr_val, parameter_proxy_cache):
        """A module's parameter, buffer or child is read."""
        if isinstance(attr_val, torch.nn.Parameter):
            found = self._attribute_proxy(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        elif self.proxy_buffer_attributes and isinstance(attr_val, torch.Tensor):
            found = self._attribute_proxy(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        else:
            found = None
        return attr_val if found is None else found

    _module_getattr = getattr

    def _attribute_proxy(self, value, candidates, cache):
        for name, candidate in candidates:
            if candidate is not value:
                continue
            if name not in cache:
                cache[name] = self._get_attr_proxy(name, value)
            return cache[name]
        return None

    def _get_attr_proxy(self, name, value):
        if not self.param_shapes_constant:  # tracers may override create_proxy without a factory
            return self.create_proxy("get_attr", name, (), {})
        factory = lambda node: ParameterProxy(self, node, name, value)  # noqa: E731
        return self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=factory)

    # -- inputs

    def create_args_for_root(self, root_fn, is_module, concrete_args: dict[str, Any] | None = None):
        """Placeholders for the parameters of `root_fn`; returns it, changed if need be, and them."""
        fn = inspect.unwrap(root_fn)
        code = fn.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        args = []
        if is_module:
            if count == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
        stars = code.co_flags & HAS_VARSTUFF
        if isinstance(concrete_args, tuple) and concrete_args and stars and count == 1:
            return root_fn, args + [self._flat_input(i, a) for i, a in enumerate(concrete_args)]
        own = names[len(args) : count]
        if isinstance(concrete_args, tuple):
            if len(own) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(own)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(own, concrete_args))
        signature = inspect.signature(fn)
        rest = iter(names[count:])
        if code.co_flags & inspect.CO_VARARGS:
            own.append("*" + next(rest))
        if code.co_flags & inspect.CO_VARKEYWORDS:
            own.append("**" + next(rest))
        args += [self._proxy_placeholder(name, concrete_args, signature, fn) for name in own]
        if code.co_kwonlyargcount or stars:
            root_fn = without_varargs(fn, len(args))
        flat, spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in spec.children_specs):
            return root_fn, args
        return self._flattening(root_fn, names[:count], spec), flat

    def _flat_input(self, index, concrete):
        made = self.create_proxy("placeholder", f"input_{index}", (), {})
        if isinstance(concrete, PHBase) and concrete is not PH:
            _transfer_attrs(fr=concrete, to=made.node)
        return made

    def _flattening(self, root_fn, names, in_spec):
        """Nested inputs: a graph of leaves, and code that takes apart and puts together."""
        codegen = self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, in_spec, None))

        def flatten_fn(*args):
            result = root_fn(*pytree.tree_unflatten(list(args), in_spec))
            leaves, out_spec = pytree.tree_flatten(result)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return leaves

        return flatten_fn

    def _proxy_placeholder(self, name, concrete_args, sig, fn_for_analysis):
        parameter = sig.parameters.get(name.lstrip("*"))
        default = () if name[0] == "*" or parameter.default is parameter.empty else (parameter.default,)
        if concrete_args is None or name not in concrete_args:
            annotation = fn_for_analysis.__annotations__.get(name, None)
            return self.create_proxy("placeholder", name, default, {}, type_expr=annotation)
        count = 0

        def replace(value):
            nonlocal count
            count += 1
            made = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            return self._specialize(name, value, made)

        return pytree.tree_map(replace, concrete_args[name])

    def _specialize(self, name, value, made):
        """A concrete argument: the graph asserts that it is called with the same."""
        if isinstance(value, PHBase):
            if value is not PH:
                _transfer_attrs(fr=value, to=made.node)
            return made
        if isinstance(value, base_types) and not isinstance(value, torch.Tensor):
            torch._assert(
                made == value, f"{name} has been specialized to have value {value} but got another value"
            )
        elif value is None:
            message = f"{name} has been specialized to have value None but got another value"
            self.create_proxy("call_function", _assert_is_none, (made, message), {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. "
                "It is up to the user to make sure that your inputs match the inputs you specialized the "
                "function with.",
                stacklevel=2,
            )
        return value

    # -- the run

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Run a module or function with proxies; returns the graph."""
        global _is_fx_tracing_flag
        before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        try:
            fn = self._set_root(root)
            self.graph = Graph(tracer_cls=type(self))
            self.tensor_attrs = {}
            self._collect_tensor_attrs(self.root, "")
            fn_globals = inspect.unwrap(fn).__globals__
            self.graph._co_fields = _place_of(inspect.unwrap(fn).__code__)
            fn, args = self.create_args_for_root(fn, isinstance(root, torch.nn.Module), concrete_args)
            with _Patcher() as patcher:
                self._patch(patcher, fn_globals)
                result = self.create_arg(fn(*args))
                annotation = getattr(inspect.unwrap(fn), "__annotations__", {}).get("return", None)
                self.create_node("output", "output", (result,), {}, type_expr=annotation)
        finally:
            self.submodule_paths = None
            _is_fx_tracing_flag = before
        return self.graph

    def _set_root(self, root):
        if not isinstance(root, torch.nn.Module):
            self.root = torch.nn.Module()
            if not hasattr(inspect.unwrap(root), "__code__"):
                return _calling(root)
            return root
        if not hasattr(type(root), self.traced_func_name):
            raise AssertionError(
                f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
            )
        self.root = root
        self.root_module_name = root._get_name()
        self.submodule_paths = {module: name for name, module in root.named_modules()}
        return getattr(type(root), self.traced_func_name)

    def _collect_tensor_attrs(self, module, prefix):
        """Tensors that modules hold as plain attributes keep their names."""
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor):
                self.tensor_attrs.setdefault(id(value), (value, f"{prefix}{name}"))
        for name, child in module.named_children():
            self._collect_tensor_attrs(child, f"{prefix}{name}.")

    def _patch(self, patcher, fn_globals):
        module_call, cache = torch.nn.Module.__call__, {}

        def read(mod, name, value):
            return self.getattr(name, value, cache)

        @functools.wraps(_orig_module_call)
        def call_wrapper(mod, *args, **kwargs):
            def forward(*args, **kwargs):
                return module_call(mod, *args, **kwargs)

            own_globals = getattr(getattr(mod, "forward", mod), "__globals__", {})
            autowrap_check(patcher, own_globals, self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        patcher.patch_module_reads(read)
        patcher.patch_method(torch.nn.Module, "__call__", call_wrapper, deduplicate=False)
        patch_scripts(patcher, self)
        patch_wrapped_functions(patcher)
        autowrap_check(patcher, fn_globals, self._autowrap_function_ids)
        for module in self._autowrap_search:
            autowrap_check(patcher, vars(module), self._autowrap_function_ids)

    def __deepcopy__(self, memo):
        made = Tracer.__new__(type(self))
        skip = ("_autowrap_search",)
        made.__dict__.update(
            {k: copy.copy(v) if k in skip else copy.deepcopy(v, memo) for k, v in self.__dict__.items()}
        )
        return made


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Trace a module or a function, and return it as a GraphModule.

    ``concrete_args`` are inputs that stay as they are: nested containers are flattened, and each ``PH`` in
    them is an input.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, torch.nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
