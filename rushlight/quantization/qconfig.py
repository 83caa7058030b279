"""The former home of `torch.ao.quantization.qconfig`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

if TYPE_CHECKING:
    from rushlight.ao.quantization.qconfig import *

take_names(globals(), "rushlight.ao.quantization.qconfig")
