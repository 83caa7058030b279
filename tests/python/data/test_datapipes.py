"""Data pipes: the same samples as PyTorch's, one iterator at a time, and shares for workers."""

import importlib
import importlib.util
import io
import pickle

import pytest

import rushlight
from rushlight.utils.data import (
    DataChunk,
    DataLoader,
    IterDataPipe,
    MapDataPipe,
    argument_validation,
    functional_datapipe,
    guaranteed_datapipes_determinism,
    non_deterministic,
    runtime_validation,
    runtime_validation_disabled,
)
from rushlight.utils.data.datapipes.iter import IterableWrapper, Sampler
from rushlight.utils.data.datapipes.map import SequenceWrapper
from rushlight.utils.data.datapipes.utils.common import StreamWrapper
from rushlight.utils.data.graph import traverse_dps
from rushlight.utils.data.graph_settings import apply_sharding, get_all_graph_pipes


def _is_even(x):
    return x % 2 == 0


def _double(x):
    return 2 * x


def _modulo_three(x):
    return x % 3


def _none_for_even(x):
    return None if x % 2 == 0 else 0


PIPELINES = {
    "map and filter": lambda it, mp: [it(range(9)).map(_double).filter(_is_even)],
    "columns": lambda it, mp: [
        it([(1, 2, 3), (4, 5, 6)]).map(_double, input_col=1),
        it([(1, 2, 3), (4, 5, 6)]).map(max, input_col=[0, 2]),
        it([[1, 2], [4, 5]]).map(_double, input_col=0, output_col=-1),
        it([{"a": 1}]).map(_double, input_col="a", output_col="b"),
    ],
    "batches": lambda it, mp: [
        it(range(7)).batch(3),
        it(range(7)).batch(3, drop_last=True),
        it(range(9)).batch(2).batch(2).unbatch(2),
        it(range(9)).batch(2).batch(2).unbatch(-1),
    ],
    "groups": lambda it, mp: [
        it(range(10)).groupby(_modulo_three),
        it(range(10)).groupby(_modulo_three, group_size=2, keep_key=True),
        it(range(20)).groupby(_modulo_three, buffer_size=5),
        it(range(20)).groupby(_modulo_three, buffer_size=5, group_size=3, guaranteed_group_size=2),
    ],
    "shuffle": lambda it, mp: [
        it(range(20)).shuffle(),
        it(range(20)).shuffle(buffer_size=3),
        it(range(6)).batch(2).shuffle(unbatch_level=1),
        mp(range(10)).shuffle(),
        it(range(5)).shuffle().set_shuffle(False),
    ],
    "join": lambda it, mp: [
        it(range(3)).concat(it(range(5))),
        it(range(3)).zip(it(range(5))),
        it(range(3)).mux(it(range(10, 15))),
    ],
    "fork": lambda it, mp: it(range(5)).fork(3),
    "demux": lambda it, mp: it(range(10)).demux(3, _modulo_three),
    "demux without some": lambda it, mp: it(range(10)).demux(2, _none_for_even, drop_none=True),
    "collate": lambda it, mp: [it([[1, 2], [3, 4]]).collate()],
    "by key": lambda it, mp: [
        mp(range(6)).map(_double),
        mp(range(7)).batch(3),
        mp(range(3)).concat(mp(range(2))),
        mp(range(3)).zip(mp("abcd")),
    ],
}


def _plain(value):
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _run(lib, name):
    torch = importlib.import_module(lib)
    importlib.import_module(f"{lib}.utils.data.datapipes")
    pipes = torch.utils.data.datapipes
    torch.manual_seed(2)
    made = PIPELINES[name](pipes.iter.IterableWrapper, pipes.map.SequenceWrapper)
    results = []
    for pipe in made:
        try:
            length = len(pipe)
        except TypeError:
            length = None
        values = [pipe[i] for i in range(length)] if isinstance(pipe, torch.utils.data.MapDataPipe) else pipe
        results.append((repr(pipe), length, _plain(list(values)), _plain(list(values))))
    return results


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.filterwarnings("ignore:Some child DataPipes are not exhausted")
def test_samples_are_pytorchs(name):
    pytest.importorskip("torch")
    assert _run("rushlight", name) == _run("torch", name)


def test_a_new_iterator_ends_the_one_before():
    pipe = IterableWrapper(range(5)).map(_double)
    first = iter(pipe)
    assert next(first) == 0
    assert list(pipe) == [0, 2, 4, 6, 8]
    with pytest.raises(RuntimeError, match="This iterator has been invalidated because another iterator"):
        next(first)
    a, b = IterableWrapper(range(3)).fork(2)
    started = iter(a)
    next(started)
    with pytest.warns(UserWarning, match="not exhausted"):
        assert list(a) == [0, 1, 2]
    with pytest.raises(RuntimeError, match="invalidated"):
        next(started)
    assert list(b) == [0, 1, 2]


