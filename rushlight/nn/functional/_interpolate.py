"""Resizing of lines, images and volumes: the arguments; the kernels are the core's."""

import math
import warnings

from rushlight import _C, Tensor
from rushlight._errors.advice import advised
from rushlight.nn.functional._pooling import adaptive_avg_pool2d, adaptive_avg_pool3d

_SMOOTH = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3, "lanczos": 2}
_KERNELS = {
    ("nearest", False): "upsample_nearest{n}d",
    ("nearest-exact", False): "_upsample_nearest_exact{n}d",
    ("linear", False): "upsample_linear1d",
    ("bilinear", False): "upsample_bilinear2d",
    ("trilinear", False): "upsample_trilinear3d",
    ("bicubic", False): "upsample_bicubic2d",
    ("bilinear", True): "_upsample_bilinear2d_aa",
    ("bicubic", True): "_upsample_bicubic2d_aa",
    ("lanczos", True): "_upsample_lanczos2d_aa",
}
_AVERAGES = {1: _C._nn.adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}


def interpolate(
    input: Tensor,
    size=None,
    scale_factor=None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """input of (N, C, …) resized to the spatial size, or by the factors, given.

    Args:
        input (Tensor): (batch, channels, ..) with one, two or three spatial dimensions.
        size (int or sequence of int): the spatial size of the result.
        scale_factor (float or sequence of float): the factors of the spatial sizes, instead of `size`.
        mode (str): 'nearest', 'nearest-exact', 'linear', 'bilinear', 'bicubic', 'trilinear' or 'area'.
        align_corners (bool or None): whether corner elements, instead of corners of the image, coincide.
        recompute_scale_factor (bool or None): whether the factors are worked out again from the rounded size.
        antialias (bool): whether making smaller averages over what falls away.

    Shape: (batch, channels, ..) becomes (batch, channels, *size).

    Raises: ValueError where neither or both of `size` and `scale_factor` are given.

    Example:
        >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    if mode in ("nearest", "area", "nearest-exact"):
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
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D "
            "tensor as input"
        )
    _check_mode(mode, input)
    if mode == "lanczos":
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
    if any(s <= 0 for s in (*input.shape[2:], *sizes)):
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"({', '.join(map(str, input.shape[2:]))}) output ({', '.join(map(str, sizes))})"
        )
    if mode == "area":
        return _AVERAGES[n](input, sizes)
    name = _KERNELS[mode, antialias].format(n=n)
    scales = [None] * n if factors is None else [float(f) for f in factors]
    if mode in ("nearest", "nearest-exact"):
        return getattr(_C._nn, name)(input, sizes, *scales)
    return getattr(_C._nn, name)(input, sizes, align_corners, *scales)


def _other_dimensions(what, input, got, wanted):
    return advised(
        ValueError(
            f"Input and {what} must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {list(input.shape[2:])} and {got}. Please provide input tensor in "
            f"(N, C, d1, d2, ...,dK) format and {wanted} format."
        )
    )


def _output_size(input, n, size, scale_factor):
    """The size of the output, and the factors if they were given."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if not isinstance(size, (list, tuple)):
            return [size] * n, None
        if len(size) != n:
            raise _other_dimensions(
                "output", input, f"output size of {size}", "output size in (o1, o2, ...,oK)"
            )
        return list(size), None
    if scale_factor is None:
        raise advised(ValueError("either size or scale_factor should be defined"))
    if isinstance(scale_factor, (list, tuple)):
        if len(scale_factor) != n:
            got = f"scale_factor of shape {scale_factor}"
            raise _other_dimensions("scale_factor", input, got, "scale_factor in (s1, s2, ...,sK)")
        factors = list(scale_factor)
    else:
        factors = [scale_factor] * n
    return [math.floor(float(input.size(2 + d)) * factors[d]) for d in range(n)], factors


def _check_mode(mode, input):
    dims = input.dim()
    if mode in _SMOOTH:
        if dims in (3, 4, 5):
            if dims != _SMOOTH[mode] + 2:
                text = f"Got {dims}D input, but {mode} mode needs {_SMOOTH[mode] + 2}D input"
                raise advised(NotImplementedError(text))
            return
    elif mode in ("nearest", "nearest-exact", "area") and dims in (3, 4, 5):
        return
    raise NotImplementedError(
        "Input Error: Only 3D, 4D and 5D input Tensors supported "
        f"(got {dims}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | "
        f"area | nearest-exact (got {mode})"
    )


def upsample(
    input: Tensor, size=None, scale_factor=None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """An old name of `interpolate`."""
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """An old name of `interpolate` with mode='nearest'."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """An old name of `interpolate` with mode='bilinear' and align_corners=True."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
