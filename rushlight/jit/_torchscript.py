"""TorchScript archives of PyTorch: `code/*.py`, `constants.pkl` and `data.pkl` become a ScriptModule.

The code is text in a subset of Python. `_torchscript_code` checks it against that subset and compiles it;
nothing of the archive is executed on the way, and what runs later can call operators of the table and code of
the archive only. The pickles are read by a closed unpickler."""

import enum
import functools
import io
import pickle
import struct
import zlib
from collections import OrderedDict

import rushlight
from rushlight import _C, _utils
from rushlight._quantized.packed import CLASSES, ScriptObject
from rushlight.jit import _torchscript_ops as operators
from rushlight.jit._script import RecursiveScriptModule
from rushlight.jit._torchscript_code import Unit, refuse
from rushlight.jit._torchscript_upgrades import at_that_time
from rushlight.jit._torchscript_values import Instance
from rushlight.jit._torchscript_writer import write_archive
from rushlight.nn import Module, Parameter

_DAMAGE = (
    pickle.UnpicklingError, KeyError, IndexError, TypeError, AttributeError, ValueError, EOFError, OSError,
    struct.error, zlib.error, RecursionError, MemoryError,
)  # fmt: skip
_CODE_LIMIT = 256 << 20
_DEFLATED = 8  # how zip files call it
_LISTS = ("build_intlist", "build_doublelist", "build_boollist", "build_tensorlist")


def load_archive(records, file, name, restore):
    """The module of a TorchScript archive, opened as `records`."""
    try:
        return _Archive(records, file, name, restore).load()
    except _DAMAGE as e:
        raise RuntimeError(f"jit.load: {name} is damaged ({type(e).__name__}: {e})") from e


class LoadedModule(RecursiveScriptModule):
    """A module of an archive: its class and methods come from the archive's code."""

    _library_base = None
    _archive_parameters: tuple = ()
    _archive_buffers: tuple = ()
    _archive_hooks: tuple = ((), ())  # before `forward`, and after it
    _archive_methods: dict = {}
    _archive_attributes: dict = {}  # name -> the tree of its type
    _archive_units: dict = {}  # the same with their text and types

    def __setstate__(self, state):
        Module.__init__(self)
        self.training = False  # which frozen modules do not say
        if not isinstance(state, dict) and "__setstate__" in self._archive_methods:
            self._archive_methods["__setstate__"](self, state)
            return
        for name, value in state.items():
            self._put(name, value)

    def __call__(self, *args, **kwargs):
        """A call by Python; the archive's code calls hooks of its own by their names."""
        before, after = self._archive_hooks
        for hook in before:
            given = hook(self, args)
            args = args if given is None else given if isinstance(given, tuple) else (given,)
        result = super().__call__(*args, **kwargs)
        for hook in after:
            changed = hook(self, args, result)
            result = result if changed is None else changed
        return result

    def _put(self, name, value):
        if not isinstance(name, str):
            raise TypeError("names of attributes must be text")
        if name in self._archive_parameters:
            self._parameters[name] = value if value is None else _parameter(value)
        elif name in self._archive_buffers:
            self._buffers[name] = value
        elif isinstance(value, Module):
            self._modules[name] = value
        elif name in _TABLES:
            raise ValueError(f"the name {name!r} is not allowed for an attribute")
        elif name == "training":
            self.training = bool(value)
        else:
            self.__dict__[name] = value

    def _unit(self, name="forward"):
        """A method, hooks among them."""
        if name not in self._archive_units:
            raise AttributeError(f"'{self.original_name}' has no method {name!r} in TorchScript")
        return self._archive_units[name]

    def _graph_of(self, unit):
        from rushlight.jit._torchscript_graph import archive_graph

        known = self.__dict__.setdefault("_graphs", {})
        if unit not in known:
            known[unit] = archive_graph(unit, self)
        return known[unit]

    @property
    def inlined_graph(self):
        from rushlight.jit._torchscript_graph import archive_graph

        return archive_graph(self._unit(), self, inlined=True)

    def _method_names(self):
        return list(self._archive_methods)

    def save(self, f, _extra_files=None):
        """Write the module as an archive of PyTorch's, with the code that it came with."""
        write_archive(self, f, _extra_files)

    def save_to_buffer(self, _extra_files=None):
        buffer = io.BytesIO()
        self.save(buffer, _extra_files)
        return buffer.getvalue()


