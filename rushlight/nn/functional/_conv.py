"""Relatives of convolution."""

import rushlight as torch
from rushlight._C import _nn
from rushlight.nn.functional._arguments import need_tensors


def bilinear(input1, input2, weight, bias=None):
    """input1ᵀ W input2 + b for each output feature. All have one dtype."""
    need_tensors("bilinear", input1=input1, input2=input2, weight=weight)
    given = {"input1": input1, "input2": input2, "weight": weight}
    if bias is not None:
        given["bias"] = bias
    if any(t.dtype != input1.dtype for t in given.values()):
        found = ", ".join(f"{name}: {str(t.dtype).rpartition('.')[2]}" for name, t in given.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {found}")
    if weight.dim() != 3:
        raise RuntimeError(f"bilinear(): weight must have 3 dimensions, but has shape {list(weight.shape)}")
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
    if bias is not None and (bias.dim() != 1 or bias.shape[0] != outputs):
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {list(bias.shape)} "
            f"but expected [{outputs}]"
        )
    mapped = torch.matmul(input1, weight.transpose(0, 1).reshape(n1, outputs * n2))
    out = (mapped.view(*input1.shape[:-1], outputs, n2) * input2.unsqueeze(-2)).sum(-1, dtype=weight.dtype)
    return out if bias is None else out + bias


def conv_tbc(input, weight, bias, pad=0):
    """Convolution over time of (time, batch, channels), with a weight of (width, in, out)."""
    out = _nn.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return out.permute(2, 0, 1)
