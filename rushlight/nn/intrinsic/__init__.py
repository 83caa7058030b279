"""The former home of `torch.ao.nn.intrinsic`."""

from rushlight._extension.moved import take_names

from . import modules as modules
from . import qat as qat
from . import quantized as quantized

take_names(globals(), "rushlight.ao.nn.intrinsic")
