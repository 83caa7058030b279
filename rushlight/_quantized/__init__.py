"""Quantized operators that take packed weights: objects of `torch.classes`, and `torch.ops.quantized`."""
