"""What tests of worker processes ask the system: its processes, open files, and how busy it is."""

import os
import subprocess
import sys
import time

import rushlight

WAIT = 30


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        pids = {int(pid) for pid in file.read().split()}
    servers = _helpers_of_multiprocessing()
    return pids - servers


def _helpers_of_multiprocessing():
    from multiprocessing import forkserver, resource_tracker

    return {forkserver._forkserver._forkserver_pid, resource_tracker._resource_tracker._pid}


def descriptors():
    links = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            links[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            pass  # the listing's own
    return links


def environment():
    root = os.path.dirname(os.path.dirname(rushlight.__file__))
    paths = [root, os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def run_script(script, *args):
    out = subprocess.run(
        [sys.executable, str(script), *args],
        capture_output=True,
        text=True,
        timeout=180,
        env=environment(),
    )
    assert out.returncode == 0, out.stderr
    return out


def wait_until_gone(pid):
    end = time.monotonic() + WAIT
    while os.path.exists(f"/proc/{pid}"):
        with open(f"/proc/{pid}/stat") as file:
            if file.read().rpartition(")")[2].split()[0] == "Z":
                return
        assert time.monotonic() < end, f"process {pid} lives on"
        time.sleep(0.02)


def load():
    """How much longer things take than on an idle machine."""
    return max(1.0, os.getloadavg()[0] / os.cpu_count())
