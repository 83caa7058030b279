"""A row of the suite `engines` for any engine."""

import os

from ..case import Case
from . import INT8, files_of, rows


def threads() -> int:
    return len(os.sched_getaffinity(0))  # the worker keeps to as many cores as there are threads


def cases(sizes, load):
    """`load` makes a folder of files and the inputs as arrays a function that gives the first output."""

    def start(model, batch):
        import numpy as np

        folder = files_of(model, batch, sizes(False, True))
        with np.load(folder / "inputs.npz") as data:
            expected = data["expected"]
            inputs = [data[name] for name in data.files if name != "expected"]
        run = load(folder, inputs)
        # Integers are rounded after sums that are added in different order: what is a step off grows.
        off = 0.1 if model.endswith(INT8) else 1e-3
        np.testing.assert_allclose(run(), expected, rtol=off, atol=off * abs(expected).max())
        return run

    for row, model, batch in rows():
        yield Case(
            row, lambda model=model, batch=batch: start(model, batch), process=f"{model} {batch}", peak=True
        )
