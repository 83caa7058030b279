"""Functions of the top namespace that are compositions of others."""

import math

import rushlight as torch
from rushlight._operators.overridable import make_overridable

__capture__ = "through"  # Note [Capture marks]

_histogram_type = torch._C._make_return_type("histogram", ("hist", "bin_edges"))
_histogramdd_type = torch._C._make_return_type("histogramdd", ("hist", "bin_edges"))


def batch_norm_update_stats(input, running_mean, running_var, momentum):
    """The mean and variance of each channel; the running ones move towards them by `momentum`."""
    if input.dim() < 2 or input.numel() == 0:
        raise RuntimeError(
            "batch_norm_update_stats: input tensor must have at least one element, but got input_sizes = "
            f"{list(input.shape)}"
        )
    for name, running in ("running_mean", running_mean), ("running_var", running_var):
        if running is not None and running.numel() != input.size(1):
            raise RuntimeError(f"{name} should contain {input.size(1)} elements not {running.numel()}")
    var, mean = torch.var_mean(input, [d for d in range(input.dim()) if d != 1], correction=0)
    count = input.numel() // input.size(1)
    with torch.no_grad():
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
        if running_var is not None:
            unbiased = var * (count / (count - 1)) if count > 1 else var * math.nan
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    return mean, var


# --- gradients of sampled functions ---------------------------------------------------------------


def _spacings(input, spacing, dims):
    """One number or coordinate vector for each of `dims`."""
    if spacing is None:
        spacing = 1
    if isinstance(spacing, (int, float, complex)):
        return [spacing] * len(dims)
    if isinstance(spacing, torch.Tensor):
        return [spacing] * len(dims) if spacing.dim() == 0 else [spacing]
    return list(spacing)


def _gradient_along(x, spacing, d, edge_order):
    n = x.size(d)

    def part(start, stop):
        return x.narrow(d, start, stop - start)

    def along(values):
        return values.reshape([-1 if i == d else 1 for i in range(x.dim())])

    if isinstance(spacing, torch.Tensor) and spacing.dim() == 1:
        h = along((spacing[1:] - spacing[:-1]).to(x.dtype if x.dtype.is_complex else spacing.dtype))
        before, after = h.narrow(d, 0, n - 2), h.narrow(d, 1, n - 2)
        middle = (
            part(0, n - 2) * (-after / (before * (before + after)))
            + part(1, n - 1) * ((after - before) / (before * after))
            + part(2, n) * (before / (after * (before + after)))
        )
        first, last = h.narrow(d, 0, 1), h.narrow(d, n - 2, 1)
        if edge_order == 1:
            left, right = (part(1, 2) - part(0, 1)) / first, (part(n - 1, n) - part(n - 2, n - 1)) / last
        else:
            a, b = first, h.narrow(d, 1, 1)
            left = (
                part(0, 1) * (-(2 * a + b) / (a * (a + b)))
                + part(1, 2) * ((a + b) / (a * b))
                + part(2, 3) * (-a / (b * (a + b)))
            )
            a, b = h.narrow(d, n - 3, 1), last
            right = (
                part(n - 3, n - 2) * (b / (a * (a + b)))
                + part(n - 2, n - 1) * (-(b + a) / (a * b))
                + part(n - 1, n) * ((2 * b + a) / (b * (a + b)))
            )
        return torch.cat([left, middle, right], d)
    middle = (part(2, n) - part(0, n - 2)) / 2
    if edge_order == 1:
        left, right = part(1, 2) - part(0, 1), part(n - 1, n) - part(n - 2, n - 1)
    else:
        left = (4 * part(1, 2) - 3 * part(0, 1) - part(2, 3)) / 2
        right = (3 * part(n - 1, n) - 4 * part(n - 2, n - 1) + part(n - 3, n - 2)) / 2
    return torch.cat([left, middle, right], d) / spacing


