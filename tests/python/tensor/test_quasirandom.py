"""Sobol' sequences, point by point PyTorch's."""

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")


def engines(*args, **kwargs):
    return [lib.quasirandom.SobolEngine(*args, **kwargs) for lib in (rushlight, torch)]


@pytest.mark.parametrize("dimension", [1, 2, 7, 200])
@pytest.mark.parametrize("scramble", [False, True])
def test_points(dimension, scramble):
    ours, theirs = engines(dimension, scramble=scramble, seed=5 if scramble else None)
    for n in (1, 3, 4, 100):
        assert ours.draw(n).tolist() == theirs.draw(n).tolist()
    ours.fast_forward(17), theirs.fast_forward(17)
    assert ours.draw(3).tolist() == theirs.draw(3).tolist() and ours.quasi.tolist() == theirs.quasi.tolist()
    assert repr(ours) == repr(theirs) and ours.num_generated == theirs.num_generated
    assert ours.reset().draw(5).tolist() == theirs.reset().draw(5).tolist()


def test_dtypes_and_out():
    ours, theirs = engines(3)
    for lib, engine in ((rushlight, ours), (torch, theirs)):
        out = lib.empty(0, dtype=lib.float64)
        assert engine.draw(6, out=out, dtype=lib.float64) is out
    assert ours.draw(6, dtype=rushlight.float64).tolist() == theirs.draw(6, dtype=torch.float64).tolist()


def test_seeds_follow_the_generator():
    rushlight.manual_seed(3), torch.manual_seed(3)
    ours, theirs = engines(4, scramble=True)
    assert ours.draw(9).tolist() == theirs.draw(9).tolist()


def test_checks():
    for engine in engines(2):
        assert engine.draw_base2(3).shape == (8, 2)
        with pytest.raises(ValueError, match="require n to be a power of 2"):
            engine.draw_base2(2)
    with pytest.raises(ValueError, match="Supported range"):
        rushlight.quasirandom.SobolEngine(0)
