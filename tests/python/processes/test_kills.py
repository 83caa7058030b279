"""Ranks and workers that die at any moment, again and again under one parent: nothing hangs, nothing is left.

RUSHLIGHT_KILLS says how often; with `-s` the figures are printed.
"""

import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from running_processes import processes_with

import rushlight as torch
from rushlight import distributed as dist
from rushlight.utils.data import DataLoader, TensorDataset

KILLS = int(os.environ.get("RUSHLIGHT_KILLS", 6))
LIMIT = 60  # seconds from a death to the answer, on a machine however busy
pytestmark = [
    pytest.mark.timeout(60 + 30 * KILLS),
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]


def _descriptors(pid):
    gc.collect()
    return len(os.listdir(f"/proc/{pid}/fd"))


def _memory(pid):
    """MB that belong to a process: its own pages, and its part of the shared ones."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line and "kB" in line)
    return int(fields["Pss"].split()[0]) / 1024


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return file.read().split()


def _settled(look, wanted, seconds=20):
    """What `look` gives at last; processes take a moment to go."""
    deadline = time.monotonic() + seconds
    while not wanted(found := look()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _report(what, first, last, slowest):
    print(
        f"\n{KILLS} {what} killed: descriptors {first[0]} before, {last[0]} after; memory {first[1]:.0f} MB "
        f"before, {last[1]:.0f} MB after; the slowest answer took {slowest:.1f} s"
    )


# --- workers of loaders


def _load_and_kill(dataset, chance):
    """Kill a worker of a loader in its epoch; seconds until the loader said so, 0 if it had ended before."""
    loader = DataLoader(
        dataset,
        4,
        num_workers=chance.choice([1, 2, 3]),
        persistent_workers=chance.random() < 0.5,
        prefetch_factor=chance.choice([1, 2, 5]),
        timeout=LIMIT if chance.random() < 0.5 else 0,
    )
    iterator, seen, killed = iter(loader), 0, 0.0
    when, victim = chance.randrange(len(loader)), chance.randrange(loader.num_workers)
    try:
        for (batch,) in iterator:
            assert batch[0, 0] == seen * 4 * 1000
            seen += 1
            if seen == when:
                time.sleep(chance.random() * 0.01)
                os.kill(iterator._workers[victim].pid, signal.SIGKILL)
                killed = time.monotonic()
    except RuntimeError as error:
        assert "is killed by signal" in str(error) and seen >= when
        return time.monotonic() - killed
    assert seen == len(loader)
    return 0.0


def _allowed(megabytes):
    """What the process may take later: the heap that many tests left moves by some percent by itself."""
    return 1.05 * megabytes + 16


def test_workers_killed_again_and_again():
    chance, own = random.Random(1), os.getpid()
    dataset = TensorDataset(torch.arange(200_000).reshape(200, 1000))
    for _ in range(3):  # what is made once and kept
        _load_and_kill(dataset, chance)
    before = set(_children(own))
    first = _settled(lambda: (_descriptors(own), _memory(own)), lambda _: True)
    slowest = max(_load_and_kill(dataset, chance) for _ in range(KILLS))
    assert _settled(lambda: set(_children(own)) - before, lambda left: not left) == set()
    last = _descriptors(own), _memory(own)
    _report("workers", first, last, slowest)
    assert slowest < LIMIT
    # What the last loader's workers shared is unmapped when the next one starts.
    assert last[0] <= first[0] + 3 and last[1] < _allowed(first[1])


# --- ranks of a job that starts again

_TRAINING = """
import os, sys
number, rank = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]
with open(os.path.join(sys.argv[1], f"{number}.{rank}.part"), "w") as file:
    file.write(str(os.getpid()))
os.rename(file.name, file.name[:-5])
import rushlight as torch, rushlight.distributed as dist
from rushlight import nn
torch.set_num_threads(1)
dist.init_process_group()
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(50, 50), nn.ReLU(), nn.Linear(50, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(4000, 50)), 8, num_workers=1)
while True:
    for x, in loader:
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def _ranks_of(folder, number):
    """The pids of a start's ranks, once both have begun."""
    paths = [folder / f"{number}.{rank}" for rank in range(2)]
    deadline = time.monotonic() + LIMIT
    while not all(path.exists() for path in paths):
        assert time.monotonic() < deadline, f"start {number} did not come within {LIMIT} s"
        time.sleep(0.01)
    return [int(path.read_text()) for path in paths]


@pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)")
def test_ranks_killed_again_and_again(tmp_path):
    """One launcher starts a job of two ranks, each with a worker, anew each time one of them dies: while they
    import, meet, or train."""
    chance, folder = random.Random(2), tmp_path / "pids"
    folder.mkdir()
    program = tmp_path / "training.py"
    program.write_text(textwrap.dedent(_TRAINING))
    options = ["--standalone", "--nproc-per-node", "2", "--max-restarts", str(KILLS + 3)]
    command = [sys.executable, "-m", "rushlight.distributed.run", *options, str(program), str(folder)]
    shared = set(os.listdir("/dev/shm"))
    with open(tmp_path / "log", "w") as log:
        launcher = subprocess.Popen(
            command, env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"}, stdout=log, stderr=log
        )
        slowest, first = 0.0, None
        try:
            for number in range(KILLS):
                pids = _ranks_of(folder, number)
                if number == 1:
                    first = _descriptors(launcher.pid), _memory(launcher.pid)
                time.sleep(chance.random() * 2)
                os.kill(chance.choice(pids), signal.SIGKILL)
                died = time.monotonic()
                _ranks_of(folder, number + 1)
                slowest = max(slowest, time.monotonic() - died)
            _settled(lambda: _descriptors(launcher.pid), lambda count: count <= first[0] + 4)
            last = _descriptors(launcher.pid), _memory(launcher.pid)
            assert len(_children(launcher.pid)) == 2
        finally:
            launcher.send_signal(signal.SIGTERM)
            try:
                launcher.wait(LIMIT)
            finally:
                launcher.kill()
    _report("ranks", first, last, slowest)
    assert _settled(lambda: processes_with(str(program)), lambda left: not left) == []
    assert last[0] <= first[0] + 4  # two connections of each rank that runs
    assert last[1] < _allowed(first[1])
    assert {name for name in os.listdir("/dev/shm") if name.startswith("torch_")} <= shared
