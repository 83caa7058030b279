"""What happens to a graph before it runs."""

from rushlight import _C
from rushlight._inductor import config
from rushlight._inductor._batch import batch_products
from rushlight._inductor._fuse import fuse_pointwise
from rushlight._inductor._passes import device_of
from rushlight._inductor._simplify import simplify

__all__ = ["optimize"]


def optimize(graph):
    """Rewrite a graph without recorded operators so that it takes less time."""
    simplify(graph)
    if config.batch_products:
        batch_products(graph)
    device = device_of(graph)
    if _C._can_fuse(device):
        fuse_pointwise(graph, device)
