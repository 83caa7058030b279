"""Loaders with worker processes: what they give, and that nothing is left of them."""

import json
import os
import subprocess
import sys
import textwrap

import pytest
from data_workers_helpers import (
    Initialized,
    Reports,
    Squares,
    Stream,
    Texts,
    Uneven,
    identity,
    mark,
)
from worker_processes import run_script

import rushlight
from rushlight.utils.data import DataLoader, TensorDataset

METHODS = ["fork", "spawn", "forkserver"]
pytestmark = pytest.mark.usefixtures("leaves_nothing")


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
        out = run_script(script)
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
    assert run_script(script, "early").stdout == run_script(script).stdout != ""


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
    run_script(script)


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
