"""Pickles of single tensors, and the archives that hold many."""

import pickle
import zipfile

import pytest

import rushlight


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


def test_large_archives_have_a_directory_that_others_read(monkeypatch, tmp_path):
    """With the limit of the small form lowered, every record takes the large one."""
    from rushlight import _zip_records

    monkeypatch.setattr(_zip_records, "_LARGE", 1)
    with open(tmp_path / "a.pt", "wb") as file:
        writer = _zip_records.RecordWriter(file, "größe")
        for i in range(3):
            writer.write(f"data/{i}", bytes(100 * i))
        writer.close()
    with zipfile.ZipFile(tmp_path / "a.pt") as archive:
        assert archive.testzip() is None
        assert [info.file_size for info in archive.infolist()] == [0, 100, 200]
    assert (tmp_path / "a.pt").read_bytes().count(b"PK\6\6") == 1
