"""NCCL's functions, found at run time: RUSHLIGHT_NCCL_LIBRARY, NVIDIA's wheel, then by name."""

import ctypes
import functools
import os
import sys
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_size_t, c_uint, c_void_p

from ._errors import DistBackendError

_PACKAGE = "nvidia-nccl-cu13"
_OLDEST = (2, 14)  # communicators whose calls return at once, so that waiting has an end
_MAGIC = 0xCAFEBEEF
SUCCESS, IN_PROGRESS = 0, 7

DTYPES = {
    "int8": 0,
    "uint8": 1,
    "bool": 1,
    "int32": 2,
    "uint32": 3,
    "int64": 4,
    "uint64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
    "float8_e4m3fn": 10,
    "float8_e5m2": 11,
}
OPERATIONS = {"SUM": 0, "PRODUCT": 1, "MAX": 2, "MIN": 3, "AVG": 4}


class UniqueId(ctypes.Structure):
    """What the ranks of a communicator find each other by."""

    _fields_ = [("internal", c_char * 128)]


class Config(ctypes.Structure):
    """As of the oldest version; newer ones read what `size` and `version` say is there."""

    _fields_ = [("size", c_size_t), ("magic", c_uint), ("version", c_uint), ("blocking", c_int)]


_BUFFERS = [c_void_p, c_void_p, c_size_t]
_PEER = [c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p]
_SIGNATURES = {
    "ncclGetVersion": [POINTER(c_int)],
    "ncclGetUniqueId": [POINTER(UniqueId)],
    "ncclCommInitRankConfig": [POINTER(c_void_p), c_int, UniqueId, c_int, POINTER(Config)],
    "ncclCommInitAll": [POINTER(c_void_p), c_int, POINTER(c_int)],
    "ncclCommFinalize": [c_void_p],
    "ncclCommDestroy": [c_void_p],
    "ncclCommAbort": [c_void_p],
    "ncclCommGetAsyncError": [c_void_p, POINTER(c_int)],
    "ncclRedOpCreatePreMulSum": [POINTER(c_int), c_void_p, c_int, c_int, c_void_p],
    "ncclRedOpDestroy": [c_int, c_void_p],
    "ncclGroupStart": [],
    "ncclGroupEnd": [],
    "ncclAllReduce": [*_BUFFERS, c_int, c_int, c_void_p, c_void_p],
    "ncclReduceScatter": [*_BUFFERS, c_int, c_int, c_void_p, c_void_p],
    "ncclReduce": [*_BUFFERS, c_int, c_int, c_int, c_void_p, c_void_p],
    "ncclBroadcast": [*_BUFFERS, c_int, c_int, c_void_p, c_void_p],
    "ncclAllGather": [*_BUFFERS, c_int, c_void_p, c_void_p],
    "ncclSend": _PEER,
    "ncclRecv": _PEER,
}


def _candidates():
    if os.environ.get("RUSHLIGHT_NCCL_LIBRARY"):
        yield os.environ["RUSHLIGHT_NCCL_LIBRARY"]
        return
    beside = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for folder in dict.fromkeys([beside, *sys.path]):
        path = os.path.join(folder, "nvidia", "nccl", "lib", "libnccl.so.2")
        if os.path.exists(path):
            yield path
    yield "libnccl.so.2"


