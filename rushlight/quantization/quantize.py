"""The former home of `torch.ao.quantization.quantize`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

if TYPE_CHECKING:
    from rushlight.ao.quantization.quantize import *

take_names(globals(), "rushlight.ao.quantization.quantize")
