"""Process groups on NCCL, whose functions the emulated device's library has too: processes, a device each.

With GPUs, RUSHLIGHT_CUDA_LIBRARY and RUSHLIGHT_NCCL_LIBRARY unset: `python nccl_programs.py collectives 2`.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_device import ENVIRONMENT, HERE, LIBRARY, needs_device, on_device

pytestmark = [needs_device, pytest.mark.timeout(180)]


def _run(tmp_path, name, size, **variables):
    return on_device(
        "nccl_programs.py",
        name,
        str(size),
        RUSHLIGHT_NCCL_LIBRARY=str(LIBRARY),
        TMPDIR=str(tmp_path),
        GLOO_SOCKET_IFNAME="lo",
        **variables,
    )


@pytest.mark.parametrize(
    "names, size", [("order,collectives,data_parallel", 2), ("messages,collectives,order", 3)]
)
def test_programs(names, size, tmp_path):
    _run(tmp_path, names, size)
    assert not list(Path(tmp_path).glob("emulated-nccl-*"))  # every communicator was destroyed


def test_a_backend_for_each_device(tmp_path):
    from rushlight import distributed as dist

    if not dist.is_available():
        pytest.skip("this build has no Gloo")
    _run(tmp_path, "several_backends", 2, TORCH_DISTRIBUTED_DEBUG="DETAIL")


def test_factors_are_for_nccl_alone():
    from rushlight import distributed as dist

    if not dist.is_available() or not dist.is_gloo_available():
        pytest.skip("this build has no Gloo")
    program = (
        "import rushlight as t, rushlight.distributed as d\n"
        "d.init_process_group('gloo', store=d.HashStore(), rank=0, world_size=1)\n"
        "try: d.all_reduce(t.ones(2), d._make_nccl_premul_sum(2.0))\n"
        "except RuntimeError as e: print(e)\n"
    )
    assert "Cannot use ReduceOp.PREMUL_SUM" in on_device("-c", program, GLOO_SOCKET_IFNAME="lo")


@pytest.mark.parametrize("name", ["a_late_rank", "never_connected", "remote_failure"])
def test_failures_raise(name, tmp_path):
    _run(tmp_path, name, 2, TORCH_NCCL_ASYNC_ERROR_HANDLING="2")


def test_a_hang_ends_the_process(tmp_path):
    environment = {
        **ENVIRONMENT,
        "RUSHLIGHT_CUDA_FALLBACK": "silent",
        "RUSHLIGHT_NCCL_LIBRARY": str(LIBRARY),
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "nccl_programs.py", "a_late_rank", "2"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=HERE,
    )
    assert done.returncode != 0 and "this process ends" in done.stderr, done.stderr[-3000:]
    assert signal.SIGABRT.name in done.stderr or "signal" in done.stderr, done.stderr[-3000:]


ONE_PROCESS = """
import rushlight as torch
from rushlight.cuda import nccl

a = [torch.full((4,), float(i + 1), device=f"cuda:{i}") for i in range(2)]
nccl.all_reduce(a)
assert [t.tolist() for t in a] == [[3.0] * 4] * 2 and nccl.version() == (2, 27, 3) and nccl.is_available(a)
b = [torch.full((4,), float(i), device=f"cuda:{i}") for i in range(2)]
nccl.broadcast(b, 1)
assert b[0].tolist() == [1] * 4
c = [torch.empty(8, device=f"cuda:{i}") for i in range(2)]
nccl.all_gather([b[0], a[1]], c)
assert c[0].tolist() == [1] * 4 + [3] * 4 == c[1].tolist()
d = [torch.empty(4, device=f"cuda:{i}") for i in range(2)]
nccl.reduce_scatter(c, d)
assert d[0].tolist() == [2] * 4 and d[1].tolist() == [6] * 4
nccl.reduce(d, root=1)
assert d[1].tolist() == [8] * 4
assert not nccl.is_available([d[0], d[0]])
try:
    nccl.all_reduce([d[0], d[0]])
except RuntimeError as error:
    assert "different CUDA devices" in str(error)
else:
    raise SystemExit("two of one device")
"""


def test_devices_of_one_process(tmp_path):
    on_device("-c", ONE_PROCESS, RUSHLIGHT_NCCL_LIBRARY=str(LIBRARY), TMPDIR=str(tmp_path))


def test_what_is_missing_is_named():
    program = (
        "import rushlight.distributed as d\n"
        "try: d.init_process_group('nccl', store=d.HashStore(), rank=0, world_size=1)\n"
        "except d.DistBackendError as e: print(e)"
    )
    assert "pip install nvidia-nccl-cu13" in on_device("-c", program, RUSHLIGHT_NCCL_LIBRARY="/no/libnccl.so")
    old = on_device("-c", program, RUSHLIGHT_NCCL_LIBRARY=str(LIBRARY), EMULATED_NCCL_VERSION="21203")
    assert "version 2.12.3 is too old" in old
    nothing = {k: v for k, v in os.environ.items() if not k.startswith("RUSHLIGHT_CUDA")}
    nothing["PYTHONPATH"] = ENVIRONMENT["PYTHONPATH"]
    done = subprocess.run([sys.executable, "-c", program], env=nothing, capture_output=True, text=True)
    assert "no CUDA device was found" in done.stdout, done.stdout + done.stderr