def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """Derivatives of a sampled function along `dim` by central differences, one tensor a dimension.

    `spacing` is the distance of samples, or their coordinates along each dimension.
    """
    if input.dtype in (torch.uint8, torch.bool):
        raise RuntimeError(f"torch.gradient does not support {input.dtype} input.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if dim is None:
        dims = list(range(input.dim()))
    else:
        dims = [_wrap_dim(d, input.dim()) for d in (dim if isinstance(dim, (list, tuple)) else [dim])]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"dim {max(dims, key=dims.count)} appears multiple times in the list of dims")
    if isinstance(spacing, (list, tuple)) and dim is None and len(spacing) != len(dims):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar, or it's spacing and dim arguments "
            f"to have the same length, but got a spacing argument of length {len(spacing)} and a dim "
            f"argument of length {len(dims)}."
        )
    steps = _spacings(input, spacing, dims)
    if len(steps) != len(dims):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar or a list of length equal to "
            f"'self.dim() - 1', but got a list of length {len(steps)}"
        )
    for d, step in zip(dims, steps, strict=True):
        if input.size(d) < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
        if isinstance(step, torch.Tensor) and step.dim() == 1 and step.numel() != input.size(d):
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have the same length as the "
                f"corresponding dimension of input, but got {step.numel()} and {input.size(d)}"
            )
    return tuple(_gradient_along(input, step, d, edge_order) for d, step in zip(dims, steps, strict=True))


def _wrap_dim(dim, ndim):
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})"
        )
    return dim % bound


# --- histograms -----------------------------------------------------------------------------------


def _edges(name, input, bins, range, weight, density):
    """The bin edges of every column of `input`, [points, dimensions]."""
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"\"{name}\" not implemented for '{_legacy_name(input.dtype)}'")
    if weight is not None and weight.dtype != input.dtype:
        raise RuntimeError(
            f"torch.{name}: if weight tensor is provided, input tensor and weight tensor should have the "
            f"same dtype, but got input({input.dtype}), and weight({weight.dtype})"
        )
    points, n = input.shape
    if all(isinstance(b, torch.Tensor) for b in bins):
        if range is not None:
            raise TypeError(f"torch.{name}: range has no meaning where bins are tensors of edges")
        for i, edges in enumerate(bins):
            if edges.dtype != input.dtype:
                raise RuntimeError(
                    f"torch.{name}: input tensor and bins tensors should have the same dtype, but got input "
                    f"with dtype {input.dtype} and bins for dimension {i} with dtype {edges.dtype}"
                )
            if edges.dim() != 1 or edges.numel() == 0:
                raise RuntimeError(
                    f"torch.{name}: bins tensor should have one dimension, but got {edges.dim()} dimensions "
                    f"in the bins tensor for dimension {i}, of {edges.numel()} elements"
                )
        return list(bins)
    if len(bins) != n:
        raise RuntimeError(
            f"torch.{name}: The size of bins must be equal to the innermost dimension of the input, but got "
            f"{len(bins)} and {n}"
        )
    if any(b <= 0 for b in bins):
        raise RuntimeError(f"torch.{name}(): bins must be > 0, but got {list(bins)}")
    if range is not None and len(range) != 2 * n:
        raise RuntimeError(
            f"torch.{name}(): for a {n}-dimensional histogram range should have {2 * n} elements, but got "
            f"{len(range)}"
        )
    result = []
    for i, count in enumerate(bins):
        low, high = 0.0, 1.0
        if range is not None:
            low, high = float(range[2 * i]), float(range[2 * i + 1])
        elif points:
            low, high = (v.item() for v in torch.aminmax(input[:, i]))
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.{name}(): dimension {i}'s range [{low}, {high}] is not finite")
        if low > high:
            raise RuntimeError(f"torch.{name}(): min should not exceed max, but got min {low} max {high}")
        if low == high:
            low, high = low - 0.5, high + 0.5
        result.append(torch.linspace(low, high, count + 1, dtype=input.dtype))
    return result


def _legacy_name(dtype):
    return {torch.int64: "Long", torch.int32: "Int", torch.bool: "Bool", torch.uint8: "Byte"}.get(
        dtype, str(dtype)
    )


def _counts(name, input, bins, range, weight, density):
    """Sums of weights in every cell, and the edges; the last bin includes its right edge."""
    points = input.shape[0]
    if weight is not None and weight.shape[0] != points:
        raise RuntimeError(
            f"torch.{name}: if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with {points} points and weight of shape "
            f"{list(weight.shape)}"
        )
    edges = _edges(name, input, bins, range, weight, density)
    equal = not isinstance(bins[0], torch.Tensor)
    hist = torch._histogram_cells(input, edges, equal, weight)
    if density:
        hist = hist / hist.sum()
        for i, e in enumerate(edges):
            hist = hist / (e[1:] - e[:-1]).reshape([-1 if k == i else 1 for k in _range(hist.dim())])
    return hist, edges


_range = range


