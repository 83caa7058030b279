"""`ScriptModule` and `ScriptFunction`, and how `script` makes them.

A scripted module is of a class of its own: the library's part of the original class, with the methods of the
program's part compiled from their source. So it runs without the program's classes, and can be written to
a file."""

from __future__ import annotations

import contextlib
import enum
import functools
import inspect
import pickle
import sys
import textwrap
import types

from rushlight import Tensor
from rushlight._command.names import is_own, show_from
from rushlight.jit import _attributes, _state
from rushlight.jit._annotations import plain_name, python_type
from rushlight.jit._attributes import constants_of, declared_types, take_attributes, warn_of_annotations
from rushlight.jit._check_values import declared_type
from rushlight.jit._checker import check_function
from rushlight.jit._class_checks import check_bases
from rushlight.jit._decorations import Attribute, _overloaded, _tracing
from rushlight.jit._graph_types import LateGraph
from rushlight.jit._hooks import check_hooks
from rushlight.jit._inferred import check_attributes, check_constants, is_scripted_class
from rushlight.jit._interfaces import misfit
from rushlight.jit._library import library_name, own_module
from rushlight.jit._python_calls import in_script
from rushlight.jit._scripted_class import record_of
from rushlight.jit.frontend import FrontendError, Unit, script_function
from rushlight.nn import Module
from rushlight.nn.parameter import Parameter, is_lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class ScriptFunction:
    """A function of TorchScript. ``code`` is its text, ``graph`` its operations."""

    _called_by_name = True  # in a trace, where its choices are kept that way
    owner = None  # the module of which it is a method, where a trace found tensors outside

    def __init__(self, unit, doc=None, example=None) -> None:
        self.unit, self.name, self.qualified_name = unit, unit.name, f"__torch__.{unit.name}"
        self.__name__, self.__doc__, self.__module__ = unit.tree.name, doc, "__torch__"
        self._function, self._graph = unit.checked(), None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = getattr(_tracing, "recorder", None)
        if recorder is not None and self._called_by_name:
            return recorder.call_of_function(self.unit, self._function, args, kwargs)
        return self._function(*args, **kwargs)

    @property
    def code(self) -> str:
        return self.unit.code

    @property
    def graph(self) -> Any:
        """The operations: one graph, which passes may change."""
        if self._graph is None:
            from rushlight.jit._graph import graph_of

            self._graph = graph_of(self.unit)
        return self._graph

    @property
    def inlined_graph(self) -> Any:
        """The operations, those of the scripts that are called in place of the calls."""
        from rushlight.jit._graph_inline import inlined_graph_of

        return inlined_graph_of(self.unit)

    @property
    def schema(self) -> Any:
        return self.unit.schema

    def graph_for(self, *args: Any, **kwargs: Any) -> Any:
        """The graph; arguments do not specialise it here."""
        return self.graph

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        from rushlight.jit._archive import save

        save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        from rushlight.jit._archive import to_bytes

        return to_bytes(self, _extra_files)

    def __reduce_ex__(self, protocol):
        raise pickle.PickleError("ScriptFunction cannot be pickled")

    def __repr__(self) -> str:
        return f"<torch.jit.ScriptFunction {self.name}>"


