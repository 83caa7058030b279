"""The former home of `torch.ao.nn.qat`."""

from rushlight._extension.moved import take_names

from . import dynamic as dynamic
from . import modules as modules

take_names(globals(), "rushlight.ao.nn.qat")
