"""An unpickler that builds tensors and plain containers and nothing else.

The machine is that of `src/io/pickle_machine.h`, which leaves out instructions that build objects by other
routes or reach beyond the file. It asks here what a file may do: a name must be on the closed list (or
allowed by the user), only listed callables are called, and only objects made from them are given state. So a
file cannot run code of its own.
"""

from collections import Counter, OrderedDict
from pickle import UnpicklingError

import rushlight
from rushlight import _C
from rushlight._command.names import public_name, show_from

_user_globals: list = []


def _full_name(obj):
    return f"{obj.__module__}.{getattr(obj, '__qualname__', obj.__name__)}"


class safe_globals:
    """Within this context the given classes and functions may be named by a file. A pair gives the file's
    name for it."""

    def __init__(self, safe_globals):
        self.safe_globals = safe_globals

    def __enter__(self):
        self._before = _user_globals[:]
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exc):
        _user_globals[:] = self._before


def add_safe_globals(safe_globals):
    """Allow files to name these classes and functions when loading with ``weights_only=True``."""
    _user_globals.extend(g for g in list(safe_globals) if g not in _user_globals)


def get_safe_globals():
    return list(_user_globals)


def clear_safe_globals():
    _user_globals.clear()


def _user_table():
    table = {}
    for entry in _user_globals:
        obj, name = entry if isinstance(entry, tuple) else (entry, None)
        if name is None:
            if not hasattr(obj, "__module__"):
                raise UnpicklingError(f"add_safe_globals: {obj!r} is neither a class nor a function")
            name = _full_name(obj)
        table[name] = obj
        table[public_name(name)] = obj
    return table


_names: dict = {}  # what a file may name
_PARAMETER = "torch.nn.parameter.Parameter"  # allowed too, but looked up late: most files do without nn
_JAGGED = "torch.nested._internal.nested_tensor."  # likewise two names of this module
_SPREAD = "torch.distributed."  # and those of tensors that are spread over processes
_callables: set = set()  # ids of those that it may call as well


def _build_closed_list():
    from rushlight import _utils, serialization, storage

    calls = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "_codecs.encode": _encode_bytes,
        "builtins.set": set,
        "builtins.complex": complex,
        "builtins.bytearray": _bytearray,
        "torch.Size": rushlight.Size,
        "torch.device": rushlight.device,
        "torch._tensor._rebuild_from_type_v2": _rebuild_from_type,
        "torch.serialization._get_layout": serialization._get_layout,
    }
    calls.update((f"torch._utils.{n}", getattr(_utils, n)) for n in dir(_utils) if n.startswith("_rebuild_"))
    calls["torch._utils._rebuild_from_type_v2"] = _rebuild_from_type
    calls.update(
        [(n.replace("builtins", "__builtin__"), f) for n, f in calls.items() if n.startswith("builtins")]
    )
    _callables.update(id(f) for f in calls.values())
    _names.update(calls)

    for name in storage._DTYPE_OF_NAME:
        _names[f"torch.{name}"] = _names[f"torch.storage.{name}"] = getattr(storage, name)
    _names["torch.storage.UntypedStorage"] = _names["torch.UntypedStorage"] = storage.UntypedStorage
    _names["torch.storage.TypedStorage"] = storage.TypedStorage
    _names["torch.Tensor"] = _names["torch._tensor.Tensor"] = rushlight.Tensor
    plain = (rushlight.dtype, type(rushlight.strided), type(rushlight.contiguous_format), rushlight.qscheme)
    _names.update(
        (f"torch.{n}", getattr(rushlight, n)) for n in dir(rushlight) if isinstance(_peek(n), plain)
    )


def _peek(name):
    return vars(rushlight).get(name)


