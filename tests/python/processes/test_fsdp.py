"""Parameters sharded over processes: real processes on the loopback interface."""

import json
import os
import subprocess
import sys

import fsdp_programs as programs
import pytest

import rushlight as torch
from rushlight import distributed as dist
from rushlight import multiprocessing as mp
from rushlight.distributed.checkpoint import FileSystemReader
from rushlight.distributed.checkpoint import state_dict_loader as checkpoint
from rushlight.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner

pytestmark = [
    pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)"),
    pytest.mark.timeout(180),
]


@pytest.fixture(autouse=True)
def _on_loopback(monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")


def _spawn(program, size, tmp_path, *args):
    mp.spawn(program, args=(size, str(tmp_path / f"store_{size}"), *args), nprocs=size)


@pytest.mark.parametrize(
    "program, size",
    [
        ("per_parameter", 2),
        ("two_dimensions", 4),
        ("wrapped", 2),
        ("own_collectives", 2),
        ("spread_over_neighbours", 4),
    ],
)
def test_programs(program, size, tmp_path):
    _spawn(getattr(programs, program), size, tmp_path)


def test_checkpoints_are_cut_anew(tmp_path):
    for size in (4, 2, 1):
        _spawn(programs.checkpoints, size, tmp_path, str(tmp_path))


def test_damaged_checkpoints_are_refused(tmp_path):
    dist.checkpoint.save({"a": torch.ones(3), "b": 1}, checkpoint_id=tmp_path / "whole", no_dist=True)
    index, data = (tmp_path / "whole" / name for name in (".metadata", "__0_0.distcp"))
    good, values = index.read_bytes(), data.read_bytes()
    read = lambda: dist.checkpoint.load({"a": torch.zeros(3), "b": 0}, checkpoint_id=tmp_path / "whole")
    read()
    data.write_bytes(values[:-40])
    with pytest.raises(dist.checkpoint.CheckpointException, match="shorter"):
        read()
    for spoilt in (
        good[:-5],
        good.replace(b"BytesStorageMetadata", b"BytesStorageMetadatb"),
        b"",
        b"\x80\x04N.",
    ):
        index.write_bytes(spoilt)
        with pytest.raises(dist.checkpoint.CheckpointException, match="damaged"):
            read()


def test_layouts_and_training_are_pytorchs(tmp_path):
    pytest.importorskip("torch")
    script = os.path.join(os.path.dirname(__file__), "dtensor_oracle.py")
    said = []
    for name in ("rushlight", "torch"):
        command = [sys.executable, script, name, str(tmp_path)]
        done = subprocess.run(command, timeout=150, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said.append(_flat(json.loads((tmp_path / f"{name}.json").read_text())))
    mine, theirs = said
    assert [x for x in mine if isinstance(x, str)] == [x for x in theirs if isinstance(x, str)]
    numbers = [[x for x in one if not isinstance(x, str)] for one in said]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-4, abs=1e-6)
    state: dict = {}
    checkpoint._load_state_dict(
        state, FileSystemReader(tmp_path / "of_torch"), planner=_EmptyStateDictLoadPlanner(), no_dist=True
    )
    assert state["spread"].tolist() == torch.arange(10.0).view(5, 2).tolist()
    assert state["nested"]["list"] == [1, 2] and state["mixed"][1]["x"] == "text"
    assert state["nested"]["half"].dtype == torch.bfloat16 and state["nested"]["half"].tolist() == [1, 1]
    assert state["optimizer"]["param_groups"][0]["lr"] == 0.5


def _flat(value):
    return [x for item in value for x in _flat(item)] if isinstance(value, list) else [value]
