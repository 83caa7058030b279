"""Storages under the names and with the refusals that PyTorch's own code and tests know."""

import os
import subprocess
import sys
import tempfile
import warnings

import pytest

import rushlight as torch


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_constructors_refuse_what_pytorch_refuses():
    cls = torch.FloatStorage
    s = cls()
    for error, words, call in [
        (RuntimeError, "Only child classes of _LegacyStorage", lambda: torch.storage._LegacyStorage()),
        (RuntimeError, "'device' cannot be specified", lambda: cls(device="cpu")),
        (RuntimeError, "'dtype' cannot be specified", lambda: cls(dtype=torch.float)),
        (TypeError, "got an unexpected keyword", lambda: cls(wrong=1)),
        (RuntimeError, "Too many positional arguments", lambda: cls(0, 0)),
        (TypeError, "invalid data type", lambda: cls("string")),
        (TypeError, "Argument type not recognized", lambda: cls(torch.tensor([]))),
        (RuntimeError, "No positional arguments", lambda: cls(0, wrap_storage=s.untyped())),
        (TypeError, "must be UntypedStorage", lambda: cls(wrap_storage=s)),
        (RuntimeError, "'dtype' must be specified", lambda: torch.TypedStorage(wrap_storage=s.untyped())),
        (TypeError, "must be torch.dtype", lambda: torch.TypedStorage(wrap_storage=s.untyped(), dtype=0)),
        (RuntimeError, "device not recognized", lambda: torch.TypedStorage(dtype=torch.float, device="xla")),
        (RuntimeError, "cannot set item", lambda: cls(2).fill_(s)),
        (RuntimeError, "cannot set item", lambda: cls(2).__setitem__(0, s)),
        (RuntimeError, "Not available for CUDA storage", lambda: torch.cuda.ByteStorage.from_buffer()),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_second_names_do_what_the_first_do():
    s = torch.FloatStorage([1, 2, 3])
    s._resize_(4)
    s._setitem(slice(0, s._size()), 5)
    assert (s._size(), s._nbytes(), s._element_size(), s._pickle_storage_type()) == (4, 16, 4, "FloatStorage")
    assert s._data_ptr() == s.data_ptr() and s._getitem(1) == 5 and not s._is_shared()
    assert s._deepcopy({}).tolist() == [5] * 4
    assert torch.FloatStorage in torch._storage_classes and torch.FloatTensor in torch._tensor_classes


def test_storages_of_quantised_types_hold_integers():
    for dtype in (torch.quint8, torch.qint8, torch.qint32, torch.quint4x2):
        cls = torch.storage._storage_class(dtype)
        s = cls([0, 1, 2])
        s[1:] = 7
        assert cls(s.tolist()).tolist() == s.tolist() == [0, 7, 7]


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="Linux has files in memory")
def test_memory_handed_on_by_descriptor_and_by_name():
    t = torch.arange(6.0)
    descriptor, size = t.untyped_storage()._share_fd_cpu_()
    assert size == 24 and t.is_shared() and t.tolist() == list(range(6))
    other = torch.empty(0).set_(torch.UntypedStorage._new_shared_fd_cpu(descriptor, size))
    os.close(descriptor)
    other.add_(1)
    t.mul_(2)
    assert t.tolist() == other.tolist() == [2.0, 4, 6, 8, 10, 12]
    again, _ = t.untyped_storage()._share_fd_cpu_()
    os.close(again)
    other[0] = -1
    assert t[0] == -1  # it has not moved again
    manager, name, size = t.untyped_storage()._share_filename_cpu_()
    program = (
        "import sys, rushlight as torch\n"
        f"s = torch.UntypedStorage._new_shared_filename_cpu({manager!r}, {name!r}, {size})\n"
        "torch.empty(0).set_(s).fill_(8)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert t.tolist() == other.tolist() == [8.0] * 6
    held = len(os.listdir("/proc/self/fd"))
    del t, other
    assert len(os.listdir("/proc/self/fd")) < held


def test_meta_storages_have_no_memory_to_share_or_write():
    s = torch.TypedStorage([1, 2], device="meta", dtype=torch.int8)
    for share in (s._share_fd_cpu_, s._share_filename_cpu_, s.share_memory_):
        with pytest.raises(RuntimeError, match="only available on CPU"):
            share()
    with tempfile.TemporaryFile() as file:
        with pytest.raises(NotImplementedError, match="Cannot copy out"):
            s._write_file(file, True, True, 1)
        torch.ShortStorage([1, 2])._write_file(file, True, True, 2)
        file.seek(0)
        assert file.read() == (2).to_bytes(8, "little") + b"\x01\x00\x02\x00"


def test_a_tensor_of_a_storage_looks_into_it():
    s = torch.FloatStorage([1, 2, 3])
    t = torch.tensor(s)
    t[0] = 9
    assert s.tolist() == [9, 2, 3] and t.dtype is torch.float32
    bytes_ = torch.UntypedStorage(16)
    assert torch.tensor(bytes_).untyped_storage() is bytes_


def test_legacy_types_cannot_be_subclassed():
    with pytest.raises(TypeError, match="'torch.FloatTensor' is not an acceptable base type"):
        type("Mine", (torch.FloatTensor,), {})
    with pytest.raises(RuntimeError, match="not supported for quantized"):
        torch.quint8.is_signed  # noqa: B018
