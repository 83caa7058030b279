"""Defaults of saving and loading, and contexts that change them."""

import io
import math
import mmap
import pickle
import types
import zipfile

import pytest

import rushlight as torch
from rushlight import serialization
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.utils.serialization import config


def test_data_may_be_skipped(tmp_path):
    full, hollow = tmp_path / "filled.pt", tmp_path / "hollow.pt"
    state = {"w": torch.randn(1000), "n": 3}
    torch.save(state, full)
    with serialization.skip_data():
        torch.save(state, hollow)
        with pytest.raises(RuntimeError, match="outside the skip_data context"):
            torch.load(full)
    assert full.stat().st_size == hollow.stat().st_size
    loaded = torch.load(hollow)
    assert loaded["n"] == 3 and loaded["w"].shape == (1000,) and not loaded["w"].any()
    assert torch.equal(torch.load(full)["w"], state["w"])


def test_skipped_data_is_filled_in_the_file(tmp_path):
    path, x = tmp_path / "w.pt", torch.arange(6.0)
    with serialization.skip_data():
        torch.save({"w": x}, path)
    begin = torch._C.PyTorchFileReader(str(path)).get_record_offset("data/0")
    with open(path, "rb+") as file:
        file.seek(begin)
        file.write(x.numpy().tobytes())
    assert torch.load(path)["w"].tolist() == x.tolist()


def test_fake_tensors_may_be_written_as_zeros(tmp_path):
    with FakeTensorMode():
        fake = torch.randn(2, 3)
        fakes = {"all": fake, "row": fake[1]}
    with serialization.skip_data(materialize_fake_tensors=True):
        torch.save(fakes, tmp_path / "f.pt")
    loaded = torch.load(tmp_path / "f.pt")
    assert type(loaded["all"]) is torch.Tensor and loaded["all"].tolist() == [[0] * 3] * 2
    loaded["all"][1] = 7
    assert loaded["row"].tolist() == [7, 7, 7]


def test_meta_tensors_have_nothing_to_skip(tmp_path):
    with serialization.skip_data():
        with pytest.warns(UserWarning, match="is a no-op"):
            torch.save(torch.ones(2, device="meta"), tmp_path / "m.pt")
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        with pytest.raises(RuntimeError, match="Cannot serialize nested tensor under skip_data"):
            torch.save(nested, tmp_path / "n.pt")


class Remembering:
    def __init__(self, x):
        self.x = x


def test_environment_decides(monkeypatch, tmp_path):
    path = tmp_path / "x.pt"
    torch.save(Remembering(1), path)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert torch.load(path).x == 1
    with pytest.raises(pickle.UnpicklingError):
        torch.load(path, weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of"):
        torch.load(path)
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(path, weights_only=False)


def test_pytorch_reads_hollow_files(tmp_path):
    oracle = pytest.importorskip("torch")
    with serialization.skip_data():
        torch.save({"w": torch.ones(3)}, tmp_path / "hollow.pt")
    assert oracle.load(tmp_path / "hollow.pt")["w"].tolist() == [0, 0, 0]


def test_maps_may_be_shared_with_the_file(tmp_path):
    path = tmp_path / "t.pt"
    torch.save(torch.zeros(4), path)
    torch.load(path, mmap=True).add_(1)
    assert torch.load(path).tolist() == [0] * 4
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        torch.load(path, mmap=True).add_(2)
    assert torch.load(path, mmap=True).tolist() == [2] * 4  # the checksum is of before
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with pytest.raises(ValueError, match="MAP_PRIVATE"):
        serialization.set_default_mmap_options(12345)


def test_versions_of_modules():
    check = serialization.check_module_version_greater_or_equal
    module = types.ModuleType("thing")
    module.__version__ = "1.10.2"
    assert check(module, (1, 9)) and check(module, (1, 10, 2)) and not check(module, (2, 0))
    module.__version__ = "dev"
    with pytest.raises(RuntimeError, match="malformed"):
        check(module, (1, 0))
    with pytest.warns(UserWarning, match="malformed"):
        assert check(module, (1, 0), error_if_malformed=False)


@pytest.mark.parametrize("checked", [True, False])
def test_checksums_are_written_where_they_are_wanted(tmp_path, checked):
    path = tmp_path / "x.pt"
    state = {"w": torch.randn(20)}
    serialization.set_crc32_options(checked)
    try:
        torch.save(state, path)
    finally:
        serialization.set_crc32_options(True)
    with zipfile.ZipFile(path) as file:
        assert all((entry.CRC != 0) is checked for entry in file.infolist())
    assert torch.equal(torch.load(path)["w"], state["w"])
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(state["w"].numpy().tobytes())] ^= 1
    path.write_bytes(damaged)
    if checked:
        with pytest.raises(RuntimeError, match="fails its checksum"):
            torch.load(path)
    else:
        assert not torch.equal(torch.load(path)["w"], state["w"])


