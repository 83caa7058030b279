"""Storage as Python sees it: untyped bytes, and the older typed face that pickled files name."""

import operator
import sys

import rushlight
from rushlight import _C
from rushlight._functions import shared_files
from rushlight._functions.legacy_storage import OnCuda, SecondNames, check_arguments
from rushlight._functions.storage_forms import Conversions, Devices, as_bytes

__all__ = ["TypedStorage", "UntypedStorage"]


class UntypedStorage(_C.StorageBase, Conversions, Devices):
    """A block of bytes that tensors look into. It supports the buffer protocol, so ``memoryview(s)`` is
    its content."""

    @classmethod
    def _from_buffer(cls, source, offset, nbytes):
        """The bytes of another object, shared with it; no buffer exports memory of no length."""
        return cls.from_buffer(source, offset=offset, count=nbytes) if nbytes else cls(0)

    @classmethod
    def from_file(cls, filename, shared=False, nbytes=0):
        """The first bytes of a file, mapped into memory; with `shared`, writes reach the file, which grows to
        the asked size."""
        return shared_files.map_file(cls, filename, shared, nbytes)

    filename = None  # the file that a shared mapping writes to; memory that is merely shared has none

    def __len__(self):
        return self.nbytes()

    def size(self):
        return self.nbytes()

    def element_size(self):
        return 1

    is_sparse_csr = False

    def type(self, dtype=None, non_blocking=False):
        """The name of this class; the bytes in a storage of another class, each an element of it."""
        if dtype is None:
            return f"{type(self).__module__}.{type(self).__name__}"
        if isinstance(dtype, str):
            dtype = getattr(rushlight, dtype.rpartition(".")[2])
        return self if dtype is type(self) else dtype(self.size()).copy_(self, non_blocking)

    def new(self):
        return type(self)()

    def untyped(self):
        return self

    def _with_bytes(self, untyped):
        return untyped

    def _fix_weakref(self):
        """What a weak reference gives is whole: there is nothing to mend, where PyTorch may have to."""

    def __repr__(self):
        data = [] if self.device.type == "meta" else [f" {b}" for b in memoryview(self.cpu())[:1000]]
        more = ["..."] if self.nbytes() > 1000 else []
        head = "\n".join(data + more)
        return f"{head}\n[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"

    def __iter__(self):
        return iter(memoryview(self.cpu()))

    def __getitem__(self, index):
        _check_data(self)
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise RuntimeError(f"UntypedStorage: slices take a step of 1, got {step}")
            return type(self)._from_buffer(self, start, max(0, stop - start))
        if not hasattr(index, "__index__"):
            raise TypeError(f"can't index a torch.UntypedStorage with {_type_name(index)}")
        return memoryview(self.cpu())[index]

    def __setitem__(self, index, value):
        _check_data(self)
        content = memoryview(self)
        if isinstance(index, slice) and isinstance(value, int):
            start, stop, step = index.indices(len(self))
            value = bytes([value]) * len(range(start, stop, step))
        content[index] = value

    @classmethod
    def _new_shared(cls, size, *, device="cpu"):
        """A storage of that many bytes in shared memory."""
        _check_shareable(device)
        return _C._shared_new(size)

    def is_shared(self):
        """Whether other processes see this memory."""
        return _C._shared_is(self) or shared_files.is_mapped(self)

    def _share_fd_cpu_(self):
        _check_shareable(self.device, "_share_fd_cpu_")
        return shared_files.share_descriptor(self)

    @classmethod
    def _new_shared_fd_cpu(cls, descriptor, size):
        return shared_files.from_descriptor(cls, descriptor, size)

    def _share_filename_cpu_(self):
        _check_shareable(self.device, "_share_filename_cpu_")
        return shared_files.share_name(self)

    @classmethod
    def _new_shared_filename_cpu(cls, manager, name, size):
        return shared_files.from_name(cls, name, size)

    def _write_file(self, file, is_real_file, save_size, element_size):
        shared_files.write_file(self, file, save_size, element_size)

    def share_memory_(self):
        """Moves the bytes to where other processes can see them; all that looks into this storage follows."""
        _check_shareable(self.device)
        return _C._shared_move(self)

    def tolist(self):
        return list(memoryview(self.cpu()))

    def fill_(self, value):
        """Set every byte; numbers beyond a byte wrap."""
        if not isinstance(value, int):
            raise RuntimeError(f"fill_ expects int, but got {_type_name(value)}")
        self[:] = value % 256
        return self

    def copy_(self, source, non_blocking=None):
        if not isinstance(source, (UntypedStorage, TypedStorage)):
            raise TypeError(
                f"copy_(): argument 'src' (position 1) must be torch.Storage, not {_type_name(source)}"
            )
        source = source.untyped()
        if source.nbytes() != self.nbytes():
            sizes = f"self was {self.nbytes()} bytes but src was {source.nbytes()} bytes"
            raise RuntimeError(f"size does not match, {sizes}")
        if self.device.type == "cpu":
            memoryview(self)[:] = memoryview(source.cpu())
        elif self.device.type != "meta":
            as_bytes(self).copy_(as_bytes(source), non_blocking=bool(non_blocking))
        return self

    def clone(self):
        return UntypedStorage(self.nbytes(), device=self.device).copy_(self)

    def byteswap(self, dtype):
        """Reverse the byte order of every element of the given type, in place."""
        if not isinstance(dtype, rushlight.dtype):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        unit = rushlight.empty(0, dtype=dtype).element_size() // (2 if dtype.is_complex else 1)
        content = memoryview(self)
        swapped = bytearray(content)
        for i in range(unit):
            swapped[i::unit] = content[unit - 1 - i :: unit]
        content[:] = swapped

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        # By the address of the C object: the Python one may be a passing wrapper.
        copies = memo.setdefault("torch", {})
        if self._cdata not in copies:
            copies[self._cdata] = self.clone()
        return copies[self._cdata]

    def __reduce__(self):
        return self.__reduce_ex__(2)

    def __reduce_ex__(self, protocol):
        return _reduced(self, self, None, protocol)

    def __sizeof__(self):
        return super().__sizeof__() + self.nbytes()


