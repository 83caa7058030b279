"""Large operations: every family by dtype, layout and size."""

from ..kernels import layers, matrices, moving, pointwise, reductions


def cases(sizes):
    for family in (pointwise, reductions, moving, layers, matrices):
        yield from family.cases(sizes)
