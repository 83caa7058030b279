"""``torch.ops``: operators as objects, by namespace, name and overload.

``torch.ops.aten.add`` is a packet of overloads, ``torch.ops.aten.add.Tensor`` one of them. Both are made
from the operator table on first use; operators that a program defines through ``torch.library`` join in.
"""

import ctypes
import functools
import importlib
import types

from rushlight import _C
from rushlight._operators.entries import (
    _FUNCTIONAL,
    _OUT,
    _built_in,
    _entries_of,
    _Entry,
    _result_names,
    _schema_text,
)
from rushlight._operators.overloads import result_names, takes_plain_numbers
from rushlight._operators.schema import parse_schema

__all__ = ["OpOverload", "OpOverloadPacket"]

__capture__ = "through"  # Note [Capture marks]


class OperatorBase:
    """What overloads and packets have in common."""

    def __init__(self):
        self.functorch_table = {}

    def name(self):
        raise NotImplementedError(f"{type(self).__name__} does not say its name")


_defined: dict = {}  # namespace -> name -> overload -> entry, by torch.library


def _define(namespace, name, overload, index, schema):
    """Show an operator that a program defined."""
    entry = _Entry(namespace, name, overload, index, _FUNCTIONAL, schema)
    _defined.setdefault(namespace, {}).setdefault(name, {})[overload] = entry
    if (namespace, name) in _packets:
        _packets[namespace, name]._refresh()
    return _overload(namespace, name, overload)


def _undefine(namespace, name, overload):
    _defined[namespace][name].pop(overload)
    _overloads.pop((namespace, name, overload), None)
    if _defined[namespace][name]:
        _packet(namespace, name)._refresh()
        return
    _defined[namespace].pop(name)
    _packets.pop((namespace, name), None)
    _space(namespace).__dict__.pop(name, None)


def _find(namespace, name):
    found = {**_built_in().get(namespace, {}).get(name, {}), **_defined.get(namespace, {}).get(name, {})}
    if not found and show_extension_operators():  # a module of Python that registers operators was imported
        found = _defined.get(namespace, {}).get(name, {})
    return found


def _call_again(overloads, args, kwargs, error):
    from rushlight._operators.boxed_calls import call_again  # seldom needed

    return call_again(overloads, args, kwargs, error)


def _gathering(function, names):
    """A call that takes given results by their names."""

    def call(*args, **kwargs):
        if all(name in kwargs for name in names):
            given = tuple(kwargs.pop(name) for name in names)
            kwargs["out"] = given if len(given) > 1 else given[0]
        return function(*args, **kwargs)

    return call


