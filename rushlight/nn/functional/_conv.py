"""Relatives of convolution."""

import rushlight as torch
from rushlight.nn import functional as F


def bilinear(input1, input2, weight, bias=None):
    """input1ᵀ W input2 + b for each output feature."""
    if input1.dim() != input2.dim() or input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"bilinear(): input batch dimensions do not match: got {list(input1.shape)} and "
            f"{list(input2.shape)}"
        )
    for i, x in enumerate((input1, input2), 1):
        if x.size(-1) != weight.size(i):
            raise RuntimeError(
                f"bilinear(): input{i} size does not match weight size: got {x.size(-1)} but expected "
                f"{weight.size(i)}"
            )
    outputs, n1, n2 = weight.shape
    mapped = torch.matmul(input1, weight.transpose(0, 1).reshape(n1, outputs * n2))
    out = (mapped.view(*input1.shape[:-1], outputs, n2) * input2.unsqueeze(-2)).sum(-1, dtype=weight.dtype)
    return out if bias is None else out + bias


def conv_tbc(input, weight, bias, pad=0):
    """Convolution over time of (time, batch, channels), with a weight of (width, in, out)."""
    out = F.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return out.permute(2, 0, 1)