class Library:
    """NCCL's functions under their own names; a failure raises DistBackendError."""

    def __init__(self, functions):
        self._functions = functions
        self.version = self._version()
        if self.version < _OLDEST:
            raise DistBackendError(
                f"nccl: version {self.version_text} is too old, {'.'.join(map(str, _OLDEST))} is needed: "
                f"pip install -U {_PACKAGE}"
            )
        for name, arguments in _SIGNATURES.items():
            getattr(functions, name).argtypes = arguments
        for name in ("ncclGetErrorString", "ncclGetLastError"):
            getattr(functions, name).restype = c_char_p
        functions.ncclGetErrorString.argtypes, functions.ncclGetLastError.argtypes = [c_int], [c_void_p]

    def _version(self):
        number = c_int()
        if self._functions.ncclGetVersion(byref(number)) != SUCCESS:
            raise DistBackendError("nccl: the library does not tell its version")
        n = number.value
        return (n // 10000, n // 100 % 100, n % 100) if n >= 10000 else (n // 1000, n // 100 % 10, n % 100)

    @property
    def version_text(self):
        return ".".join(map(str, self.version))

    def call(self, name, *arguments, handle=None) -> int:
        """SUCCESS, or IN_PROGRESS where the communicator goes on in the background."""
        code = getattr(self._functions, name)(*arguments)
        if code not in (SUCCESS, IN_PROGRESS):
            raise DistBackendError(f"NCCL error in {name}: {self.explained(code, handle)}")
        return code

    def quietly(self, name, *arguments):
        """A call of the way out, where nobody can do anything about a failure."""
        getattr(self._functions, name)(*arguments)

    def explained(self, code, handle=None):
        text = self._functions.ncclGetErrorString(code).decode(errors="replace")
        last = (self._functions.ncclGetLastError(handle) or b"").decode(errors="replace").strip()
        return f"{text}, NCCL version {self.version_text}" + (f"\nLast error: {last}" if last else "")

    # --- the calls of a communicator's life

    def unique_id(self) -> bytes:
        one = UniqueId()
        self.call("ncclGetUniqueId", byref(one))
        return ctypes.string_at(byref(one), ctypes.sizeof(one))

    def start_communicator(self, size, unique_id, rank):
        """A handle that may be used when `state` says SUCCESS."""
        handle, identity = c_void_p(), UniqueId()
        ctypes.memmove(byref(identity), unique_id, ctypes.sizeof(identity))
        config = Config(ctypes.sizeof(Config), _MAGIC, _OLDEST[0] * 10000 + _OLDEST[1] * 100, 0)
        self.call("ncclCommInitRankConfig", byref(handle), size, identity, rank, byref(config))
        return handle

    def communicators_of(self, devices):
        """One handle a device, for a process that drives them all."""
        handles = (c_void_p * len(devices))()
        self.call("ncclCommInitAll", handles, len(devices), (c_int * len(devices))(*devices))
        return [c_void_p(handle) for handle in handles]

    def premultiplied_sum(self, operand, handle) -> int:
        """The number of an operation of this communicator; `release_operation` gives it back."""
        operation = c_int()
        given = (operand.address, operand.dtype, operand.place, handle)
        self.call("ncclRedOpCreatePreMulSum", byref(operation), *given, handle=handle)
        return operation.value

    def release_operation(self, operation, handle):
        self.call("ncclRedOpDestroy", operation, handle, handle=handle)

    def state(self, handle) -> int:
        """SUCCESS, IN_PROGRESS, or the code of an error that came up since."""
        code = c_int()
        self.call("ncclCommGetAsyncError", handle, byref(code), handle=handle)
        return code.value


@functools.cache
def _found():
    """(library or None, why there is none)"""
    wrong = ""
    for path in _candidates():
        try:
            return Library(ctypes.CDLL(path)), ""
        except (OSError, AttributeError) as error:
            wrong = wrong or f" ({error})"
        except DistBackendError as error:
            return None, str(error)
    return None, f"nccl: NCCL was not found: pip install {_PACKAGE}{wrong}"


def library():
    """The library of this process, or None."""
    return _found()[0]


def require() -> Library:
    """The library; DistBackendError says what is missing and what brings it."""
    found, why = _found()
    if found is None:
        raise DistBackendError(why)
    return found


class Factor:
    """What operands are multiplied by before they are summed, as NCCL reads it."""

    _ON_DEVICE, _ON_HOST = 0, 1

    def __init__(self, factor, like):
        from .. import Tensor, tensor

        self.dtype = dtype_number(like.dtype)
        if not like.dtype.is_floating_point:
            raise TypeError("PREMUL_SUM Data type must be half, float, bfloat16 or double")
        if isinstance(factor, Tensor):
            if factor.dtype != like.dtype or factor.numel() != 1 or factor.device != like.device:
                raise ValueError(
                    f"PREMUL_SUM: the factor must be one {like.dtype} on {like.device}, but it is a tensor "
                    f"of {factor.numel()} {factor.dtype} on {factor.device}"
                )
            self._kept = factor
        else:
            self._kept = tensor([factor], dtype=like.dtype)
        self.place = self._ON_DEVICE if self._kept.is_cuda else self._ON_HOST
        self.address = self._kept.data_ptr()

    def used_on(self, stream):
        if self._kept.is_cuda:
            self._kept.record_stream(stream)


def dtype_number(dtype) -> int:
    name = str(dtype).split(".")[-1]
    if name not in DTYPES:
        raise TypeError(
            f"Input tensor data type is not supported for NCCL process group: {name}; supported are "
            f"{', '.join(DTYPES)}"
        )
    return DTYPES[name]