class OpOverload(OperatorBase):
    """One overload of an operator, callable with exactly its schema."""

    def __init__(self, entry):
        super().__init__()
        self._entry = entry
        self.namespace = entry.namespace
        self._opname = entry.name
        self._overloadname = entry.overload or "default"
        self._qualified_op_name = f"{entry.namespace}::{entry.name}"
        self.__name__ = f"{entry.name}.{self._overloadname}"
        self.__module__ = f"torch._ops.{entry.namespace}"
        self.__qualname__ = self._name = self._qualified_op_name + (
            f".{entry.overload}" if entry.overload else ""
        )
        self._op = _C._overload_function((entry.index,), entry.form, self)
        if entry.form == _OUT and self.out_names != ("out",):
            self._op = _gathering(self._op, self.out_names)
        self._defined_in_python = entry.name in _defined.get(entry.namespace, {})

    @functools.cached_property
    def tags(self):
        """What the operator's record says in PyTorch's words, or what a program said in `define`."""
        from rushlight._extension.tags import tags_of

        return tags_of(self)

    @functools.cached_property
    def _schema(self):
        e = self._entry
        text = (
            e.schema
            if isinstance(e.schema, str)
            else _schema_text(e.schema, e.namespace, e.name, e.overload, e.form)
        )
        return parse_schema(text)

    def __call__(self, /, *args, **kwargs):
        if kwargs and "out" in kwargs and not self._takes_out():
            raise RuntimeError(
                f"Unknown keyword argument 'out' for operator '{self._qualified_op_name}'. "
                f"Schema: {self._schema}"
            )
        try:
            return self._op(*args, **kwargs)
        except TypeError as error:
            return _call_again([self], args, kwargs, error)

    def _takes_out(self):
        record = self._record()
        if record:
            return self._entry.form == _OUT or record["takes_out"]
        return any(argument.name == "out" for argument in self._schema.arguments)

    def name(self):
        return self._name

    @property
    def op(self):
        return self._op

    @property
    def _overloadpacket(self):
        return _packet(self.namespace, self._opname)

    overloadpacket = _overloadpacket

    @property
    def is_view(self):
        """Whether the result aliases an argument without writing to it."""
        schema = self._schema
        aliases = [a.alias_info for a in schema.arguments if a.alias_info is not None]
        return bool(aliases) and not schema.is_mutable

    @property
    def with_number(self):
        """(the overload that PyTorch calls with a number, the operand's position), or None."""
        # Graphs are made while this runs: plain code, which a capture sees through.
        if "_with_number" not in self.__dict__:
            self._with_number = self._find_with_number()
        return self._with_number

    def _find_with_number(self):
        e = self._entry
        if e.form == _OUT or not isinstance(e.schema, dict) or takes_plain_numbers(e.schema["traits"]):
            return None
        known = _find(self.namespace, self._opname).values()
        found = [f for f in known if f.second_name and (f.index, f.form) == (e.index, e.form) and f is not e]
        if not found or e.second_name:
            return None
        _, place = e.schema["with_number"]
        return _overload(self.namespace, self._opname, found[0].overload), place

    @property
    def of_record(self):
        """The overload that the operator's record has, for one that PyTorch calls with a number instead."""
        if not self._entry.second_name:
            return self
        if "_of_record" not in self.__dict__:
            same = self._entry.index, self._entry.form
            known = _find(self.namespace, self._opname).values()
            found = next(f for f in known if not f.second_name and (f.index, f.form) == same)
            self._of_record = _overload(self.namespace, self._opname, found.overload)
        return self._of_record

    @functools.cached_property
    def out_names(self):
        """What the results are called that a call gives."""
        if not self._record():
            return ("out",)
        record = self._entry.schema
        return result_names(record, _result_names(record["schema"]))

    @functools.cached_property
    def functional(self):
        """The overload that returns what this one writes, or None."""
        e = self._entry
        if e.form != _FUNCTIONAL:
            return _overload_of(e.index, _FUNCTIONAL)
        name = e.name.removesuffix("_")  # of a record of its own
        if name == e.name or e.overload not in _find(e.namespace, name):
            return None
        found = _overload(e.namespace, name, e.overload)
        return None if found._schema.is_mutable else found

    @functools.cached_property
    def traits(self):
        """What the library knows of the operator besides its schema: a ``_C._OperatorTraits``."""
        return _C._operator_traits(self._entry.index)

    def _record(self):
        schema = self._entry.schema
        return schema if isinstance(schema, dict) else {}

    def has_kernel_for_dispatch_key(self, key):
        return True

    def decompose(self, *args, **kwargs):
        """What an operator that is made of others gives, NotImplemented of those that are not."""
        return self(*args, **kwargs) if self.traits.family == "composite" else NotImplemented

    def __hash__(self):
        return hash(self._name)

    def __eq__(self, other):
        return self is other

    def __str__(self):
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def __repr__(self):
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __deepcopy__(self, memo=None):
        return self

    def __reduce__(self):
        return _overload, (self.namespace, self._opname, self._entry.overload)


