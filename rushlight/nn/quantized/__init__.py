"""The former home of `torch.ao.nn.quantized`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

from . import dynamic as dynamic
from . import functional as functional
from . import modules as modules

if TYPE_CHECKING:
    from rushlight.ao.nn.quantized import *

take_names(globals(), "rushlight.ao.nn.quantized")
