"""The former home of `torch.ao.nn.qat.dynamic`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

if TYPE_CHECKING:
    from rushlight.ao.nn.qat.dynamic import *

take_names(globals(), "rushlight.ao.nn.qat.dynamic")
