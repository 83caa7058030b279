"""Pooling of regions of images: alignment (He et al., "Mask R-CNN", 2017), maxima (Girshick, "Fast R-CNN",
2015), and the position-sensitive forms of both (Dai et al., "R-FCN", 2016).

Interpolation and means are separable: the weights of a region's rows and columns are two small matrices.
"""

import rushlight as torch
from rushlight import Tensor
from rushlight._subclasses.fake_tensor import FakeTensor

_ELEMENTS = 1 << 24  # of what is between the two products of a group of regions


def check_regions(name: str, input: Tensor, rois: Tensor) -> None:
    if rois.dim() != 2 or rois.size(1) != 5:
        raise RuntimeError(f"{name}: rois must have shape as Tensor[K, 5], but got {list(rois.shape)}")
    if input.dtype != rois.dtype:
        raise RuntimeError(
            "Expected tensor for input to have the same type as tensor for rois; but type "
            f"{input.dtype} does not equal {rois.dtype}"
        )


def check_position_sensitive(input: Tensor, height: int, width: int) -> None:
    if input.size(1) % (height * width):
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width")


def interpolation_weights(start: Tensor, length: Tensor, bins: int, size: int, ratio: int) -> Tensor:
    """[K, bins, size]: how much of each row (or column) of an image of `size` is in each bin of K regions.

    A bin is the mean of samples in equal distances, `ratio` of them, or as many as its length rounded up. A
    sample between two rows is interpolated; one beyond the image's border by more than a row is zero.
    """
    step = length / bins
    counts = torch.full_like(step, ratio) if ratio > 0 else step.ceil().clamp(min=1)
    most = ratio if ratio > 0 else int(counts.max().item()) if counts.numel() else 1
    samples = torch.arange(most, dtype=start.dtype, device=start.device)
    edges = start[:, None] + torch.arange(bins, dtype=start.dtype, device=start.device) * step[:, None]
    at = edges[:, :, None] + (samples + 0.5) * (step / counts)[:, None, None]
    inside = (at >= -1) & (at <= size) & (samples < counts[:, None, None])
    at = at.clamp(0, size - 1)
    # The weight of a row is one minus its distance, or zero: a hat over each sample.
    rows = torch.arange(size, dtype=start.dtype, device=start.device)
    hats = (1 - (at[..., None] - rows).abs()).clamp(min=0) * inside[..., None]
    return hats.sum(2) / counts[:, None, None]


