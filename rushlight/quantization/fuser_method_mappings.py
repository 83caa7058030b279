"""The former home of `torch.ao.quantization.fuser_method_mappings`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

if TYPE_CHECKING:
    from rushlight.ao.quantization.fuser_method_mappings import *

take_names(globals(), "rushlight.ao.quantization.fuser_method_mappings")