class ScriptModule(Module):
    """A module of TorchScript: what `script`, `trace` and `load` give."""

    _script_methods: dict = {}  # name -> unit
    _declared: dict  # attribute -> its type, as a program's class says it
    _constants: frozenset = frozenset()  # what it says is constant
    _ignored: tuple = ()  # attributes that the program's class says scripts have no part in

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        own = {n: m._script_unit for n, m in vars(cls).items() if hasattr(m, "_script_unit")}
        if not hasattr(cls, "_library_base") and not is_own(own_module(cls)):  # a program's class
            bases = [vars(c).get("_script_methods", {}) for c in reversed(cls.__mro__[1:])]
            cls._constants = frozenset(constants_of(cls))
            cls._declared = declared_types(c for c in reversed(cls.__mro__) if not is_own(own_module(c)))
            cls._script_methods = {n: u for units in (*bases, own) for n, u in units.items()}
            cls.__init__ = _scripting_at_end(cls, cls.__init__)  # type: ignore[method-assign]

    __repr__ = Module.__repr__  # also of containers: each part on its own

    def __setattr__(self, name, value):
        if isinstance(value, Attribute):
            if hasattr(type(self), "_declared"):
                type(self)._declared[name] = python_type(value.type)
            value = value.value
        before, whole = self.__dict__.get("_modules", {}).get(name), hasattr(self, "_library_base")
        if whole or "_graphs" in self.__dict__:
            if isinstance(before, ScriptModule):
                self._check_replacement(name, before, value)
            if name in type(self)._constants and name in self.__dict__:
                held = self.__dict__[name]
                raise RuntimeError(f"Can't set constant '{name}' which has value:{held}")
            if name in self._parameters and isinstance(value, Tensor) and type(value) is not Parameter:
                self._parameters[name] = value  # of any kind, since scripts set it, too
                return
        super().__setattr__(name, value)

    def _check_replacement(self, name, before, value):
        """A module may be replaced by one that scripts were compiled for."""
        if not isinstance(value, ScriptModule):
            raise RuntimeError(
                "Cannot re-assign modules in a ScriptModule with non-scripted module, tried to replace "
                f"existing module '{name}': {before}"
            )
        said = declared_type(self, name)
        if said is not None and said.kind == "Interface":
            if (reason := misfit(value, said.python)) is not None:
                raise RuntimeError(f"{name}: {reason}")
            return
        kinds = [getattr(type(m), "_qualified_name", None) for m in (before, value)]
        if None not in kinds and kinds[0] != kinds[1]:
            wanted, found = (f"{k} (of scripts' module {id(m):#x})" for k, m in zip(kinds, (before, value)))
            raise RuntimeError(f"Expected a value of type '{wanted}' for field '{name}', but found '{found}'")

    @property
    def original_name(self) -> str:
        return getattr(type(self), "_original_name", type(self).__name__)

    def _unit(self, name="forward"):
        unit = type(self)._script_methods.get(name)
        if unit is None and hasattr(type(self), "_library_base"):
            from rushlight.jit._library_methods import library_unit

            unit = library_unit(self, name)
        if unit is None:
            raise AttributeError(f"'{self.original_name}' has no method {name!r} in TorchScript")
        return unit

    @property
    def code(self) -> str:
        """The text of `forward`."""
        return self._unit().code

    @property
    def code_with_constants(self) -> tuple[str, Any]:
        return self.code, types.SimpleNamespace(const_mapping={})

    @property
    def graph(self) -> Any:
        """The operations of `forward`: one graph, which passes may change."""
        return self._graph_of(self._unit())

    def _graph_of(self, unit):
        from rushlight.jit._graph import graph_of

        known = self.__dict__.setdefault("_graphs", {})
        if unit not in known:
            known[unit] = graph_of(unit, self)
        return known[unit]

    @property
    def inlined_graph(self) -> Any:
        from rushlight.jit._graph_inline import inlined_graph_of

        return inlined_graph_of(self._unit(), self)

    forward_magic_method = None

    @property
    def _c(self) -> Any:
        from rushlight.jit._handle import Handle

        return Handle(self)

    @_c.setter
    def _c(self, handle: Any) -> None:
        self._reconstruct(handle)

    def _reconstruct(self, cpp_module: Any) -> None:
        """Become the module of a handle: its methods, its attributes and parts. What stays Python stays."""
        other = cpp_module._module
        left = {n: m for n, m in vars(type(self)).items() if hasattr(m, "_stays_python")}
        cls = type(other)
        self.__class__ = type(cls.__name__, (cls,), {"__module__": cls.__module__, **left}) if left else cls
        self.__dict__.clear()
        self.__dict__.update({n: v for n, v in other.__dict__.items() if n != "_graphs"})

    def graph_for(self, *args: Any, **kwargs: Any) -> Any:
        return self.graph

    def _method_names(self):
        return list(type(self)._script_methods)

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        """Write the module, its code and its weights to one file; `torch.jit.load` reads it without the
        class."""
        from rushlight.jit._archive import save

        save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        from rushlight.jit._archive import to_bytes

        return to_bytes(self, _extra_files)

    def __reduce_package__(self, exporter):
        from rushlight.jit._archive import _Writer

        return _unpackage, (exporter._save_script(self, lambda: _Writer().write(self)),)

    def define(self, src: str) -> None:
        """Add a method, given as text, which may name what has a name where `define` is called."""
        from rushlight.jit._compilation_unit import _names_of
        from rushlight.jit.frontend import unit_of_method_text

        own = type(self)
        name = src.strip().removeprefix("def ").partition("(")[0]
        unit = unit_of_method_text(name, textwrap.dedent(src), _names_of(sys._getframe(1)))
        self.__class__ = type(own.__name__, (own,), {name: unit.checked(True), "__module__": own.__module__})
        type(self)._script_methods = {**own._script_methods, name: unit}
        check_function(unit, unit.outside, True, self)
        describe_methods(self)

    def __reduce_ex__(self, protocol):
        raise pickle.PickleError(
            "ScriptModules cannot be deepcopied using copy.deepcopy or saved using torch.save. Mixed "
            "serialization of script and non-script modules is not supported. For purely script modules use "
            "my_script_module.save(<filename>) instead."
        )

    def __copy__(self):
        return shell(type(self), {n: v for n, v in self.__dict__.items() if n != "_graphs"})

    def __deepcopy__(self, memo):
        import copy

        made = memo[id(self)] = shell(type(self), {})
        state = {name: value for name, value in self.__dict__.items() if name != "_graphs"}
        made.__dict__.update(copy.deepcopy(state, memo))
        return made


