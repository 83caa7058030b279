"""Loaders whose workers are threads: the same batches, order, seeds, errors and states as with processes."""

import gc
import random
import threading
import time

import pytest
from data_workers_helpers import (
    Failing,
    Reports,
    Squares,
    Stream,
    Uneven,
    init_nothing,
    look_up,
)

import rushlight
from rushlight.utils.data import DataLoader, Dataset, TensorDataset, get_worker_info

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]


@pytest.fixture(autouse=True)
def leaves_no_thread():
    before = threading.active_count()
    yield
    gc.collect()
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before, threading.enumerate()


def _threads(dataset, batch_size=1, num_workers=2, **options):
    return DataLoader(dataset, batch_size, num_workers=num_workers, worker_method="thread", **options)


class Draws(Dataset):
    """Samples that depend on every generator of a thread."""

    def __len__(self):
        return 12

    def __getitem__(self, i):
        rng = get_worker_info().rng
        time.sleep(random.random() * 0.003)  # the order of threads must not matter
        return i, rng.random_generator.random(), rng.numpy_generator.random(), rushlight.rand(2)


class DrawsOfOperators(Draws):
    def __getitem__(self, i):
        return rushlight.rand(2) + rushlight.nn.functional.dropout(rushlight.ones(2), 0.5)


def _plain(batches):
    return [[part.tolist() for part in batch] for batch in batches]


@pytest.mark.parametrize("persistent", [False, True])
def test_batches_come_in_order(persistent):
    loader = _threads(Squares(10, delay=0.001), 3, persistent_workers=persistent)
    for _ in range(2):
        assert [b.tolist() for b in loader] == [[0, 1, 4], [9, 16, 25], [36, 49, 64], [81]]
    unordered = _threads(Squares(10), 1, in_order=False)
    assert sorted(b.tolist() for b in unordered) == [[i * i] for i in range(10)]


def test_batches_are_handed_over_as_they_are():
    kept = TensorDataset(rushlight.rand(8, 3))
    (batch,) = next(iter(_threads(kept, 4)))
    assert not batch.is_shared() and batch.equal(kept.tensors[0][:4])
    whole = [object() for _ in range(3)]
    assert [x for x in _threads(whole, None, collate_fn=lambda x: x)] == whole


def test_threads_know_what_they_are():
    ids, counts, seeds, _, names = zip(*_threads(Reports(), None))
    assert ids == (0, 1, 0, 1) and set(counts) == {2} and set(names) == {"Reports"}
    assert seeds[1] == seeds[0] + 1
    assert get_worker_info() is None
    seen = []
    list(_threads(Squares(2), worker_init_fn=lambda i: seen.append((i, get_worker_info().worker_method))))
    assert sorted(seen) == [(0, "thread"), (1, "thread")]


def test_random_numbers_are_those_of_processes_and_repeat():
    def run(**options):
        rushlight.manual_seed(5)
        return [b.tolist() for b in DataLoader(DrawsOfOperators(), 2, num_workers=3, **options)]

    threads = run(worker_method="thread")
    assert threads == run(worker_method="thread") == run()
    rushlight.manual_seed(5)
    first = _plain(_threads(Draws(), 2, 3))
    rushlight.manual_seed(5)
    assert first == _plain(_threads(Draws(), 2, 3))
    draws = [x for batch in first for x in batch[1] + batch[2]]
    assert len(set(draws)) == len(draws), "threads draw the same numbers"


def test_the_programs_generator_is_left_alone():
    rushlight.manual_seed(1)
    expected = [rushlight.empty((), dtype=rushlight.int64).random_(), rushlight.rand(3)][1].tolist()
    rushlight.manual_seed(1)
    list(_threads(DrawsOfOperators(), 2))
    assert rushlight.rand(3).tolist() == expected
    seeds = _threads(_Seeds(), None)
    rushlight.manual_seed(1)
    assert [x.item() for x in seeds] == [_Seeds.value] * 4
    assert rushlight.initial_seed() == 1


class _Seeds(Dataset):
    value = rushlight.rand(1, generator=rushlight.Generator().manual_seed(3)).item()

    def __len__(self):
        return 4

    def __getitem__(self, i):
        rushlight.manual_seed(3)
        return rushlight.rand(1)


def test_streams():
    assert sorted(int(i) for batch in _threads(Stream(11), 2, 3) for i in batch[0]) == list(range(11))
    batches = [b.tolist() for b in _threads(Uneven(), 3, 3, prefetch_factor=1)]
    assert sorted(map(tuple, batches))[:2] == [(0, 1, 2), (100, 101, 102)] and len(batches) == 6


def test_exceptions_carry_the_threads_traceback():
    loader = _threads(Failing(6, at=2, how=look_up), 1)
    batches = iter(loader)
    assert [next(batches).item(), next(batches).item()] == [0, 1]
    with pytest.raises(KeyError, match="(?s)worker thread 0.*look_up"):
        next(batches)
    assert next(batches).item() == 3
    with pytest.raises(ValueError, match="worker [01] does not start"):
        next(iter(_threads(Squares(2), worker_init_fn=init_nothing)))


def test_a_thread_that_ends_is_reported():
    def leave():
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="worker thread [01] ended: SystemExit: 3"):
        list(_threads(Failing(4, at=1, how=leave)))


def test_timeout_and_early_end():
    slow = _threads(Squares(4, delay=0.4), timeout=0.05)
    with pytest.raises(RuntimeError, match="timed out after 0.05 seconds"):
        next(iter(slow))
    batches = iter(_threads(Squares(1000)))
    next(batches)
    del batches  # the fixture sees that its threads end


@pytest.mark.parametrize("stop", [0, 1, 3])
def test_resumes_exactly(stop):
    def loader():
        return _threads(Draws(), 2, 2, shuffle=True, generator=rushlight.Generator().manual_seed(2))

    full = loader()
    whole = _plain(full)
    first = loader()
    batches = iter(first)
    begin = _plain(next(batches) for _ in range(stop))
    state = first.state_dict()
    second = loader()
    second.load_state_dict(state)
    assert begin + _plain(second) == whole


def test_options_are_checked():
    with pytest.raises(ValueError, match="worker_method option should be"):
        DataLoader([1], worker_method="fibre")
    with pytest.raises(ValueError, match="multiprocessing_context can't"):
        DataLoader([1], num_workers=1, worker_method="thread", multiprocessing_context="fork")
