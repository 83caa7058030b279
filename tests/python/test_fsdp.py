"""Parameters sharded over processes: real processes on the loopback interface."""

import json
import os
import subprocess
import sys

import fsdp_programs as programs
import pytest

from rushlight import distributed as dist
from rushlight import multiprocessing as mp

pytestmark = [
    pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)"),
    pytest.mark.timeout(180),
]


@pytest.fixture(autouse=True)
def _on_loopback(monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")


@pytest.mark.parametrize("program, size", [("per_parameter", 2), ("two_dimensions", 4), ("wrapped", 2)])
def test_programs(program, size, tmp_path):
    mp.spawn(getattr(programs, program), args=(size, str(tmp_path / "store")), nprocs=size)


def test_layouts_and_training_are_pytorchs(tmp_path):
    pytest.importorskip("torch")
    script = os.path.join(os.path.dirname(__file__), "spread_oracle.py")
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


def _flat(value):
    return [x for item in value for x in _flat(item)] if isinstance(value, list) else [value]
