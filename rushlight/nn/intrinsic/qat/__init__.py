"""The former home of `torch.ao.nn.intrinsic.qat`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

if TYPE_CHECKING:
    from rushlight.ao.nn.intrinsic.qat import *

take_names(globals(), "rushlight.ao.nn.intrinsic.qat")
