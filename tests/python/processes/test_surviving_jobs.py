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
    variables = {**os.environ, "PYTHONPATH": str(Path(dist.__file__).parents[2])}
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


def test_a_record_of_a_file_store_that_was_cut_is_dropped(tmp_path):
    """What a killed process, or a full disk, left of a record."""
    path = tmp_path / "store"
    first = dist.FileStore(str(path))
    first.set("a", "1")
    whole = path.read_bytes()
    first.set("key", "value")
    record = path.read_bytes()[len(whole) :]
    stores = [first]
    for length in range(1, len(record)):
        path.write_bytes(whole + record[:length])
        stores += [dist.FileStore(str(path))]
        assert stores[-1].get("a") == b"1" and not stores[-1].check(["key"])
        stores[-1].set("b", "2")
        stores += [dist.FileStore(str(path))]
        assert stores[-1].get("b") == b"2" and stores[-1].get("a") == b"1"
    for store in stores:
        store._finalizer.detach()


def test_small_chunks_come_from_the_first_rank_that_has_them():
    from rushlight.distributed.checkpoint.default_planner import _shared_out
    from rushlight.distributed.checkpoint.metadata import MetadataIndex

    large, mean = MetadataIndex("large"), MetadataIndex("mean")
    everyone = [{large: 1 << 20, mean: 100}, {large: 1 << 20, mean: 100, MetadataIndex("own"): 8}]
    writers = _shared_out(everyone, 1 << 16)
    assert writers[mean] == 0 and writers[MetadataIndex("own")] == 1
    two = {MetadataIndex(name): 1 << 20 for name in "ab"}
    assert set(_shared_out([two, two], 1 << 16).values()) == {0, 1}, "large ones are shared out"
    assert set(_shared_out([two, two], float("inf")).values()) == {0}


def test_a_save_that_fails_takes_back_its_files(tmp_path):
    class Refuses:
        def __reduce__(self):
            raise RuntimeError("no")

    import rushlight as torch
    from rushlight.distributed import checkpoint

    state = {"x": torch.ones(3), "y": Refuses()}
    writer = checkpoint.FileSystemWriter(tmp_path, single_file_per_rank=False)
    with pytest.raises(Exception, match="no"):
        checkpoint.save(state, storage_writer=writer, no_dist=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda index: index.__dict__.pop("state_dict_metadata"),
        lambda index: index.state_dict_metadata["x"].__dict__.pop("chunks"),
        lambda index: index.state_dict_metadata["x"].chunks[0].__dict__.pop("offsets"),
        lambda index: next(iter(index.storage_data.values())).__dict__.pop("relative_path"),
        lambda index: index.__dict__.update(storage_data=[1]),
    ],
)
def test_an_index_without_what_its_readers_look_at_is_damaged(tmp_path, change):
    import rushlight as torch
    from rushlight.distributed import checkpoint
    from rushlight.distributed.checkpoint import _index_file

    checkpoint.save({"x": torch.ones(3)}, checkpoint_id=tmp_path, no_dist=True)
    index = checkpoint.FileSystemReader(tmp_path).read_metadata()
    change(index)
    with open(tmp_path / ".metadata", "wb") as file:
        _index_file.dump(index, file)
    with pytest.raises(checkpoint.CheckpointException, match="is damaged"):
        checkpoint.load({"x": torch.zeros(3)}, checkpoint_id=tmp_path, no_dist=True)
