"""The former home of `torch.ao.quantization.fake_quantize`."""

from rushlight.ao.quantization.fake_quantize import *  # noqa: F403
