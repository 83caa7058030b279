"""What happens to a graph before it runs."""

from rushlight import _C
from rushlight._inductor import config
from rushlight._inductor._batch import batch_products
from rushlight._inductor._fuse import fuse_pointwise
from rushlight._inductor._packed import pack_products
from rushlight._inductor._passes import device_of
from rushlight._inductor._simplify import simplify

__all__ = ["batch", "optimize"]


def optimize(graph, sizes_change=False):
    """Rewrite a graph without recorded operators so that it takes less time."""
    batch(graph)
    device = device_of(graph)
    if config.pack_products and device == "cpu":
        pack_products(graph, None, sizes_change)
    if _C._can_fuse(device):
        fuse_pointwise(graph, device)


def batch(graph):
    """Take views once, and small products by one matrix together."""
    simplify(graph)
    if config.batch_products:
        batch_products(graph)
