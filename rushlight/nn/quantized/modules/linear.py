"""The former home of `torch.ao.nn.quantized.modules.linear`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

if TYPE_CHECKING:
    from rushlight.ao.nn.quantized.modules.linear import *

take_names(globals(), "rushlight.ao.nn.quantized.modules.linear")
