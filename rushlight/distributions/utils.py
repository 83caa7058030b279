"""What the distributions share: broadcasting of parameters, probabilities and logits, lazily computed
attributes."""

from functools import update_wrapper
from numbers import Number

import rushlight as torch

euler_constant = 0.57721566490153286060

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]


def broadcast_all(*values):
    """Tensors and numbers broadcast against each other; numbers take dtype and device of the first tensor.

    Raises ``ValueError`` for anything that is neither a number nor a tensor."""
    if not all(
        isinstance(v, Number) or torch.is_tensor(v) or hasattr(v, "__torch_function__") for v in values
    ):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    first = next((v for v in values if torch.is_tensor(v)), None)
    options = (
        {"dtype": torch.get_default_dtype()}
        if first is None
        else {"dtype": first.dtype, "device": first.device}
    )
    tensors = [v if not isinstance(v, Number) else torch.tensor(v, **options) for v in values]
    return torch.broadcast_tensors(*tensors)


def _standard_normal(shape, dtype, device):
    return torch.normal(
        torch.zeros(shape, dtype=dtype, device=device), torch.ones(shape, dtype=dtype, device=device)
    )


def _sum_rightmost(value, dim: int):
    """The sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits, is_binary: bool = False):
    """Probabilities of log odds (binary) or of unnormalised log probabilities along the last dimension."""
    return torch.sigmoid(logits) if is_binary else torch.nn.functional.softmax(logits, dim=-1)


def clamp_probs(probs):
    """Probabilities kept apart from 0 and 1 by the dtype's epsilon."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary: bool = False):
    """The inverse of :func:`logits_to_probs`, up to a constant in the multinomial case."""
    clamped = clamp_probs(probs)
    logits = torch.log(clamped)
    return logits - torch.log1p(-clamped) if is_binary else logits


class lazy_property:  # noqa: N801 - PyTorch's name
    """A method whose first result becomes the instance's attribute."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with torch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):  # noqa: N801
    """What a class shows for a lazy property, so that documentation tools see a property."""

    def __init__(self, wrapped):
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat, diag: int = 0):
    """The entries on and below diagonal `diag` of `mat[..., D, D]` as a vector, row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = torch.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec, diag: int = 0):
    """A vector `vec[..., N]` as a lower triangular matrix `[..., D, D]`; inverse of
    :func:`tril_matrix_to_vec`."""
    # N = (D + diag)(D + diag + 1) / 2 entries less the ones cut off above the last row.
    length = vec.shape[-1]
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    eps = torch.finfo(vec.dtype).eps
    if abs(round(n) - n) > eps:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    n = round(n)
    matrix = vec.new_zeros(vec.shape[:-1] + (n, n))
    rows, columns = torch.tril_indices(n, n, diag, device=vec.device)
    matrix[..., rows, columns] = vec
    return matrix
