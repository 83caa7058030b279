"""Masks of matrices by blocks: which blocks are zero, and which elements within each."""

import rushlight
from rushlight.nn import functional as F


def check_zeros(zeros_per_block, block_shape):
    """The number of elements of a block, once as many zeros fit into it."""
    size = block_shape[0] * block_shape[1]
    if zeros_per_block > size:
        raise ValueError(
            "Number of zeros per block cannot be more than the total number of elements in that block."
        )
    if zeros_per_block < 0:
        raise ValueError("Number of zeros per block should be positive.")
    return size


def _padded(length, block):
    return -(-length // block) * block


def whole_blocks(data, block_shape, count):
    """Zeros in the `count` blocks of least mean, ones elsewhere; ties go by `topk`."""
    height, width = data.shape[-2:]
    if block_shape[0] * block_shape[1] > 1:
        means = F.avg_pool2d(data[None, None], kernel_size=block_shape, stride=block_shape, ceil_mode=True)[
            0, 0
        ]
    else:
        means = data
    count = count(means.numel()) if callable(count) else count
    kept = rushlight.ones(means.numel(), dtype=data.dtype, device=data.device)
    kept[means.flatten().topk(count, largest=False).indices] = 0
    kept = kept.reshape(means.shape)
    for axis in (0, 1):
        kept = kept.repeat_interleave(block_shape[axis], dim=axis)
    return kept[:height, :width].contiguous()


def within_blocks(data, block_shape, zeros):
    """Zeros at the `zeros` least elements of each block; what a block has beyond the edge is chosen last."""
    height, width = data.shape[-2:]
    tall, wide = _padded(height, block_shape[0]), _padded(width, block_shape[1])
    padded = F.pad(data, (0, wide - width, 0, tall - height), value=float("nan"))
    blocks = F.unfold(padded[None, None], kernel_size=block_shape, stride=block_shape)
    kept = rushlight.ones_like(blocks).scatter_(1, blocks.topk(zeros, dim=1, largest=False).indices, 0)
    kept = F.fold(kept, output_size=(tall, wide), kernel_size=block_shape, stride=block_shape)
    return kept[0, 0, :height, :width].contiguous()
