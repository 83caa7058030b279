"""Tensors spread over processes, and modules made of them: real processes on the loopback interface."""

import dtensor_programs as programs
import parallel_programs
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


def _run(program, size, tmp_path, *args):
    mp.spawn(program, args=(size, str(tmp_path / "store"), *args), nprocs=size)


@pytest.mark.parametrize("shape", [(3,), (2, 2)])
def test_operators_equal_those_of_one_process(shape, tmp_path):
    _run(programs.operators, shape[0] * shape[-1] if len(shape) > 1 else shape[0], tmp_path, shape)


@pytest.mark.parametrize("program, size", [("redistribution", 4), ("behaviour", 2), ("found", 2)])
def test_programs(program, size, tmp_path):
    _run(getattr(programs, program), size, tmp_path)


def test_parallel_styles(tmp_path):
    _run(parallel_programs.styles, 2, tmp_path)
