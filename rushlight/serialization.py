"""``save`` and ``load``: objects with tensors in files that PyTorch reads, and the reverse."""

import io
import os
import pickle
import sys
import warnings
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _utils
from rushlight._command.names import own_name, public_name
from rushlight._errors.advice import advised
from rushlight._serialization.format import MAGIC_NUMBER, PROTOCOL_VERSION, as_saved, check_saved_id  # noqa: F401
from rushlight._serialization.load_errors import TORCHSCRIPT_NOTICE, TORCHSCRIPT_REFUSAL, weights_only_refusal
from rushlight._serialization.settings import (
    LoadEndianness,
    _serialization_tls,  # noqa: F401
    check_module_version_greater_or_equal,
    decide_weights_only,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    serialization_config,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
    skips_data,
)
from rushlight._serialization.tensor_pickler import STORAGE, TensorPickler
from rushlight._serialization.zip_records import (
    RecordReader,
    RecordWriter,
    is_zip,
    write_atomically,
    write_to_stream,
)
from rushlight._weights_only_unpickler import (
    Unpickler,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from rushlight.storage import _DTYPE_OF_NAME, TypedStorage, UntypedStorage, _storage_class

__all__ = [
    "LoadEndianness",
    "MAP_LOCATION",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]

DEFAULT_PROTOCOL = 2


# Where storages go: a device, its name, a table of names, or a function of storage and location.
MAP_LOCATION = (
    Callable[[UntypedStorage, str], UntypedStorage] | rushlight.device | str | dict[str, str] | None
)


def normalize_storage_type(storage_type: type) -> type:
    """The public class of a storage's class: ``torch.UntypedStorage``, ``torch.FloatStorage``, ..."""
    return getattr(rushlight, storage_type.__name__)


# Locations: where a storage lived when it was saved, and where it goes.

_location_rules: list = []


def register_package(priority, tagger, deserializer):
    """Teach saving and loading about another kind of device; rules are tried in order of priority."""
    _location_rules.append((priority, tagger, deserializer))
    _location_rules.sort(key=lambda rule: rule[0])


def _restore_plain(storage, location):
    if location == "cpu":
        return storage
    if location == "meta":
        return UntypedStorage(storage.nbytes(), device="meta")
    if str(location).partition(":")[0] == "cuda":
        return _restore_cuda(storage, location)
    return None


def _restore_cuda(storage, location):
    cuda = getattr(rushlight, "cuda", None)
    if cuda is None or not cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If "
            "you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    return storage.to(device=location)


register_package(10, lambda storage: str(storage.device), _restore_plain)


def location_tag(storage):
    for _, tagger, _ in _location_rules:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {type(storage)}")


def default_restore_location(storage, location):
    for _, _, deserializer in _location_rules:
        result = deserializer(storage, location)
        if result is not None:
            return result
    raise RuntimeError(f"don't know how to restore data location of {type(storage)} (tagged with {location})")


def _restorer(map_location):
    """``map_location`` in any of its forms as a function of storage and location."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(
            storage, map_location.get(location, location)
        )
    if isinstance(map_location, (str, rushlight.device)):
        return lambda storage, location: default_restore_location(storage, str(map_location))

    def restore(storage, location):
        result = map_location(storage, location)
        return default_restore_location(storage, location) if result is None else result

    return restore


# Saving


def save(obj, f, pickle_module=pickle, pickle_protocol=DEFAULT_PROTOCOL, _use_new_zipfile_serialization=True,
         _disable_byteorder_record=False):  # fmt: skip
    """Save an object to a file: a path or a file object opened for binary writing.

    A path is written under a temporary name and then moved, so a failure leaves the old file whole. Only
    the bytes that tensors look at are stored; tensors that share memory still share it after loading.

    Args:
        obj (object): tensors, containers of them, modules' state dicts.
        f (path or file): where to.
        pickle_module (module): what pickles.
        pickle_protocol (int): which protocol of pickle.

    Example:
        >>> torch.save(torch.arange(3), "numbers.pt")
        >>> torch.load("numbers.pt")
        tensor([0, 1, 2])
    """
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        text = "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        raise advised(AttributeError(text))
    legacy = not _use_new_zipfile_serialization
    pickled, storages = _pickle_with_storages(obj, pickle_module, pickle_protocol, legacy)

    alignment = serialization_config().save.storage_alignment

    def write(file):
        if legacy:
            from rushlight._serialization.legacy_files import write_legacy

            write_legacy(file, pickled, list(storages), pickle_protocol)
        else:
            _write_records(
                RecordWriter(file, folder, get_crc32_options(), alignment),
                pickled,
                storages,
                not _disable_byteorder_record,
                alignment,
            )

    if isinstance(f, (str, os.PathLike)):
        path = os.fsdecode(f)
        folder = os.path.splitext(os.path.basename(path))[0]
        write_atomically(path, write)
    else:
        folder = "archive"
        write_to_stream(f, write)


def _write_records(writer, pickled, storages, byteorder, alignment=64, version=b"3\n"):
    from hashlib import sha256

    digest = sha256(pickled)
    writer.write("data.pkl", pickled)
    writer.write(".format_version", b"1")
    writer.write(".storage_alignment", str(alignment).encode())
    if byteorder:
        writer.write("byteorder", sys.byteorder.encode())
    for key, (content, _) in enumerate(storages):
        digest.update(content[:4096])
        writer.write(f"data/{key}", content, filled_later=skips_data())
    writer.write("version", version)
    writer.write(
        ".data/serialization_id", str(int.from_bytes(digest.digest()[:16], "big")).zfill(40).encode()
    )
    writer.close()


class _Saver:
    """Collects the storages of one file: which bytes of each are looked at, and under which number it is
    written."""

    def __init__(self, legacy, cuts=None):
        self._legacy = legacy
        self.is_special = legacy or skips_data()  # what no tensor takes the short way for
        self._cuts = cuts or {}  # identity of a storage -> its first and one-past-last byte to write
        self.materialized = {}  # meta storage of fake tensors -> what is written for it
        self._extents = {}
        self._taken = {}  # identity -> number in the file, location, class
        self._last = None, None  # an object that was asked for, and the answer
        self._kept = []  # alive until the file is written: addresses identify storages

    def place(self, storage, dtype, extent):
        """Note that a tensor looks at these elements of a storage; returns the element that its piece
        begins at."""
        size = dtype.itemsize
        return self.place_bytes(_identity(storage), extent[0] * size, extent[1] * size) // size

    def place_bytes(self, identity, low, high):
        """The same in bytes."""
        if low < high:
            before = self._extents.get(identity)
            if before is not None:
                low, high = min(low, before[0]), max(high, before[1])
            self._extents[identity] = low, high
        cut = self._cuts.get(identity)
        return cut[0] if cut else 0

    def persistent_id(self, obj):
        if not isinstance(obj, (TypedStorage, UntypedStorage)):
            return None
        if obj is self._last[0]:
            return self._last[1]
        storage, typed = obj.untyped(), isinstance(obj, TypedStorage)
        dtype = obj.dtype if typed else rushlight.uint8
        kind = _storage_class(dtype) if typed else UntypedStorage
        saved_id = STORAGE, kind, *self.take(storage, _identity(storage), kind, dtype.itemsize)
        if self._legacy:
            saved_id = *saved_id, None  # a storage, not a view of one
        self._last = obj, saved_id
        return saved_id

    def take(self, storage, identity, kind, itemsize):
        """Have a storage written; returns its number, its location and the count of its elements."""
        key = identity if identity[1] else ("empty", len(self._kept))
        start, end = self._cuts.get(identity) or (0, identity[1])
        count = (end - start) // itemsize
        known = self._taken.get(key)
        if known is None:
            location = sys.intern(location_tag(storage))
            known = self._taken[key] = str(len(self._kept)), location, kind
            self._kept.append((storage, identity, kind))
        elif known[2] is not kind:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types"
            )
        return known[0], known[1], count

    def trimmed(self):
        """A saver for a second pass that leaves out what nothing looks at; None when everything is looked
        at."""
        cuts = {}
        for _, identity, _ in self._kept:
            low, high = self._extents.get(identity, (0, identity[1]))
            low -= low % 16  # whole elements of any type
            if high - low < identity[1]:
                cuts[identity] = low, high
        return _Saver(self._legacy, cuts) if cuts else None

    def contents(self):
        """Of each storage its bytes and the size of an element."""
        skips = skips_data()
        for storage, identity, kind in self._kept:
            cut = self._cuts.get(identity)
            itemsize = 1 if kind is UntypedStorage else kind._class_dtype.itemsize
            if skips:
                start, end = cut or (0, identity[1])
                yield memoryview(bytes(end - start)), itemsize
                continue
            if storage.device.type != "cpu":
                storage = storage.to(device="cpu")
            content = memoryview(storage).cast("B")
            yield content[cut[0] : cut[1]] if cut else content, itemsize


def _identity(storage):
    return storage.data_ptr(), storage.nbytes()


def _pickle_with_storages(obj, pickle_module, protocol, legacy=False, pickler=TensorPickler):
    (pickled,), storages = _pickles_with_storages([(obj, pickler)], pickle_module, protocol, legacy)
    return pickled, storages


def _pickles_with_storages(objects, pickle_module, protocol, legacy=False):
    """Pickles of several objects, each with its pickler, and the storages of all of them."""
    saver = _Saver(legacy)
    pickled = [_pickle_once(obj, saver, pickle_module, protocol, pickler) for obj, pickler in objects]
    again = saver.trimmed()
    if again is not None:
        saver = again
        pickled = [_pickle_once(obj, saver, pickle_module, protocol, pickler) for obj, pickler in objects]
    return pickled, saver.contents()


def _pickle_once(obj, saver, pickle_module, protocol, ours):
    buffer = io.BytesIO()
    if pickle_module is pickle:
        pickler = ours(buffer, protocol, saver)
    else:
        pickler = type("Pickler", (pickle_module.Pickler,), {})(buffer, protocol)
        pickler.persistent_id = saver.persistent_id
    before = getattr(_utils._local, "saver", None)
    _utils._local.saver = saver
    try:
        pickler.dump(obj)
    finally:
        _utils._local.saver = before
    return buffer.getvalue()


_is_zipfile = is_zip


# Loading


class _FullUnpickler(pickle.Unpickler):
    """The standard unpickler, with PyTorch's names led to ours."""

    def find_class(self, module, name):
        ours = own_name(module)
        if ours != module:
            if name in _DTYPE_OF_NAME:
                return getattr(rushlight.storage, name)
            if (module, name) == ("torch._tensor", "_rebuild_from_type_v2"):
                return _utils._rebuild_from_type_v2
        return super().find_class(ours, name)


def load(
    f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args
) -> "Any":
    """Load what ``save`` (ours or PyTorch's) wrote, from a path or a seekable file object.

    Args:
        f (path or file): what to read.
        map_location (device, str, dict or callable): where tensors should be.
        pickle_module (module): what unpickles; only with `weights_only=False`.
        weights_only (bool): whether only tensors, containers and registered types may be in the file. Other
            files can run any code: read them with False only if you trust them.
        mmap (bool): whether tensors stay in the file until they are read.
        pickle_load_args: passed on to the unpickler.

    Raises: UnpicklingError where the file holds something that may not be in it.

    Example:
        >>> torch.save({"w": torch.ones(2)}, "weights.pt")
        >>> torch.load("weights.pt")
        {'w': tensor([1., 1.])}
    """
    if mmap is None:
        mmap = serialization_config().load.mmap
    weights_only = decide_weights_only(weights_only, pickle_module)
    pickle_load_args.setdefault("encoding", "utf-8")
    make = _unpickler_factory(weights_only, pickle_module, pickle_load_args)
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        with open(path, "rb") as file:
            return _load(file, path, map_location, make, mmap)
    for method in ("read", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(
                f"{type(f).__name__!r} object has no attribute {method!r}. You can only torch.load from a "
                "file that is seekable. Please pre-load the data into a buffer like io.BytesIO and try to "
                "load from it instead."
            )
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    return _load(f, getattr(f, "name", "<file object>"), map_location, make, None)


def _unpickler_factory(weights_only, pickle_module, options):
    base = Unpickler if weights_only else _FullUnpickler
    if pickle_module is not None and pickle_module is not pickle:

        class base(pickle_module.Unpickler):
            find_class = _FullUnpickler.find_class

    def make(file, persistent_load):
        unpickler = base(file, **options)
        unpickler.persistent_load = persistent_load
        unpickler.weights_only = weights_only
        return unpickler

    make.weights_only = weights_only
    if not weights_only:

        class base(base):  # instances of the C class take no attributes
            pass

    return make


def _load(file, name, map_location, make, mmap):
    restore = _restorer(map_location)
    if is_zip(file):
        return _load_zip(file, name, restore, make, mmap, map_location)
    if _is_safetensors(file):
        from rushlight import safetensors

        return {k: _restored(t, restore) for k, t in safetensors.load(file.read()).items()}
    if mmap:
        raise RuntimeError(
            "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True)`"
        )
    from rushlight._serialization.legacy_files import load_legacy

    return load_legacy(file, name, restore, lambda f, load: _unpickle(make(f, load), name))


def _is_safetensors(file):
    from rushlight.safetensors import looks_like

    start = file.tell()
    head = file.read(9)
    size = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    return looks_like(head, size)


def _restored(tensor, restore):
    storage = restore(tensor.untyped_storage(), "cpu")
    return tensor.to(storage.device)


def _unpickle(unpickler, name):
    """Run an unpickler; whatever a damaged or refused stream leads to becomes an error that names the
    file."""
    try:
        return unpickler.load()
    except pickle.UnpicklingError as e:
        if not unpickler.weights_only:
            raise pickle.UnpicklingError(f"load: {name}: {e}") from e
        raise pickle.UnpicklingError(weights_only_refusal(str(e), name)) from None
    except (OSError, RuntimeError, MemoryError, NotImplementedError):
        raise
    except Exception as e:
        if not unpickler.weights_only and not isinstance(e, (EOFError, IndexError, KeyError, ValueError)):
            raise
        what = f"{type(e).__name__}: {e}".rstrip(": ")
        text = f"load: {name} is not a valid pickle, or is damaged ({what})"
        raise advised(pickle.UnpicklingError(text)) from e


def _load_zip(file, name, restore, make, mmap, map_location):
    start = file.tell()
    records = RecordReader(file, name)
    if records.has("constants.pkl"):
        return _load_torchscript(file, start, map_location, make.weights_only)
    if skips_data():
        raise RuntimeError("Please call torch.load outside the skip_data context manager.")
    return _load_records(records, file, name, restore, make, mmap)


def _load_records(records, file, name, restore, make, mmap):
    swap = _byteorder(records, name) != sys.byteorder
    mapped = _map_file(file) if mmap else None
    loaded = {}

    def persistent_load(saved_id):
        _, dtype, key, location, count = check_saved_id(saved_id, 5, name)
        if key not in loaded:
            nbytes = count * dtype.itemsize
            if location == "meta":
                storage = UntypedStorage(nbytes, device="meta")
            elif mapped is not None:
                storage = UntypedStorage._from_buffer(mapped, records.offset(f"data/{key}", nbytes), nbytes)
            else:
                storage = records.read_storage(f"data/{key}", nbytes)
            if swap:
                storage.byteswap(dtype)
            loaded[key] = restore(storage, location)
        return as_saved(loaded[key], saved_id[1], dtype)

    pickled = io.BytesIO(records.read("data.pkl"))
    return _unpickle(make(pickled, persistent_load), name)


def _load_torchscript(file, start, map_location, weights_only):
    warnings.warn(TORCHSCRIPT_NOTICE, UserWarning, stacklevel=5)
    if weights_only:
        raise RuntimeError(TORCHSCRIPT_REFUSAL)
    file.seek(start)
    return rushlight.jit.load(file, map_location=map_location)


def _map_file(file):
    import mmap

    if get_default_mmap_options() == mmap.MAP_PRIVATE:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    with open(file.name, "r+b") as writable:
        return mmap.mmap(writable.fileno(), 0, access=mmap.ACCESS_WRITE)


def _byteorder(records, name):
    if not records.has("byteorder"):
        chosen = {LoadEndianness.LITTLE: "little", LoadEndianness.BIG: "big"}
        return chosen.get(get_default_load_endianness(), sys.byteorder)
    order = records.read("byteorder").decode("ascii", "replace")
    if order not in ("little", "big"):
        raise ValueError(f"load: {name}: Unknown endianness type: {order}")
    return order


def get_unsafe_globals_in_checkpoint(f):
    """The names in a file that loading with ``weights_only=True`` would refuse."""
    import pickletools

    from rushlight import _weights_only_unpickler as unpickler

    with open(f, "rb") if isinstance(f, (str, os.PathLike)) else _left_open(f) as file:
        if not is_zip(file):
            raise ValueError("get_unsafe_globals_in_checkpoint: expected a file in the zip format")
        pickled = RecordReader(file, str(f)).read("data.pkl")
    named, strings = set(), []
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name == "GLOBAL":
            named.add(argument.replace(" ", "."))
        elif opcode.name == "STACK_GLOBAL":
            named.add(".".join(strings[-2:]))
        elif isinstance(argument, str):
            strings.append(argument)
    allowed = {*unpickler._get_allowed_globals(), *unpickler._user_table()}
    return sorted(name for name in named if name not in allowed and public_name(name) not in allowed)


def _left_open(file):
    from contextlib import nullcontext

    return nullcontext(file)


def _get_layout(name):
    """A layout by its name, as PyTorch pickles it."""
    value = getattr(rushlight, name.removeprefix("torch."), None)
    if not isinstance(value, type(rushlight.strided)):
        raise pickle.UnpicklingError(f"unknown layout {name!r}")
    return value


def __getattr__(name):
    from rushlight._serialization import file_records

    if name == "_open_zipfile_reader":
        return file_records.open_reader
    if name == "_open_zipfile_writer":
        return file_records.open_writer
    if name == "_open_file_like":
        return file_records.open_file
    raise AttributeError(f"module 'torch.serialization' has no attribute {name!r}")
