"""Reductions and normalisations that leave out elements whose ``mask`` is False.

Masked-out elements count as the operation's identity; where a whole slice is masked out, the result is that
identity (NaN for means and the like).
"""

import rushlight as torch
from rushlight.masked._sparse import dense, keeps_shape, of_any_layout, reduces
from rushlight.masked._sparse import where as _where  # noqa: F401
from rushlight.masked.maskedtensor import MaskedTensor

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]


def _dims(dim, ndim):
    """`dim` as a sorted tuple of dimensions from 0 on; all of them for None, and for none given."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    dims = []
    for d in (dim,) if isinstance(dim, (int, str)) else dim:
        bound = max(ndim, 1)
        if not -bound <= d < bound:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {d})"
            )
        if d % bound in dims:
            raise RuntimeError(f"dim={d % bound} appears multiple times in the list of dims")
        dims.append(d % bound)
    return tuple(sorted(dims))


def _parts(input, mask):
    """Data and mask of `input`, maybe a MaskedTensor; the mask is None or bool of its shape."""
    if isinstance(input, MaskedTensor):
        if mask is None:
            mask = input.get_mask()
        input = input.get_data()
    if not isinstance(input, torch.Tensor):
        raise ValueError(f"masked operations expect a Tensor input but got {type(input)} input")
    if mask is None:
        return input, None
    if mask.dim() > input.dim():
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
        )
    return input, torch.broadcast_to(dense(mask), input.shape).to(torch.bool)


_canonical_dim = _dims


def _input_mask(input, *args, mask=None, **kwargs):
    """The mask of all elements of `input`, in its layout."""
    if mask is None and not isinstance(input, MaskedTensor):
        raise ValueError("_input_mask requires explicit mask")
    values, mask = _parts(input, mask)
    if values.layout is torch.strided:
        return mask
    return mask.to_sparse_csr() if values.layout is torch.sparse_csr else mask.to_sparse(values.sparse_dim())


def _output_mask(op, input, *args, **kwargs):
    """Where a masked operation's result stands for elements that the mask leaves."""
    if not hasattr(op, "reduces"):
        name = getattr(op, "__name__", type(op).__name__)
        raise ValueError(f"_output_mask expected masked operation (got {name})")
    if not op.reduces:
        return _input_mask(input, *args, **kwargs)
    if op is norm:  # whose order stands before the dimensions
        args = args[1:]
    dims = _dims(args[0] if args else kwargs.get("dim"), input.dim())
    mask = dense(_input_mask(input, *args, **kwargs))
    return torch.any(mask, dims, bool(kwargs.get("keepdim"))) if dims else mask


def _filled(input, mask, identity):
    if mask is None:
        return input
    return torch.where(mask, input, torch.tensor(identity, dtype=input.dtype, device=input.device))


def _need_identity(name, input, mask):
    """Masked-out truth values have no neutral value in `name`."""
    if mask is not None and input.dtype == torch.bool:
        raise NotImplementedError(f"identity of {name} on torch.bool input")


def _lowest(dtype):
    if dtype.is_floating_point or dtype.is_complex:
        return -torch.inf
    return 0 if dtype == torch.bool else torch.iinfo(dtype).min


def _highest(dtype):
    if dtype.is_floating_point:
        return torch.inf
    return 1 if dtype == torch.bool else torch.iinfo(dtype).max


# What masked-out elements count as where a function of torch has to leave them out.
_IDENTITIES = {
    "all": lambda dtype: True,
    "any": lambda dtype: False,
    "sum": lambda dtype: 0,
    "prod": lambda dtype: 1,
    "amax": _lowest,
    "amin": _highest,
    "argmax": _lowest,
    "argmin": _highest,
    "logsumexp": _lowest,
    "norm": lambda dtype: 0,
}


def _combine_input_and_mask(op, input, mask):
    """`input` with masked-out elements that `op`, a reduction, passes over."""
    name = getattr(op, "__name__", str(op))
    if name not in _IDENTITIES:
        raise NotImplementedError(f"identity of {name} on {input.dtype} input")
    input, mask = _parts(input, mask)
    return _filled(input, mask, _IDENTITIES[name](input.dtype))


