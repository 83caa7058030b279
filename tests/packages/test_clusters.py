"""The programs of docs/clusters.md on Ray and Dask, as they stand there, by the commands that stand there."""

import importlib.util
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from rushlight import distributed as dist

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "clusters.md").read_text()
PROGRAMS = dict(re.findall(r'^```python title="([^"]*)"\n(.*?)^```$', PAGE, re.M | re.S))
COMMANDS = re.findall(r"^```sh\npython ([^\n]*)\n```\n```text\n(.*?)^```$", PAGE, re.M | re.S)
PACKAGES = {"ray": "ray", "dask": "dask", "dask.distributed": "distributed"}
SECONDS = 240
pytestmark = pytest.mark.timeout(SECONDS + 60)


def imports(name):
    """The modules that a program of the page imports at its top."""
    return re.findall(r"^(?:import|from) ([\w.]+)", PROGRAMS[name], re.M)


def processes_with(text):
    """Numbers of the processes in whose environment there is a text."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            pass  # it has ended, or is another user's
    return found


@pytest.fixture
def environment(tmp_path):
    """Variables for clusters that write in folders of their own, and leave nothing behind."""
    short = tempfile.mkdtemp(prefix="rl", dir="/tmp")  # paths of sockets have at most 107 letters
    yield {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "DASK_CONFIG": str(tmp_path / "dask"),
        "DASK_TEMPORARY_DIRECTORY": str(tmp_path / "dask"),
        "RAY_TMPDIR": short,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
        "RAY_memory_monitor_refresh_ms": "0",  # a full machine is no reason to end workers
    }
    deadline = time.monotonic() + 30
    while (left := processes_with(short)) and time.monotonic() < deadline:
        time.sleep(0.2)
    for process in left:
        os.kill(process, signal.SIGKILL)
    shutil.rmtree(short, ignore_errors=True)
    assert not left, f"{len(left)} processes outlived the program"


@pytest.mark.parametrize("command, says", COMMANDS, ids=[command.split()[-1] for command, _ in COMMANDS])
def test_recipe(command, says, environment, tmp_path):
    packages = {PACKAGES[name] for name in imports(command.split()[-1]) if name in PACKAGES}
    assert packages
    missing = sorted(name for name in packages if importlib.util.find_spec(name) is None)
    if missing:
        pytest.skip(f"{', '.join(missing)}: not installed (./dev test installs the group 'clusters')")
    if command.split()[-1] not in ("arrays.py", "search.py") and not dist.is_gloo_available():
        pytest.skip("this build has no Gloo (libgloo-dev)")
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, *command.split()],
        env=environment,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    lines = done.stdout.splitlines()
    assert says.splitlines() == [line for line in lines if line in says.splitlines()], done.stdout[-3000:]


def test_each_program_is_run():
    """A program of the page is started by a command of it, or imported by one that is."""
    started = {command.split()[-1] for command, _ in COMMANDS}
    imported = {f"{module}.py" for name in started for module in imports(name)}
    assert set(PROGRAMS) <= started | imported and len(started) == 6