def _groups(rois: Tensor, elements: int):
    """Regions of one image each, few enough that `elements` for each of them fit."""
    images = rois[:, 0].to(torch.int64)
    each = max(1, _ELEMENTS // max(1, elements))
    for image in images.unique().tolist():
        for chosen in (images == image).nonzero().flatten().split(each):
            yield image, chosen


def _weights(rois: Tensor, input: Tensor, scale: float, offset: float, least: float, bins, ratio: int):
    """Weights of rows and of columns."""
    left, top, right, bottom = (rois[:, 1:] * scale - offset).unbind(1)
    size = input.shape[-2:]
    height, width = (bottom - top).clamp(min=least), (right - left).clamp(min=least)
    return (
        interpolation_weights(top, height, bins[0], size[0], ratio),
        interpolation_weights(left, width, bins[1], size[1], ratio),
    )


def align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    check_regions("roi_align", input, rois)
    wide = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
    offset, least = (0.5, float("-inf")) if aligned else (0.0, 1.0)
    rows, columns = _weights(
        rois.to(wide.dtype),
        input,
        spatial_scale,
        offset,
        least,
        (pooled_height, pooled_width),
        sampling_ratio,
    )
    if isinstance(rois, FakeTensor):  # whose images nobody knows: each region gets its own
        images = wide[rois[:, 0].to(torch.int64)]
        lines = torch.einsum("kph,kchw->kcpw", rows, images)
        return torch.einsum("kcpw,kqw->kcpq", lines, columns).to(input.dtype)
    parts, places = [], []
    for image, chosen in _groups(rois, wide.size(1) * pooled_height * wide.size(3)):
        lines = torch.einsum("kph,chw->kcpw", rows[chosen], wide[image])
        parts.append(torch.einsum("kcpw,kqw->kcpq", lines, columns[chosen]))
        places.append(chosen)
    return _in_order(parts, places, (0, wide.size(1), pooled_height, pooled_width), wide).to(input.dtype)


def align_by_position(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    check_regions("ps_roi_align", input, rois)
    check_position_sensitive(input, pooled_height, pooled_width)
    wide = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
    bins = pooled_height, pooled_width
    rows, columns = _weights(
        rois.to(wide.dtype), input, spatial_scale, 0.5, float("-inf"), bins, sampling_ratio
    )
    parts, places = [], []
    for image, chosen in _groups(rois, wide.size(1) * wide.size(3)):
        maps = wide[image].unflatten(0, (-1, *bins))
        lines = torch.einsum("kph,cpqhw->kcpqw", rows[chosen], maps)
        parts.append(torch.einsum("kcpqw,kqw->kcpq", lines, columns[chosen]))
        places.append(chosen)
    result = _in_order(parts, places, (0, wide.size(1) // (bins[0] * bins[1]), *bins), wide).to(input.dtype)
    return result, channel_mapping(result)


def _in_order(parts, places, shape, like):
    if not parts:
        return like.new_zeros(shape)
    return torch.cat(parts)[torch.cat(places).argsort()]


def channel_mapping(result: Tensor) -> Tensor:
    """Which channel of the input each element of a position-sensitive result is from."""
    count = result[0].numel() if result.size(0) else 0
    numbers = torch.arange(count, dtype=torch.int32, device=result.device)
    return (
        numbers.reshape(result.shape[1:]).expand(result.shape).contiguous()
        if count
        else result.to(torch.int32)
    )


def whole_regions(rois: Tensor, scale: float, more: int):
    """(image, top, left, height, width) of each region in whole elements, at least one."""
    for image, *corners in rois.tolist():
        # Half away from zero, as C rounds.
        left, top, right, bottom = (int(abs(c * scale) + 0.5) * (1 if c >= 0 else -1) for c in corners)
        yield int(image), top, left, max(bottom - top + more, 1), max(right - left + more, 1)


def bin_of(index: int, start: int, length: int, bins: int, size: int):
    """The elements of a bin within an image of `size`."""
    first, last = start + index * length // bins, start - (-(index + 1) * length // bins)
    return min(max(first, 0), size), min(max(last, 0), size)


def maxima(input, rois, spatial_scale, pooled_height, pooled_width):
    check_regions("roi_pool", input, rois)
    height, width = input.shape[-2:]
    shape = (rois.size(0), input.size(1), pooled_height, pooled_width)
    values, places = input.new_zeros(shape), torch.full(shape, -1, dtype=torch.int32, device=input.device)
    with torch.no_grad():
        for k, (image, top, left, rows, columns) in enumerate(whole_regions(rois, spatial_scale, 1)):
            for p in range(pooled_height):
                h0, h1 = bin_of(p, top, rows, pooled_height, height)
                for q in range(pooled_width):
                    w0, w1 = bin_of(q, left, columns, pooled_width, width)
                    if h1 <= h0 or w1 <= w0:
                        continue
                    at = input[image, :, h0:h1, w0:w1].flatten(1).argmax(1)
                    places[k, :, p, q] = (at // (w1 - w0) + h0) * width + at % (w1 - w0) + w0
    chosen = places.clamp(min=0).to(torch.int64).flatten(2)
    images = rois[:, 0].to(torch.int64)
    values = input.flatten(2)[images].gather(2, chosen).reshape(shape) * (places >= 0)
    return values, places


def means_by_position(input, rois, spatial_scale, pooled_height, pooled_width):
    check_regions("ps_roi_pool", input, rois)
    check_position_sensitive(input, pooled_height, pooled_width)
    height, width = input.shape[-2:]
    # The last row and column belong to no bin, as in torchvision.
    weights = [[], []]
    for _, top, left, rows, columns in whole_regions(rois, spatial_scale, 0):
        for side, (start, length, bins, size) in enumerate(
            ((top, rows, pooled_height, height), (left, columns, pooled_width, width))
        ):
            matrix = input.new_zeros(bins, size)
            for i in range(bins):
                first, last = (min(end, size - 1) for end in bin_of(i, start, length, bins, size))
                if last > first:
                    matrix[i, first:last] = 1 / (last - first)
            weights[side].append(matrix)
    bins = pooled_height, pooled_width
    maps = input[rois[:, 0].to(torch.int64)].unflatten(1, (-1, *bins))
    if not rois.size(0):
        result = input.new_zeros(0, input.size(1) // (bins[0] * bins[1]), *bins)
    else:
        result = torch.einsum("kph,kcpqhw,kqw->kcpq", torch.stack(weights[0]), maps, torch.stack(weights[1]))
    return result, channel_mapping(result)
