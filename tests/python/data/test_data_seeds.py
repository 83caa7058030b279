"""Random augmentation that does not depend on workers: a property over orders, sizes and numbers of them."""

import random

import pytest
from data_workers_helpers import Augmented, Stream, identity
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rushlight
from rushlight.utils.data import DataLoader

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


class OwnNumbers(Augmented):
    """Samples of a thread's generators, or of those of the process."""

    def __getitem__(self, i):
        rng = getattr(rushlight.utils.data.get_worker_info(), "rng", None)
        return i, (rng.random_generator if rng else random).random(), rushlight.rand(2)


def _loader(n, batch, workers, dataset=Augmented, **options):
    return DataLoader(
        dataset(n), batch, shuffle=True, num_workers=workers, collate_fn=identity, seed_batches=True,
        generator=rushlight.Generator().manual_seed(n), **options,
    )  # fmt: skip


def _plain(batches):
    return [[tuple(v.tolist() if hasattr(v, "tolist") else v for v in s) for s in batch] for batch in batches]


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(n=st.integers(1, 23), batch=st.integers(1, 5), data=st.data())
def test_the_same_for_all_numbers_of_workers(n, batch, data):
    pytest.importorskip("numpy")
    loader = _loader(n, batch, 0)
    epochs = [_plain(loader), _plain(loader)]
    numbers = [sample[1] for epoch in epochs for b in epoch for sample in b]
    assert len(set(numbers)) == len(numbers), "no two samples get the same random numbers"
    for workers, persistent in ((1, False), (4, True)):
        rushlight.manual_seed(data.draw(st.integers(0, 99)))  # the program's own numbers do not matter
        other = _loader(n, batch, workers, persistent_workers=persistent)
        assert [_plain(other), _plain(other)] == epochs, workers


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(n=st.integers(4, 23), data=st.data())
def test_resumes_with_any_number_of_workers(n, data):
    pytest.importorskip("numpy")
    loader = _loader(n, 2, data.draw(st.sampled_from([0, 2])))
    for _ in range(data.draw(st.integers(0, 1))):
        list(loader)
    iterator = iter(loader)
    for _ in range(data.draw(st.integers(0, n // 2 - 1))):
        next(iterator)
    state = loader.state_dict()
    rest, following = _plain(iterator), _plain(loader)
    again = _loader(n, 2, data.draw(st.sampled_from([0, 1, 3])))
    again.load_state_dict(state)
    assert _plain(again) == rest
    assert _plain(again) == following


def test_the_programs_numbers_are_left_alone():
    rushlight.manual_seed(3), random.seed(3)
    expected = rushlight.rand(1), random.random()
    rushlight.manual_seed(3), random.seed(3)
    loader = _loader(6, 2, 0)
    list(loader)
    assert (rushlight.rand(1), random.random()) == expected


def test_threads_draw_the_same():
    expected = _plain(_loader(12, 2, 0, OwnNumbers))
    for workers in (1, 3):
        assert _plain(_loader(12, 2, workers, OwnNumbers, worker_method="thread")) == expected


def test_without_it_workers_have_streams_of_their_own():
    pytest.importorskip("numpy")

    def numbers(workers):
        generator = rushlight.Generator().manual_seed(1)
        return _plain(
            DataLoader(Augmented(8), 2, num_workers=workers, collate_fn=identity, generator=generator)
        )

    assert numbers(1) != numbers(2)


def test_streams_are_refused():
    with pytest.raises(ValueError, match="seed_batches: workers share out a stream"):
        DataLoader(Stream(3), seed_batches=True)
