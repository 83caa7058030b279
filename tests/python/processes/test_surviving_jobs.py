"""A part of tests/fuzz/surviving_jobs.py, which hurts jobs as long as one likes; and what it found."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running_processes import processes_with

from rushlight import distributed as dist

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [
    pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)"),
    pytest.mark.timeout(300),
]


def test_a_job_that_is_hurt_again_and_again_ends_with_the_weights_of_an_undisturbed_one():
    """Data parallel, sharded and pipelined at once: a rank is killed, one is stopped for good, the disk is
    full."""
    command = [sys.executable, ROOT / "tests/fuzz/surviving_jobs.py", "--in-order", "--steps", "18"]
    command += ["--kinds", "ddp+fsdp+pipeline", "--faults", "kill,stop,full", "--timeout", "4"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=280)
    assert ran.returncode == 0, ran.stdout[-10000:] + ran.stderr[-5000:]
    faults, found = map(int, re.search(r"(\d+) faults, (\d+) found", ran.stdout).groups())
    assert faults >= 2 and found == 0, ran.stdout


_WAITS = """
import os, sys, time
import rushlight.distributed as dist
dist.init_process_group()
open(os.path.join(sys.argv[1], os.environ["RANK"]), "w").write(str(os.getpid()))
time.sleep(600)
"""


@pytest.fixture
def waiting(tmp_path):
    """A launcher with two ranks that wait, and its program."""
    program, told = tmp_path / "waits.py", tmp_path / "told"
    program.write_text(_WAITS)
    told.mkdir()
    command = [sys.executable, "-m", "rushlight.distributed.run", "--standalone", "--nproc-per-node", "2"]
    launcher = subprocess.Popen(
        [*command, str(program), str(told)],
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        while len(list(told.iterdir())) < 2 or not all(p.read_text() for p in told.iterdir()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield launcher, str(program), [int(p.read_text()) for p in told.iterdir()]
    finally:
        launcher.kill()
        launcher.wait()
        for pid in processes_with(str(program)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_ranks_end_with_their_launcher(waiting):
    launcher, program, _ = waiting
    launcher.kill()
    launcher.wait()
    deadline = time.monotonic() + 20
    while processes_with(program) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes_with(program) == []


def test_a_stopped_rank_does_not_hold_up_the_end(waiting):
    launcher, program, pids = waiting
    os.kill(pids[0], signal.SIGSTOP)
    began = time.monotonic()
    os.kill(pids[1], signal.SIGKILL)
    _, said = launcher.communicate(timeout=60)
    assert time.monotonic() - began < 15, "half a minute is what is waited for a process that does not end"
    assert launcher.returncode == 1 and "SIGKILL" in said
    assert processes_with(program) == []
