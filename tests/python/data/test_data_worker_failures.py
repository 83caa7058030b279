"""Workers that fail, hang or are killed, and programs that end: what loaders say; nothing is left."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
from data_workers_helpers import (
    Failing,
    NeedsTwo,
    Squares,
    Unpicklable,
    hang,
    identity,
    init_nothing,
    kill,
    leave,
    look_up,
    print_no_trace,
    raise_strange,
    segfault,
)
from worker_processes import WAIT, children, environment, load, wait_until_gone

import rushlight
from rushlight.utils.data import DataLoader, TensorDataset

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def test_exceptions_carry_the_workers_traceback():
    with pytest.raises(KeyError, match="Caught KeyError in DataLoader worker process 0") as info:
        list(DataLoader(Failing(4, 0, look_up), num_workers=2))
    text = str(info.value)
    assert "Original Traceback (most recent call last):" in text and "in look_up" in text
    assert "\n" in text, "not the repr of one line"
    with pytest.raises(RuntimeError, match="Caught NeedsTwo in DataLoader worker process 1"):
        list(DataLoader(Failing(4, 1, raise_strange), num_workers=2))
    assert NeedsTwo(1, 2).args == (1, 2)
    with pytest.raises(ValueError, match="worker 0 does not start"):
        list(DataLoader(Squares(4), num_workers=2, worker_init_fn=init_nothing))
    with pytest.raises(Exception, match="(?s)DataLoader worker process 0.*pickle"):
        list(DataLoader(Unpicklable(4), num_workers=1, collate_fn=identity))


def test_loading_goes_on_after_an_exception():
    iterator = iter(DataLoader(Failing(5, 2, look_up), num_workers=2))
    assert [int(next(iterator)), int(next(iterator))] == [0, 1]
    with pytest.raises(KeyError):
        next(iterator)
    assert [int(x) for x in iterator] == [3, 4]


@pytest.mark.parametrize(
    "how, text",
    [
        (kill, "is killed by signal: Killed.*memory ran out"),
        (segfault, "is killed by signal: Segmentation fault"),
        (leave, "exited unexpectedly with exit code 3"),
    ],
)
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_dead_worker_is_reported_at_once(how, text, method):
    loader = DataLoader(
        Failing(40, 21, how),
        num_workers=2,
        multiprocessing_context=method,
        persistent_workers=method == "fork",
    )
    iterator = iter(loader)
    assert int(next(iterator)) == 0
    pids = [worker.pid for worker in iterator._workers]
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=rf"(?s)DataLoader worker \(pid {pids[1]}\) {text}"):
        while True:
            next(iterator)
            start = time.monotonic()
    assert time.monotonic() - start < 2 + 3 * load(), "reported late"
    assert not children()
    with pytest.raises(StopIteration):
        next(iterator)


def test_a_worker_that_is_killed_while_it_idles():
    iterator = iter(DataLoader(Squares(100), num_workers=2))
    next(iterator)
    os.kill(iterator._workers[0].pid, signal.SIGKILL)
    iterator._workers[0].join(WAIT)
    with pytest.raises(RuntimeError, match="is killed by signal: Killed"):
        next(iterator)


def test_timeout():
    iterator = iter(DataLoader(Failing(4, 1, hang), num_workers=1, timeout=0.5))
    assert int(next(iterator)) == 0
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.5 seconds"):
        next(iterator)
    del iterator


def test_an_early_break_leaves_nothing():
    start = time.monotonic()
    for i, _ in enumerate(DataLoader(Squares(1000, delay=0.01), 4, num_workers=2)):
        if i == 2:
            break
    loader = DataLoader(Squares(1000), 4, num_workers=2, persistent_workers=True)
    for _ in range(3):
        for batch in loader:
            assert batch.tolist() == [0, 1, 4, 9], "an epoch that was left does not disturb the next"
            break
    del loader, batch
    assert time.monotonic() - start < 10 * load()


def test_a_hanging_worker_is_ended_with_its_loader():
    iterator = iter(DataLoader(Failing(4, 1, hang), num_workers=2))
    next(iterator)
    start = time.monotonic()
    del iterator
    assert time.monotonic() - start < 4 * load()


_ENDINGS = {
    "exit": "sys.exit(0)",
    "forgotten": "pass",
    "exception": "raise ValueError('the program fails')",
    "kept in a cycle": "x = [iterator]; x.append(x)",
}


@pytest.mark.parametrize("ending", _ENDINGS)
@pytest.mark.parametrize("persistent", [False, True])
def test_interpreters_end(tmp_path, ending, persistent):
    script = tmp_path / "ends.py"
    script.write_text(
        "import os, sys\n"
        "from data_workers_helpers import Squares\n"
        "from rushlight.utils.data import DataLoader\n"
        "if __name__ == '__main__':\n"
        f"    loader = DataLoader(Squares(10000), 2, num_workers=2, persistent_workers={persistent})\n"
        "    iterator = iter(loader)\n"
        "    next(iterator)\n"
        "    print(*[w.pid for w in iterator._workers], flush=True)\n"
        f"    {_ENDINGS[ending]}\n"
    )
    out = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, env=environment()
    )
    assert (out.returncode == 0) == (ending != "exception"), out.stderr
    assert ("Traceback" in out.stderr) == (ending == "exception")
    assert out.stderr.count("Traceback") <= 1
    for pid in out.stdout.split():
        wait_until_gone(int(pid))


_WAITING = """
import os, signal, sys, time
from data_workers_helpers import Failing, hang
from rushlight.utils.data import DataLoader
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background starts without
    iterator = iter(DataLoader(Failing(100, 7, hang), num_workers=2))
    next(iterator)
    print(*[w.pid for w in iterator._workers], flush=True)
    for _ in iterator:
        pass
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_the_loaders_process(tmp_path, number):
    script = tmp_path / "waits.py"
    script.write_text(
        _WAITING
        if number == signal.SIGINT
        else _WAITING.replace("for _ in iterator", "time.sleep(60)\n    for _ in ()")
    )
    process = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    pids = [int(pid) for pid in process.stdout.readline().split()]
    time.sleep(0.2)
    start = time.monotonic()
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # what Ctrl-C does
    else:
        process.send_signal(number)
    try:
        _, errors = process.communicate(timeout=WAIT)
    finally:
        process.kill()
    assert len(pids) == 2
    for pid in pids:
        wait_until_gone(pid)
    if number == signal.SIGINT:
        assert errors.count("Traceback") == 1 and errors.rstrip().endswith("KeyboardInterrupt")
        assert time.monotonic() - start < 4 * load()