def _type_name(value):
    cls = type(value)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


def _check_element(value):
    if isinstance(value, (TypedStorage, UntypedStorage)):
        raise RuntimeError(f"cannot set item with value type {type(value)}")


def _check_data(storage):
    if storage.device.type == "meta":
        raise NotImplementedError("Not available for 'meta' device type")


def _check_shareable(device, who="share_memory_"):
    if rushlight.device(device).type != "cpu":
        raise RuntimeError(f"{who}: only available on CPU, got device {device}")


def _reduced(storage, untyped, dtype, protocol):
    """How a storage is pickled: as a buffer, which need not be copied, or for older protocols as a file that
    PyTorch reads. Under the name of PyTorch, whose own program may read it, it is always that."""
    from rushlight._command.names import is_aliased
    from rushlight._serialization.settings import skips_data

    if protocol < 5 or untyped.device.type != "cpu" or is_aliased() or skips_data():
        return _load_from_bytes, (_to_bytes(storage),)
    from pickle import PickleBuffer

    return _from_content, (PickleBuffer(untyped), dtype)


def _from_content(content, dtype):
    """A storage with a buffer's content. A buffer that came beside the pickle is shared; one from inside is
    copied, because nobody else has it and memory of our own can be resized."""
    view = memoryview(content)
    storage = UntypedStorage._from_buffer(content, 0, view.nbytes)
    if view.readonly or isinstance(content, bytearray):
        storage = storage.clone()
    return storage if dtype is None else TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def _to_bytes(storage):
    from io import BytesIO

    from rushlight._serialization import pickled_storages

    if (data := pickled_storages.to_bytes(storage)) is not None:
        return data
    buffer = BytesIO()
    rushlight.save(storage, buffer)
    return buffer.getvalue()


def _load_from_bytes(data):
    from io import BytesIO

    from rushlight._serialization import pickled_storages

    if (storage := pickled_storages.from_bytes(data)) is not None:
        return storage
    return rushlight.load(BytesIO(data), weights_only=False)


_removal = {"always": False, "told": False}  # of the warning below


def _get_always_warn_typed_storage_removal():
    """Whether every use of a typed storage warns; by default the first one does."""
    return _removal["always"]


def _set_always_warn_typed_storage_removal(always_warn):
    _removal["always"] = bool(always_warn)


def _reset_warn_typed_storage_removal():
    """Let the next use warn again."""
    _removal["told"] = False


