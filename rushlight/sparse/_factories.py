"""Sparse tensors of given parts, checked."""

import rushlight
from rushlight import _C
from rushlight._command.names import show_from
from rushlight._errors.advice import advised
from rushlight._operators.overridable import overridable

_unsafe_coo = _C._VariableFunctions._sparse_coo_tensor_unsafe


class check_sparse_tensor_invariants:  # noqa: N801 - PyTorch's name
    """Whether factories look at every index (they always check shapes and bounds): a switch, context
    manager and decorator. Off by default."""

    _enabled = False

    def __init__(self, enable=True):
        self.state = enable
        self._saved = None

    @staticmethod
    def is_enabled():
        """Whether the checks are on."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable():
        """Switches the checks on."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable():
        """Switches the checks off."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self):
        if self._saved is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different instance."
            )
        self._saved = self.is_enabled()
        check_sparse_tensor_invariants._enabled = self.state
        return self

    def __exit__(self, *error):
        check_sparse_tensor_invariants._enabled, self._saved = self._saved, None

    def __call__(self, fn):
        def run(*args, **kwargs):
            with type(self)(self.state):
                return fn(*args, **kwargs)

        return run


def _values(values, dtype, device):
    values = values if isinstance(values, rushlight.Tensor) else rushlight.tensor(values, dtype=dtype)
    return values.to(device=device, dtype=dtype) if dtype is not None or device is not None else values


def _index_tensor(indices, what):
    given = isinstance(indices, rushlight.Tensor)
    indices = rushlight.as_tensor(indices)
    if indices.numel() == 0 and not given:  # an empty list says nothing of integers
        return indices.to(rushlight.int64)
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == rushlight.bool:
        raise TypeError(f"{what} must be integers, got {indices.dtype}")
    return indices


def _finish(tensor, requires_grad):
    return tensor.requires_grad_() if requires_grad else tensor


@overridable
def sparse_coo_tensor(
    indices=None,
    values=None,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
):
    """A COO tensor of ``indices [sparse_dim, nnz]`` and ``values [nnz, dense sizes...]``; `size` defaults
    to the smallest
    that holds the indices. ``sparse_coo_tensor(size)`` is empty. Values at equal positions add up.

    Raises ``RuntimeError`` for parts that do not fit, for negative indices and for ones outside of `size`."""
    if values is None:
        indices = size if indices is None else indices
        if indices is None:
            raise TypeError("sparse_coo_tensor(): give indices and values, or a size")
        return _empty_coo(indices, dtype, device, requires_grad)
    values = _values(values, dtype, device)
    indices = rushlight.as_tensor(indices)
    if indices.is_complex():
        raise TypeError(f"sparse_coo_tensor: indices must be integers, got {indices.dtype}")
    indices = indices.to(rushlight.int64)
    if indices.dim() != 2 and not (indices.numel() == 0 and indices.dim() == 1):
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if values.dim() == 0:
        if indices.shape[1:] not in ((), (1,)):
            raise RuntimeError(f"values has one element, but indices has nnz {indices.shape[1]}")
        values = values.reshape(1) if indices.dim() == 2 else values.reshape(0)
    if indices.dim() == 1:
        indices = indices.reshape(1, 0) if size is None else indices.reshape(len(size) - values.dim() + 1, 0)
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{indices.shape[1]}, nnz from values: {values.shape[0]}"
        )
    if size is None:
        size = _smallest(indices, values)
    elif len(size) != indices.shape[0] + values.dim() - 1:
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({indices.shape[0]}) + dense_dim ({values.dim() - 1}), "
            f"but got {len(size)}"
        )
    _check_coo(indices, values, tuple(size))
    tensor = _unsafe_coo(indices.detach(), values if values.requires_grad else values.detach(), list(size))
    if is_coalesced:
        if check_invariants or (check_invariants is None and check_sparse_tensor_invariants.is_enabled()):
            if tensor.coalesce()._nnz() != tensor._nnz():
                raise RuntimeError(
                    "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
                )
        tensor = _unsafe_coo(indices.detach(), values, list(size), is_coalesced=True)
    return _finish(tensor, requires_grad)


def _empty_coo(size, dtype, device, requires_grad):
    size = tuple(size)
    indices = rushlight.empty((len(size), 0), dtype=rushlight.int64)
    values = rushlight.empty(0, dtype=dtype, device=device)
    return _finish(_unsafe_coo(indices, values, list(size), is_coalesced=True), requires_grad)


def _smallest(indices, values):
    dense = tuple(values.shape[1:])
    if indices.shape[1] == 0:
        return (0,) * indices.shape[0] + dense
    if indices.min() < 0:
        raise RuntimeError(f"found negative index {indices.min().item()}")
    return tuple((indices.amax(1) + 1).tolist()) + dense


def _check_coo(indices, values, size):
    sparse, dense = size[: indices.shape[0]], size[indices.shape[0] :]
    if dense != tuple(values.shape[1:]):
        raise RuntimeError(
            f"values has incorrect size, expected {[values.shape[0], *dense]}, got {list(values.shape)}"
        )
    if indices.shape[1] == 0:
        return
    low, high = indices.amin(1).tolist(), indices.amax(1).tolist()
    for dim, (least, most, length) in enumerate(zip(low, high, sparse, strict=True)):
        if least < 0:
            raise RuntimeError(f"found negative index {least} for dim {dim}")
        if most >= length:
            raise advised(
                RuntimeError(
                    f"size is inconsistent with indices: for dim {dim}, size is {length} but found index "
                    f"{most}"
                )
            )


def _validate_sparse_coo_tensor_args(indices, values, size, is_coalesced=None, check_pinning=None):
    """Raises ``RuntimeError`` that names the rule which the parts of a COO tensor break."""
    sparse_coo_tensor(indices, values, size, is_coalesced=is_coalesced, check_invariants=True)


show_from("sparse", check_sparse_tensor_invariants)
show_from("", sparse_coo_tensor)