def _sum_dtype(input, dtype):
    """Sums of integers are int64."""
    if dtype is not None:
        return dtype
    return input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else torch.int64


@of_any_layout()
def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Sum over `dim` of the elements that `mask` leaves."""
    input, mask = _parts(input, mask)
    dtype = _sum_dtype(input, dtype)
    return torch.sum(_filled(input, mask, 0), _dims(dim, input.dim()), bool(keepdim), dtype=dtype)


@of_any_layout(needs_mask=(torch.sparse_coo, torch.sparse_csr))
def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Product over `dim` of the elements that `mask` leaves."""
    input, mask = _parts(input, mask)
    dtype = _sum_dtype(input, dtype)
    result = _filled(input, mask, 1)
    for d in reversed(_dims(dim, input.dim())):
        result = result.prod(dim=d, keepdim=bool(keepdim))
    return result.to(dtype)


@keeps_shape
def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sum along `dim`; masked-out elements add nothing."""
    input, mask = _parts(input, mask)
    dim = _dims(dim, input.dim())[0]
    return torch.cumsum(_filled(input, mask, 0), dim, dtype=dtype or input.dtype)


@keeps_shape
def cumprod(input, dim, *, dtype=None, mask=None):
    """Running product along `dim`; masked-out elements are factors 1."""
    input, mask = _parts(input, mask)
    dim = _dims(dim, input.dim())[0]
    return torch.cumprod(_filled(input, mask, 1), dim, dtype=dtype or input.dtype)


@of_any_layout(needs_mask=(torch.sparse_coo, torch.sparse_csr))
def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Maximum over `dim` of the elements that `mask` leaves."""
    input, mask = _parts(input, mask)
    _need_identity("amax", input, mask)
    filled = _filled(input, mask, _lowest(input.dtype))
    return torch.amax(filled, _dims(dim, input.dim()), bool(keepdim)).to(dtype or input.dtype)


@of_any_layout(needs_mask=(torch.sparse_coo, torch.sparse_csr))
def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Minimum over `dim` of the elements that `mask` leaves."""
    input, mask = _parts(input, mask)
    _need_identity("amin", input, mask)
    filled = _filled(input, mask, _highest(input.dtype))
    return torch.amin(filled, _dims(dim, input.dim()), bool(keepdim)).to(dtype or input.dtype)


@reduces
def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Position of the maximum along `dim` of the elements that `mask` leaves."""
    input, mask = _parts(input, mask)
    _need_identity("argmax", input, mask)
    filled = _filled(input, mask, _lowest(input.dtype))
    return torch.argmax(filled, dim, bool(keepdim)).to(dtype or input.dtype)


@reduces
def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Position of the minimum along `dim` of the elements that `mask` leaves."""
    input, mask = _parts(input, mask)
    _need_identity("argmin", input, mask)
    filled = _filled(input, mask, _highest(input.dtype))
    return torch.argmin(filled, dim, bool(keepdim)).to(dtype or input.dtype)


def _count(input, mask, dims, keepdim):
    present = torch.ones(input.shape, dtype=torch.bool, device=input.device) if mask is None else mask
    return present.sum(dims, keepdim=bool(keepdim))


@of_any_layout(needs_mask=(torch.sparse_csr,))
def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Mean over `dim` of the elements that `mask` leaves, in `dtype`; ValueError for integers without one."""
    input, mask = _parts(input, mask)
    what, dtype = ("Input", input.dtype) if dtype is None else ("Optional", dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {what} dtype must be either a floating point or complex "
            f"dtype. Got: {dtype}"
        )
    count = _count(input, mask, _dims(dim, input.dim()), keepdim)
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / count