class OpOverloadPacket(OperatorBase):
    """The overloads of one operator; a call picks the one that fits."""

    def __init__(self, namespace, name):
        super().__init__()
        self._qualified_op_name = f"{namespace}::{name}"
        self.__name__, self._namespace = name, namespace
        self.__module__ = f"torch._ops.{namespace}"
        self._refresh()

    def _refresh(self):
        """Overloads came or went."""
        for name in self.__dict__.get("_names", ()):
            self.__dict__.pop(name, None)
        entries = _find(self._namespace, self.__name__)
        self._names = [overload or "default" for overload in entries]
        # Overloads whose arguments fit more calls come later: out= is told apart by its keyword.
        calls = {}
        for entry in entries.values():
            if not entry.second_name:
                calls.setdefault(entry.form, []).append(entry.index)
        form = next(iter(calls))
        self._op = _C._overload_function(tuple(calls[form]), form, self)
        kinds = {_second_kind(e): e.index for e in entries.values() if not e.second_name and e.form == form}
        if kinds.keys() >= {"int", "Tensor"}:  # each of which is also taken for the other
            indices = sorted(calls[form], key=lambda index: index != kinds["int"])
            self._op = _by_second(self._op, _C._overload_function(tuple(indices), form, self))
        self._out = _C._overload_function(tuple(calls[_OUT]), _OUT, self) if _OUT in calls else None

    def overloads(self):
        return list(self._names)

    def name(self):
        return self._qualified_op_name

    @property
    def op(self):
        return self._op

    @property
    def _schemas(self):
        return {name: getattr(self, name)._schema for name in self._names}

    def __call__(self, /, *args, **kwargs):
        try:
            if kwargs.get("out") is not None and self._out is not None:
                return self._out(*args, **kwargs)
            return self._op(*args, **kwargs)
        except TypeError as error:
            return _call_again([getattr(self, name) for name in self._names], args, kwargs, error)

    def __getattr__(self, key):
        if key.startswith("__") or key not in self.__dict__.get("_names", ()):
            raise AttributeError(
                f"The underlying op of '{self._namespace}.{self.__name__}' has no overload name '{key}'"
            )
        overload = _overload(self._namespace, self.__name__, "" if key == "default" else key)
        setattr(self, key, overload)
        return overload

    def __iter__(self):
        return iter(self._names)

    def __str__(self):
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"

    def __hash__(self):
        return hash(self._qualified_op_name)

    def __eq__(self, other):
        return self is other

    def __deepcopy__(self, memo=None):
        return self

    def __reduce__(self):
        return _packet, (self._namespace, self.__name__)


def _second_kind(entry):
    """The type of an overload's second argument, as its schema writes it."""
    text = entry.schema["schema"] if isinstance(entry.schema, dict) else str(entry.schema)
    return text.partition("(")[2].partition(")")[0].partition(", ")[2].partition(" ")[0]


def _by_second(of_tensors, of_numbers):
    """A call of overloads that a second argument tells apart: a tensor, or a number that is a dimension."""

    def call(*args, **kwargs):
        number = len(args) > 1 and isinstance(args[1], int)
        return (of_numbers if number else of_tensors)(*args, **kwargs)

    return call


# Made once: programs compare and hash them.
_overloads: dict = {}
_packets: dict = {}


def _overload(namespace, name, overload):
    key = namespace, name, overload
    if key not in _overloads:
        _overloads[key] = OpOverload(_find(namespace, name)[overload])
    return _overloads[key]


def _packet(namespace, name):
    key = namespace, name
    if key not in _packets:
        _packets[key] = OpOverloadPacket(namespace, name)
    return _packets[key]


@functools.cache
def _by_index():
    return {
        (entry.index, entry.form): entry
        for names in _built_in().values()
        for overloads in names.values()
        for entry in overloads.values()
        if not entry.second_name
    }


def _overload_of(index, form):
    """The object for one form of the record with this number; the core asks once for each."""
    entry = _by_index().get((index, form))
    if entry is None:
        entry = next(
            (
                entry
                for names in _defined.values()
                for overloads in names.values()
                for entry in overloads.values()
                if entry.index == index
            ),
            None,
        )
    if entry is None:  # another record has the name: this one is known by its own
        record = _C._operator_records()[index]
        made = [e for e in _entries_of(index, record) if e.form == form]
        return OpOverload(made[0] if made else next(_entries_of(index, record)))
    return _overload(entry.namespace, entry.name, entry.overload)


_shown_extensions: set = set()  # numbers of operators