_TABLES = frozenset(Module().__dict__) - {"training", "_is_full_backward_hook"}


def _parameter(tensor):
    return tensor if isinstance(tensor, Parameter) else Parameter(tensor, tensor.requires_grad)


_NEWEST = 1 << 30  # of archives that do not say it


class _Archive:
    def __init__(self, records, file, name, restore):
        self.records, self.file, self.name, self.restore = records, file, name, restore
        self.tensors = {}  # one tensor for each place in memory: lists of weights name parameters again
        self.constants = None
        self.units, self.found = {}, {}

    def load(self):
        code = [n for n in self.records.names() if n.startswith("code/") and n.endswith(".py")]
        said = next((n for n in (".data/version", "version") if n in self.records.names()), None)
        self.version = _NEWEST if said is None else int(self._read(said))
        self.texts = {record: self._read(record) for record in code}
        if any(b"ops.prim.ConstantMKLDNNTensor(" in text for text in self.texts.values()):
            raise RuntimeError(
                f"jit.load: {self.name} was saved after torch.jit.optimize_for_inference, which leaves "
                "weights in oneDNN's layout out of the file, so that PyTorch cannot run it either\n"
                "fix: save what torch.jit.freeze gives, and call torch.jit.optimize_for_inference on "
                "what is loaded"
            )
        self.constants = self._pickle("constants", self._read("constants.pkl"))
        root = self._pickle("data", self._read("data.pkl"))
        if not isinstance(root, LoadedModule):
            raise refuse(f"jit.load: {self.name} holds a {type(root).__name__}, not a module")
        for module in root.modules():
            if isinstance(module, LoadedModule):
                self._join_tensors(module)
        self.records = self.file = None  # what is compiled later needs the texts alone
        return root

    def operator(self, space, name):
        """The function behind `torch.name`, `ops.space.name` in the archive's version."""
        return at_that_time(space, name, self.version, operators.find(space, name))

    def _read(self, record):
        """Code may be compressed; sizes are believed up to a limit."""
        method, size, checksum, content = self.records.read_packed(record)
        if size > _CODE_LIMIT:
            raise ValueError(f"the record {record} is too large")
        if method == _DEFLATED:
            content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, size + 1)
        elif method:
            raise ValueError(f"the record {record} is compressed by the unknown method {method}")
        if len(content) != size or zlib.crc32(content) != checksum:
            raise ValueError(f"the record {record} fails its checksum")
        return content

    # --- pickles

    def _pickle(self, folder, content):
        from rushlight.serialization import _load_records

        make = lambda file, persistent_load: _Unpickler(file, self, persistent_load)  # noqa: E731
        records = Folder(self.records, folder, content)
        return _load_records(records, self.file, self.name, self.restore, make, None)

    def rebuild(self, storage, offset, sizes, strides, requires_grad, hooks, *more):
        key = (storage._untyped_storage.data_ptr(), offset, tuple(sizes), tuple(strides), storage.dtype)
        made = _utils._rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks)
        return self.tensors.setdefault(key, made) if made.numel() else made

    def _join_tensors(self, module):
        """Lists of weights, as LSTM keeps them, hold the module's own parameters."""
        own = {(p.data_ptr(), p.shape): p for p in module._parameters.values() if p is not None}
        for name, value in module.__dict__.items():
            if isinstance(value, list) and value and all(isinstance(t, rushlight.Tensor) for t in value):
                module.__dict__[name] = [own.get((t.data_ptr(), t.shape), t) for t in value]

    # --- code

    def lookup(self, path):
        """What `__torch__.a.b.C` names: a class, a function or a kind of named tuple."""
        if path not in self.found:
            file, _, last = path.rpartition(".")
            record = f"code/{file.replace('.', '/')}.py"
            if record not in self.texts:
                raise RuntimeError(f"jit.load: {self.name} has no {record}, where {path} would be")
            self.found[path] = self.unit(file).define(last)
        return self.found[path]

    def unit(self, file):
        """The code of a file that the archive has."""
        if file not in self.units:
            text = self.texts[f"code/{file.replace('.', '/')}.py"].decode()
            self.units[file] = Unit(self, file, text)
        return self.units[file]

    def member(self, path):
        """The member of an enumeration that a dotted name stands for, else None."""
        *above, name = path
        file, kind = ".".join(above[:-1]), above[-1]
        # A file and a folder may share a name: `quantized.py` has classes, `quantized/conv.py` too.
        if f"code/{file.replace('.', '/')}.py" not in self.texts or kind not in self.unit(file).nodes:
            return None
        found = self.lookup(".".join(above))
        is_enumeration = isinstance(found, type) and issubclass(found, enum.Enum)
        return found.__members__[name] if is_enumeration else None