@reduces
def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """Median along `dim` of the elements that `mask` leaves; the lower of the two in the middle."""
    input, mask = _parts(input, mask)
    dim = _dims(dim, input.dim())[0]
    floating = input.dtype.is_floating_point
    values = input if floating else input.to(torch.float64)
    result = torch.nanmedian(_filled(values, mask, torch.nan), dim, bool(keepdim)).values
    if not floating and bool(result.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return result.to(dtype or input.dtype)


@of_any_layout()
def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Logarithm of the sum of exponentials over `dim`."""
    input, mask = _parts(input, mask)
    _need_identity("logsumexp", input, mask)
    filled = _filled(input, mask, _lowest(input.dtype))
    return torch.logsumexp(filled, _dims(dim, input.dim()), bool(keepdim)).to(dtype or input.dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """Logarithm of the sum of the exponentials of `input` and `other`."""
    input, input_mask = _parts(input, input_mask)
    other, other_mask = _parts(other, other_mask)
    _need_identity("logaddexp", input, input_mask)
    _need_identity("logaddexp", other, other_mask)
    a, b = _filled(input, input_mask, _lowest(input.dtype)), _filled(other, other_mask, _lowest(other.dtype))
    return torch.logaddexp(a, b).to(dtype or input.dtype)


@of_any_layout()
def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Vector norm of order `ord` over `dim`."""
    input, mask = _parts(input, mask)
    filled = _filled(input, mask, torch.inf if ord == -torch.inf else 0)
    return torch.linalg.vector_norm(filled, ord, _dims(dim, input.dim()), bool(keepdim), dtype=dtype)


@keeps_shape
def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """`input` divided by its norm along `dim`, at least `eps`."""
    input, mask = _parts(input, mask)
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0) / torch.maximum(size, size.new_full([], eps))


@keeps_shape
def softmax(input, dim, *, dtype=None, mask=None):
    """Exponentials along `dim`, scaled to sum 1 over the elements that `mask` leaves."""
    input, mask = _parts(input, mask)
    _need_identity("amax", input, mask)
    dim = _dims(dim, input.dim())[0]
    return torch.softmax(_filled(input, mask, _lowest(input.dtype)), dim, dtype=dtype)


@keeps_shape
def log_softmax(input, dim, *, dtype=None, mask=None):
    """Logarithm of ``softmax``."""
    input, mask = _parts(input, mask)
    _need_identity("amax", input, mask)
    dim = _dims(dim, input.dim())[0]
    return torch.log_softmax(_filled(input, mask, _lowest(input.dtype)), dim, dtype=dtype)


@keeps_shape
def softmin(input, dim, *, dtype=None, mask=None):
    """``softmax`` of the negated input."""
    input, mask = _parts(input, mask)
    _need_identity("amin", input, mask)
    dim = _dims(dim, input.dim())[0]
    return torch.softmax(-_filled(input, mask, _highest(input.dtype)), dim, dtype=dtype)


def _variance(input, dim, unbiased, correction, keepdim, dtype, mask):
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    input, mask = _parts(input, mask)
    if dtype is None:
        floating = input.dtype.is_floating_point or input.dtype.is_complex
        dtype = input.dtype if floating else torch.float32
    compute = dtype if dtype.is_floating_point or dtype.is_complex else torch.float32
    dims = _dims(dim, input.dim())
    count = _count(input, mask, dims, True)
    deviation = input - sum(input, dim, keepdim=True, dtype=dtype, mask=mask) / count
    total = sum(deviation * deviation.conj(), dim, keepdim=keepdim, dtype=compute, mask=mask)
    count = count.reshape(total.shape)
    if correction != 0:
        real = compute.to_real() if compute.is_complex else compute
        count = torch.maximum(count.to(real) - correction, torch.zeros((), dtype=real))
    return (total / count).to(dtype)


@of_any_layout()
def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Variance over `dim` of the elements that `mask` leaves."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


@of_any_layout()
def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Standard deviation over `dim` of the elements that `mask` leaves."""
    return torch.sqrt(_variance(input, dim, unbiased, correction, keepdim, dtype, mask))
