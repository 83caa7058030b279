"""The former home of `torch.ao.nn.intrinsic.quantized`."""

from rushlight._extension.moved import take_names

take_names(globals(), "rushlight.ao.nn.intrinsic.quantized")
