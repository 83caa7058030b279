"""The former home of `torch.ao.nn.quantized.functional`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

if TYPE_CHECKING:
    from rushlight.ao.nn.quantized.functional import *

take_names(globals(), "rushlight.ao.nn.quantized.functional")