def _warn_typed():
    import warnings

    if _removal["told"] and not _removal["always"]:
        return
    _removal["told"] = True
    warnings.warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only "
        "storage class. This should only matter to you if you are using storages directly.  To access "
        "UntypedStorage "
        "directly, use tensor.untyped_storage() instead of tensor.storage()",
        stacklevel=3,
    )


class _LegacyStorage:
    """Whose subclasses are the classes named after a type; there are no instances of its own."""

    def __init__(self):
        raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")


class TypedStorage(Conversions, Devices, SecondNames):
    """A storage read as elements of one type. Deprecated in favour of UntypedStorage; old files are full
    of it."""

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        own = getattr(type(self), "_class_dtype", None)
        if not _internal:
            _warn_typed()
            check_arguments(type(self), own, args, wrap_storage, dtype, device)
            device = getattr(type(self), "_class_device", device)
        self.dtype = dtype or own or rushlight.get_default_dtype()
        if wrap_storage is not None:
            self._untyped_storage = wrap_storage
        elif args and not (hasattr(args[0], "__index__") and not isinstance(args[0], rushlight.Tensor)):
            self._untyped_storage = rushlight.tensor(
                args[0], dtype=self._number_type(), device=device or "cpu"
            ).untyped_storage()
        else:
            count = operator.index(args[0]) if args else 0
            self._untyped_storage = UntypedStorage(count * self._itemsize(), device=device or "cpu")

    def _itemsize(self):
        return self.dtype.itemsize

    def _number_type(self):
        name = _INTEGERS.get(str(self.dtype).rpartition(".")[2])
        return getattr(rushlight, name) if name else self.dtype

    def _tensor(self):
        return rushlight.empty(0, dtype=self._number_type(), device=self.device).set_(self._untyped_storage)

    @property
    def device(self):
        return self._untyped_storage.device

    def _new_shared(self, size, *, device=None):
        """Elements of the same type in shared memory."""
        untyped = UntypedStorage._new_shared(size * self._itemsize(), device=device or "cpu")
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype, _internal=True)

    def is_shared(self):
        return self._untyped_storage.is_shared()

    def share_memory_(self):
        self._untyped_storage.share_memory_()
        return self

    @classmethod
    def from_file(cls, filename, shared, size):
        """The first `size` elements of a file, mapped into memory (see UntypedStorage.from_file)."""
        itemsize = (getattr(cls, "_class_dtype", None) or rushlight.get_default_dtype()).itemsize
        return cls(wrap_storage=UntypedStorage.from_file(filename, shared, size * itemsize), _internal=True)

    @property
    def filename(self):
        return self._untyped_storage.filename

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    @property
    def is_extended(self):
        """Whether no storage class of the old naming exists for the type."""
        return self.dtype not in _name_of_dtype()

    def untyped(self):
        return self._untyped_storage

    def __len__(self):
        return self.nbytes() // self._itemsize()

    size = __len__

    def nbytes(self):
        return self._untyped_storage.nbytes()

    def element_size(self):
        return self._itemsize()

    def data_ptr(self):
        return self._untyped_storage.data_ptr()

    def resize_(self, size):
        self._untyped_storage.resize_(size * self._itemsize())
        return self

    def resizable(self):
        return self._untyped_storage.resizable()

    def is_pinned(self, device="cuda"):
        return False

    def __sizeof__(self):
        return super().__sizeof__() + self.nbytes()

    @classmethod
    def from_buffer(cls, source, byte_order="native", count=-1, offset=0):
        """The bytes of a buffer as elements of the class's type, copied; `byte_order` is theirs."""
        if getattr(cls, "_class_dtype", None) is None:
            raise RuntimeError("from_buffer: only classes with a type have it, FloatStorage for instance")
        if byte_order not in ("native", "big", "little"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'native', 'little', or 'big')")
        itemsize = cls._class_dtype.itemsize
        content = memoryview(source).cast("B")[offset:]
        content = content[: count * itemsize if count >= 0 else len(content)]
        if len(content) % itemsize:
            raise ValueError(f"buffer length ({len(content)}) is not a multiple of {itemsize}")
        untyped = UntypedStorage(len(content))
        if cls._class_dtype is rushlight.bool:
            content = bytes(map(bool, content))
        memoryview(untyped)[:] = content
        if byte_order not in ("native", sys.byteorder):
            untyped.byteswap(cls._class_dtype)
        return cls(wrap_storage=untyped, _internal=True)

    def tolist(self):
        _check_data(self)
        from rushlight.utils._python_dispatch import _disable_current_modes

        with _disable_current_modes():  # a storage has its numbers in fake mode, too
            return self._tensor().tolist()

    def __iter__(self):
        return iter(self.tolist())

    def __getitem__(self, index):
        _check_data(self)
        if not (isinstance(index, slice) or hasattr(index, "__index__")) or isinstance(
            index, rushlight.Tensor
        ):
            raise RuntimeError(f"can't index a {TypedStorage} with {type(index)}")
        value = self._tensor()[index]
        if isinstance(index, slice):
            return TypedStorage(
                wrap_storage=value.clone().untyped_storage(), dtype=self.dtype, _internal=True
            )
        return value.item()

    def __setitem__(self, index, value):
        _check_data(self)
        _check_element(value)
        self._tensor()[index] = value

    def fill_(self, value):
        _check_element(value)
        self._tensor().fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        self._untyped_storage.copy_(source, non_blocking)
        return self

    def clone(self):
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype, _internal=True)

    def _with_bytes(self, untyped):
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype, _internal=True)

    def type(self, dtype=None, non_blocking=False):
        """The name of the class of this type, or a copy in another type."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        name = dtype if isinstance(dtype, str) else f"torch.{dtype.__name__}"
        dtype = getattr(rushlight, _DTYPE_OF_NAME[name.rpartition(".")[2]])
        return self._tensor().to(dtype)._typed_storage()

    def pickle_storage_type(self):
        return _name_of_dtype()[self.dtype]

    def __eq__(self, other):
        return (
            isinstance(other, TypedStorage)
            and self.data_ptr() == other.data_ptr()
            and self.dtype == other.dtype
        )

    __hash__ = None  # type: ignore[assignment]

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        from copy import deepcopy

        return TypedStorage(
            wrap_storage=deepcopy(self._untyped_storage, memo), dtype=self.dtype, _internal=True
        )

    def __reduce__(self):
        return self.__reduce_ex__(2)

    def __reduce_ex__(self, protocol):
        return _reduced(self, self._untyped_storage, self.dtype, protocol)

    def __repr__(self):
        items = "..." if self.device.type == "meta" else "\n".join(f" {x}" for x in self.tolist())
        what = f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})"
        return f"{items}\n[{what} of size {len(self)}]"


_DTYPE_OF_NAME = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
    "QUInt8Storage": "quint8",
    "QInt8Storage": "qint8",
    "QInt32Storage": "qint32",
    "QUInt4x2Storage": "quint4x2",
    "QUInt2x4Storage": "quint2x4",
}
# A storage knows no scales: it holds integers.
_INTEGERS = {"quint8": "uint8", "qint8": "int8", "qint32": "int32", "quint4x2": "uint8", "quint2x4": "uint8"}
_names: dict = {}


def _name_of_dtype():
    if not _names:
        _names.update((getattr(rushlight, dtype), name) for name, dtype in _DTYPE_OF_NAME.items())
    return _names


def _cuda_class(name):
    """``torch.cuda.FloatStorage`` and its like."""
    dtype = getattr(rushlight, _DTYPE_OF_NAME[name])
    members = {"_class_dtype": dtype, "_dtype": dtype, "dtype": dtype, "_class_device": "cuda"}
    return type(name, (OnCuda, TypedStorage, _LegacyStorage), {**members, "__module__": "torch.cuda"})


def _storage_class(dtype):
    """The typed class of a dtype."""
    return getattr(rushlight.storage, _name_of_dtype()[dtype])


def _dtype_to_storage_type_map():
    """The names of the typed classes by dtype."""
    return dict(_name_of_dtype())


def _storage_type_to_dtype_map():
    """The dtypes by the names of the typed classes."""
    return {name: dtype for dtype, name in _name_of_dtype().items()}


def __getattr__(name):
    """``FloatStorage`` and its like: typed storages whose type is fixed by the class."""
    if name not in _DTYPE_OF_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    dtype = getattr(rushlight, _DTYPE_OF_NAME[name])
    cls = type(
        name,
        (TypedStorage, _LegacyStorage),
        {"_class_dtype": dtype, "_dtype": dtype, "dtype": dtype, "__module__": rushlight.__name__},
    )
    globals()[name] = cls
    return cls
