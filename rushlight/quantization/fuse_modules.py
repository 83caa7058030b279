"""The former home of `torch.ao.quantization.fuse_modules`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

if TYPE_CHECKING:
    from rushlight.ao.quantization.fuse_modules import *

take_names(globals(), "rushlight.ao.quantization.fuse_modules")
