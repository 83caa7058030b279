"""Loaders with worker processes: what they give, how they fail, and that nothing is left of them."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from data_workers_helpers import (
    Failing,
    Initialized,
    NeedsTwo,
    Reports,
    Squares,
    Stream,
    Texts,
    Uneven,
    Unpicklable,
    hang,
    identity,
    init_nothing,
    kill,
    leave,
    look_up,
    mark,
    print_no_trace,
    raise_strange,
    segfault,
)

import rushlight
from rushlight.utils.data import DataLoader, TensorDataset

METHODS = ["fork", "spawn", "forkserver"]
WAIT = 30


def _children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        pids = {int(pid) for pid in file.read().split()}
    servers = _helpers_of_multiprocessing()
    return pids - servers


def _helpers_of_multiprocessing():
    from multiprocessing import forkserver, resource_tracker

    return {forkserver._forkserver._forkserver_pid, resource_tracker._resource_tracker._pid}


def _descriptors():
    links = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            links[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            pass  # the listing's own
    return links


@pytest.fixture(autouse=True)
def leaves_nothing():
    before = len(_descriptors())
    yield
    import gc

    gc.collect()
    assert not _children(), "processes were left behind"
    rushlight._C._shared_release_idle()
    # The fork server's pipe, the resource tracker's, and our own slab stay.
    assert len(_descriptors()) <= before + 6, _descriptors()


def _lists(loader):
    return [batch.tolist() for batch in loader]


# --- what they give


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("persistent", [False, True])
def test_batches_come_in_order(method, persistent):
    loader = DataLoader(
        Squares(10), 3, num_workers=2, multiprocessing_context=method, persistent_workers=persistent
    )
    expected = [[0, 1, 4], [9, 16, 25], [36, 49, 64], [81]]
    assert _lists(loader) == expected
    assert _lists(loader) == expected
    assert len(loader) == 4


def test_options():
    squares = Squares(10)
    assert _lists(DataLoader(squares, 4, num_workers=2, drop_last=True)) == [[0, 1, 4, 9], [16, 25, 36, 49]]
    assert _lists(DataLoader(squares, batch_sampler=[[1, 2], [5]], num_workers=1)) == [[1, 4], [25]]
    assert [int(x) for x in DataLoader(squares, None, num_workers=2, sampler=[3, 1])] == [9, 1]
    assert list(DataLoader(squares, 5, num_workers=2, collate_fn=identity, prefetch_factor=7)) == [
        [0, 1, 4, 9, 16],
        [25, 36, 49, 64, 81],
    ]
    unordered = DataLoader(squares, 1, num_workers=2, in_order=False)
    assert sorted(_lists(unordered)) == [[i * i] for i in range(10)]
    assert _lists(DataLoader([], 2, num_workers=2)) == []
    big = list(DataLoader(range(100_000), 50_000, num_workers=2, collate_fn=identity))
    assert big == [list(range(50_000)), list(range(50_000, 100_000))]


def test_batches_lie_in_shared_memory():
    images = TensorDataset(rushlight.rand(8, 3, 4), rushlight.arange(8))
    for x, y in DataLoader(images, 4, num_workers=2):
        assert x.is_shared() and y.is_shared() and x.shape == (4, 3, 4)
        x.add_(1)
    rows = DataLoader([rushlight.ones(3), rushlight.zeros(3)], 2, num_workers=1)
    assert next(iter(rows)).tolist() == [[1, 1, 1], [0, 0, 0]]


def test_long_messages():
    texts = list(DataLoader(Texts(6), 2, num_workers=2))
    assert [b["n"].tolist() for b in texts] == [[0, 1], [2, 3], [4, 5]]
    assert texts[2]["text"] == ["x" * 100_000] * 2


def test_worker_info():
    got = [tuple(int(v[0]) for v in batch[:4]) for batch in DataLoader(Reports(), num_workers=2)]
    assert [g[0] for g in got] == [0, 1, 0, 1] and all(g[1] == 2 and g[3] == 1 for g in got)
    assert got[1][2] == got[0][2] + 1, "seeds are base_seed + id"
    assert rushlight.utils.data.get_worker_info() is None


def test_worker_init_fn():
    loader = DataLoader(Initialized(4), num_workers=2, worker_init_fn=mark)
    assert _lists(loader) == [[0], [1], [0], [1]]


def test_streams():
    loader = DataLoader(Stream(7), 2, num_workers=2)
    assert [batch[0].tolist() for batch in loader] == [[0, 2], [1, 3], [4, 6], [5]]
    loader = DataLoader(Uneven(), 2, num_workers=3, prefetch_factor=1)
    got = _lists(loader)
    assert sorted(sum(got, [])) == [0, 1, 2, *range(100, 106), *range(200, 209)]
    assert got[:3] == [[0, 1], [100, 101], [200, 201]]
    persistent = DataLoader(Stream(5), None, num_workers=2, persistent_workers=True)
    for _ in range(3):
        assert [int(i) for i, _ in persistent] == [0, 1, 2, 3, 4]


def test_a_stream_longer_than_it_says_warns():
    class Short(Stream):
        def __len__(self):
            return 2

    loader = DataLoader(Short(6), None, num_workers=1)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="configuring the IterableDataset replica at each worker"):
        assert len(list(loader)) == 6


def test_pin_memory_without_an_accelerator():
    with pytest.warns(UserWarning, match="no accelerator is found"):
        assert _lists(DataLoader(Squares(2), 2, num_workers=1, pin_memory=True)) == [[0, 1]]


def test_loaders_annotate():
    assert DataLoader[int].__origin__ is DataLoader


def test_too_many_workers_warn():
    with pytest.warns(UserWarning, match="This DataLoader will create 10000 worker processes"):
        DataLoader(Squares(2), num_workers=10000)


def test_unpicklable_dataset_for_spawn():
    with (
        pytest.warns(UserWarning, match="must be picklable"),
        pytest.raises((AttributeError, TypeError, Exception)),
    ):
        iter(DataLoader([lambda: 1], num_workers=1, multiprocessing_context="spawn"))


_PARITY = """
import json, random, sys
import numpy
import {lib} as torch
from {lib}.utils.data import DataLoader, Dataset, IterableDataset, WeightedRandomSampler, get_worker_info

