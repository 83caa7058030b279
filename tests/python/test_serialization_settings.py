"""Defaults of saving and loading, and contexts that change them."""

import mmap
import types

import pytest

import rushlight as torch
from rushlight import serialization


def test_data_may_be_skipped(tmp_path):
    full, hollow = tmp_path / "filled.pt", tmp_path / "hollow.pt"
    state = {"w": torch.randn(1000), "n": 3}
    torch.save(state, full)
    with serialization.skip_data():
        torch.save(state, hollow)
        skipped = torch.load(full)
    assert full.stat().st_size == hollow.stat().st_size
    for loaded in (torch.load(hollow), skipped):
        assert loaded["n"] == 3 and loaded["w"].shape == (1000,) and not loaded["w"].any()
    assert torch.equal(torch.load(full)["w"], state["w"])


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
