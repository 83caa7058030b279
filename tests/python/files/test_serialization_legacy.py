"""Files in the format from before the zip container, written and read."""

import gzip
import io
import os
import pickle

import pytest

import rushlight as torch


def write(obj, file):
    torch.save(obj, file, _use_new_zipfile_serialization=False)


def everything():
    base = torch.arange(10.0)
    return {
        "all": base,
        "slice": base[2:7:2],
        "parameter": torch.nn.Parameter(torch.randn(3, 4)),
        "whole": torch.arange(4, dtype=torch.int16),
        "empty": torch.empty(0, 3),
        "bool": torch.tensor([True]),
        "half": torch.randn(3).bfloat16(),
        "state": torch.nn.Linear(2, 3).state_dict(),
    }


@pytest.mark.parametrize("weights_only", [True, False])
def test_round_trip(tmp_path, weights_only):
    saved = everything()
    write(saved, tmp_path / "old.pt")
    assert not torch.serialization._is_zipfile(open(tmp_path / "old.pt", "rb"))
    loaded = torch.load(tmp_path / "old.pt", weights_only=weights_only)
    torch.testing.assert_close(loaded, saved)
    assert isinstance(loaded["parameter"], torch.nn.Parameter)
    loaded["all"][2] = 50
    assert loaded["slice"][0] == 50


@pytest.mark.parametrize("weights_only", [True, False])
def test_pytorch_reads_it(tmp_path, weights_only):
    oracle = pytest.importorskip("torch")
    saved = everything()
    write(saved, tmp_path / "old.pt")
    loaded = oracle.load(tmp_path / "old.pt", weights_only=weights_only)
    assert loaded["slice"].tolist() == [2, 4, 6] and loaded["half"].dtype == oracle.bfloat16
    assert loaded["parameter"].tolist() == saved["parameter"].tolist() and loaded["empty"].shape == (0, 3)
    assert loaded["all"].data_ptr() + 8 == loaded["slice"].data_ptr()
    assert list(loaded["state"]) == ["weight", "bias"]


def test_several_objects_in_one_stream():
    file = io.BytesIO()
    pickle.dump(41, file)
    for n in range(3):
        write(torch.full((n,), n), file)
    file.seek(0)
    assert pickle.load(file) == 41
    assert [torch.load(file).tolist() for _ in range(3)] == [[], [1], [2, 2]]


def test_compressed_streams(tmp_path):
    with gzip.open(tmp_path / "old.gz", "wb") as file:
        write({"x": torch.arange(5)}, file)
    with gzip.open(tmp_path / "old.gz", "rb") as file:
        assert torch.load(file)["x"].tolist() == [0, 1, 2, 3, 4]


def test_only_what_is_looked_at_is_written(tmp_path):
    write(torch.zeros(1_000_000)[10:20], tmp_path / "old.pt")
    assert os.path.getsize(tmp_path / "old.pt") < 2000


def test_damage_is_an_error(tmp_path):
    file = io.BytesIO()
    write({"x": torch.arange(100)}, file)
    whole = file.getvalue()
    for end in range(1, len(whole), 23):
        with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
            torch.load(io.BytesIO(whole[:end]))


def test_modules_that_may_never_be_named(tmp_path):
    torch.save(os.getpid, tmp_path / "x.pt")
    with torch.serialization.safe_globals([os.getpid]):
        with pytest.raises(pickle.UnpicklingError, match="whose module posix is blocked"):
            torch.load(tmp_path / "x.pt")


class Slotted(torch.Tensor):
    __slots__ = ["unit"]


def test_slots_of_subclasses_are_kept(tmp_path):
    import copy

    length = torch.ones(2).as_subclass(Slotted)
    length.unit, length.note = "m", "long"
    torch.save(length, tmp_path / "x.pt")
    loaded = torch.load(tmp_path / "x.pt", weights_only=False)
    for copied in (loaded, copy.deepcopy(length)):
        assert type(copied) is Slotted and (copied.unit, copied.note) == ("m", "long")
