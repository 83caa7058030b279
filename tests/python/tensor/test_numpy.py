"""NumPy, the buffer protocol and DLPack: shared memory both ways."""

import subprocess
import sys

import numpy as np
import pytest

import rushlight as rl

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def test_import_loads_no_numpy():
    code = "import sys, rushlight; x = rushlight.tensor([1.0]); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_ways_share_memory(dtype):
    array = np.array([[1, 0], [1, 1]], dtype=dtype)
    tensor = rl.from_numpy(array)
    assert str(tensor.dtype) == f"torch.{dtype}" and tensor.tolist() == array.tolist()
    back = tensor.numpy()
    assert back.dtype == array.dtype
    array[0, 0] = 0
    assert not back[0, 0] and not tensor[0, 0].item()
    assert np.shares_memory(array, back)


def test_strides_of_any_sign():
    array = np.arange(24).reshape(2, 3, 4)[::-1, :, ::-2]
    tensor = rl.from_numpy(array)
    assert tensor.stride() == (-12, 4, -2) and tensor.tolist() == array.tolist()
    assert tensor.numpy().strides == array.strides
    assert (tensor + 1).tolist() == (array + 1).tolist()


def test_read_only_stays_read_only():
    array = np.zeros(3)
    array.setflags(write=False)
    tensor = rl.from_numpy(array)
    assert not tensor.numpy().flags.writeable
    with pytest.raises(RuntimeError):
        tensor.add_(1)
    assert array.tolist() == [0, 0, 0]


def test_the_array_outlives_the_tensor_and_the_other_way_round():
    tensor = rl.from_numpy(np.arange(1000.0))
    assert tensor.sum().item() == 499500
    array = rl.arange(1000.0).numpy()
    assert array.sum() == 499500


@pytest.mark.parametrize("dtype", [name for name in DTYPES if np.dtype(name).itemsize > 1])
def test_memory_at_odd_addresses_is_copied(dtype):
    """Deserializers cut arrays out of messages, wherever they lie there."""
    source = np.arange(24).astype(dtype)
    message = bytearray(source.nbytes + 1)
    array = np.frombuffer(message, dtype, offset=1)
    array[:] = source
    array = array.reshape(2, 3, 4).transpose(2, 0, 1)[::-1]
    assert array.__array_interface__["data"][0] % min(array.itemsize, 8) != 0
    for tensor in (rl.from_numpy(array), rl.as_tensor(array), rl.tensor(array), rl.asarray(array)):
        assert tensor.shape == (4, 2, 3) and tensor.tolist() == array.tolist()
        assert tensor.data_ptr() % tensor.element_size() == 0


@pytest.mark.parametrize(
    "name, array",
    [
        ("str_", np.array(["a"])),
        ("bytes_", np.array([b"a"])),
        ("object_", np.array([None])),
        ("datetime64", np.array(["2020-01-01"], "M8[D]")),
        ("void", np.zeros(1, "V3")),
    ],
)
def test_other_types_are_named(name, array):
    with pytest.raises(TypeError, match=rf"^can't convert np.ndarray of type numpy\.{name}\. The only"):
        rl.from_numpy(array)


def test_refusals():
    with pytest.raises(RuntimeError, match="Use tensor.detach\\(\\).numpy\\(\\)"):
        rl.ones(2, requires_grad=True).numpy()
    assert rl.ones(2, requires_grad=True).numpy(force=True).tolist() == [1, 1]
    with pytest.raises(TypeError, match="can't convert np.ndarray of type numpy.object_"):
        rl.from_numpy(np.array([object()]))
    with pytest.raises(TypeError, match="expected np.ndarray"):
        rl.from_numpy([1])
    with pytest.raises((ValueError, TypeError)):
        rl.from_numpy(np.zeros(2, dtype=">f8"))


def test_numpy_functions_and_scalars():
    assert np.asarray(rl.ones(2)).tolist() == [1, 1]
    assert (rl.ones(2) + np.ones(2)).tolist() == [2, 2]
    assert (rl.ones(2) * np.float64(2)).tolist() == [2, 2]
    assert rl.tensor(np.float64(1)).dtype is rl.float64 and rl.tensor([np.int32(1)]).dtype is rl.int32
    assert rl.ones(3)[np.int64(1)].item() == 1


def test_buffer_protocol():
    x = rl.arange(6, dtype=rl.int32).reshape(2, 3)
    view = memoryview(x)
    assert view.shape == (2, 3) and view.format == "i" and view.tolist() == x.tolist()
    view[0, 0] = 9
    assert x[0, 0].item() == 9
    raw = bytearray(b"\x01\x00\x02\x00")
    assert rl.frombuffer(raw, dtype=rl.int16).tolist() == [1, 2]
    with pytest.raises(ValueError, match="multiple of element size"):
        rl.frombuffer(raw[:3], dtype=rl.int16)


def test_dlpack():
    array = np.arange(6.0).reshape(2, 3)[:, ::-1]
    tensor = rl.from_dlpack(array)
    assert tensor.tolist() == array.tolist() and np.shares_memory(tensor.numpy(), array)
    x = rl.arange(3)
    assert np.shares_memory(np.from_dlpack(x), x.numpy())
    assert x.__dlpack_device__() == (1, 0)
    capsule = x.__dlpack__()
    assert rl.from_dlpack(capsule).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="consumed only once"):
        rl.from_dlpack(capsule)
    with pytest.raises(BufferError, match="require gradient"):
        rl.ones(1, requires_grad=True).__dlpack__()


NO_MEMORY = """
import numpy as np
import rushlight as torch
from rushlight._subclasses.fake_tensor import FakeTensorMode

emptied = torch.ones(3)
emptied.untyped_storage().resize_(0)
mode = FakeTensorMode()
for x in (mode.from_tensor(torch.ones(3)), emptied, torch.ones(3, device="meta")):
    for read in (memoryview, np.asarray, np.sum, bytes):
        try:
            read(x)
        except Exception as error:
            print(type(error).__name__)
"""


def test_tensors_without_memory_give_no_buffer():
    """An error, where the process once ended: tracing programs hand fake tensors to NumPy."""
    done = subprocess.run([sys.executable, "-c", NO_MEMORY], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 12, done.stdout
