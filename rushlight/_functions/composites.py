"""Functions of the top namespace that are no operators, or whose results no operator returns."""

import rushlight as torch
from rushlight._operators.overridable import make_overridable, overridable

__capture__ = "through"  # Note [Capture marks]

_histogramdd_type = torch._C._make_return_type("histogramdd", ("hist", "bin_edges"))


def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """Counts of points in boxes: the rows of `input`'s last dimension are points."""
    if isinstance(bins, int):
        bins = [bins] * input.shape[-1]
    options = {"weight": weight, "density": density}
    if all(isinstance(edges, torch.Tensor) for edges in bins):
        if range is not None:
            raise TypeError("torch.histogramdd: range has no meaning where bins are tensors of edges")
        return _histogramdd_type((torch._histogramdd_from_bin_tensors(input, bins, **options), tuple(bins)))
    edges = torch._histogramdd_bin_edges(input, bins, range=range, **options)
    hist = torch._histogramdd_from_bin_cts(input, bins, range=range, **options)
    return _histogramdd_type((hist, tuple(edges)))


def native_channel_shuffle(input, groups):
    """`channel_shuffle` by its kernel's name."""
    return torch.channel_shuffle(input, groups)


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


def _check_tensor_all_with(error_type, cond, message=None):
    """Raises `error_type` unless every element of the bool tensor `cond` is true."""
    if not isinstance(cond, torch.Tensor) or cond.dtype != torch.bool:
        raise TypeError(f"cond must be a bool tensor, but got {cond!r}")
    if not bool(cond.all()):
        raise error_type(message() if callable(message) else "Expected cond to be True")


def set_anomaly_enabled(enabled, check_nan=True):
    """Turns anomaly detection on or off."""
    torch.autograd.set_detect_anomaly(enabled, check_nan).__enter__()


def sym_sum(args):
    """The sum of numbers."""
    return sum(args)


def sym_constrain_range(size, *, min=None, max=None):
    """Checks that `size` lies within the bounds."""
    for bound, holds in ((min, lambda: size >= min), (max, lambda: size <= max)):
        if bound is not None:
            torch._check(holds(), lambda: f"Invalid value range for {size} between [{min}, {max}].")


def sym_constrain_range_for_size(size, *, min=None, max=None):
    """As ``sym_constrain_range``, for sizes: at least 0."""
    sym_constrain_range(size, min=0 if min is None else min, max=max)


def _choose_qparams_per_tensor(input, reduce_range=False):
    """The scale and zero point with which eight bits, or seven, cover the elements of `input`."""
    scale, zero_point = torch.ops.aten._quantization_for(input, reduce_range).tolist()
    return scale, int(zero_point)


def native_norm(input, p=2, dim=None, keepdim=False, dtype=None):
    """The norm of what a sparse tensor lists."""
    if input.layout is torch.strided:
        raise NotImplementedError("native_norm takes sparse tensors; linalg.vector_norm takes dense ones")
    return input.norm(p, dim, keepdim, dtype)


def _pool_of_integers(name, pool, input, *options):
    if not input.is_quantized:
        raise NotImplementedError(f"{name}: expected a quantized tensor, got {input.dtype}")
    return pool(input, *options)


def quantized_max_pool1d(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """As ``max_pool1d``, of quantized tensors."""
    options = kernel_size, stride or None, padding, dilation, ceil_mode
    return _pool_of_integers("quantized_max_pool1d", torch.nn.functional.max_pool1d, input, *options)


def quantized_max_pool2d(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """As ``max_pool2d``, of quantized tensors."""
    options = kernel_size, stride or None, padding, dilation, ceil_mode
    return _pool_of_integers("quantized_max_pool2d", torch.nn.functional.max_pool2d, input, *options)


def quantized_max_pool3d(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """As ``max_pool3d``, of quantized tensors."""
    options = kernel_size, stride or None, padding, dilation, ceil_mode
    return _pool_of_integers("quantized_max_pool3d", torch.nn.functional.max_pool3d, input, *options)


def _functional_assert_async(input, assert_msg, dep_token):
    """Raises unless `input` is true; `dep_token` says in a graph what the check comes after."""
    torch._assert_async(input, assert_msg)
    return dep_token.clone()


_functional_assert_async = overridable(_functional_assert_async)


def detach_(input):
    """Takes the tensor itself out of its graph."""
    return input.detach_()


make_overridable(
    globals(),
    lists=["sym_sum"],
    skip=["make_overridable", "overridable", "from_file", "set_anomaly_enabled", "sym_constrain_range"],
    belong_to_top=True,
)
