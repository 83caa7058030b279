"""The former home of `torch.ao.quantization.quantization_mappings`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

if TYPE_CHECKING:
    from rushlight.ao.quantization.quantization_mappings import *

take_names(globals(), "rushlight.ao.quantization.quantization_mappings")
