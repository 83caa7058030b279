"""Blocks of images as columns and back, and other relatives of convolution."""

import rushlight as torch
from rushlight.nn import functional as F
from rushlight.nn._ntuple import _pair


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
    out = (mapped.view(*input1.shape[:-1], outputs, n2) * input2.unsqueeze(-2)).sum(-1)
    return out if bias is None else out + bias


def conv_tbc(input, weight, bias, pad=0):
    """Convolution over time of (time, batch, channels), with a weight of (width, in, out)."""
    out = F.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return out.permute(2, 0, 1)


def _windows(size, kernel, dilation, stride):
    """How many blocks fit, and for each position in the block the slice of the elements that stand there."""
    span = dilation * (kernel - 1)
    count = (size - span - 1) // stride + 1
    return count, [
        slice(i * dilation, i * dilation + stride * (count - 1) + 1, stride) for i in range(kernel)
    ]


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Every block of (N, C, H, W) as a column of (N, C * block, blocks)."""
    if input.dim() not in (3, 4):
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions "
            "for "
            f"input, but got: {list(input.shape)}"
        )
    if input.dim() == 3:
        return unfold(input.unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0)
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = map(_pair, (kernel_size, dilation, padding, stride))
    x = F.pad(input, (pw, pw, ph, ph))
    rows, row_slices = _windows(x.size(2), kh, dh, sh)
    cols, col_slices = _windows(x.size(3), kw, dw, sw)
    if rows < 1 or cols < 1:
        raise RuntimeError(
            f"Given input with spatial size ({input.size(2)}, {input.size(3)}), kernel_size=({kh}, {kw}), "
            f"dilation=({dh}, {dw}), padding=({ph}, {pw}), calculated shape of the array of sliding blocks "
            "as "
            f"({rows}, {cols}), but its components must be at least one."
        )
    blocks = torch.stack([x[:, :, r, c] for r in row_slices for c in col_slices], dim=2)
    return blocks.reshape(x.size(0), x.size(1) * kh * kw, rows * cols)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The sum of the blocks that the columns of (N, C * block, blocks) stand for, as (N, C, H, W)."""
    if input.dim() not in (2, 3):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
            "dimensions for "
            f"input, but got: {list(input.shape)}"
        )
    if input.dim() == 2:
        return fold(input.unsqueeze(0), output_size, kernel_size, dilation, padding, stride).squeeze(0)
    (h, w), (kh, kw), (dh, dw), (ph, pw), (sh, sw) = map(
        _pair, (output_size, kernel_size, dilation, padding, stride)
    )
    n, columns, blocks = input.shape
    rows, row_slices = _windows(h + 2 * ph, kh, dh, sh)
    cols, col_slices = _windows(w + 2 * pw, kw, dw, sw)
    if columns % (kh * kw) != 0:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={columns} and kernel_size=({kh}, {kw})."
        )
    if rows < 1 or cols < 1 or blocks != rows * cols:
        raise RuntimeError(
            f"Given output_size=({h}, {w}), kernel_size=({kh}, {kw}), dilation=({dh}, {dw}), padding=({ph}, "
            f"{pw}), "
            f"stride=({sh}, {sw}), expected size of input's dimension 2 to match the calculated number of "
            "sliding "
            f"blocks {rows} * {cols} = {rows * cols}, but got input.size(2)={blocks}."
        )
    parts = input.view(n, columns // (kh * kw), kh, kw, rows, cols)
    out = input.new_zeros((n, parts.size(1), h + 2 * ph, w + 2 * pw))
    for i, r in enumerate(row_slices):
        for j, c in enumerate(col_slices):
            out[:, :, r, c].add_(parts[:, :, i, j])
    return out[:, :, ph : ph + h, pw : pw + w]