def histogram(input, bins, *, range=None, weight=None, density=False, out=None):
    """Counts (or sums of weights) of values in bins, and the bins' edges.

    `bins` is a number of equal bins over `range` (or over the values), or a tensor of edges. With `density`
    the integral over the bins is 1.
    """
    if weight is not None and weight.shape != input.shape:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input "
            f"tensor excluding its innermost dimension, but got input with shape {list(input.shape)} and "
            f"weight with shape {list(weight.shape)}"
        )
    with torch.no_grad():
        hist, edges = _counts(
            "histogram",
            input.reshape(-1, 1),
            [bins],
            range,
            None if weight is None else weight.reshape(-1),
            density,
        )
    if out is None:
        return _histogram_type((hist, edges[0]))
    for target, value in zip(out, (hist, edges[0]), strict=True):
        if target.dtype != value.dtype:
            raise RuntimeError(
                f"torch.histogram: input tensor and hist tensor should have the same dtype, but got input "
                f"{value.dtype} and hist {target.dtype}"
            )
        target.resize_(value.shape).copy_(value)
    return _histogram_type(out)


def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """Counts of points in boxes: the rows of `input`'s last dimension are points."""
    if input.dim() < 2:
        raise RuntimeError(
            f"torch.histogramdd: input tensor should have at least 2 dimensions, but got {input.dim()}"
        )
    n = input.shape[-1]
    if not isinstance(bins, (list, tuple)):
        bins = [bins] * n
    if weight is not None and weight.shape != input.shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input "
            f"tensor excluding its innermost dimension, but got input with shape {list(input.shape)} and "
            f"weight with shape {list(weight.shape)}"
        )
    if len(bins) != n:
        raise RuntimeError(
            f"torch.histogramdd: The size of bins must be equal to the innermost dimension of the input, but "
            f"got {len(bins)} and {n}."
        )
    with torch.no_grad():
        hist, edges = _counts(
            "histogramdd",
            input.reshape(-1, n),
            list(bins),
            range,
            None if weight is None else weight.reshape(-1),
            density,
        )
    return _histogramdd_type((hist, tuple(edges)))


# --- small ones -----------------------------------------------------------------------------------

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def hash_tensor(input, dim=None, *, keepdim=False, mode=0, out=None):
    """The elements' bits, as 64-bit integers, combined by exclusive or over `dim` (all for None)."""
    if mode != 0:
        raise RuntimeError(f"hash_tensor: only mode 0 (xor) is supported, but got {mode}")
    if input.dtype.is_complex:
        raise NotImplementedError(f"hash_tensor: not implemented for {input.dtype}")
    if input.dtype.is_floating_point:
        bits = input.to(torch.float64).contiguous().view(torch.int64)
    else:
        bits = input.to(torch.int64)
    if dim is None and not input.numel():
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. "
            "Specify the reduction dim with the 'dim' argument."
        )
    dims = [dim] if isinstance(dim, int) else dim or range(input.dim())
    dims = sorted({_wrap_dim(d, input.dim()) for d in dims})
    if input.dim() == 0:
        bits, dims = bits.reshape(1), [0]
    rest = [d for d in range(input.dim()) if d not in dims]
    lines = bits.permute([*rest, *dims]).reshape(
        [*(bits.shape[d] for d in rest), math.prod(bits.shape[d] for d in dims)]
    )
    while lines.size(-1) > 1:
        half = lines.size(-1) // 2
        folded = lines[..., :half] ^ lines[..., half : 2 * half]
        lines = torch.cat([folded, lines[..., 2 * half :]], -1)
    result = lines[..., 0] if lines.size(-1) else lines.new_zeros(lines.shape[:-1])
    if keepdim:
        result = result.reshape([1 if d in dims else s for d, s in enumerate(input.shape)])
    result = result.clone().view(torch.uint64)
    if out is None:
        return result
    if out.dtype != torch.uint64:
        raise RuntimeError(f"Expected out tensor to have dtype {torch.uint64}, but got {out.dtype} instead")
    return out.resize_(result.shape).copy_(result)


