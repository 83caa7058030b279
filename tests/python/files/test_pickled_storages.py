"""Pickles of single tensors, and the archives that hold many."""

import pickle

import pytest

import rushlight
from rushlight._command.names import is_aliased


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "complex64", "uint16"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 4)])
def test_pickled_tensors_come_back(dtype, shape):
    x = rushlight.ones(shape).to(getattr(rushlight, dtype))
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype == x.dtype and y.shape == x.shape and rushlight.equal(x, y)


def test_pickled_storages_are_pytorchs():
    oracle = pytest.importorskip("torch")
    for lib, other in ((rushlight, oracle), (oracle, rushlight)):
        load, (data,) = lib.tensor([1.0, 2.5])._typed_storage().__reduce__()
        assert other.storage._load_from_bytes(data).tolist() == [1.0, 2.5]


def test_damaged_pickled_storages_are_refused():
    _, (data,) = rushlight.tensor([1.0, 2.5])._typed_storage().__reduce__()
    for damaged in (data[:-1], data[:-9], data.replace(b"Float", b"Floot")):
        with pytest.raises(Exception, match="load|FlootStorage"):
            rushlight.storage._load_from_bytes(damaged)


@pytest.mark.skipif(is_aliased(), reason="under PyTorch's name a pickle is as PyTorch reads it")
def test_buffers_beside_a_pickle_are_shared():
    x, buffers = rushlight.arange(10.0), []
    data = pickle.dumps([x, x[2:]], 5, buffer_callback=buffers.append)
    assert len(buffers) == 2 and b"\0\0\x80?\0\0\0@" not in data  # the numbers 1 and 2 went beside it
    y, _ = pickle.loads(data, buffers=buffers)
    y[0] = 7
    assert x[0] == 7


@pytest.mark.parametrize("protocol", range(2, 6))
def test_tensors_from_pickles_can_be_resized(protocol):
    x = pickle.loads(pickle.dumps(rushlight.arange(3.0), protocol))
    x.add_(1)
    assert x.resize_(100)[:3].tolist() == [1, 2, 3]
    storage = rushlight.arange(3.0).untyped_storage()
    assert bytes(pickle.loads(pickle.dumps(storage, protocol))) == bytes(storage)


def test_the_public_class_of_a_storage():
    public, raw = rushlight.serialization.normalize_storage_type, rushlight.ones(1).untyped_storage()
    assert public(type(raw)) is rushlight.UntypedStorage
    assert public(rushlight.FloatStorage) is rushlight.FloatStorage