def show_extension_operators():
    """Let `torch.ops` show what libraries in C++ have registered since the last time; returns that."""
    failures = _C._extension_failures()
    if failures:
        raise RuntimeError("\n".join(failures))
    shown = []
    for index, schema in _C._extension_operators():
        if index not in _shown_extensions:
            _shown_extensions.add(index)
            namespace, _, rest = schema.partition("::")
            name, _, overload = rest.partition("(")[0].partition(".")
            shown.append(_define(namespace, name, overload, index, schema))
    return shown


# Operators that are functions of Python: namespace -> module, and names where those are not all.
_IN_PYTHON = {
    "higher_order": ("rushlight._higher_order_ops.namespace", None),
    "mkldnn": (
        "rushlight._extension.cpu_names",
        ["_is_mkldnn_acl_supported", "_is_mkldnn_bf16_supported", "_is_mkldnn_fp16_supported"],
    ),
    "profiler": (
        "rushlight.autograd.profiler",
        ["_record_function_enter", "_record_function_enter_new", "_record_function_exit"],
    ),
    "quantized": ("rushlight._quantized.operators", None),
    "sparse": (
        "rushlight._quantized.sparse",
        [
            "qlinear",
            "qlinear_dynamic",
            "qlinear_prepack",
            "qlinear_relu",
            "qlinear_relu_dynamic",
            "qlinear_unpack",
        ],
    ),
}


_PRIMS = frozenset([("prims", "convert_element_type"), ("prim", "device"), ("prim", "layout")])

# Operators of records to which rushlight._operators.python_operators adds overloads.
_MORE_OVERLOADS = frozenset(("pow", "rsub"))


class _OpNamespace(types.ModuleType):
    """``torch.ops.<name>``."""

    def __init__(self, name):
        super().__init__(f"torch.ops.{name}")
        self.name = name

    def __getattr__(self, key):
        module, names = _IN_PYTHON.get(self.name, (None, ()))
        if key in (names or ()) or (names is None and not key.startswith("_")):
            found = getattr(importlib.import_module(module), key, None)
            if found is not None:
                return found
        if key.startswith("__"):
            pass
        elif self.name == "aten" and (key in _MORE_OVERLOADS or not _find("aten", key)):
            importlib.import_module("rushlight._operators.python_operators")
        elif self.name in ("_c10d_functional", "c10d", "c10d_functional"):
            importlib.import_module("rushlight._operators.collective_operators")
        elif self.name in ("_quantized", "onednn") and not _find(self.name, key):
            importlib.import_module("rushlight._quantized.wrapped")
        elif (self.name, key) in _PRIMS:
            importlib.import_module("rushlight._operators.prim_operators")
        if key.startswith("__"):
            raise AttributeError(f"Invalid attribute '{key}' for '_OpNamespace' '{self.name}'")
        if not _find(self.name, key):
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{key}'")
        packet = _packet(self.name, key)
        setattr(self, key, packet)
        return packet

    def __dir__(self):
        return sorted({*_defined.get(self.name, ()), *_built_in().get(self.name, ())})

    def __iter__(self):
        return iter(dir(self))


@functools.cache
def _space(name):
    return _OpNamespace(name)


class _Ops(types.ModuleType):
    """``torch.ops``: any attribute is a namespace."""

    __file__ = "_ops.py"

    def __init__(self):
        super().__init__("torch.ops")
        self.loaded_libraries = set()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"module 'torch.ops' has no attribute {name!r}")
        space = _space(name)
        setattr(self, name, space)
        return space

    def __iter__(self):
        return iter(sorted({*_built_in(), *_defined}))

    def load_library(self, path):
        """Load a shared library whose initialisation registers operators."""
        if importlib.import_module("rushlight._torchvision").stands_in_for(path):
            self.loaded_libraries.add(str(path))
            return []
        ctypes.CDLL(str(path))
        self.loaded_libraries.add(str(path))
        return show_extension_operators()

    def import_module(self, module):
        importlib.import_module(module)


ops: _Ops = _Ops()


def __getattr__(name):
    if name != "HigherOrderOperator":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("rushlight._higher_order_ops.operator").HigherOrderOperator
