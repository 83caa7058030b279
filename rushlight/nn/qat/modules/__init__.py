"""The former home of `torch.ao.nn.qat.modules`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

if TYPE_CHECKING:
    from rushlight.ao.nn.qat.modules import *

take_names(globals(), "rushlight.ao.nn.qat.modules")
