"""The Python state that a program can read: walked before it is read, to be compared and put back.

Code reaches state outside of its own frames by names that its code objects list: globals, variables of
closures, attributes. `Reachable` follows these names from the function and its arguments, and extends the
walk before each further code object runs. What it cannot look into it refuses.
"""

import copy
import copyreg
import enum
import functools
import logging
import sys
import threading
import types
from collections import OrderedDict
from contextvars import ContextVar
from dataclasses import Field, dataclass

import rushlight as torch
from rushlight import _C
from rushlight._command.names import is_own
from rushlight._subclasses.fake_tensor import FakeTensor
from rushlight.nn.parameter import is_lazy

from .exc import Unsupported

__all__ = ["ABSENT", "Reachable", "is_constant", "is_part_of_program", "is_plain_class"]

ABSENT = object()

# What calling a module reads, without a code object that names it.
_MODULE_TABLES = frozenset(
    """forward training _parameters _buffers _modules _non_persistent_buffers_set _forward_hooks
    _forward_pre_hooks _forward_hooks_with_kwargs _forward_pre_hooks_with_kwargs _forward_hooks_always_called
    _backward_hooks _backward_pre_hooks _compiled_call_impl""".split()
)
# What these hold is asked for by calls of built-in functions, which end the capture, or never changes.
_CLOSED = (
    ContextVar, Field, types.UnionType, types.GenericAlias, type(torch.__version__), torch.set_grad_enabled,
)  # fmt: skip
# What a logger that stays silent reads; one that writes ends the capture.
_LOGGER_STATE = frozenset(["disable", "disabled", "level", "parent"])
_OF_THREADS = threading.Thread, threading.Event, threading.Condition, threading.Semaphore, threading.Barrier
_NAMES_ITSELF = type, types.FunctionType  # a key that equals itself alone
_LIMIT = 200_000
_HEAP_TYPE, _NO_INSTANCES = 1 << 9, 1 << 7

_CONSTANTS = (
    type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), slice, range,
    torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size,
)  # fmt: skip
_CALLABLES = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.MethodWrapperType, types.ClassMethodDescriptorType, types.GetSetDescriptorType,
    types.MemberDescriptorType, type(_C.TensorBase.add), type(torch.add),
)  # fmt: skip


def _is_closed(value):
    """Whether a program finds out nothing of a value but which it is."""
    return type(value) in _CLOSED or type(value).__module__ == "typing"


def is_constant(value):
    """Whether a value never changes, and equality is all that a program sees of it."""
    if isinstance(value, enum.Enum):
        return is_constant(value._value_)
    if type(value) is tuple or type(value) is frozenset:
        return all(map(is_constant, value))
    if type(value) is slice:
        return is_constant((value.start, value.stop, value.step))
    return type(value) in _CONSTANTS


def is_part_of_program(value):
    """Whether an argument is a module: it stays the same object from call to call, and a graph is for one."""
    return isinstance(value, torch.nn.Module) and type(value).__eq__ is object.__eq__


def is_plain_class(cls):
    """Whether instances hold nothing but their dict and slots: every class is written in Python."""
    for base in cls.__mro__:
        if base in (object, types.SimpleNamespace) or base is torch.nn.Module.__base__:
            continue
        if not base.__flags__ & _HEAP_TYPE or base.__flags__ & _NO_INSTANCES:
            return False
        if isinstance(vars(base).get("__new__"), types.BuiltinFunctionType):
            return False
        if not isinstance(vars(base).get("__getattribute__", is_plain_class), types.FunctionType):
            return False
    return True


def _is_own_dict(cls):
    """Whether instances are dicts of a class in Python that is asked for entries by its own methods alone."""
    if not issubclass(cls, dict) or issubclass(cls, OrderedDict) or cls.__iter__ is not dict.__iter__:
        return False
    bases = [base for base in cls.__mro__ if base not in (dict, object)]
    return all(base.__flags__ & _HEAP_TYPE and not base.__flags__ & _NO_INSTANCES for base in bases)


