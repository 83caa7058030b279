"""`scan` as programs that PyTorch wrote call it: a loop over rows, whose function is a graph.

Here programs are recorded with the steps themselves, which have gradients: see `scan`."""

import rushlight as torch
from rushlight._higher_order_ops.operator import HigherOrderOperator

__all__ = ["scan_operator"]


class Scan(HigherOrderOperator):
    """``scan(f, init, xs, additional)``: ``f(*carry, *rows of xs, *additional)`` gives the next carry and a
    result; the last carry and the stacked results are returned."""

    def __init__(self):
        super().__init__("scan")

    def __call__(self, combine_fn, init, xs, additional_inputs=()):
        return _run(combine_fn, tuple(init), tuple(xs), tuple(additional_inputs))


def _run(combine_fn, init, xs, additional):
    carry, results = init, []
    for rows in zip(*xs, strict=True):
        found = combine_fn(*carry, *rows, *additional)
        carry, result = tuple(found[: len(init)]), found[len(init) :]
        results.append(result)
    return *carry, *(torch.stack(column) for column in zip(*results, strict=True))


scan_operator = Scan()