class Augmented(Dataset):
    def __len__(self): return 11
    def __getitem__(self, i):
        return i, random.random(), numpy.random.rand(), torch.rand(2), torch.randn(3)

class Stream(IterableDataset):
    def __iter__(self):
        k = get_worker_info().id
        return iter((100 * k + i, random.random(), get_worker_info().seed) for i in range(7 + 2 * k))

def plain(x):
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    return x.tolist() if hasattr(x, "tolist") else x

def run(**options):
    torch.manual_seed(5)
    loader = DataLoader(**options)
    return [plain(list(loader)) for _ in range(2)] + torch.rand(2).tolist()

if __name__ == "__main__":
    data = Augmented()
    results = [
        run(dataset=data, batch_size=3, shuffle=True, num_workers=2),
        run(dataset=data, batch_size=2, num_workers=3, shuffle=True, generator=torch.Generator()),
        run(dataset=data, batch_size=4, num_workers=2, persistent_workers=True, shuffle=True),
        run(dataset=data, batch_size=None, num_workers=2, sampler=WeightedRandomSampler([1.0, 2.0, 3.0], 6)),
        run(dataset=data, batch_size=2, num_workers=2, sampler=WeightedRandomSampler([1.0, 2.0, 3.0], 6)),
        run(dataset=Stream(), batch_size=2, num_workers=2),
        run(dataset=Stream(), batch_size=2, num_workers=1, drop_last=True, persistent_workers=True),
    ]
    print(json.dumps(results))
