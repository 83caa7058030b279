"""Loaders that go on where another one stood: the same batches, to the last random number."""

import random

import pytest
from data_workers_helpers import Augmented, Squares, Stream, identity

import rushlight
from rushlight.utils.data import DataLoader, WeightedRandomSampler


def _lists(loader):
    return [batch.tolist() for batch in loader]


def _augmented(n=24, **options):
    options = {"batch_size": 2, "shuffle": True, "num_workers": 2, "collate_fn": identity} | options
    return DataLoader(Augmented(n), generator=rushlight.Generator().manual_seed(4), **options)


def _plain(batches):
    return [[(i, a, b, c.tolist()) for i, a, b, c in batch] for batch in batches]


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("stop", [0, 1, 5, 11])
def test_resumes_exactly(persistent, stop):
    pytest.importorskip("numpy")
    loader = _augmented(persistent_workers=persistent)
    list(loader)
    iterator = iter(loader)
    for _ in range(stop):
        next(iterator)
    state = loader.state_dict()
    rest = _plain(iterator)
    following = _plain(loader)

    rushlight.manual_seed(123)
    again = _augmented(persistent_workers=persistent)
    again.load_state_dict(state)
    assert again.state_dict() is state, "not begun yet"
    drawn = rushlight.get_rng_state()
    resumed = iter(again)
    assert rushlight.equal(rushlight.get_rng_state(), drawn), "the program's own numbers are left alone"
    assert _plain(resumed) == rest
    if not persistent:
        assert _plain(again)[0][0][0] == following[0][0][0]
    state = again.state_dict()
    assert state["iterator"] is None


def test_resumes_without_workers_and_with_others():
    def order(loader):
        return [[sample[0] for sample in batch] for batch in loader]

    pytest.importorskip("numpy")
    states, rests = [], []
    for workers in (0, 1, 3):
        loader = _augmented(num_workers=workers)
        iterator = iter(loader)
        for _ in range(5):
            next(iterator)
        states.append(loader.state_dict())
        rests.append(order(iterator))
    assert rests[0] == rests[1] == rests[2]
    for workers in (0, 1, 2, 3):
        for state in states:
            loader = _augmented(num_workers=workers)
            loader.load_state_dict(state)
            assert order(loader) == rests[0]


def test_a_state_taken_after_resuming():
    pytest.importorskip("numpy")
    loader = _augmented()
    whole = iter(loader)
    for _ in range(3):
        next(whole)
    state, rest = loader.state_dict(), _plain(whole)
    for skip in (0, 2):
        loader = _augmented()
        loader.load_state_dict(state)
        iterator = iter(loader)
        for _ in range(skip):
            next(iterator)
        second = loader.state_dict()
        last = _augmented()
        last.load_state_dict(second)
        assert _plain(last) == rest[skip:]


def test_states_at_every_batch():
    """Asked all the time, workers send their states along; each one resumes exactly."""
    pytest.importorskip("numpy")
    loader = _augmented()
    iterator = iter(loader)
    states, batches = [], []
    for batch in iterator:
        batches.append(batch)
        states.append(loader.state_dict())
    assert iterator._sends_states and any(state is not None for state in iterator._last_state)
    for i in (0, 4, 9):
        again = _augmented()
        again.load_state_dict(states[i])
        assert _plain(again) == _plain(batches[i + 1 :])


@pytest.mark.parametrize("workers", [0, 2])
def test_resumes_streams(workers):
    loader = DataLoader(Stream(21), 2, num_workers=workers, collate_fn=identity)
    iterator = iter(loader)
    for _ in range(5):
        next(iterator)
    state, python = loader.state_dict(), random.getstate()
    rest = list(iterator)
    again = DataLoader(Stream(21), 2, num_workers=workers, collate_fn=identity)
    again.load_state_dict(state)
    resumed = iter(again)
    random.setstate(python)
    assert list(resumed) == rest
    if workers:
        other = DataLoader(Stream(21), 2, num_workers=3)
        other.load_state_dict(state)
        with pytest.raises(RuntimeError, match="read by 2 workers can't be taken over by 3"):
            iter(other)


def test_states_survive_a_file(tmp_path):
    loader = DataLoader(Squares(10), 2, shuffle=True, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    rushlight.save(loader.state_dict(), tmp_path / "state.pt")
    rest = _lists(iterator)
    again = DataLoader(Squares(10), 2, shuffle=True, num_workers=2)
    again.load_state_dict(rushlight.load(tmp_path / "state.pt"))
    assert _lists(again) == rest
    with pytest.raises(ValueError, match="not what DataLoader.state_dict gave"):
        again.load_state_dict({})


def test_weighted_sampler_draws_after_the_loaders_seed():
    sampler = WeightedRandomSampler([1.0, 1.0], 4, generator=rushlight.Generator())
    state = sampler.generator.get_state()
    iter(sampler)
    assert rushlight.equal(state, sampler.generator.get_state())
