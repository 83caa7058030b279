"""The file `.metadata`: a pickle that names PyTorch's classes, read with a closed list of names."""

import enum
import pathlib
import pickle
import types

import rushlight as torch
from rushlight.distributed.checkpoint import metadata as m

_MODULE = "torch.distributed.checkpoint.metadata"
_CLASSES = {name: getattr(m, name) for name in (*m.__all__, "_MEM_FORMAT_ENCODING")}


def _get_layout(name):
    return getattr(torch, name.split(".")[-1])


def _member(kind, name):
    """What Python 3.11 before 3.11.4 writes for members of an enumeration; of nothing else."""
    if not (isinstance(kind, type) and issubclass(kind, enum.Enum) and name in kind.__members__):
        raise pickle.UnpicklingError("an index of a checkpoint asks for an attribute")
    return kind[name]


_GLOBALS = {
    **{(_MODULE, name): cls for name, cls in _CLASSES.items()},
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"): m._StorageInfo,
    ("torch", "Size"): torch.Size,
    ("torch.serialization", "_get_layout"): _get_layout,
    ("pathlib", "PosixPath"): pathlib.PurePosixPath,
    ("pathlib", "PurePosixPath"): pathlib.PurePosixPath,
    ("pathlib", "WindowsPath"): pathlib.PureWindowsPath,
    ("collections", "OrderedDict"): dict,
    ("builtins", "getattr"): _member,
}
_NAMES = {id(value): key for key, value in reversed(_GLOBALS.items()) if key[0].startswith("torch")}


class _Pickler(pickle._Pickler):  # type: ignore[name-defined]
    """Writes our classes under PyTorch's names."""

    def reducer_override(self, obj):
        if isinstance(obj, torch.dtype):
            return str(obj).split(".")[-1]
        if isinstance(obj, torch.layout):
            return _get_layout, (str(obj),)
        if isinstance(obj, torch.Size):
            return torch.Size, (tuple(obj),)
        return NotImplemented

    def save_global(self, obj, name=None):
        if isinstance(obj, torch.dtype):
            module = "torch"
        elif id(obj) in _NAMES:
            module, name = _NAMES[id(obj)]
        else:
            super().save_global(obj, name)
            return
        self.save(module)
        self.save(name)
        self.write(pickle.STACK_GLOBAL)
        self.memoize(obj)

    dispatch = {**pickle._Pickler.dispatch}  # type: ignore[attr-defined]
    for _kind in (type, types.FunctionType):
        dispatch[_kind] = lambda pickler, obj: pickler.save_global(obj)  # type: ignore[attr-defined]


class _Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) in _GLOBALS:
            return _GLOBALS[module, name]
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        raise pickle.UnpicklingError(
            f"an index of a checkpoint names {module}.{name}, which is not part of one"
        )


def dump(index, stream):
    """Write an index."""
    _Pickler(stream, protocol=4).dump(index)


def load(stream):
    """Read an index; raises pickle.UnpicklingError for what is none."""
    index = _Unpickler(stream).load()
    if not isinstance(index, m.Metadata):
        raise pickle.UnpicklingError(f"expected Metadata, but the file holds {type(index)}")
    return index
