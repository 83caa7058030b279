"""A linear layer with rounded weights, for operands that get their scale at each call."""

from rushlight.ao.nn.qat.modules.linear import Linear as _Linear

__all__ = ["Linear"]


class Linear(_Linear):
    """Linear with rounded weights."""

    def __init__(self, in_features, out_features, bias=True, qconfig=None, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, qconfig, device, dtype)
        from rushlight.ao.quantization.qconfig import _activation_is_memoryless

        if not _activation_is_memoryless(qconfig):
            raise ValueError(
                "Dynamic QAT requires a memoryless observer."
                + "This means a MovingAverage observer with averaging constant equal to 1"
            )
