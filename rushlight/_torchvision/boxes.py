"""The pooling of regions, deformable convolutions, and their gradients."""

import rushlight as torch
from rushlight import Tensor
from rushlight.library import Library
from rushlight.nn import functional as F

from . import regions

_library = Library("torchvision", "DEF")


def quantized_nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """`torchvision::nms`, which is an operator of the library, of boxes and scores as the integers
    that they are stored as: their scales change nothing."""
    return torch.ops.torchvision.nms(dets.float(), scores.float(), iou_threshold)  # type: ignore[attr-defined]


def quantized_align(
    input, rois, input_scale, input_zero_point, rois_scale, rois_zero_point, spatial_scale, pooled_height,
    pooled_width, sampling_ratio, aligned,
):  # fmt: skip
    """`roi_align` from integers to integers of the input's scale."""
    image = (input.float() - input_zero_point) * input_scale
    boxes = (rois.float() - rois_zero_point) * rois_scale
    result = regions.align(image, boxes, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)
    range_of = torch.iinfo(input.dtype)
    numbers = (result / input_scale).round() + input_zero_point
    return numbers.clamp(range_of.min, range_of.max).to(input.dtype)


def deform_conv2d(
    input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups,
    offset_groups, use_mask,
):  # fmt: skip
    """A convolution whose filters look at places that `offset` moves (Dai et al., 2017; Zhu et al., 2018)."""
    n, channels, height, width = input.shape
    kernel_h, kernel_w = weight.shape[-2:]
    out_h = (height + 2 * pad_h - dilation_h * (kernel_h - 1) - 1) // stride_h + 1
    out_w = (width + 2 * pad_w - dilation_w * (kernel_w - 1) - 1) // stride_w + 1
    points = kernel_h * kernel_w
    expected = (n, 2 * offset_groups * points, out_h, out_w)
    if tuple(offset.shape) != expected:
        raise RuntimeError(
            f"deform_conv2d: offset has the shape {list(offset.shape)}, expected {list(expected)}"
        )
    if use_mask and tuple(mask.shape) != (n, offset_groups * points, out_h, out_w):
        raise RuntimeError(
            f"deform_conv2d: mask has the shape {list(mask.shape)}, expected "
            f"{[n, offset_groups * points, out_h, out_w]}"
        )

    def range_of(count, step=1, first=0):
        return torch.arange(count, dtype=input.dtype, device=input.device) * step + first

    moved = offset.reshape(n * offset_groups, kernel_h, kernel_w, 2, out_h, out_w)
    rows = moved[:, :, :, 0] + range_of(kernel_h, dilation_h)[:, None, None, None]
    rows = rows + range_of(out_h, stride_h, -pad_h)[:, None]
    columns = moved[:, :, :, 1] + range_of(kernel_w, dilation_w)[:, None, None]
    columns = columns + range_of(out_w, stride_w, -pad_w)
    # grid_sample counts from -1 at one border to 1 at the other.
    grid = torch.stack([(2 * columns + 1) / width - 1, (2 * rows + 1) / height - 1], -1)
    images = input.reshape(n * offset_groups, channels // offset_groups, height, width)
    taken = F.grid_sample(
        images,
        grid.reshape(n * offset_groups, points * out_h, out_w, 2),
        padding_mode="zeros",
        align_corners=False,
    )
    taken = taken.reshape(n, offset_groups, channels // offset_groups, points, out_h * out_w)
    if use_mask:
        taken = taken * mask.reshape(n, offset_groups, 1, points, out_h * out_w)
    taken = taken.reshape(n, groups, channels // groups * points, out_h * out_w)
    filters = weight.reshape(groups, weight.size(0) // groups, -1)
    result = (filters @ taken).reshape(n, weight.size(0), out_h, out_w)
    return result + bias.reshape(1, -1, 1, 1)


# --- gradients, which newer versions of torchvision ask for by name


def _of_input(forward, shape, grad, *arguments):
    """The gradient of a function that is linear in its first argument."""
    with torch.enable_grad():
        x = grad.new_zeros(shape).requires_grad_()
        result = forward(x, *arguments)
        result = result[0] if isinstance(result, tuple) else result
        # Without regions nothing was taken from the input.
        return torch.autograd.grad(result, x, grad)[0] if result.requires_grad else torch.zeros_like(x)


def align_backward(
    grad, rois, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width,
    sampling_ratio, aligned,
):  # fmt: skip
    shape = batch_size, channels, height, width
    rest = spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned
    return _of_input(regions.align, shape, grad, rois, *rest)


def maxima_backward(
    grad, rois, argmax, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width
):
    result = grad.new_zeros(batch_size, channels, height * width)
    at = argmax.flatten(2).to(torch.int64)
    images = rois[:, 0].to(torch.int64)[:, None, None].expand_as(at)
    layers = torch.arange(channels, device=grad.device)[:, None].expand_as(at)
    added = grad.flatten(2) * (at >= 0)
    result.index_put_((images, layers, at.clamp(min=0)), added, accumulate=True)
    return result.reshape(batch_size, channels, height, width)


def align_by_position_backward(
    grad, rois, channel_mapping, spatial_scale, pooled_height, pooled_width, sampling_ratio, batch_size,
    channels, height, width,
):  # fmt: skip
    shape = batch_size, channels, height, width
    rest = spatial_scale, pooled_height, pooled_width, sampling_ratio
    return _of_input(regions.align_by_position, shape, grad, rois, *rest)


def means_by_position_backward(
    grad,
    rois,
    channel_mapping,
    spatial_scale,
    pooled_height,
    pooled_width,
    batch_size,
    channels,
    height,
    width,
):
    shape = batch_size, channels, height, width
    return _of_input(regions.means_by_position, shape, grad, rois, spatial_scale, pooled_height, pooled_width)


def deform_conv2d_backward(grad, input, weight, offset, mask, bias, *rest):
    with torch.enable_grad():
        operands = [t.detach().requires_grad_() for t in (input, weight, offset, mask, bias)]
        found = torch.autograd.grad(deform_conv2d(*operands, *rest), operands, grad, allow_unused=True)
    return tuple(torch.zeros_like(t) if g is None else g for t, g in zip(operands, found))


_POOLED = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_SHAPE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_CONV = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, "
    "SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, "
    "bool use_mask"
)
for _schema, _function in [
    (
        f"roi_align(Tensor input, Tensor rois, {_POOLED}, int sampling_ratio, bool aligned) -> Tensor",
        regions.align,
    ),
    ("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", quantized_nms),
    (
        "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, "
        f"int rois_zero_point, {_POOLED}, int sampling_ratio, bool aligned) -> Tensor",
        quantized_align,
    ),
    (f"roi_pool(Tensor input, Tensor rois, {_POOLED}) -> (Tensor, Tensor)", regions.maxima),
    (
        f"ps_roi_align(Tensor input, Tensor rois, {_POOLED}, int sampling_ratio) -> (Tensor, Tensor)",
        regions.align_by_position,
    ),
    (f"ps_roi_pool(Tensor input, Tensor rois, {_POOLED}) -> (Tensor, Tensor)", regions.means_by_position),
    (f"deform_conv2d({_CONV}) -> Tensor", deform_conv2d),
    (
        f"_roi_align_backward(Tensor grad, Tensor rois, {_POOLED}, {_SHAPE}, "
        "int sampling_ratio, bool aligned) -> Tensor",
        align_backward,
    ),
    (
        f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {_POOLED}, {_SHAPE}) -> Tensor",
        maxima_backward,
    ),
    (
        f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_POOLED}, "
        f"int sampling_ratio, {_SHAPE}) -> Tensor",
        align_by_position_backward,
    ),
    (
        f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_POOLED}, {_SHAPE}) "
        "-> Tensor",
        means_by_position_backward,
    ),
    (
        f"_deform_conv2d_backward(Tensor grad, {_CONV}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
        deform_conv2d_backward,
    ),
    ("_cuda_version() -> int", lambda: -1),
]:
    _library.define(_schema)
    _library._impl_stand_in(_schema.partition("(")[0], _function)