"""


def test_order_values_and_seeds_are_pytorchs(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("numpy")
    results = []
    for lib in ("rushlight", "torch"):
        script = tmp_path / f"run_{lib}.py"
        script.write_text(_PARITY.replace("{lib}", lib))
        out = _run(script)
        results.append(json.loads(out.stdout))
    for ours, theirs in zip(*results):
        assert ours == theirs


def test_numpy_is_seeded_however_late_it_is_imported(tmp_path):
    pytest.importorskip("numpy")
    script = tmp_path / "late.py"
    script.write_text(
        textwrap.dedent("""
        import sys
        import rushlight
        from data_workers_helpers import Augmented, identity
        from rushlight.utils.data import DataLoader
        if __name__ == "__main__":
            if "early" in sys.argv:
                import numpy.random
            else:
                assert "numpy" not in sys.modules
            rushlight.manual_seed(3)
            print([b[0][2] for b in DataLoader(Augmented(4), num_workers=2, collate_fn=identity)])
        """)
    )
    assert _run(script, "early").stdout == _run(script).stdout != ""


def _environment():
    root = os.path.dirname(os.path.dirname(rushlight.__file__))
    paths = [root, os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _run(script, *args):
    out = subprocess.run(
        [sys.executable, str(script), *args],
        capture_output=True,
        text=True,
        timeout=180,
        env=_environment(),
    )
    assert out.returncode == 0, out.stderr
    return out


# --- how they fail


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
    assert time.monotonic() - start < 2 + 3 * _load(), "reported late"
    assert not _children()
    with pytest.raises(StopIteration):
        next(iterator)


def _load():
    """How much longer things take than on an idle machine."""
    return max(1.0, os.getloadavg()[0] / os.cpu_count())


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
    assert time.monotonic() - start < 10 * _load()


def test_a_hanging_worker_is_ended_with_its_loader():
    iterator = iter(DataLoader(Failing(4, 1, hang), num_workers=2))
    next(iterator)
    start = time.monotonic()
    del iterator
    assert time.monotonic() - start < 4 * _load()


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
        [sys.executable, script], capture_output=True, text=True, timeout=60, env=_environment()
    )
    assert (out.returncode == 0) == (ending != "exception"), out.stderr
    assert ("Traceback" in out.stderr) == (ending == "exception")
    assert out.stderr.count("Traceback") <= 1
    for pid in out.stdout.split():
        _gone(int(pid))


def _gone(pid):
    end = time.monotonic() + WAIT
    while os.path.exists(f"/proc/{pid}"):
        with open(f"/proc/{pid}/stat") as file:
            if file.read().rpartition(")")[2].split()[0] == "Z":
                return
        assert time.monotonic() < end, f"process {pid} lives on"
        time.sleep(0.02)


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
    script.write_text(_WAITING.replace("hang)", "hang)" if number == signal.SIGINT else "int)"))
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
        env=_environment(),
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
        _gone(pid)
    if number == signal.SIGINT:
        assert errors.count("Traceback") == 1 and errors.rstrip().endswith("KeyboardInterrupt")
        assert time.monotonic() - start < 4 * _load()


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


# --- resources


def test_kept_batches_cost_no_descriptors(tmp_path):
    script = tmp_path / "keeps.py"
    script.write_text(
        textwrap.dedent("""
        import os, resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        import rushlight
        from rushlight.utils.data import DataLoader, TensorDataset
        if __name__ == "__main__":
            data = TensorDataset(rushlight.arange(6000).reshape(3000, 2))
            kept = [x for x, in DataLoader(data, 1, num_workers=2)]
            assert len(os.listdir("/proc/self/fd")) < 30
            assert all(x[0, 0] == 2 * i for i, x in enumerate(kept))
            assert all(x.is_shared() for x in kept)
        """)
    )
    _run(script)


def test_memory_is_used_again():
    data = TensorDataset(rushlight.rand(400, 100_000))
    loader = DataLoader(data, 4, num_workers=1, persistent_workers=True)
    iterator = iter(loader)
    for _ in range(10):
        next(iterator)
    used = _shared_bytes(iterator._workers[0].pid)
    for _ in range(60):
        next(iterator)
    assert _shared_bytes(iterator._workers[0].pid) <= used + (8 << 20), "60 batches of 1.6 MB took turns"
    del loader, iterator


def _shared_bytes(pid):
    """Bytes of the slab of a process that were ever touched and not given back."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        if os.readlink(path).startswith("/memfd:rushlight"):
            return os.stat(path).st_blocks * 512
    return 0


def test_iterators_take_loaders_of_other_classes():
    """fastai iterates over a class of its own, which has the attributes of PyTorch's loaders alone."""

    class Own:
        def __init__(self, loader):
            self.loader = loader

        def __getattr__(self, name):
            if name in ("worker_method", "_packed_dataset", "pack_dataset"):
                raise AttributeError(name)
            return getattr(self.loader, name)

    loader = DataLoader(list(range(8)), batch_size=4, num_workers=1)
    batches = list(rushlight.utils.data.dataloader._MultiProcessingDataLoaderIter(Own(loader)))
    assert [b.tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_workers_of_loaders_from_elsewhere_are_watched():
    from rushlight.utils.data._utils import python_exit_status, signal_handling

    assert python_exit_status is False
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    signal_handling._set_worker_pids(1, [process.pid])
    try:
        with pytest.raises(ValueError, match="only once"):
            signal_handling._set_worker_pids(1, [])
        with pytest.raises(RuntimeError, match=rf"pid {process.pid}\) exited unexpectedly with exit code 3"):
            signal_handling._error_if_any_worker_fails()
        signal_handling._error_if_any_worker_fails()  # told once
    finally:
        signal_handling._remove_worker_pids(1)
    assert process.wait() == 3  # it was looked at only
    with pytest.raises(ValueError, match="Cannot find"):
        signal_handling._remove_worker_pids(1)


def test_a_thread_that_pins_batches_for_loaders_from_elsewhere():
    import queue
    import threading

    from rushlight.utils.data._utils.pin_memory import _pin_memory_loop

    class Batch:
        def pin_memory(self):
            return "pinned"

    class Broken:
        def pin_memory(self):
            raise KeyError("lost")

    given, taken, done = queue.Queue(), queue.Queue(), threading.Event()
    for pair in enumerate([Batch(), Broken()]):
        given.put(pair)
    thread = threading.Thread(target=_pin_memory_loop, args=(given, taken, 0, done, None), daemon=True)
    thread.start()
    assert taken.get(timeout=60) == (0, "pinned")
    index, error = taken.get(timeout=60)
    done.set()
    given.put((2, None))  # so that it sees that it is done
    thread.join(60)
    assert index == 1 and not thread.is_alive()
    with pytest.raises(KeyError, match="lost"):
        error.reraise()
