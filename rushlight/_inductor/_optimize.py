"""What happens to a graph before it runs."""

from rushlight._inductor import config
from rushlight._inductor._batch import batch_products
from rushlight._inductor._fuse import fuse_pointwise
from rushlight._inductor._simplify import simplify

__all__ = ["optimize"]


def optimize(graph):
    """Rewrite a graph without recorded operators so that it takes less time."""
    simplify(graph)
    if config.batch_products:
        batch_products(graph)
    fuse_pointwise(graph)
