"""The former home of `torch.ao.nn.quantized.modules.embedding_ops`."""

from rushlight._extension.moved import take_names

take_names(globals(), "rushlight.ao.nn.quantized.modules.embedding_ops")
