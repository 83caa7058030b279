"""Which layers of sparse integers stand for which layers of numbers."""

from rushlight import nn

__all__ = ["get_dynamic_sparse_quantized_mapping", "get_static_sparse_quantized_mapping"]


def get_static_sparse_quantized_mapping():
    """Layers for ``convert`` whose operands and results are integers."""
    from rushlight.ao.nn.sparse import quantized

    return {nn.Linear: quantized.Linear}


def get_dynamic_sparse_quantized_mapping():
    """Layers for ``convert`` that round their operands as they come."""
    from rushlight.ao.nn.sparse import quantized

    return {nn.Linear: quantized.dynamic.Linear}
