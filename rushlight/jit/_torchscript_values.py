"""What the code of TorchScript archives computes with besides tensors and plain values, and how it reaches
attributes, methods and functions: never by Python's own look-up, which would lead out of the archive."""

import enum
import functools
import types

import rushlight
from rushlight.nn import Module

Tensor = rushlight.Tensor
# Properties of tensors, from `_torchscript_ops`, which older archives write as attributes.
tensor_properties: dict = {}


class Function:
    """A function of an archive."""

    def __init__(self, body, name):
        self.body, self.name = body, name

    def __call__(self, *args, **kwargs):
        return self.body(*args, **kwargs)


class Instance:
    """An object of a class of an archive that is no module."""

    _archive_methods: dict = {}

    def __setstate__(self, state):
        for name, value in state.items() if isinstance(state, dict) else ():
            set_attribute(self, name, value)


class Reference:
    """What `__torch__…` names, looked up when it is used: functions may call each other in circles."""

    def __init__(self, archive, path):
        self.archive, self.path = archive, path

    def __call__(self, *args, **kwargs):
        return self.archive.lookup(self.path)(*args, **kwargs)


def call_value(value, *args, **kwargs):
    if not isinstance(value, (Function, Reference)):
        raise TypeError(f"a {type(value).__name__} of the archive cannot be called")
    return value(*args, **kwargs)


def get_attribute(value, name, *default):
    if isinstance(value, Module):
        for table in (value._parameters, value._buffers, value._modules, value.__dict__):
            if name in table and not name.startswith("__"):
                return table[name]
        constants = getattr(type(value), "_archive_constants", {})
        if name in constants:
            return constants[name]
    elif isinstance(value, Instance) and name in value.__dict__:
        return value.__dict__[name]
    elif isinstance(value, tuple) and name in getattr(value, "_fields", ()):
        return getattr(value, name)
    elif isinstance(value, enum.Enum) and name in ("name", "value"):
        return getattr(value, name)
    elif isinstance(value, Tensor) and name in tensor_properties:
        return tensor_properties[name](value)
    raise AttributeError(f"{type(value).__name__} has no attribute {name!r} in the archive")


def set_attribute(value, name, new):
    if not isinstance(value, (Module, Instance)) or not isinstance(name, str) or name.startswith("__"):
        raise AttributeError(f"the attribute {name!r} of a {type(value).__name__} cannot be set")
    if isinstance(value, Instance):
        value.__dict__[name] = new
    elif name in value._buffers:
        value._buffers[name] = new
    else:
        value._put(name, new)


def method(value, name):
    found = getattr(type(value), "_archive_methods", {}).get(name)
    if found is None:
        raise AttributeError(f"{type(value).__name__} has no method {name!r} in the archive")
    if name == "forward" and isinstance(value, Module):
        return functools.partial(Module.__call__, value)  # so that hooks which Python registered run
    return functools.partial(found, value)


def item(value, key):
    """One of a list, tuple, text or dictionary; of a module that holds modules, one by place or name."""
    if isinstance(value, Module):
        parts = value._modules
        return list(parts.values())[key] if type(key) is int else parts[key]
    return value[key]


def to_list(value):
    """``tolist()`` of a tensor, or a method of this name."""
    return value.tolist() if isinstance(value, Tensor) else method(value, "tolist")()


def fork(function):
    """A future of a function inside of a method, which has run when this returns."""
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"a {type(function).__name__} of the archive cannot be forked")
    return rushlight.jit.fork(function)


class Context:
    """`with` an object of the archive: its methods run around the block, and swallow no error."""

    def __init__(self, value):
        self.enter, self.exit = method(value, "__enter__"), method(value, "__exit__")

    def __enter__(self):
        return self.enter()

    def __exit__(self, kind, error, trace):
        self.exit(None, None, None)
        return False


def truth(value):
    if not isinstance(value, (bool, int, float, Tensor)):
        raise TypeError(f"a condition of the archive is a {type(value).__name__}")
    return bool(value)


def counted(*bounds):
    return range(*(int(b) for b in bounds))


def iterate(value):
    """What a loop runs over; a bare number of older archives is a number of rounds."""
    return range(value) if type(value) is int else value


_KINDS = {"Tensor": Tensor, "int": int, "float": float, "bool": bool, "str": str, "NoneType": type(None)}


def is_instance(value, kinds):
    """`kinds` is the text of a type or of a tuple of types; of containers, only the outside is looked at."""
    kinds = kinds.strip("()")
    names = [kinds] if "[" in kinds else [k.strip() for k in kinds.split(",") if k.strip()]
    for name in names:
        outer = name.partition("[")[0]
        kind = {"List": list, "Dict": dict, "Tuple": tuple, **_KINDS}.get(outer)
        if kind is None:
            raise NotImplementedError(f"isinstance of {name} is not covered in archives of PyTorch's")
        if isinstance(value, kind) and not (kind in (int, float) and isinstance(value, bool)):
            return True
    return False