class Folder:
    """The records of an archive as a file of torch.save has them: `data.pkl`, and its storages in `data`."""

    def __init__(self, records, folder, content):
        self._records, self._folder, self._content = records, folder, content

    def _place(self, name):
        return f"{self._folder}/{name[5:]}" if name.startswith("data/") else name

    def has(self, name):
        return self._records.has(self._place(name))

    def offset(self, name, nbytes):
        return self._records.offset(self._place(name), nbytes)

    def read(self, name):
        return self._content if name == "data.pkl" else self._records.read(self._place(name))

    def read_storage(self, name, nbytes):
        return self._records.read_storage(self._place(name), nbytes)


_SCHEMES = ("per_tensor_affine", "per_channel_affine", "per_channel_affine_float_qparams")


@functools.cache
def _packed_class(name):
    """Script objects of a class of `torch.classes`; archives hold their state alone."""

    class Packed(ScriptObject):
        def __setstate__(self, state):
            made = ScriptObject.__new__(ScriptObject)
            made.__setstate__((state, name))
            self.__dict__.update(made.__dict__)

    return Packed


class _Unpickler(_C._Unpickler):
    """Knows tensors, plain containers and the archive's own classes; all else is an error."""

    weights_only = True

    def __init__(self, file, archive, persistent_load):
        super().__init__(file, "utf-8")
        self.archive, self.persistent_load = archive, persistent_load
        self._named = []

    def find_class(self, module, name):
        self._named.append(self._find(module, name))
        return self._named[-1]

    def _find(self, module, name):
        packed = f"{module}.{name}"
        if packed in CLASSES:
            return _packed_class(packed)
        if module == "__torch__" or module.startswith("__torch__."):
            return self.archive.lookup(f"{module}.{name}")
        if module == "torch._utils" and name == "_rebuild_tensor_v2":
            return self.archive.rebuild
        if module == "torch._utils" and name == "_rebuild_qtensor":
            return _utils._rebuild_qtensor
        if module == "torch" and name in _SCHEMES:
            return getattr(rushlight, name)
        if module == "torch.jit._pickle":
            if name == "restore_type_tag":
                return lambda value, kind: value
            if name in _LISTS:
                return list
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("builtins", "complex"):
            return complex
        if (module, name) == ("torch", "device"):
            return rushlight.device
        if module == "torch" and name.endswith("Storage"):
            return getattr(rushlight.storage, name)
        raise RuntimeError(
            f"jit.load: {self.archive.name} names {module}.{name}, which archives may not hold here"
        )

    def _refuse(self, what):
        raise RuntimeError(f"jit.load: {self.archive.name} {what}, which archives may not do here")

    def _check_callable(self, function):
        if not any(function is named for named in self._named):
            self._refuse(f"calls {function!r:.100}")

    def _check_changed(self, container):
        self._refuse(f"changes {type(container)}")

    def _of_value(self, kind, value):
        """The member of an enumeration of the archive that has a value."""
        if not isinstance(kind, enum.EnumMeta) or not any(kind is named for named in self._named):
            self._refuse(f"calls {kind!r:.100} with no arguments")
        return kind(value)

    def _new_object(self, cls, args):
        self._check_callable(cls)
        return cls.__new__(cls, *args)

    def _build(self, target, state):
        if not isinstance(target, (LoadedModule, Instance, ScriptObject)):
            self._refuse(f"gives state to {type(target)}")
        if hasattr(target, "__setstate__"):
            target.__setstate__(state)
        else:
            target.__dict__.update(state)
