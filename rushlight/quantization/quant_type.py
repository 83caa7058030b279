"""The former home of `torch.ao.quantization.quant_type`."""

from rushlight.ao.quantization.quant_type import *  # noqa: F403
