"""Backends and process groups that programs write in Python."""

import backend_programs as programs
import pytest

from rushlight import distributed as dist
from rushlight import multiprocessing as mp

pytestmark = [
    pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)"),
    pytest.mark.timeout(180),
]


@pytest.mark.parametrize("program", ["registered", "given"])
def test_programs(program, tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    mp.spawn(getattr(programs, program), args=(2, str(tmp_path / "store")), nprocs=2)


def test_options_have_the_fields_of_pytorchs():
    assert dist.BroadcastOptions().rootRank == 0 and dist.AllreduceOptions().reduceOp == dist.ReduceOp.SUM
    assert dist.ReduceOptions(rootRank=2).rootRank == 2 and dist.BarrierOptions().device_ids == []


def test_a_group_that_defines_nothing_says_so():
    with pytest.raises(NotImplementedError, match="ProcessGroup does not support barrier"):
        dist.barrier(group=dist.ProcessGroup(0, 1))
