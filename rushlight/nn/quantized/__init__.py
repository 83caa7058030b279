"""The former home of `torch.ao.nn.quantized`."""

from rushlight._extension.moved import take_names

from . import dynamic as dynamic
from . import functional as functional
from . import modules as modules

take_names(globals(), "rushlight.ao.nn.quantized")
