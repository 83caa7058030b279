"""The former home of `torch.ao.nn.qat.modules`."""

from rushlight._extension.moved import take_names

take_names(globals(), "rushlight.ao.nn.qat.modules")
