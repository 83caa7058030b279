"""Rearranging pixels, and sampling images at any point."""

import warnings

import rushlight as torch


def pixel_shuffle(input, upscale_factor):
    """(*, C r², H, W) to (*, C, H r, W r)."""
    r = upscale_factor
    if input.dim() < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.dim()} "
            "dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, c, h, w = input.shape
    if c % (r * r) != 0:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            "upscale_factor, "
            f"but input.size(-3)={c} is not divisible by {r * r}"
        )
    n = len(lead)
    x = input.reshape(*lead, c // (r * r), r, r, h, w)
    x = x.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return x.clone(memory_format=torch.contiguous_format).view(*lead, c // (r * r), h * r, w * r)


def pixel_unshuffle(input, downscale_factor):
    """(*, C, H r, W r) to (*, C r², H, W)."""
    r = downscale_factor
    if input.dim() < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {input.dim()} "
            "dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = input.shape
    for name, size, at in (("height", h, -2), ("width", w, -1)):
        if size % r != 0:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, "
                f"but input.size({at})={size} is not divisible by {r}"
            )
    n = len(lead)
    x = input.reshape(*lead, c, h // r, r, w // r, r)
    x = x.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return x.clone(memory_format=torch.contiguous_format).view(*lead, c * r * r, h // r, w // r)


def channel_shuffle(input, groups):
    """The channels of each group dealt out over all groups."""
    if input.dim() < 3:
        raise RuntimeError(
            "channel_shuffle expects input with > 2 dims, but got input with sizes " + str(list(input.shape))
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    n, c, *rest = input.shape
    if c % groups != 0:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        )
    return input.reshape(n, groups, c // groups, *rest).transpose(1, 2).reshape(input.shape)


native_channel_shuffle = channel_shuffle


def _warn_align_corners(name):
    warnings.warn(
        f"Default {name} behavior has changed to align_corners=False since 1.3.0. Please specify "
        "align_corners=True "
        f"if the old behavior is desired. See the documentation of {name} for details.",
        stacklevel=3,
    )


def affine_grid(theta, size, align_corners=None):
    """The points of an image of the given size, mapped by the affine matrices theta, for `grid_sample`."""
    if align_corners is None:
        _warn_align_corners("affine_grid and grid_sample")
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    if theta.dim() != 3 or theta.shape[-2] != n or theta.shape[-1] != n + 1:
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got "
            f"{theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    axes = []
    for length in size[2:]:
        if length <= 1:
            axis = torch.zeros(length, dtype=theta.dtype, device=theta.device)
        else:
            axis = torch.linspace(-1, 1, length, dtype=theta.dtype, device=theta.device)
            if not align_corners:
                axis = axis * (length - 1) / length
        axes.append(axis)
    # Coordinates stand in the order x, y, z, which is the dimensions backwards.
    points = torch.stack(
        [*torch.meshgrid(*axes, indexing="ij")[::-1], torch.ones(tuple(size[2:])).to(axes[0])], -1
    )
    grid = points.view(1, -1, n + 1).expand(size[0], -1, -1) @ theta.transpose(1, 2)
    return grid.view(size[0], *size[2:], n)


def _reflect(x, low, high):
    """x folded back into [low, high] (given doubled) as between two mirrors."""
    if low == high:
        return torch.zeros_like(x)
    start, span = low / 2, (high - low) / 2
    distance = (x - start).abs()
    extra = distance.fmod(span)
    flips = (distance / span).floor()
    return torch.where(flips % 2 == 0, extra + start, span - extra + start)


def _pad_coordinate(x, size, padding_mode, align_corners):
    if padding_mode == "reflection":
        x = _reflect(x, 0, 2 * (size - 1)) if align_corners else _reflect(x, -1, 2 * size - 1)
    if padding_mode in ("border", "reflection"):
        x = x.clamp(0, size - 1)
    return x


def _fetch(flat, at, sizes, padding_mode, align_corners):
    """The pixels of flat (N, C, volume) at integral coordinates; zero outside."""
    inside = None
    index = 0
    for x, size in zip(at, sizes):
        ok = (x >= 0) & (x <= size - 1)
        inside = ok if inside is None else inside & ok
        index = index * size + x.clamp(0, size - 1).long()
    n, c, _ = flat.shape
    index = index.view(n, 1, -1).expand(-1, c, -1)
    return flat.gather(2, index) * inside.view(n, 1, -1).to(flat.dtype)


def _cubic_weights(t, a=-0.75):
    """The weights of four neighbours for the fraction t between the middle two."""

    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """input sampled at the points of grid, whose coordinates run from -1 to 1."""
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: "
            f"'{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
            f"but got: '{padding_mode}'"
        )
    if align_corners is None:
        _warn_align_corners("grid_sample and affine_grid")
        align_corners = False
    sizes = input.shape[2:]
    n = len(sizes)
    if n not in (2, 3) or input.dim() != grid.dim():
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input "
            "with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if input.size(0) != grid.size(0):
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.size(-1) != n:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {n} in last dimension, but got grid with sizes "
            f"{list(grid.shape)}"
        )
    if mode == "bicubic" and n == 3:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    points = []
    for d, size in enumerate(sizes):
        x = grid[..., n - 1 - d]
        points.append((x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2)
    flat = input.reshape(*input.shape[:2], -1)
    out = _sample(flat, points, sizes, mode, padding_mode, align_corners)
    return out.view(*input.shape[:2], *grid.shape[1:-1])


def _sample(flat, points, sizes, mode, padding_mode, align_corners):
    n = flat.size(0)

    def pad(xs):
        return [_pad_coordinate(x, size, padding_mode, align_corners) for x, size in zip(xs, sizes)]

    if mode != "bicubic":
        points = pad(points)
    if mode == "nearest":
        return _fetch(flat, [x.round() for x in points], sizes, padding_mode, align_corners)
    base = [x.detach().floor() for x in points]
    fraction = [x - b for x, b in zip(points, base)]
    taps = [
        [(0, 1 - t), (1, t)] if mode == "bilinear" else list(zip(range(-1, 3), _cubic_weights(t)))
        for t in fraction
    ]
    out = 0
    for corner in _product(taps):
        at = [b + offset for b, (offset, _) in zip(base, corner)]
        weight = 1
        for _, w in corner:
            weight = weight * w
        values = _fetch(flat, pad(at) if mode == "bicubic" else at, sizes, padding_mode, align_corners)
        out = out + values * weight.reshape(n, 1, -1)
    return out


def _product(lists):
    from itertools import product

    return product(*lists)
