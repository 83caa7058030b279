"""DLPack's table of C functions, which compiled libraries look up on the type; formats of a byte and less."""

import ctypes

import pytest

import rushlight as torch


class Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    pass


Deleter = ctypes.PYFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [
    ("version", ctypes.c_uint32 * 2),
    ("context", ctypes.c_void_p),
    ("deleter", Deleter),
    ("flags", ctypes.c_uint64),
    ("tensor", DLTensor),
]
SetError = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
Out = ctypes.POINTER(ctypes.POINTER(Managed))


class Table(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("former", ctypes.c_void_p),
        (
            "allocate",
            ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(DLTensor), Out, ctypes.c_void_p, SetError),
        ),
        ("managed_of_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, Out)),
        (
            "object_of_managed",
            ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.py_object)),
        ),
        ("view_of_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))),
        (
            "current_stream",
            ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)),
        ),
    ]


@pytest.fixture
def table():
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = type(torch.ones(1)).__dlpack_c_exchange_api__
    found = ctypes.cast(pointer(capsule, b"dlpack_exchange_api"), ctypes.POINTER(Table)).contents
    assert list(found.version) == [1, 3] and not found.former
    return found


def test_a_view_is_what_lies_in_memory(table):
    x = torch.arange(12.0).reshape(3, 4)[1:, ::2].t()
    seen = DLTensor()
    assert table.view_of_object(x, seen) == 0
    assert seen.data == x.data_ptr() and seen.byte_offset == 0
    assert (seen.device.kind, seen.ndim) == (1, 2)
    assert (seen.dtype.code, seen.dtype.bits, seen.dtype.lanes) == (2, 32, 1)
    assert seen.shape[:2] == list(x.shape) and seen.strides[:2] == list(x.stride())
    assert table.view_of_object(torch.ones(2, requires_grad=True), seen) == 0


def test_there_and_back(table):
    x = torch.arange(6).reshape(2, 3).t()
    managed = ctypes.POINTER(Managed)()
    assert table.managed_of_object(x, managed) == 0
    assert managed.contents.flags == 0 and list(managed.contents.version) == [1, 3]
    back = ctypes.py_object()
    assert table.object_of_managed(managed, back) == 0
    y = back.value
    assert type(y) is torch.Tensor and y.data_ptr() == x.data_ptr() and y.stride() == x.stride()
    del x
    y += 1
    assert y.tolist() == [[1, 4], [2, 5], [3, 6]]


def test_a_lazy_clone_is_told_apart_from_its_source(table):
    x = torch.zeros(3)
    y = torch._lazy_clone(x)
    seen = DLTensor()
    assert table.view_of_object(y, seen) == 0
    ctypes.cast(seen.data, ctypes.POINTER(ctypes.c_float))[0] = 5
    assert x.tolist() == [0, 0, 0] and y.tolist() == [5, 0, 0]


def test_new_memory(table):
    like = DLTensor()
    like.ndim, like.shape = 2, (ctypes.c_int64 * 2)(2, 3)
    like.device.kind = 1
    like.dtype.code, like.dtype.bits, like.dtype.lanes = 4, 16, 1
    messages = []
    note = SetError(lambda context, kind, message: messages.append((context, kind, message)))
    managed, back = ctypes.POINTER(Managed)(), ctypes.py_object()
    assert table.allocate(like, managed, None, note) == 0
    assert table.object_of_managed(managed, back) == 0
    assert back.value.shape == (2, 3) and back.value.dtype == torch.bfloat16

    like.shape = (ctypes.c_int64 * 2)(2**40, 2**20)
    assert table.allocate(like, managed, 7, note) == -1
    like.shape = (ctypes.c_int64 * 2)(-1, 3)
    assert table.allocate(like, managed, 7, note) == -1
    like.shape, like.dtype.code = (ctypes.c_int64 * 2)(2, 3), 99
    assert table.allocate(like, managed, 7, note) == -1
    assert [context for context, *_ in messages] == [7, 7, 7]
    assert messages[2][1] == b"RuntimeError" and b"unsupported type" in messages[2][2]


def test_refusals(table):
    seen, managed = DLTensor(), ctypes.POINTER(Managed)()
    for x in (
        torch.ones(2, dtype=torch.complex64).conj(),
        torch.ones(2, device="meta"),
        torch.eye(2).to_sparse(),
    ):
        with pytest.raises(BufferError, match="export"):
            table.view_of_object(x, seen)
        with pytest.raises(BufferError, match="export"):
            table.managed_of_object(x, managed)
    with pytest.raises(TypeError, match="expected a Tensor, got list"):
        table.view_of_object([1], seen)


def test_no_stream_on_the_processor(table):
    stream = ctypes.c_void_p(5)
    assert table.current_stream(1, 0, stream) == 0 and stream.value is None


@pytest.mark.parametrize(
    "name",
    [
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn_x2",
    ],
)
def test_narrow_types(name, table):
    dtype = getattr(torch, name)
    x = torch.tensor([1, 130, 77], dtype=torch.uint8).view(dtype)
    y = torch.from_dlpack(x)
    assert y.dtype == dtype and y.data_ptr() == x.data_ptr()
    assert torch.equal(y.view(torch.uint8), x.view(torch.uint8))
    oracle = pytest.importorskip("torch")
    other = oracle.from_dlpack(x)
    assert str(other.dtype).endswith(name) and other.data_ptr() == x.data_ptr()
    back = torch.from_dlpack(other)
    assert back.dtype == dtype and back.data_ptr() == x.data_ptr()