def test_buffers_are_bounded():
    a, b = IterableWrapper(range(100)).fork(2, buffer_size=3)
    with pytest.raises(BufferError, match="buffer size 3 is insufficient"):
        list(a)
    assert b is not None
    a, b = IterableWrapper(range(100)).demux(2, _modulo_three, buffer_size=5)
    with pytest.raises((BufferError, ValueError)):
        list(a)


def test_files(tmp_path):
    for name in ("b.txt", "a.txt", "c.bin"):
        (tmp_path / name).write_text(f"content of {name}")
    pipe = IterableWrapper([str(tmp_path)]).list_files(masks="*.txt").open_files().read_from_stream()
    assert [text for _, text in pipe] == ["content of a.txt", "content of b.txt"]
    with pytest.raises(ValueError, match="Invalid mode"):
        IterableWrapper([]).open_files(mode="w")


@functional_datapipe("plus_for_test")
class Plus(IterDataPipe[int]):
    def __init__(self, source, n):
        self.source, self.n = source, n

    @runtime_validation
    def __iter__(self):
        for value in self.source:
            yield value + self.n


def test_own_steps():
    assert list(IterableWrapper(range(3)).plus_for_test(2)) == [2, 3, 4]
    assert "plus_for_test" in dir(IterableWrapper([]))
    with pytest.raises(Exception, match="already taken"):
        functional_datapipe("plus_for_test")(Plus)
    with pytest.raises(AttributeError, match="no attribute"):
        IterableWrapper([]).nothing_like_this()
    with pytest.raises(TypeError, match="can only decorate"):
        functional_datapipe("x")(dict)

    half = Plus(IterableWrapper([1]), 0.5)
    with pytest.raises(RuntimeError, match="Expected an instance as subtype of int, but found 1.5"):
        list(half)
    with runtime_validation_disabled():
        assert list(half) == [1.5]

    @argument_validation
    def take(pipe: IterDataPipe[int]):
        return list(pipe)

    assert take(Plus(IterableWrapper([1]), 1)) == [2]
    with pytest.raises(TypeError, match="Expected argument 'pipe' as a IterDataPipe"):
        take([1])


def test_errors_name_the_step():
    def fail(x):
        raise ValueError("no")

    with pytest.raises(ValueError, match="(?s)no.*thrown by __iter__ of MapperIterDataPipe"):
        list(IterableWrapper([1]).map(fail).batch(2))
    with pytest.raises(ValueError, match="does not take 3 positional"):
        IterableWrapper([]).map(_double, input_col=[0, 1, 2])
    with pytest.raises(IndexError, match="exceeds the depth"):
        list(IterableWrapper([1]).unbatch())
    assert DataChunk([1, 2]).as_str("  ") == "  [1, 2]"


def test_determinism():
    @non_deterministic
    class Random(IterDataPipe):
        def __iter__(self):
            yield 4

    assert list(Random()) == [4]
    with guaranteed_datapipes_determinism(), pytest.raises(TypeError, match="Random is non-deterministic"):
        Random()


def test_graph_and_shares():
    source = IterableWrapper(range(10))
    pipe = source.shuffle().sharding_filter().batch(2)
    pipes = get_all_graph_pipes(traverse_dps(pipe))
    assert len(pipes) == 4 and pipes[0] is pipe and pipes[-1] is source
    shares = [list(apply_sharding(IterableWrapper(range(7)).sharding_filter(), 3, i)) for i in range(3)]
    assert shares == [[0, 3, 6], [1, 4], [2, 5]]
    assert len(apply_sharding(IterableWrapper(range(7)).sharding_filter(), 3, 0)) == 3
    with pytest.raises(RuntimeError, match="Sharding twice"):
        apply_sharding(source.sharding_filter().sharding_filter(), 2, 0)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("persistent", [False, True])
def test_loaders(workers, persistent):
    if persistent and not workers:
        pytest.skip("needs workers")
    pipe = IterableWrapper(range(12)).shuffle().sharding_filter()
    loader = DataLoader(pipe, 2, shuffle=True, num_workers=workers, persistent_workers=persistent)
    epochs = [sum((batch.tolist() for batch in loader), []) for _ in range(3)]
    assert all(sorted(epoch) == list(range(12)) for epoch in epochs), (
        "each sample once, in all workers together"
    )
    assert epochs[0] != epochs[1] != epochs[2]
    keys = DataLoader(SequenceWrapper(range(5)).map(_double), 2, num_workers=workers)
    assert [batch.tolist() for batch in keys] == [[0, 2], [4, 6], [8]]
    assert isinstance(SequenceWrapper([]), MapDataPipe)


