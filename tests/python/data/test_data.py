"""Datasets, samplers and loaders: behaviour and, for equal seeds, the orders of PyTorch."""

import pickle
from collections import OrderedDict, namedtuple

import pytest

import rushlight

Pair = namedtuple("Pair", "a b")


def _plain(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def _both(torch, run, seed=3):
    results = []
    for lib in (rushlight, torch):
        lib.manual_seed(seed)
        results.append(_plain(run(lib)))
    assert results[0] == results[1]
    return results[0]


def _numbers(lib, n=10):
    return lib.utils.data.TensorDataset(lib.arange(n), lib.arange(n * 2).reshape(n, 2).float())


def _stream(lib, n, length=None):
    class Stream(lib.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(n))

    if length is not None:
        Stream.__len__ = lambda self: length
    return Stream()


ORDERS = {
    "shuffled epochs": lambda lib: [
        list(loader)
        for loader in [lib.utils.data.DataLoader(_numbers(lib), 3, shuffle=True)]
        for _ in range(2)
    ],
    "seed taken per epoch": lambda lib: [list(lib.utils.data.DataLoader(_numbers(lib), 4)), lib.rand(3)],
    "own generator": lambda lib: list(
        lib.utils.data.DataLoader(_numbers(lib), 3, shuffle=True, generator=lib.Generator().manual_seed(5))
    ),
    "replacement": lambda lib: list(lib.utils.data.RandomSampler(range(50), True, 70)),
    "more than one pass": lambda lib: list(lib.utils.data.RandomSampler(range(5), num_samples=12)),
    "subset": lambda lib: list(lib.utils.data.SubsetRandomSampler([3, 1, 4, 1, 5])),
    "weighted": lambda lib: list(lib.utils.data.WeightedRandomSampler([0.1, 5.0, 1.0], 12)),
    "weighted once": lambda lib: list(
        lib.utils.data.WeightedRandomSampler([0.1, 5.0, 1.0], 3, replacement=False)
    ),
    "split": lambda lib: [p.indices for p in lib.utils.data.random_split(range(10), [7, 3])],
    "fractions": lambda lib: [p.indices for p in lib.utils.data.random_split(range(11), [0.5, 0.3, 0.2])],
    "split of loader": lambda lib: list(
        lib.utils.data.DataLoader(lib.utils.data.random_split(_numbers(lib), [6, 4])[1], 3, shuffle=True)
    ),
}


@pytest.mark.parametrize("name", ORDERS)
def test_orders_follow_pytorch(torch, name):
    _both(torch, ORDERS[name])


def test_a_sampler_takes_no_source(torch):
    for lib in (torch, rushlight):
        assert lib.utils.data.Sampler() is not None
        for source in (([1, 2],), ()):
            with pytest.raises(TypeError, match="takes no arguments"):
                lib.utils.data.Sampler(*source, **({} if source else {"data_source": [1, 2]}))


SHAPES = {
    "batches": lambda lib: list(lib.utils.data.DataLoader(_numbers(lib), 4)),
    "drop last": lambda lib: list(lib.utils.data.DataLoader(_numbers(lib), 4, drop_last=True)),
    "no batching": lambda lib: list(lib.utils.data.DataLoader(_numbers(lib), None)),
    "own batches": lambda lib: list(lib.utils.data.DataLoader(_numbers(lib), batch_sampler=[[1, 2], [0]])),
    "own collate": lambda lib: list(lib.utils.data.DataLoader(_numbers(lib), 4, collate_fn=len)),
    "stream": lambda lib: list(lib.utils.data.DataLoader(_stream(lib, 7), 3)),
    "stream drop last": lambda lib: list(lib.utils.data.DataLoader(_stream(lib, 7), 3, drop_last=True)),
    "stream exact": lambda lib: list(lib.utils.data.DataLoader(_stream(lib, 6), 3)),
    "stream alone": lambda lib: list(lib.utils.data.DataLoader(_stream(lib, 3), None)),
    "chain": lambda lib: list(_stream(lib, 2) + _stream(lib, 3)),
    "concat": lambda lib: [
        (lib.utils.data.ConcatDataset([range(3), range(10, 12)]))[i] for i in (0, 2, 3, -1)
    ],
    "stack": lambda lib: lib.utils.data.StackDataset(range(3), range(5, 8)).__getitems__([2, 0]),
    "stack by name": lambda lib: list(
        lib.utils.data.DataLoader(lib.utils.data.StackDataset(a=range(3), b=range(3)), 2)
    ),
    "length": lambda lib: [
        len(lib.utils.data.DataLoader(_numbers(lib), 3)),
        len(lib.utils.data.DataLoader(_numbers(lib), 3, drop_last=True)),
        len(lib.utils.data.DataLoader(_stream(lib, 7, 7), 2)),
    ],
    "collate": lambda lib: lib.utils.data.default_collate(
        [{"a": 1, "b": (1.5, "x")}, {"a": 2, "b": (2.5, "y")}]
    ),
    "collate bools": lambda lib: lib.utils.data.default_collate([[True, b"a"], [False, b"b"]]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_batches_follow_pytorch(torch, name):
    _both(torch, SHAPES[name])


def _load(lib, *args, **kwargs):
    return lib.utils.data.DataLoader(_numbers(lib), *args, **kwargs)


MISTAKES = {
    "workers": lambda lib: _load(lib, num_workers=-1),
    "timeout": lambda lib: _load(lib, timeout=-1),
    "prefetch": lambda lib: _load(lib, prefetch_factor=2),
    "persistent": lambda lib: _load(lib, persistent_workers=True),
    "sampler and shuffle": lambda lib: _load(lib, sampler=[1], shuffle=True),
    "batch sampler": lambda lib: _load(lib, 2, batch_sampler=[[1]]),
    "no batch, drop": lambda lib: _load(lib, None, drop_last=True),
    "context": lambda lib: _load(lib, multiprocessing_context="fork"),
    "bad context": lambda lib: _load(lib, num_workers=1, multiprocessing_context="blah"),
    "batch size": lambda lib: _load(lib, 0),
    "stream shuffle": lambda lib: lib.utils.data.DataLoader(_stream(lib, 2), shuffle=True),
    "stream sampler": lambda lib: lib.utils.data.DataLoader(_stream(lib, 2), sampler=[1]),
    "set later": lambda lib: setattr(_load(lib), "batch_size", 3),
    "empty": lambda lib: lib.utils.data.RandomSampler([]),
    "replacement": lambda lib: lib.utils.data.RandomSampler([1], replacement=3),
    "weights": lambda lib: lib.utils.data.WeightedRandomSampler([[1.0]], 1),
    "drop_last": lambda lib: lib.utils.data.BatchSampler([1], 2, 3),
    "sizes": lambda lib: lib.utils.data.TensorDataset(lib.ones(2), lib.ones(3)),
    "concat": lambda lib: lib.utils.data.ConcatDataset([]),
    "concat stream": lambda lib: lib.utils.data.ConcatDataset([_stream(lib, 1)]),
    "concat index": lambda lib: lib.utils.data.ConcatDataset([range(2)])[-3],
    "stack": lambda lib: lib.utils.data.StackDataset(),
    "stack sizes": lambda lib: lib.utils.data.StackDataset([1], [1, 2]),
    "split": lambda lib: lib.utils.data.random_split(range(3), [1, 1]),
    "getitem": lambda lib: lib.utils.data.Dataset()[0],
    "collate type": lambda lib: lib.utils.data.default_collate([object()]),
    "collate sizes": lambda lib: lib.utils.data.default_collate([[1, 2], [1]]),
    "index": lambda lib: list(lib.utils.data.DataLoader(range(3), batch_sampler=[[4]])),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_messages_follow_pytorch(torch, name):
    errors = []
    for lib in (rushlight, torch):
        with pytest.raises(Exception) as info:
            MISTAKES[name](lib)
        errors.append((info.type, str(info.value)))
    assert errors[0] == errors[1]


def test_collate_keeps_types():
    collate = rushlight.utils.data.default_collate
    pair = collate([Pair(1, 2.0), Pair(3, 4.0)])
    assert isinstance(pair, Pair) and pair.a.tolist() == [1, 3] and pair.b.dtype == rushlight.float64
    ordered = collate([OrderedDict(a=1), OrderedDict(a=2)])
    assert type(ordered) is OrderedDict and ordered["a"].tolist() == [1, 2]


def test_collate_numpy():
    np = pytest.importorskip("numpy")
    collate = rushlight.utils.data.default_collate
    assert collate([np.ones(2, "float32")] * 3).shape == (3, 2)
    assert collate([np.int32(4), np.int32(5)]).dtype == rushlight.int32
    with pytest.raises(TypeError, match="batch must contain tensors"):
        collate([np.array(["a"])])


def test_gathered_rows_equal_stacked_rows():
    data = rushlight.utils.data
    dataset = _numbers(rushlight)
    part = data.Subset(data.Subset(dataset, [9, 4, 5, 1]), [3, 0, 2])
    fast = list(data.DataLoader(part, 2))
    slow = list(data.DataLoader(part, 2, collate_fn=lambda batch: data.default_collate(batch)))
    assert _plain(fast) == _plain(slow)
    assert type(fast[0]) is type(slow[0]) and fast[0][0].dtype == slow[0][0].dtype


def test_wrong_length_of_stream_warns():
    loader = rushlight.utils.data.DataLoader(_stream(rushlight, 5, 3), None)
    assert len(loader) == 3
    with pytest.warns(UserWarning, match="was reported to be 3"):
        assert len(list(loader)) == 5


def test_loader_is_pickled_also_while_it_iterates():
    loader = rushlight.utils.data.DataLoader(list(range(4)), batch_size=2)
    iterator = iter(loader)
    next(iterator)
    copy = pickle.loads(pickle.dumps(loader))
    assert [batch.tolist() for batch in copy] == [[0, 1], [2, 3]]
    assert next(iterator).tolist() == [2, 3]


def test_iterators_take_loaders_that_have_neither_samplers_nor_batch_sizes():
    from rushlight.utils.data import _resume

    class Loader:  # as fastai makes them
        generator = None

    assert _resume._generators(Loader()) == {} and _resume._samplers(Loader()) == {}
