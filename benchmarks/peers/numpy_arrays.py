"""NumPy on arrays of doubles."""

import numpy as np

from .arrays import SIZES, numbers, statements

version = np.__version__


def names(size: str, tiny: bool) -> dict[str, object]:
    n = SIZES["1e3" if tiny else size][0]
    return {**numbers(size, tiny), "np": np, "n": n, "random": np.random.default_rng(1)}


def cases(sizes):
    yield from statements(sizes, 0, names)
