"""The former home of `torch.ao.nn.intrinsic`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

from . import modules as modules
from . import qat as qat
from . import quantized as quantized

if TYPE_CHECKING:
    from rushlight.ao.nn.intrinsic import *

take_names(globals(), "rushlight.ao.nn.intrinsic")