def _computes_names(cls):
    """Whether what its instances answer for an attribute is the program's to say: any of their entries."""
    return cls.__getattribute__ is not object.__getattribute__ and isinstance(
        cls.__getattribute__, types.FunctionType
    )


@dataclass
class Owner:
    """A dict of attributes, what was in it, and which of its entries have been looked at."""

    table: dict
    saved: dict
    label: str
    holder: object = None  # the instance, None for a module of Python
    read: frozenset | set = frozenset()
    everything: bool = False  # its names may be computed: all entries are read
    alone: frozenset | None = None  # names of the only entries that are read


class Reachable:
    """State in reach of a program, as it was before the program ran."""

    def __init__(self):
        self.names = set(_MODULE_TABLES)  # of attributes, in all code
        self.user_names = {"forward"}  # the same, without the library's own code, which calls this
        self.maybe_missing: set = set()  # names of attributes that the program may do without
        self.everything = False  # names may be computed: attributes are all read
        self.owners: list[Owner] = []
        self.modules: list[Owner] = []  # those of them that are modules of Python
        self.slots: list = []  # (object, slot, value or ABSENT)
        self.containers: list = []  # (list, dict or set; a copy; label)
        self.cells: list = []  # (cell, content or ABSENT, label)
        self.classes: dict = {}  # class -> copy of its dict
        self.functions: list = []
        self.caches: list = []  # (cached function, misses so far)
        self.globals: dict = {}  # (id of a dict of globals, name) -> (dict, name, value or ABSENT, label)
        self.tensors: dict = {}  # id -> (tensor, label)
        self.labels: dict = {}
        self.met_twice: set = set()  # ids of tensors that several places hold
        self.given: dict = {}  # ids of copies of the call's objects, which the program may change
        self._seen: dict = {}

    # --- walking ------------------------------------------------------------------------------------

    def learn(self, names, by_user, maybe_missing=()):
        """Code is about to run that names these attributes."""
        if by_user:
            self.user_names |= names
            self.maybe_missing.update(maybe_missing)
        self.names |= names
        for owner in list(self.owners):
            self._read(owner)

    def learn_everything(self):
        """Code is about to run that computes names."""
        if not self.everything:
            self.everything = True
            for owner in list(self.owners):
                self._read(owner)

    def learn_entries(self, holders):
        """Code is about to run that reads any of the entries of these objects."""
        for owner in list(self.owners):
            if owner.holder is not None and not owner.everything and any(owner.holder is h for h in holders):
                owner.everything = True
                self._read(owner)

    def learn_slots(self, cls):
        """An instance is about to be copied, for which its class notes the names of its slots once."""
        names = copyreg._slotnames(cls)  # type: ignore[attr-defined]
        if "__slotnames__" in vars(cls) and cls in self.classes:
            self.classes[cls]["__slotnames__"] = names

    def read_globals(self, table, names, label):
        for name in names:
            key = id(table), name
            if key in self.globals:
                continue
            value = table.get(name, ABSENT)
            self.globals[key] = table, name, value, f"{label}.{name}"
            if value is not ABSENT:
                self.visit(value, name)

    def state(self):
        """What was looked at so far, for `return_to`."""
        looked_at = [(owner, set(owner.read), owner.everything) for owner in self.owners]
        return {name: copy.copy(value) for name, value in vars(self).items()}, looked_at

    def return_to(self, state):
        """Forget what was looked at since."""
        tables, looked_at = state
        vars(self).update(tables)
        for owner, read, everything in looked_at:
            owner.read, owner.everything = read, everything

    def visit(self, value, label):
        """Look at a value that the program can read."""
        if is_constant(value):
            return
        if id(value) in self._seen:
            if isinstance(value, torch.Tensor):
                self.met_twice.add(id(value))
            return
        self._seen[id(value)] = value  # held, so that ids stay unique
        self.labels[id(value)] = label
        if len(self._seen) > _LIMIT:
            raise Unsupported("too much Python state is in reach of the program to be checked")
        if isinstance(value, torch.Tensor):
            if is_lazy(value):
                raise Unsupported(f"{label} has no shape before its module has run once")
            self.tensors[id(value)] = value, label
            if vars(value) and not isinstance(value, FakeTensor):  # attributes that programs gave it
                self._own(vars(value), label, value)
        elif isinstance(value, type):
            self._visit_class(value, label)
        elif isinstance(value, types.ModuleType):
            self._own(vars(value), label)
            self.modules.append(self.owners[-1])
        elif isinstance(value, types.FunctionType):
            self._visit_function(value, label)
        elif not isinstance(value, _CALLABLES) and not _is_closed(value):
            self._visit_object(value, label)

    def _visit_object(self, value, label):
        cls = type(value)
        if hasattr(
            cls, "_what_is_compiled"
        ):  # a program within the program: what its graphs are does not matter
            self.visit(value._what_is_compiled(), label)
        elif cls in (tuple, frozenset) or (issubclass(cls, tuple) and hasattr(cls, "_fields")):
            for i, item in enumerate(value):
                self.visit(item, f"{label}[{i}]")
        elif cls in (list, dict, set) or cls.__module__ == "collections" and cls.__name__ == "OrderedDict":
            self._visit_container(value, label)
        elif cls is types.MethodType:
            self.visit(value.__self__, f"{label}.__self__")
            self.visit(value.__func__, label)
        elif cls is functools.partial:
            for part in (value.func, value.args, value.keywords):
                self.visit(part, label)
        elif cls is functools._lru_cache_wrapper:  # who caches a function says that its arguments decide
            self.caches.append((value, value.cache_info().misses))
            self._own(vars(value), label, value)
            self.visit(value.__wrapped__, label)
        elif cls in (property, staticmethod, classmethod):
            for function in (value.fget, value.fset) if cls is property else (value.__func__,):
                self.visit(function, label)
        elif isinstance(value, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
            pass
        elif isinstance(value, _OF_THREADS):  # which change it at any time: what is put back would be theirs
            raise Unsupported(f"the program reads {label}, which belongs to threads")
        elif isinstance(value, (logging.Logger, logging.Manager)):
            self._watch_class(cls)
            self._own(vars(value), label, value, alone=_LOGGER_STATE)
            if isinstance(value, logging.Logger):
                self.visit(value.manager, f"{label}.manager")
        elif is_plain_class(cls):
            self._visit_instance(value, label)
        elif _is_own_dict(cls):
            self._visit_container(value, label)
            self._visit_instance(value, label)
        else:
            raise Unsupported(
                f"the program reads {label}, of type {cls.__module__}.{cls.__qualname__}, "
                "whose state cannot be checked"
            )

    def _visit_container(self, value, label):
        if value is sys.modules:  # grows with every import, the compiler's own among them
            return
        self.containers.append((value, dict.copy(value) if isinstance(value, dict) else value.copy(), label))
        if isinstance(value, dict):
            for key, item in list(dict.items(value)):
                if not is_constant(key) and not isinstance(key, _NAMES_ITSELF) and not _is_closed(key):
                    raise Unsupported(f"{label} has keys of type {type(key).__name__}")
                self.visit(item, f"{label}[{key!r}]")
        else:
            for i, item in enumerate(list(value)):
                self.visit(item, f"{label}[{i}]")

    def _visit_function(self, function, label):
        front = type(function) is not types.FunctionType  # of a library function: a type that looks like one
        if is_own(function.__module__) and (front or function.__closure__ is None):
            return
        if front:  # a compiled function
            return self.visit(function.__wrapped__, label)
        self.functions.append(function)
        self._own(function.__dict__, label, function)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                content = cell.cell_contents
            except ValueError:
                content = ABSENT
            self.cells.append((cell, content, f"{name}"))
            if content is not ABSENT:
                self.visit(content, name)
        self.visit(function.__defaults__, f"defaults of {label}")
        self.visit(function.__kwdefaults__, f"defaults of {label}")

    def _visit_class(self, cls, label):
        if cls.__flags__ & _HEAP_TYPE and not is_own(cls.__module__):
            self._watch_class(cls)

    def _watch_class(self, cls):
        for base in cls.__mro__:
            if base in self.classes or not base.__flags__ & _HEAP_TYPE:
                continue
            self.classes[base] = dict(vars(base))
            if not is_own(base.__module__) and base.__module__ not in ("abc", "typing", "enum"):
                self._own(self.classes[base], base.__qualname__)
                if _computes_names(cls):
                    for name, value in self.classes[base].items():
                        if type(value) in (list, dict, set) and not name.startswith("__"):
                            self.visit(value, f"{base.__qualname__}.{name}")

    def _visit_instance(self, value, label):
        cls = type(value)
        self._watch_class(cls)
        computes = _computes_names(cls)
        table = _dict_of(value) if computes else getattr(value, "__dict__", None)
        if table is not None:
            self._own(table, label, value, computes)
        for base in cls.__mro__:
            for slot, descriptor in vars(base).items():
                if isinstance(descriptor, types.MemberDescriptorType) and descriptor.__objclass__ is base:
                    held = getattr(value, slot, ABSENT)
                    self.slots.append((value, slot, held, f"{label}.{slot}"))
                    if held is not ABSENT:
                        self.visit(held, f"{label}.{slot}")

    def _own(self, table, label, holder=None, everything=False, alone=None):
        owner = Owner(table, dict(table), label, holder, set(), everything, alone)
        self.owners.append(owner)
        self._read(owner)

    def _read(self, owner):
        names = self.names if owner.holder is not None else self.user_names
        if owner.alone is not None:
            names, everything = owner.alone, False
        else:
            everything = owner.everything or (self.everything and owner.holder is not None)
        found = owner.saved.keys() if everything else names & owner.saved.keys()
        for name in found - owner.read if owner.read else list(found):
            owner.read.add(name)
            self.visit(owner.saved[name], f"{owner.label}.{name}")

    # --- afterwards -----------------------------------------------------------------------------------

    def first_change(self):
        """What the program changed, in words, or None."""
        for owner in self.owners:
            if owner.holder is None or id(owner.holder) in self.given:
                continue
            if not _same_entries(owner.table, owner.saved):
                changed = (
                    n
                    for n in {**owner.saved, **owner.table}
                    if owner.saved.get(n, ABSENT) is not owner.table.get(n, ABSENT)
                )
                return f"{owner.label}.{next(changed, '__dict__')}"
        for owner, name in self._written_in_modules():
            return f"{owner.label}.{name}"
        for container, saved, label in self.containers:
            if id(container) in self.given:
                continue
            if isinstance(container, dict) and torch.Tensor in container:  # and so need not know of stand-ins
                container = {k: v for k, v in container.items() if k is not FakeTensor}
            if not _same_container(container, saved):
                return label
        for cell, content, label in self.cells:
            if _content(cell) is not content:
                return label
        for table, name, value, _ in self.globals.values():
            if table.get(name, ABSENT) is not value:
                return f"the global {name}"
        for holder, slot, value, label in self.slots:
            if getattr(holder, slot, ABSENT) is not value:
                return label
        return next(
            (c.__qualname__ for c, saved in self.classes.items() if not _same_entries(vars(c), saved)), None
        )

    def only_fills_tables(self):
        """Whether all that changed are dicts that gained entries and attributes that were None: a program may
        keep there what it found out in its first call."""
        filled = [
            (table, saved)
            for table, saved in self._tables()
            if all(_is_gain(v, dict.get(table, k, ABSENT)) for k, v in saved.items())
        ]
        return self._are_all(filled)

    def replaced(self):
        """{(id of a dict, key): (the dict, the tensor it held)} where all that the program did was to put
        tensors in place of others like them; None if it changed anything else."""
        changed = [(table, saved) for table, saved in self._tables() if not _same_entries(table, saved)]
        found = {}
        for table, saved in changed:
            if type(table) is not dict or list(table) != list(saved):
                return None
            for key, before in saved.items():
                if table[key] is not before:
                    if not _is_like(table[key], before) or id(before) in self.met_twice:
                        return None
                    found[id(table), key] = table, before
        return found if found and self._are_all(changed) else None

    def _tables(self):
        """Dicts in reach, those of attributes included, with what they held; without the call's own."""
        tables = [(table, saved) for table, saved, _ in self.containers if isinstance(table, dict)]
        tables += [(owner.table, owner.saved) for owner in self.owners if owner.holder is not None]
        given = {id(copy) for copy, *_ in self.given.values()}
        given |= {id(getattr(copy, "__dict__", None)) for copy, *_ in self.given.values()}
        return [(table, saved) for table, saved in tables if id(table) not in given]

    def _are_all(self, tables):
        """Whether nothing but these dicts changed."""
        now = [dict(dict.items(table)) for table, _ in tables]
        for table, saved in tables:
            _refill(table, saved)
        rest = self.first_change()
        for (table, _), entries in zip(tables, now):
            _refill(table, entries)
        return rest is None

    def _written_in_modules(self):
        """Names in modules of Python that the program set. What a module gains may be a lazy import."""
        for owner in self.modules:
            for name in self.user_names & owner.saved.keys():
                if owner.table.get(name, ABSENT) is not owner.saved[name]:
                    yield owner, name

    def restore(self):
        """Put everything back as it was."""
        for function, misses in self.caches:
            if function.cache_info().misses != misses:  # it may hold what stood for tensors
                function.cache_clear()
        for owner, name in list(self._written_in_modules()):
            owner.table[name] = owner.saved[name]
        for owner in self.owners:
            given = id(owner.holder) in self.given
            if owner.holder is not None and not given and not _same_entries(owner.table, owner.saved):
                owner.table.clear()
                owner.table.update(owner.saved)
        for container, saved, _ in self.containers:
            if id(container) not in self.given and not _same_container(container, saved):
                _refill(container, saved)
        for cell, content, _ in self.cells:
            if _content(cell) is not content and content is not ABSENT:
                cell.cell_contents = content
        for table, name, value, _ in self.globals.values():
            if value is ABSENT:
                table.pop(name, None)
            else:
                table[name] = value
        for holder, slot, value, _ in self.slots:
            if getattr(holder, slot, ABSENT) is not value and value is not ABSENT:
                setattr(holder, slot, value)
        for cls, saved in self.classes.items():
            _restore_class(cls, saved)


def _kind(container):
    """The type whose methods do what they say, whatever its class does by the same names."""
    return next(kind for kind in (OrderedDict, dict, list, set) if isinstance(container, kind))


def _refill(container, saved):
    kind = _kind(container)
    kind.clear(container)
    list.extend(container, saved) if kind is list else kind.update(container, saved)


def _dict_of(value):
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def _is_like(tensor, before):
    """Whether a tensor may stand where another one did, in all that a graph takes for granted."""
    if not isinstance(tensor, FakeTensor) or type(before) is not torch.Tensor or vars(before):
        return False

    def facts(t):
        return t.shape, t.dtype, t.device, t.stride(), t.requires_grad

    return facts(tensor) == facts(before)


def _is_gain(before, now):
    return now is before or (before is None and now is not ABSENT)


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def _same_entries(table, saved):
    if isinstance(table, dict):  # whose class may answer `get` by itself
        return len(table) == len(saved) and all(dict.get(table, k, ABSENT) is v for k, v in saved.items())
    return len(table) == len(saved) and all(table.get(k, ABSENT) is v for k, v in saved.items())


def _same_container(container, saved):
    if isinstance(container, dict):
        keys = container if type(container) is OrderedDict else dict.keys(container)
        return _same_entries(container, saved) and list(keys) == list(saved)
    if isinstance(container, set):
        return container == saved
    return len(container) == len(saved) and all(a is b for a, b in zip(container, saved))


def _restore_class(cls, saved):
    now = dict(vars(cls))
    for name in now.keys() - saved.keys():
        delattr(cls, name)
    for name, value in saved.items():
        if now.get(name, ABSENT) is not value and name not in ("__dict__", "__weakref__", "__doc__"):
            setattr(cls, name, value)
