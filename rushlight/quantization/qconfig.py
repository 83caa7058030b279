"""The former home of `torch.ao.quantization.qconfig`."""

from rushlight.ao.quantization.qconfig import *  # noqa: F403