def test_loaders_orders_are_pytorchs():
    torch = pytest.importorskip("torch")
    results = []
    for lib in (rushlight, torch):
        pipes = importlib.import_module(f"{lib.__name__}.utils.data.datapipes")
        lib.manual_seed(11)
        pipe = pipes.iter.IterableWrapper(range(12)).shuffle().sharding_filter()
        loader = lib.utils.data.DataLoader(pipe, 3, shuffle=True)
        results.append([[batch.tolist() for batch in loader] for _ in range(2)])
    assert results[0] == results[1]


def test_a_pickle_in_the_middle_of_a_pass_goes_on_there():
    from rushlight.utils.data.datapipes._hook_iterator import _SnapshotState
    from rushlight.utils.data.datapipes.utils.snapshot import _simple_graph_snapshot_restoration as restore

    def seeded(pipe):
        rushlight.utils.data.graph_settings.apply_random_seed(pipe, rushlight.Generator().manual_seed(3))
        return pipe

    pipe = seeded(IterableWrapper(range(12)).map(_double).shuffle(buffer_size=4).batch(2))
    iterator = iter(pipe)
    first = [next(iterator) for _ in range(3)]
    copy = pickle.loads(pickle.dumps(pipe))
    assert copy._number_of_samples_yielded == pipe._number_of_samples_yielded == 3
    restore(copy, 3, rng=rushlight.Generator().manual_seed(3))
    with pytest.raises(RuntimeError, match="cannot be applied"):
        restore(copy, 3)
    rest = list(iterator)
    assert list(copy) == rest and len(first + rest) == 6
    assert sorted(x for batch in copy for x in batch) == [2 * i for i in range(12)]
    with pytest.raises(RuntimeError, match="exceeds the number of samples"):
        restore(copy, 7)

    shuffled = seeded(IterableWrapper(range(6)).shuffle(buffer_size=3))
    iterator = iter(shuffled)
    next(iterator)
    copy = pickle.loads(pickle.dumps(shuffled))
    restore(copy.datapipe, shuffled.datapipe._number_of_samples_yielded)
    copy._snapshot_state = _SnapshotState.Restored  # with the buffer and the numbers that it was pickled with
    assert list(copy) == list(iterator)

    grouped = IterableWrapper([1, 2, 3, 4, 5]).groupby(_is_even, group_size=2)
    iterator = iter(grouped)
    assert next(iterator) == [1, 3]
    copy = pickle.loads(pickle.dumps(grouped))
    restore(copy.datapipe, 3)
    copy._snapshot_state = _SnapshotState.Restored
    assert list(copy) == list(iterator) == [[2, 4], [5]]


@pytest.mark.parametrize("step", ["map", "filter", "collate", "groupby"])
def test_functions_that_cannot_be_pickled(step, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.warns(UserWarning, match="^Local function is not supported by pickle"):
        getattr(IterableWrapper([1]), step)(lambda x: x)
    with pytest.raises(TypeError, match="A callable function is expected"):
        IterableWrapper([1]).filter(3)


def test_what_children_may_keep_waiting():
    pipe = IterableWrapper(range(10))
    first, second = pipe.fork(2, buffer_size=4)
    iterator = iter(first)
    assert [next(iterator) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(BufferError):
        next(iterator)
    for size, fits in ((4, False), (5, True)):
        upper, lower = pipe.demux(2, _upper_half, buffer_size=size)
        if fits:
            assert list(upper) == [5, 6, 7, 8, 9] and list(lower) == [0, 1, 2, 3, 4]
        else:
            with pytest.raises(BufferError):
                next(iter(upper))
    with pytest.raises(AssertionError):
        Sampler(_NoLength())
    with pytest.raises(AssertionError):
        pipe.shuffle(buffer_size=0)


def _upper_half(x):
    return int(x < 5)


class _NoLength(rushlight.utils.data.IterDataPipe):
    def __iter__(self):
        yield 1


def test_steps_say_what_they_take():
    for name in ("batch", "fork", "map", "shuffle", "zip"):
        assert f"(functional name: ``{name}``)" in getattr(IterableWrapper([1]), name).__doc__
    stream = StreamWrapper(io.StringIO("x"))
    assert {"read", "close", "file_obj"} <= set(dir(stream))
