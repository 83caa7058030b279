"""DistributedDataParallel with sparse gradients, its hooks, and groups that only their members make."""

import pytest
import sparse_programs as programs

from rushlight import distributed as dist
from rushlight import multiprocessing as mp

pytestmark = [
    pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)"),
    pytest.mark.timeout(180),
]


@pytest.mark.parametrize(
    "program, size",
    [("as_one_process", 2), ("unused_and_undeclared", 2), ("refused_hooks", 1), ("local_groups", 3)],
)
def test_programs(program, size, tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    mp.spawn(getattr(programs, program), args=(size, str(tmp_path / "store")), nprocs=size)