def _unpackage(importer, number):
    """A module that `ScriptModule.__reduce_package__` put into a package."""
    from rushlight.jit._archive import _Reader

    if hasattr(importer.zip_reader, "directory"):
        raise RuntimeError(
            "Loading ScriptObjects from a PackageImporter created from a directory is not supported. Use a "
            "package archive file instead."
        )
    return _Reader(importer._load_script(number), importer.filename).root()


class RecursiveScriptModule(ScriptModule):
    """What `script` makes of a module and of each module in it."""

    _qualified_name = None


def _scripting_at_end(cls, init):
    """The ``__init__`` of a class with compiled methods: they are checked once the instance is complete."""

    @functools.wraps(init)
    def initialize(self, *args, **kwargs):
        init(self, *args, **kwargs)
        if type(self) is cls:
            _Scripting().complete(self)

    return initialize


def shell(cls, state):
    """A module with this state, made without running ``__init__``."""
    made = cls.__new__(cls)
    made.__dict__.update(state)
    return made


def describe_methods(module):
    """Let methods of a scripted module tell their text, schema and graph: ``module.forward.graph``."""
    for name, unit in type(module)._script_methods.items():
        method = vars(type(module)).get(name)
        if isinstance(method, types.FunctionType):
            graph = LateGraph(unit, module)
            inlined = LateGraph(unit, module, inlined=True)
            schema = unit.schema and unit.schema.of_method(module._c.qualified_name)
            vars(method).update(code=unit.code, schema=schema, graph=graph, inlined_graph=inlined)


def library_base(cls):
    """The part of a module's class that the library defines."""
    return next(c for c in cls.__mro__ if is_own(own_module(c), "nn"))


def script_class(base, original_name, methods: Any, units: Any, kind: type = RecursiveScriptModule):
    """The class of a scripted module: ``methods`` over those of the library's class."""
    members = {
        **methods,
        "_original_name": original_name,
        "_script_methods": units,
        "_library_base": base,
        "__module__": "torch.jit._script",
        "__qualname__": kind.__name__,
    }
    return type(kind.__name__, (kind,) if base is Module else (kind, base), members)


