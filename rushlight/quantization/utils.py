"""The former home of `torch.ao.quantization.utils`."""

from rushlight.ao.quantization.utils import *  # noqa: F403
