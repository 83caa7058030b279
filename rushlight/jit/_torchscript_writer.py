"""Archives of PyTorch written again: the code is the archive's own, what its objects hold is written anew."""

import ast
import enum
import pickle
from collections import OrderedDict
from typing import Any

import rushlight
from rushlight._quantized.packed import ScriptObject
from rushlight._serialization.tensor_pickler import TensorPickler
from rushlight.jit._torchscript_values import Instance
from rushlight.nn import Module

__all__ = ["write_archive"]


def write_archive(module, f, extra_files):
    """Write a module that came from an archive to a path or a file object."""
    import os

    from rushlight._serialization.zip_records import RecordWriter, write_atomically, write_to_stream

    def write(file, folder):
        _write_records(RecordWriter(file, folder), module, extra_files or {})

    if isinstance(f, (str, os.PathLike)):
        path = os.fsdecode(f)
        write_atomically(path, lambda file: write(file, os.path.splitext(os.path.basename(path))[0]))
    else:
        write_to_stream(f, lambda file: write(file, "archive"))


def _write_records(writer, module, extra_files):
    import sys

    from rushlight.serialization import _pickle_with_storages

    archive = module._archive
    found = {}
    for name, value in (("data", module), ("constants", archive.constants)):
        found[name] = _pickle_with_storages(value, pickle, 2, pickler=_ArchivePickler)
    for name, (pickled, storages) in found.items():
        writer.write(f"{name}.pkl", pickled)
        for number, (content, _) in enumerate(storages):
            writer.write(f"{name}/{number}", content)
    for name, text in archive.texts.items():
        writer.write(name, text)
    for name, content in extra_files.items():
        writer.write(f"extra/{name}", content.encode() if isinstance(content, str) else content)
    writer.write("byteorder", sys.byteorder.encode())
    writer.write("version", f"{archive.version}\n".encode())
    writer.close()


class _Tagged:
    """A list or dictionary with the text of its type, by which PyTorch knows what empty ones may hold."""

    def __init__(self, value, text):
        self.value, self.text = value, text


class _Global:
    """What a pickle names."""

    def __init__(self, module, name):
        self.text = f"{module}\n{name}\n".encode()


_TAG = _Global("torch.jit._pickle", "restore_type_tag")


class _ArchivePickler(TensorPickler):
    """Writes objects of an archive's classes under the names that these have in its code."""

    write: Any  # of Python's pickler
    get: Any
    memo: Any
    memoize: Any

    def __init__(self, *args):
        super().__init__(*args)
        self._tensors = {}  # parameters as tensors
        self._globals = {}

    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, rushlight.nn.Parameter):
            obj = self._without_class(obj)
        if type(obj) is bool or obj is None or type(obj) in (int, float, str):
            return super().save(obj, save_persistent_id)
        if isinstance(obj, _Global):
            return self._save_global_name(obj)
        if isinstance(obj, enum.Enum):
            self.save(_named(type(obj), self._globals))
            self.save(obj.value)
            return self.write(pickle.REDUCE)
        if isinstance(obj, _Tagged):
            return self.save_reduce(_TAG, (obj.value, obj.text))
        if isinstance(obj, tuple) and hasattr(obj, "_fields"):
            return self.save_reduce(_named(type(obj), self._globals), (tuple(obj),))
        if isinstance(obj, (Module, Instance, ScriptObject)):
            return self._save_object(obj)
        return super().save(obj, save_persistent_id)

    def _without_class(self, parameter):
        """A parameter as a tensor; one for each place in memory, by which PyTorch knows tied weights."""
        place = parameter.data_ptr() if parameter.numel() and not parameter.is_meta else id(parameter)
        key = place, parameter.shape, parameter.stride(), parameter.dtype, parameter.requires_grad
        made = self._tensors.get(key)
        if made is None:
            made = self._tensors[key] = parameter.detach().requires_grad_(parameter.requires_grad)
        return made

    def _save_global_name(self, obj):
        known = self.memo.get(id(obj))
        if known is not None:
            return self.write(self.get(known[0]))
        self.write(pickle.GLOBAL + obj.text)
        return self.memoize(obj)

    def save_reduce(self, func, args, *more, **words):
        """A call; of a name of an archive, which no import finds."""
        if not isinstance(func, _Global):
            return super().save_reduce(func, args, *more, **words)  # type: ignore[misc]
        self.save(func)
        self.save(args)
        return self.write(pickle.REDUCE)

    def _save_object(self, obj):
        known = self.memo.get(id(obj))
        if known is not None:
            return self.write(self.get(known[0]))
        self.save(_named(type(obj), self._globals) if not isinstance(obj, ScriptObject) else _of_packed(obj))
        self.write(pickle.EMPTY_TUPLE + pickle.NEWOBJ)
        self.save(_state(obj))
        self.write(pickle.BUILD)
        return self.memoize(obj)  # PyTorch makes the object there


def _of_packed(obj):
    module, _, name = obj._type().rpartition(".")
    return _Global(module, name)


def _named(cls, known):
    """The name in the archive of a class."""
    path = getattr(cls, "_archive_path", None)
    if path is None:
        raise RuntimeError(
            f"save: a {cls.__name__} in a module that came from an archive of PyTorch's is none of the "
            "archive's classes, and cannot be written with it"
        )
    module, _, name = path.rpartition(".")
    return known.setdefault(path, _Global(module, name))


def _state(obj):
    if isinstance(obj, ScriptObject):
        return obj._held.state()
    own = obj._archive_methods.get("__getstate__")
    if own is not None:
        return own(obj)
    return {name: _typed(_attribute(obj, name), said) for name, said in obj._archive_attributes.items()}


def _attribute(obj, name):
    if isinstance(obj, Module):
        for table in (obj._parameters, obj._buffers, obj._modules):
            if name in table:
                return table[name]
        if name == "training":
            return obj.training
    return obj.__dict__.get(name)


def _typed(value, said):
    """A value with the types of the lists and dictionaries in it, as its attribute's type tells them."""
    outer = said.value.id if isinstance(said, ast.Subscript) and isinstance(said.value, ast.Name) else ""
    if type(value) in (list, dict, OrderedDict):
        if outer == "Optional":
            return _typed(value, said.slice)
        return _Tagged(dict(value) if isinstance(value, dict) else value, ast.unparse(said))
    if outer == "Tuple" and type(value) is tuple and isinstance(said.slice, ast.Tuple):
        return tuple(_typed(v, s) for v, s in zip(value, said.slice.elts, strict=True))
    return value
