"""The former home of `torch.ao.quantization.quant_type`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

if TYPE_CHECKING:
    from rushlight.ao.quantization.quant_type import *

take_names(globals(), "rushlight.ao.quantization.quant_type")
