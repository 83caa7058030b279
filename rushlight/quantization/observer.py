"""The former home of `torch.ao.quantization.observer`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

if TYPE_CHECKING:
    from rushlight.ao.quantization.observer import *

take_names(globals(), "rushlight.ao.quantization.observer")
