"""The former home of `torch.ao.quantization.fuse_modules`."""

from rushlight.ao.quantization.fuse_modules import *  # noqa: F403