def test_saving_asks_a_file_for_nothing_but_write_and_flush():
    class Sink:
        def __init__(self):
            self.parts, self.flushed = [], False

        def write(self, data):
            self.parts.append(bytes(data))

        def flush(self):
            self.flushed = True

    sink = Sink()
    torch.save(torch.arange(3), sink)
    assert sink.flushed
    assert torch.load(io.BytesIO(b"".join(sink.parts))).tolist() == [0, 1, 2]


def test_files_are_opened_by_path_or_used_as_they_are(tmp_path):
    path = tmp_path / "x.pt"
    with serialization._open_file_like(path, "wb") as file:
        torch.save(torch.ones(2), file)
    assert file.closed
    with serialization._open_file_like(str(path), "rb") as file:
        assert torch.load(file).tolist() == [1, 1]
    buffer = io.BytesIO()
    with serialization._open_file_like(buffer, "wb") as file:
        assert file is buffer
    assert not buffer.closed


def _alignment(path):
    """Of what the bytes of all storages in a file are a multiple."""
    content, offsets = path.read_bytes(), []
    for info in zipfile.ZipFile(path).infolist():
        if "/data/" in info.filename:
            at = info.header_offset
            name, extra = (int.from_bytes(content[at + k : at + k + 2], "little") for k in (26, 28))
            offsets.append(at + 30 + name + extra)
    return math.gcd(*offsets)


@pytest.mark.parametrize("alignment", [64, 256, 4096])
def test_storages_begin_where_the_settings_say(tmp_path, alignment):
    path, state = tmp_path / "state.pt", {"a": torch.ones(3), "b": torch.arange(5)}
    with config.patch("save.storage_alignment", alignment):
        torch.save(state, path)
    assert _alignment(path) % alignment == 0
    assert zipfile.ZipFile(path).read("state/.storage_alignment") == str(alignment).encode()
    assert torch.load(path)["b"].tolist() == [0, 1, 2, 3, 4]
    assert torch.load(path, mmap=True)["a"].tolist() == [1, 1, 1]
    oracle = pytest.importorskip("torch")
    assert oracle.load(path)["b"].tolist() == [0, 1, 2, 3, 4]


def test_alignments_that_no_header_can_fill(tmp_path):
    for alignment in (0, -64, 65536):
        with config.patch("save.storage_alignment", alignment), pytest.raises(ValueError, match="multiples"):
            torch.save(torch.ones(2), tmp_path / "x.pt")
    assert not list(tmp_path.iterdir())


def test_files_are_mapped_where_the_settings_say(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.ones(2), path)
    with config.patch({"load.mmap": True, "load.mmap_flags": mmap.MAP_SHARED}):
        mapped = torch.load(path)
        with open(path, "rb") as file, pytest.raises(ValueError, match="must be a file path"):
            torch.load(file)
        assert torch.load(path, mmap=False).tolist() == [1, 1]
    mapped.fill_(3)
    assert mapped.numpy().tobytes() in path.read_bytes()


def test_functions_and_settings_are_one():
    serialization.set_crc32_options(False)
    assert config.save.compute_crc32 is False
    config.save.compute_crc32 = True
    assert serialization.get_crc32_options() is True
    with config.patch("load.endianness", serialization.LoadEndianness.BIG):
        assert serialization.get_default_load_endianness() is serialization.LoadEndianness.BIG
    assert serialization.get_default_load_endianness() is None
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        assert config.load.mmap_flags == mmap.MAP_SHARED
    assert config.load.mmap_flags == mmap.MAP_PRIVATE


def test_settings_are_pytorchs():
    oracle = pytest.importorskip("torch.utils.serialization").config
    theirs = {name: value for name, value in oracle.get_config_copy().items() if "." in name}
    assert config.get_config_copy() == theirs
