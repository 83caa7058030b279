"""The former home of `torch.ao.nn.intrinsic.modules`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

if TYPE_CHECKING:
    from rushlight.ao.nn.intrinsic.modules import *

take_names(globals(), "rushlight.ao.nn.intrinsic.modules")