def _encode_bytes(text, encoding="latin1"):
    """How bytes are written by protocol 2."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise _Refused(f"_codecs.encode: only latin1 text is decoded, got {type(text)} in {encoding!r}")
    return text.encode("latin1")


def _bytearray(data=b"", encoding="latin1"):
    """Bytes from content only: a length would let a small file ask for any amount of memory."""
    return bytearray(data if isinstance(data, (bytes, bytearray)) else _encode_bytes(data, encoding))


def _rebuild_from_type(func, new_type, args, state):
    from rushlight import _utils

    if id(func) not in _callables or not getattr(func, "__name__", "").startswith("_rebuild_"):
        raise _Refused(f"Trying to rebuild a tensor with {func}")
    if not (isinstance(new_type, type) and issubclass(new_type, rushlight.Tensor)):
        raise _Refused(f"Trying to rebuild a tensor as {new_type}")
    return _utils._rebuild_from_type_v2(func, new_type, args, state)


# Never named by a file, even where a user allows what they hold.
_BLOCKED = ("sys", "os", "posix", "nt")


class _Refused(UnpicklingError):
    """A pickle that is well formed but asks for something outside the closed list."""


_RANGE = "torch._dynamo.decorators._DimRange"


class _DimRange:
    """What PyTorch notes on the lengths of jagged tensors for its compiler."""


class Unpickler(_C._Unpickler):
    def __init__(self, file, *, encoding="bytes"):
        super().__init__(file, encoding)
        if not _names:
            _build_closed_list()
        self._user = _user_table()
        self._user_ids = {id(g) for g in self._user.values()}

    def find_class(self, module, name):
        full = f"{module}.{name}"
        if module in _BLOCKED:
            raise _Refused(f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked.")
        if public_name(full) == _PARAMETER:
            return rushlight.nn.Parameter
        if public_name(full).startswith(_JAGGED) and name in ("NestedTensor", "_rebuild_njt"):
            return _name_of_nested(name)
        if public_name(full).startswith(_SPREAD) and public_name(full) in _spread_names():
            found = _spread_names()[public_name(full)]
            self._user_ids.add(id(found))
            return found
        if full == _RANGE:
            return _DimRange
        if public_name(full) in _names:
            return _names[public_name(full)]
        for key in (full, public_name(full)):
            if key in self._user:
                return self._user[key]
        shown = name if module in ("builtins", "__builtin__") else full
        raise _Refused(
            f"Unsupported global: GLOBAL {shown} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{shown}])` or the "
            f"`torch.serialization.safe_globals([{shown}])` context manager to allowlist this global if "
            "you trust this class/function."
        )

    def _check_callable(self, function):
        if id(function) not in _callables and id(function) not in self._user_ids:
            raise _Refused(f"Trying to call reduce for unrecognized function {function}")

    def _check_changed(self, container):
        if id(type(container)) not in self._user_ids:
            raise _Refused(f"Can only append to lists and set items of dicts, but got {type(container)}")

    def _new_object(self, cls, args):
        if cls is _DimRange and args == ():
            return _DimRange()
        if id(cls) not in self._user_ids or not isinstance(cls, type) or not isinstance(args, tuple):
            raise _Refused(f"Trying to create new object for unrecognized class {cls}")
        return cls.__new__(cls, *args)

    def _build(self, target, state):
        kind = type(target)
        if kind is OrderedDict:
            target.__dict__.update(_plain_attributes(state))
        elif kind is _DimRange:
            pass
        elif id(kind) in self._user_ids:
            if hasattr(target, "__setstate__"):
                target.__setstate__(state)
            else:
                _set_attributes(target, state)
        else:
            raise _Refused(
                f"Can only build OrderedDict or types allowlisted via `add_safe_globals`, but got {kind}"
            )


def _name_of_nested(name):
    from rushlight.nested._internal import nested_tensor

    _callables.add(id(nested_tensor._rebuild_njt))
    return getattr(nested_tensor, name)


def _spread_names():
    from rushlight.distributed.tensor._files import NAMED

    return NAMED


def _set_attributes(target, state):
    """As `pickle` does: past a class's own `__setattr__`, which may refuse, but for slots."""
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    target_dict = target.__dict__ if state else {}
    target_dict.update(state or {})
    for name, value in (slots or {}).items():
        setattr(target, name, value)


def _plain_attributes(state):
    if not isinstance(state, dict) or not all(isinstance(k, str) for k in state):
        raise _Refused("the state of an OrderedDict must be a dict of attributes")
    return state


def _get_allowed_globals():
    """Full name -> object, of what a file may name without the user's leave."""
    if not _names:
        _build_closed_list()
    return {**_names, _PARAMETER: rushlight.nn.Parameter}


show_from("serialization", add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals)