class _Scripting:
    """One call of `script`: what it compiled, so that each class, module and function is compiled once."""

    def __init__(self):
        self.functions, self.classes, self.modules, self.is_method = {}, {}, {}, {}

    def module(self, module):
        if isinstance(module, ScriptModule):
            return module
        if id(module) in self.modules:
            return self.modules[id(module)]
        if hasattr(module, "__prepare_scriptable__"):  # a module that has another one scripted in its place
            made = self.modules[id(module)] = self.module(module.__prepare_scriptable__())
            return made
        _attributes.check_initialized(module)
        if waiting := [n for n, t in (module._parameters | module._buffers).items() if is_lazy(t)]:
            raise RuntimeError(
                f"'{type(module).__name__}' has uninitialized parameters {waiting}. Did you forget to run a "
                "forward pass?"
            )
        made = self.modules[id(module)] = shell(self._class(type(module), module), module.__dict__)
        for table in ("_parameters", "_buffers", "_modules"):
            made.__dict__[table] = type(module.__dict__[table])(module.__dict__[table])
        for name, child in module._modules.items():
            if name in type(made)._ignored:  # left to what stays Python
                made.__dict__[name] = made._modules.pop(name)
            else:
                made._modules[name] = None if child is None else self.module(child)
        take_attributes(made.__dict__, type(made)._declared)
        check_constants(made, type(module))
        self._finish(made, type(made)._script_methods, module)
        if made._forward_hooks or made._forward_pre_hooks:
            check_hooks(made, type(module).__name__, self.functions)
        return made

    def complete(self, made):
        """Script what is below an instance of a class with compiled methods, and check these methods."""
        _attributes.check_initialized(made)
        check_constants(made, type(made))
        for name, child in made._modules.items():
            made._modules[name] = None if child is None else self.module(child)
        self._plain_methods(type(made))
        units = type(made)._script_methods
        self.is_method.update(dict.fromkeys(units.values(), True))
        made.__dict__["_graphs"] = {}  # from now on, parts are replaced by scripts alone
        self._finish(made, units, made)

    def _plain_methods(self, cls):
        """Compile methods of a class that those compiled by `script_method` call."""
        asked = (name for unit in cls._script_methods.values() for name in unit.attributes_of_self)
        members = {name: inspect.getattr_static(cls, name, None) for name in dict.fromkeys(asked)}
        wanted = [
            name
            for name, member in members.items()
            if isinstance(member, types.FunctionType) and name not in cls._script_methods
        ]
        if wanted:
            units, methods = {}, {}
            self._methods(cls, ScriptModule, units, methods, wanted)
            for name, method in methods.items():
                if name not in cls._script_methods:
                    setattr(cls, name, method)
            cls._script_methods = {**units, **cls._script_methods}

    def _finish(self, made, units, module):
        """Check methods of a made module, once what they call on modules below it is compiled, too."""
        for name, unit in sorted(units.items(), key=lambda item: item[0] != "__getstate__"):
            self._methods_below(made, unit)
            if unit.tree.args.args and self.is_method[unit]:
                check_attributes(made, unit, module, self.function)
            if name == "__setstate__":
                if "__getstate__" not in units:
                    raise RuntimeError(f"'{made.original_name}' has __setstate__ and needs __getstate__, too")
                _take_state_type(unit, units.get("__getstate__"))
            if self.is_method[unit] and not unit.overloaded and not unit.is_typed_for(made):
                check_function(unit, unit.outside, True, made)
        describe_methods(made)

    def _methods_below(self, made, unit):
        """Compile what a method calls on the modules below its own, which export only what is called so."""
        for path, name in unit.methods_of_others:
            if path is None:  # on items of a list, say: on any module that has it
                for below in made.modules():
                    with contextlib.suppress(FrontendError, RuntimeError, OSError):
                        self._add_method(below, name)
                continue
            below = made
            for step in path:
                below = below._modules.get(step) if isinstance(below, Module) else None
            if below is not None:
                self._add_method(below, name)

    def function(self, function):
        return ScriptFunction(script_function(function, self.functions))

    def _add_method(self, made, name):
        cls = type(made)
        python = getattr(cls, "_python_class", None)
        if python is None or hasattr(cls, name) or not hasattr(python, name):
            return
        units, methods = {}, {}
        self._methods(python, cls._library_base, units, methods, [name], cls)
        cls._script_methods.update(units)
        for added, method in methods.items():
            setattr(cls, added, method)
        self._finish(made, units, made)

    def _class(self, cls, module):
        if cls not in self.classes:
            units, methods = {}, {}
            base = library_base(cls)
            own = cls.__mro__[: cls.__mro__.index(base)]
            for c in own:
                warn_of_annotations(c)
            made = self.classes[cls] = script_class(base, cls.__name__, {}, units)
            made._declared, made._qualified_name = declared_types(reversed(own)), plain_name(cls)
            made._constants = frozenset(constants_of(cls))
            made._python_class, made._ignored = cls, tuple(getattr(cls, "__jit_ignored_attributes__", ()))
            self._methods(cls, base, units, methods)
            for name, method in methods.items():
                setattr(self.classes[cls], name, method)
        return self.classes[cls]

    def _methods(self, cls, base, units, methods, wanted=None, made=None):
        """Compile `forward` and exported methods, or those that are wanted, and what they use of their class
        that the class of scripts does not have yet."""
        own = cls.__mro__[: cls.__mro__.index(base)]
        defined = {name: member for c in reversed(own) for name, member in vars(c).items()}
        for name, member in defined.items():  # what stays Python may be called from Python, too
            if getattr(member, "_torchscript_modifier", None) == "ignore":
                _check_first_argument(cls, name, member)
                methods[name] = in_script(member, True)
                methods[name]._stays_python = True
        wanted = wanted or [
            n
            for n, m in defined.items()
            if n in ("forward", "__len__", "__contains__")
            or getattr(m, "_torchscript_modifier", None) == "export"
        ]
        while wanted:
            name = wanted.pop()
            if name in methods or name not in defined or (made and hasattr(made, name)):
                continue
            member = defined[name]
            function = (
                member.fget
                if isinstance(member, property)
                else inspect.unwrap(getattr(member, "__func__", member))
            )
            if not isinstance(function, types.FunctionType):
                if not name.startswith("__"):
                    methods[name] = member  # a constant of the class
                continue
            marked = member if hasattr(member, "_torchscript_modifier") else function
            if getattr(marked, "_torchscript_modifier", None) in ("ignore", "unused"):
                plain = member is marked or hasattr(marked, "_in_script")
                methods[name] = in_script(marked, True) if plain else member
                continue
            is_method = type(member) is not staticmethod
            if is_method:
                _check_first_argument(cls, name, function)
            unit = vars(function).get("_script_unit")  # what `script_method` compiled
            unit = unit or script_function(function, self.functions, is_method)
            units[name], self.is_method[unit] = unit, is_method
            compiled = unit.checked(is_method)
            wrap = {property: property, staticmethod: staticmethod, classmethod: classmethod}.get(
                type(member)
            )
            methods[name] = wrap(compiled) if wrap else compiled
            if isinstance(member, property) and isinstance(member.fset, types.FunctionType):
                setter = script_function(member.fset, self.functions, True)
                compiled = setter.checked(True)
                compiled._script_unit = setter
                methods[name] = methods[name].setter(compiled)
                wanted += setter.attributes_of_self
            if type(member) is not staticmethod:
                wanted += unit.attributes_of_self


