"""How pictures are laid out, by PyTorch's names."""

import numpy as np

from rushlight.utils.tensorboard.arrays import figure_to_image, grid, picture

__all__ = ["convert_to_HWC", "figure_to_image", "make_grid"]


def convert_to_HWC(tensor, input_format):  # noqa: N802 - PyTorch's name
    """An image ``[height, width, channels]`` of an array whose dimensions `input_format` names."""
    return picture(tensor, input_format)


def make_grid(I, ncols=8):  # noqa: E741, N803 - PyTorch's name
    """Images ``[N, C, H, W]`` side by side: ``[C, height, width]``."""
    return grid(I, ncols).transpose(2, 0, 1)


def _prepare_video(V):  # noqa: N803 - PyTorch's name
    """Videos ``[N, T, C, H, W]`` in a grid of a power of two of places: ``[T, height, width, C]``."""
    count, frames, channels, height, width = V.shape
    V = V.astype(np.float32) / 255.0 if V.dtype == np.uint8 else V  # noqa: N806
    places = 1 << (count - 1).bit_length()
    rows = 1 << ((count.bit_length() - 1) // 2)
    columns = places // rows
    full = np.concatenate([V, np.zeros((places - count, *V.shape[1:]), V.dtype)])
    parts = full.reshape(rows, columns, frames, channels, height, width).transpose(2, 0, 4, 1, 5, 3)
    return parts.reshape(frames, rows * height, columns * width, channels)
