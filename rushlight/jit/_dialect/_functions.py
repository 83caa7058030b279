"""Functions of `torch.nn.functional` as scripts over operators, where no operator has the same arguments."""

# Types are those of scripts, where a dtype is a number.
# mypy: ignore-errors

from typing import List, Optional

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.functional import BroadcastingList1, BroadcastingList2, BroadcastingList3

# ruff: noqa: UP006, UP007, UP035, UP045, A001, A002


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.ops.aten.dropout_(input, p, training)
    return torch.ops.aten.dropout(input, p, training)


def feature_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    if inplace:
        return torch.ops.aten.feature_dropout_(input, p, training)
    return torch.ops.aten.feature_dropout(input, p, training)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if input.dim() == 2:
        return feature_dropout(input.unsqueeze(0), p, training, inplace).squeeze(0)
    return feature_dropout(input, p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return feature_dropout(input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if input.dim() == 4:
        return feature_dropout(input.unsqueeze(0), p, training, inplace).squeeze(0)
    return feature_dropout(input, p, training, inplace)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.ops.aten.alpha_dropout_(input, p, training)
    return torch.ops.aten.alpha_dropout(input, p, training)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    if inplace:
        return torch.ops.aten.feature_alpha_dropout_(input, p, training)
    return torch.ops.aten.feature_alpha_dropout(input, p, training)


def softmax(
    input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None
) -> Tensor:
    at = default_dim(input) if dim is None else dim
    return torch.ops.aten.softmax(input, at, dtype)


def log_softmax(
    input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None
) -> Tensor:
    at = default_dim(input) if dim is None else dim
    return torch.ops.aten.log_softmax(input, at, dtype)


def softmin(
    input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None
) -> Tensor:
    at = default_dim(input) if dim is None else dim
    return torch.ops.aten.softmax(torch.neg(input), at, dtype)


def default_dim(input: Tensor) -> int:
    if input.dim() == 0 or input.dim() == 1 or input.dim() == 3:
        return 0
    return 1


def logsigmoid(input: Tensor) -> Tensor:
    return torch.ops.aten.log_sigmoid(input)


def softsign(input: Tensor) -> Tensor:
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    return input - input.tanh()


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    return torch.ops.aten.leaky_relu_(input, negative_slope)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    if inplace:
        return torch.ops.aten.rrelu_(input, lower, upper, training)
    return torch.ops.aten.rrelu(input, lower, upper, training)


def batch_norm(
    input: Tensor,
    running_mean: Optional[Tensor],
    running_var: Optional[Tensor],
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    return torch.ops.aten.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, True
    )


def instance_norm(
    input: Tensor,
    running_mean: Optional[Tensor] = None,
    running_var: Optional[Tensor] = None,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    return torch.ops.aten.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )


def layer_norm(
    input: Tensor,
    normalized_shape: List[int],
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    eps: float = 1e-5,
) -> Tensor:
    return torch.ops.aten.layer_norm(input, normalized_shape, weight, bias, eps, True)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    eps: float = 1e-5,
) -> Tensor:
    return torch.ops.aten.group_norm(input, num_groups, weight, bias, eps, True)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    squares = input.mul(input)
    shape = input.size()
    before, after = size // 2, (size - 1) // 2
    if input.dim() == 3:
        padded = torch.ops.aten.pad(squares.unsqueeze(1), [0, 0, before, after])
        mean = torch.ops.aten.avg_pool2d(padded, [size, 1], [1, 1]).squeeze(1)
    else:
        flat = squares.view([shape[0], 1, shape[1], shape[2], -1])
        padded = torch.ops.aten.pad(flat, [0, 0, 0, 0, before, after])
        mean = torch.ops.aten.avg_pool3d(padded, [size, 1, 1], [1, 1, 1]).squeeze(1).view(shape)
    return input / mean.mul(alpha).add(k).pow(beta)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    length = torch.ops.aten.norm(input, p, [dim], True)
    return input / length.clamp_min(eps).expand_as(input)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: Optional[int] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    at = -1
    if padding_idx is not None:
        at = padding_idx if padding_idx >= 0 else weight.size(0) + padding_idx
    if max_norm is not None:
        with torch.no_grad():
            torch.ops.aten.embedding_renorm_(weight, input.contiguous(), max_norm, norm_type)
    return torch.ops.aten.embedding(weight, input, at, scale_grad_by_freq, sparse)


def max_pool1d(
    input: Tensor,
    kernel_size: BroadcastingList1[int],
    stride: Optional[List[int]] = None,
    padding: BroadcastingList1[int] = 0,
    dilation: BroadcastingList1[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    steps = kernel_size if stride is None else stride
    return torch.ops.aten.max_pool1d(input, kernel_size, steps, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    stride: Optional[List[int]] = None,
    padding: BroadcastingList2[int] = 0,
    dilation: BroadcastingList2[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    steps = kernel_size if stride is None else stride
    return torch.ops.aten.max_pool2d(input, kernel_size, steps, padding, dilation, ceil_mode)


def max_pool3d(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    stride: Optional[List[int]] = None,
    padding: BroadcastingList3[int] = 0,
    dilation: BroadcastingList3[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    steps = kernel_size if stride is None else stride
    return torch.ops.aten.max_pool3d(input, kernel_size, steps, padding, dilation, ceil_mode)


def unfold(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    dilation: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0,
    stride: BroadcastingList2[int] = 1,
) -> Tensor:
    return torch.ops.aten.im2col(input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor,
    output_size: BroadcastingList2[int],
    kernel_size: BroadcastingList2[int],
    dilation: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0,
    stride: BroadcastingList2[int] = 1,
) -> Tensor:
    return torch.ops.aten.col2im(input, output_size, kernel_size, dilation, padding, stride)


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: Optional[bool] = None,
) -> Tensor:
    kind = 0 if mode == "bilinear" else 1 if mode == "nearest" else 2
    outside = 0 if padding_mode == "zeros" else 1 if padding_mode == "border" else 2
    corners = False if align_corners is None else align_corners
    return torch.ops.aten.grid_sampler(input, grid, kind, outside, corners)


def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    return torch.ops.aten.affine_grid_generator(
        theta, size, False if align_corners is None else align_corners
    )


def interpolate(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[List[float]] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    dims = input.dim() - 2
    sizes: Optional[List[int]] = size
    if size is not None:
        sizes = [size[i % len(size)] for i in range(dims)]
    scales: Optional[List[float]] = scale_factor
    again = mode == "area" or recompute_scale_factor is not None and recompute_scale_factor
    if scale_factor is not None:
        factors = [scale_factor[i % len(scale_factor)] for i in range(dims)]
        scales = factors
        if again:
            sizes = [int(float(input.size(i + 2)) * factors[i]) for i in range(dims)]
    if again:
        scales = None
    corners = False if align_corners is None else align_corners
    if mode == "nearest":
        if dims == 1:
            return torch.ops.aten.upsample_nearest1d(input, sizes, scales)
        if dims == 2:
            return torch.ops.aten.upsample_nearest2d(input, sizes, scales)
        return torch.ops.aten.upsample_nearest3d(input, sizes, scales)
    if mode == "linear":
        return torch.ops.aten.upsample_linear1d(input, sizes, corners, scales)
    if mode == "bilinear":
        return torch.ops.aten.upsample_bilinear2d(input, sizes, corners, scales)
    if mode == "bicubic":
        return torch.ops.aten.upsample_bicubic2d(input, sizes, corners, scales)
    if mode == "trilinear":
        return torch.ops.aten.upsample_trilinear3d(input, sizes, corners, scales)
    assert mode == "area", "the mode is not known"
    wanted = torch.jit._unwrap_optional(sizes)
    if dims == 1:
        return F.adaptive_avg_pool1d(input, wanted)
    if dims == 2:
        return F.adaptive_avg_pool2d(input, wanted)
    return F.adaptive_avg_pool3d(input, wanted)


def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    noise = -torch.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    return torch.zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft


def _none_or_dtype(input: Optional[Tensor]) -> Optional[int]:
    if input is None:
        return None
    return input.dtype


def _canonical_mask(
    mask: Optional[Tensor],
    mask_name: str,
    other_type: Optional[int],
    other_name: str,
    target_type: int,
    check_other: bool = True,
) -> Optional[Tensor]:
    if mask is not None:
        if mask.dtype == torch.bool:
            zeros = torch.zeros(mask.size(), dtype=target_type, device=mask.device)
            return zeros.masked_fill(mask, float("-inf"))
    return mask


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Optional[Tensor] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Optional[Tensor] = None,
    include_last_offset: bool = False,
    padding_idx: Optional[int] = None,
) -> Tensor:
    kind = 0 if mode == "sum" else 1 if mode == "mean" else 2
    bags, indices, weights = offsets, input, per_sample_weights
    if input.dim() == 2:
        bags = torch.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        indices = input.reshape([-1])
        if per_sample_weights is not None:
            weights = per_sample_weights.reshape([-1])
    starts = torch.jit._unwrap_optional(bags)
    if max_norm is not None:
        with torch.no_grad():
            torch.ops.aten.embedding_renorm_(weight, indices.contiguous(), max_norm, norm_type)
    return torch.ops.aten.embedding_bag(
        weight, indices, starts, scale_grad_by_freq, kind, sparse, weights, include_last_offset, padding_idx
    )[0]


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: Optional[int] = None,
    win_length: Optional[int] = None,
    window: Optional[Tensor] = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: Optional[bool] = None,
    return_complex: Optional[bool] = None,
    align_to_window: Optional[bool] = None,
) -> Tensor:
    signal = input
    if center:
        wide = input.view([1, 1, -1]) if input.dim() == 1 else input.unsqueeze(0)
        wide = torch.ops.aten.pad(wide, [n_fft // 2, n_fft // 2], pad_mode)
        signal = wide.view([-1]) if input.dim() == 1 else wide.squeeze(0)
    return torch.ops.aten.stft(
        signal, n_fft, hop_length, win_length, window, normalized, onesided, return_complex
    )


def norm(
    input: Tensor, p: Optional[float] = 2.0, dim: Optional[List[int]] = None, keepdim: bool = False
) -> Tensor:
    power = 2.0 if p is None else p
    if dim is None:
        return torch.ops.aten.norm(input, power)
    return torch.ops.aten.norm(input, power, dim, keepdim)


def upsample(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[List[float]] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
) -> Tensor:
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[List[float]] = None
) -> Tensor:
    return F.interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(
    input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[List[float]] = None
) -> Tensor:
    return F.interpolate(input, size, scale_factor, "bilinear", True)