def test_fork_in_the_program_does_not_disturb():
    iterator = iter(DataLoader(Squares(50), num_workers=2))
    next(iterator)
    pid = os.fork()
    if pid == 0:
        del iterator  # must not end the parent's workers
        os._exit(0)
    os.waitpid(pid, 0)
    assert [int(x) for x in iterator] == [i * i for i in range(1, 50)]


@pytest.mark.parametrize("seed", range(int(os.environ.get("RUSHLIGHT_KILLS", "20"))))
def test_kill_at_any_moment(seed):
    """A worker dies at a random moment: an error or a full epoch, never a hang, a leak or a wrong batch."""
    rng = random.Random(seed)
    loader = DataLoader(
        TensorDataset(rushlight.arange(4000).reshape(400, 10)),
        2,
        num_workers=rng.choice([1, 2, 3]),
        persistent_workers=rng.random() < 0.5,
        prefetch_factor=rng.choice([1, 2, 5]),
        worker_init_fn=print_no_trace,
    )
    iterator = iter(loader)
    when, victim = rng.randrange(180), rng.randrange(loader.num_workers)
    seen = 0
    try:
        for (batch,) in iterator:
            assert batch[0, 0] == seen * 20
            seen += 1
            if seen == when:
                time.sleep(rng.random() * 0.005)
                os.kill(iterator._workers[victim].pid, rng.choice([signal.SIGKILL, signal.SIGSEGV]))
    except RuntimeError as e:
        assert "is killed by signal" in str(e) and seen >= when
    else:
        assert seen == 200