def from_file(
    filename,
    shared=None,
    size=0,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """A tensor over a file's bytes, mapped into memory; with `shared`, writes reach the file."""
    dtype = dtype or torch.get_default_dtype()
    storage = torch.UntypedStorage.from_file(filename, bool(shared), (size or 0) * dtype.itemsize)
    return torch.empty(0, dtype=dtype).set_(storage).requires_grad_(requires_grad)


def _shape_as_tensor(input):
    """The sizes as an int64 tensor."""
    return torch.tensor(list(input.shape), dtype=torch.int64)


def _assert_async(input, message=""):
    """Raises unless the tensor's only element is true."""
    if not bool(input):
        raise RuntimeError(message or "Expected Tensor with single nonzero value, but got zero")


def _check_tensor_all_with(error_type, cond, message=None):
    """Raises `error_type` unless every element of the bool tensor `cond` is true."""
    if not isinstance(cond, torch.Tensor) or cond.dtype != torch.bool:
        raise TypeError(f"cond must be a bool tensor, but got {cond!r}")
    if not bool(cond.all()):
        raise error_type(message() if callable(message) else "Expected cond to be True")


def _convert_indices_from_coo_to_csr(input, size, *, out_int32=False, out=None):
    """Row starts of sorted row numbers: how many are below 0, 1, ..., size."""
    rows = torch.arange(size + 1, dtype=input.dtype)
    result = torch.searchsorted(input.contiguous(), rows)
    result = result.to(torch.int32 if out_int32 else torch.int64)
    return result if out is None else out.resize_(result.shape).copy_(result)


def _convert_indices_from_csr_to_coo(
    crow_indices, col_indices, *, out_int32=False, transpose=False, out=None
):
    """Row and column numbers from row starts and column numbers."""
    counts = crow_indices[1:] - crow_indices[:-1]
    rows = torch.arange(counts.numel(), dtype=col_indices.dtype).repeat_interleave(counts)
    pair = [col_indices, rows] if transpose else [rows, col_indices]
    result = torch.stack(pair).to(torch.int32 if out_int32 else torch.int64)
    return result if out is None else out.resize_(result.shape).copy_(result)


def view_as_complex_copy(input, *, out=None):
    """A copy of what ``view_as_complex`` shows."""
    result = torch.view_as_complex(input).clone()
    return result if out is None else out.resize_(result.shape).copy_(result)


def view_as_real_copy(input, *, out=None):
    """A copy of what ``view_as_real`` shows."""
    result = torch.view_as_real(input).clone()
    return result if out is None else out.resize_(result.shape).copy_(result)


def slice_inverse(input, src, dim=0, start=None, end=None, step=1):
    """`input` seen through the geometry of `src`, of which it was a slice."""
    return input.as_strided(src.size(), src.stride(), src.storage_offset())


def set_anomaly_enabled(enabled, check_nan=True):
    """Turns anomaly detection on or off."""
    torch.autograd.set_detect_anomaly(enabled, check_nan).__enter__()


def sym_sum(args):
    """The sum of numbers."""
    return sum(args)


def sym_constrain_range(size, *, min=None, max=None):
    """Checks that `size` lies within the bounds."""
    if (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


def sym_constrain_range_for_size(size, *, min=None, max=None):
    """As ``sym_constrain_range``, for sizes: at least 0."""
    sym_constrain_range(size, min=0 if min is None else min, max=max)


def _cast_Long(input, non_blocking=False):
    return input.to(torch.int64, non_blocking=non_blocking)


# --- scaling of losses ----------------------------------------------------------------------------


def _amp_update_scale_(
    self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval
):
    """Lowers the scale after an overflow, raises it after `growth_interval` steps without one."""
    with torch.no_grad():
        if float(found_inf):
            self.mul_(scale_backoff_factor)
            growth_tracker.zero_()
            return self
        growth_tracker.add_(1)
        if int(growth_tracker) == growth_interval:
            grown = self * scale_growth_factor
            if bool(grown.isfinite()):  # a scale that has no next one stays
                self.copy_(grown)
            growth_tracker.zero_()
    return self


# --- in-place methods as functions ----------------------------------------------------------------


def as_strided_(input, size, stride, storage_offset=None):
    """Gives the tensor itself another geometry over its memory."""
    return input.as_strided_(size, stride, storage_offset)


def detach_(input):
    """Takes the tensor itself out of its graph."""
    return input.detach_()


def resize_as_(input, the_template, *, memory_format=None):
    """Gives the tensor itself the size of another."""
    return input.resize_as_(the_template, memory_format=memory_format)


def index_put_(input, indices, values, accumulate=False):
    """Writes, or adds, `values` at index arrays."""
    return input.index_put_(indices, values, accumulate)


make_overridable(
    globals(),
    skip=["make_overridable", "from_file", "set_anomaly_enabled", "sym_constrain_range"],
    belong_to_top=True,
)
