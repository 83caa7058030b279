"""Resizing of images: one dimension after the other, each output pixel from a few input pixels."""

import math
import warnings

import rushlight as torch
from rushlight.nn import functional as F

from ._vision import _cubic_weights

_SMOOTH = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """input of (N, C, …) resized to the spatial size, or by the factors, given."""
    if mode not in _SMOOTH:
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: "
                "linear | bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    n = input.dim() - 2
    sizes, factors = _output_size(input, n, size, scale_factor)
    if recompute_scale_factor is not None and recompute_scale_factor:
        if size is not None:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        factors = None
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    _check_mode(mode, input)
    if any(s <= 0 for s in (*input.shape[2:], *sizes)):
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"({', '.join(map(str, input.shape[2:]))}) output ({', '.join(map(str, sizes))})"
        )
    if mode == "area":
        return getattr(F, f"adaptive_avg_pool{n}d")(input, sizes)
    whole = not (input.is_floating_point() or input.is_complex() or mode in ("nearest", "nearest-exact"))
    if whole and input.dtype != torch.uint8:
        raise NotImplementedError(
            f'"upsample_{mode}{n}d" not implemented for {input.dtype}; use uint8 or floats'
        )
    out = input.float() if whole else input
    for d in range(n):
        before, after = input.size(2 + d), sizes[d]
        ratio = 1.0 / factors[d] if factors is not None else before / after
        if mode in ("nearest", "nearest-exact"):
            out = _nearest(out, 2 + d, after, ratio, 0.5 if mode == "nearest-exact" else 0.0)
        elif antialias:
            out = _antialiased(out, 2 + d, after, ratio, mode, align_corners)
        else:
            out = _smooth(out, 2 + d, after, ratio, mode, align_corners)
    return (out.round().clamp(0, 255) if whole else out).to(input.dtype)


def _output_size(input, n, size, scale_factor):
    """The size of the output, and the factors if they were given."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if not isinstance(size, (list, tuple)):
            return [size] * n, None
        if len(size) != n:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with "
                "spatial "
                f"dimensions of {list(input.shape[2:])} and output size of {size}. Please provide input "
                "tensor in "
                "(N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format."
            )
        return list(size), None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if isinstance(scale_factor, (list, tuple)):
        if len(scale_factor) != n:
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got input with "
                "spatial "
                f"dimensions of {list(input.shape[2:])} and scale_factor of shape {scale_factor}. Please "
                "provide "
                "input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
            )
        factors = list(scale_factor)
    else:
        factors = [scale_factor] * n
    return [math.floor(float(input.size(2 + d)) * factors[d]) for d in range(n)], factors


def _check_mode(mode, input):
    dims = input.dim()
    if mode in _SMOOTH:
        if dims in (3, 4, 5):
            if dims != _SMOOTH[mode] + 2:
                raise NotImplementedError(
                    f"Got {dims}D input, but {mode} mode needs {_SMOOTH[mode] + 2}D input"
                )
            return
    elif mode in ("nearest", "nearest-exact", "area") and dims in (3, 4, 5):
        return
    raise NotImplementedError(
        "Input Error: Only 3D, 4D and 5D input Tensors supported "
        f"(got {dims}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | "
        "nearest-exact "
        f"(got {mode})"
    )


def _working_dtype(x):
    return x.dtype if x.dtype == torch.float64 else torch.float32


def _nearest(x, dim, size, ratio, shift):
    at = (torch.arange(size, device=x.device, dtype=torch.float32) + shift) * ratio
    return x.index_select(dim, at.floor().long().clamp(max=x.size(dim) - 1))


def _positions(x, dim, size, ratio, align_corners):
    """Where the output pixels lie on the input's axis."""
    steps = torch.arange(size, device=x.device, dtype=_working_dtype(x))
    if align_corners:
        return steps * ((x.size(dim) - 1) / (size - 1) if size > 1 else 0.0)
    return (steps + 0.5) * ratio - 0.5


def _smooth(x, dim, size, ratio, mode, align_corners):
    """The weighted sum of two neighbours, or of four for bicubic."""
    last = x.size(dim) - 1
    at = _positions(x, dim, size, ratio, align_corners)
    cubic = mode == "bicubic"
    if not cubic:
        at = at.clamp(min=0)
    base = at.floor()
    t = at - base
    taps = zip(range(-1, 3), _cubic_weights(t)) if cubic else ((0, 1 - t), (1, t))
    shape = [-1 if d == dim else 1 for d in range(x.dim())]
    out = 0
    for offset, weight in taps:
        index = (base + offset).long().clamp(0, last)
        out = out + x.index_select(dim, index) * weight.view(shape).to(x.dtype)
    return out


def _antialiased(x, dim, size, ratio, mode, align_corners):
    """Like `_smooth`, with a filter as wide as the output pixel when shrinking."""
    n = x.size(dim)
    if align_corners:
        ratio = (n - 1) / (size - 1) if size > 1 else 0.0
    scale = max(ratio, 1.0)
    support = (2.0 if mode == "bicubic" else 1.0) * scale
    center = ratio * (torch.arange(size, device=x.device, dtype=_working_dtype(x)) + 0.5)
    first = (center - support + 0.5).long().clamp(min=0).unsqueeze(1)
    stop = (center + support + 0.5).long().clamp(max=n).unsqueeze(1)
    pixel = torch.arange(n, device=x.device)
    distance = ((pixel + 0.5 - center.unsqueeze(1)) / scale).abs()
    if mode == "bicubic":
        inner, outer = _cubic_weights(distance, -0.5)[1], _cubic_weights(distance - 1, -0.5)[0]
        weight = torch.where(distance < 1, inner, torch.where(distance < 2, outer, 0.0))
    else:
        weight = (1 - distance).clamp(min=0)
    weight = torch.where((pixel >= first) & (pixel < stop), weight, 0.0)
    weight = (weight / weight.sum(1, keepdim=True)).to(x.dtype)
    return (x.movedim(dim, -1) @ weight.t()).movedim(-1, dim)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """An old name of `interpolate`."""
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """An old name of `interpolate` with mode='nearest'."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """An old name of `interpolate` with mode='bilinear' and align_corners=True."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
