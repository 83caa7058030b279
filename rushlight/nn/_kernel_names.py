"""Functions that PyTorch has in `torch._C._nn`, one for each way of computing a layer: here, the layer."""

from rushlight.nn import functional as F
from rushlight.nn.utils.rnn import pad_sequence

__all__ = [
    "adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d", "conv_depthwise3d", "pad_sequence",
    "relu6_", "slow_conv3d", "slow_conv_dilated2d", "slow_conv_dilated3d", "slow_conv_transpose2d",
    "slow_conv_transpose3d", "thnn_conv2d",
]  # fmt: skip

adaptive_avg_pool3d = F.adaptive_avg_pool3d


def adaptive_max_pool2d(input, output_size):
    """The maxima of regions, and where they are."""
    return F.adaptive_max_pool2d(input, output_size, return_indices=True)


def adaptive_max_pool3d(input, output_size):
    """The maxima of regions, and where they are."""
    return F.adaptive_max_pool3d(input, output_size, return_indices=True)


def relu6_(input):
    """relu6 in place."""
    return F.relu6(input, inplace=True)


def _check_kernel(weight, kernel_size):
    sizes = tuple(weight.shape[2:])
    given = (kernel_size,) * len(sizes) if isinstance(kernel_size, int) else tuple(kernel_size)
    if given != sizes:
        raise RuntimeError(f"weight should have a kernel of {given}, but got weight of {tuple(weight.shape)}")


def thnn_conv2d(self, weight, kernel_size, bias=None, stride=1, padding=0):
    """conv2d."""
    _check_kernel(weight, kernel_size)
    return F.conv2d(self, weight, bias, stride, padding)


def slow_conv3d(self, weight, kernel_size, bias=None, stride=1, padding=0):
    """conv3d."""
    _check_kernel(weight, kernel_size)
    return F.conv3d(self, weight, bias, stride, padding)


def slow_conv_dilated2d(self, weight, kernel_size, bias=None, stride=1, padding=0, dilation=1):
    """conv2d with gaps in its kernel."""
    _check_kernel(weight, kernel_size)
    return F.conv2d(self, weight, bias, stride, padding, dilation)


def slow_conv_dilated3d(self, weight, kernel_size, bias=None, stride=1, padding=0, dilation=1):
    """conv3d with gaps in its kernel."""
    _check_kernel(weight, kernel_size)
    return F.conv3d(self, weight, bias, stride, padding, dilation)


def conv_depthwise3d(self, weight, kernel_size, bias, stride, padding, dilation):
    """conv3d of each channel by itself."""
    _check_kernel(weight, kernel_size)
    return F.conv3d(self, weight, bias, stride, padding, dilation, groups=self.shape[-4])


def slow_conv_transpose2d(
    self, weight, kernel_size, bias=None, stride=1, padding=0, output_padding=0, dilation=1
):
    """conv_transpose2d."""
    _check_kernel(weight, kernel_size)
    return F.conv_transpose2d(self, weight, bias, stride, padding, output_padding, 1, dilation)


def slow_conv_transpose3d(
    self, weight, kernel_size, bias=None, stride=1, padding=0, output_padding=0, dilation=1
):
    """conv_transpose3d."""
    _check_kernel(weight, kernel_size)
    return F.conv_transpose3d(self, weight, bias, stride, padding, output_padding, 1, dilation)