def _check_first_argument(cls, name, function):
    code = getattr(function, "__code__", None)
    if code is not None and not code.co_argcount and not code.co_flags & inspect.CO_VARARGS:
        raise RuntimeError(f"'{cls.__name__}.{name}' does not have a self argument")


def _take_state_type(setter, getter):
    """`__setstate__` takes what `__getstate__` gives, where it does not say what."""
    if getter is not None and setter.schema.arguments[0].type.kind == "Inferred":
        setter.schema.arguments[0].type = getter.schema.returns


def script(
    obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> Any:
    """Compile a function or a Module from its source, as far as it keeps to the subset that TorchScript
    knows.

    Args:
        obj: a function gives a ``ScriptFunction``, a Module a ``ScriptModule`` that shares its tensors, a
            list or dictionary one whose writes by scripts Python sees; other classes, which scripts may use
            as they are, and functions of the library are given back.
    """
    if not _state._enabled or isinstance(obj, (ScriptFunction, ScriptModule)):
        return obj
    if isinstance(obj, Module):
        return _Scripting().module(obj)
    if inspect.isclass(obj):
        if issubclass(obj, Module):
            raise RuntimeError(
                f"Type '{obj}' cannot be compiled since it inherits from nn.Module, consider passing an "
                "instance instead"
            )
        if not issubclass(obj, enum.Enum):
            if not issubclass(obj, tuple):
                check_bases(obj)
            if (record := record_of(obj)) is not None:
                record.compile(sys._getframe(1 + _frames_up).f_locals)
        return obj
    if isinstance(obj, (types.FunctionType, types.MethodType)) and library_name(obj) is None:
        function = inspect.unwrap(obj)
        if (function.__module__, function.__qualname__) in _overloaded:
            raise RuntimeError(
                f"Function __torch__.{function.__module__}.{function.__qualname__} cannot be directly "
                "compiled because it is overloaded. It must be used in a context of a function where its "
                "inputs can determine which overload to call."
            )
        return ScriptFunction(script_function(function, {}), function.__doc__)
    if isinstance(obj, (list, dict)):
        from rushlight.jit._containers import ScriptDict, ScriptList

        return (ScriptList if isinstance(obj, list) else ScriptDict)(obj)
    if callable(obj) or is_scripted_class(type(obj)):
        return obj
    raise TypeError(f"script: expected a function, a class or a Module, got {type(obj).__name__}")


def script_method(fn: Any) -> Callable[..., Any]:
    """Compile a method of a class that inherits from ScriptModule."""
    if not inspect.signature(fn).parameters:
        raise RuntimeError(f"{fn.__qualname__}: methods must have a self argument")
    unit = script_function(fn, {}, True)
    compiled = unit.checked(True)
    compiled._script_unit, compiled.schema, compiled.code = unit, unit.schema, unit.code
    compiled.__doc__ = fn.__doc__
    compiled.graph, compiled.inlined_graph = LateGraph(unit, None), LateGraph(unit, None, inlined=True)
    return compiled


__all__ = ["RecursiveScriptModule", "ScriptFunction", "ScriptModule", "Unit", "script", "script_method"]


show_from("", ScriptModule)
