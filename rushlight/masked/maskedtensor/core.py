"""The class of masked tensors: data and mask of one shape and layout."""

import warnings

import rushlight as torch
from rushlight.overrides import is_operator_method, redispatch_function

__all__ = ["MaskedTensor", "is_masked_tensor"]

# Those that PyTorch takes; results of operators may have others.
_DTYPES = (
    torch.float16, torch.float32, torch.float64, torch.bool, torch.int8, torch.int16, torch.int32,
    torch.int64,
)  # fmt: skip
_LAYOUTS = (torch.strided, torch.sparse_coo, torch.sparse_csr)


class MaskedTensor(torch.Tensor):
    """`data` with a bool `mask` of its shape and layout.

    Pointwise operations act on the data and keep the mask; reductions leave masked-out elements out; the
    operands of one operation must have equal masks.
    """

    _masked_data: torch.Tensor
    _masked_mask: torch.Tensor

    @staticmethod
    def __new__(cls, data, mask, requires_grad=False):
        _check_kinds(data, mask)
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. "
                "To avoid this, you can use data.detach().clone()",
                UserWarning,
                stacklevel=2,
            )
        return _wrapper(cls, data, requires_grad)

    def __init__(self, data, mask, requires_grad=False):
        data, mask = data.detach(), mask.detach()
        if data.layout is torch.sparse_coo:
            data, mask = data.coalesce(), mask.coalesce()
        if data.layout is not torch.strided and data._nnz() != mask._nnz():
            data = data.sparse_mask(mask)
        _check_places(data, mask)
        self._masked_data, self._masked_mask = data.clone(), mask.clone()

    @classmethod
    def _of(cls, data, mask):
        """A masked tensor that has these very tensors, which fit each other."""
        self = _wrapper(cls, data, False)
        self._masked_data, self._masked_mask = data, mask
        return self

    def get_data(self):
        """The values, with those that are masked out; gradients come back through them."""
        from rushlight.masked.maskedtensor.functions import Data

        return Data.apply(self)

    def get_mask(self):
        """Where elements are."""
        return self._masked_mask

    def to_tensor(self, value):
        """A plain tensor with `value` where elements are masked out."""
        whole = self.to_dense()
        return whole.get_data().masked_fill(~whole.get_mask(), value)

    @property
    def layout(self):  # type: ignore[override]
        """That of data and mask."""
        return self._masked_data.layout

    @property
    def is_sparse(self):  # type: ignore[override]
        return self.layout is torch.sparse_coo

    def is_sparse_coo(self):
        return self.layout is torch.sparse_coo

    def is_sparse_csr(self):  # type: ignore[override]
        return self.layout is torch.sparse_csr

    def to_dense(self, dtype=None, *, masked_grad=None):
        """All elements; those that a sparse mask does not name are masked out."""
        dense = self._to_layout(torch.strided)
        return dense if dtype is None else dense.to(dtype)

    def to_sparse(self, *, layout=torch.sparse_coo):  # type: ignore[override]
        """The elements that are there, by their indices or in another sparse layout."""
        return self._to_layout(layout)

    def to_sparse_coo(self):
        """The elements that are there, by their indices."""
        return self._to_layout(torch.sparse_coo)

    def to_sparse_csr(self):  # type: ignore[override]
        """The elements that are there, by rows."""
        return self._to_layout(torch.sparse_csr)

    def _to_layout(self, layout):
        from rushlight.masked.maskedtensor.functions import ToLayout

        return self if layout is self.layout else ToLayout.apply(self, layout)

    def is_contiguous(self, memory_format=torch.contiguous_format):
        """Whether the data lie in order; ValueError for sparse ones."""
        if self.layout is not torch.strided:
            raise ValueError("MaskedTensors with sparse data do not have is_contiguous")
        return self._masked_data.is_contiguous(memory_format=memory_format)

    def contiguous(self, memory_format=torch.contiguous_format):
        """Data and mask in order; ValueError for sparse ones."""
        if self.is_contiguous(memory_format) and self._masked_mask.is_contiguous(memory_format=memory_format):
            return self
        return self.clone(memory_format=memory_format)

    def _is_any_true(self):
        """Whether any element that is there is True, as a MaskedTensor."""
        if self.dtype != torch.bool:
            raise ValueError(f"_is_any_true: expected a boolean tensor, got {self.dtype}")
        return MaskedTensor._of(self.to_tensor(False).any(), torch.tensor(True, device=self.device))

    def __repr__(self, *, tensor_contents=None):
        whole = self.to_dense()
        values, mask = whole._masked_data.detach(), whole._masked_mask
        if values.dim() == 0:
            return f"MaskedTensor({_element(values.item(), mask)}, {mask.item()})"
        return f"MaskedTensor(\n  {_lines(values, mask, 2)}\n)"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from rushlight.masked.maskedtensor import rules

        kwargs = kwargs or {}
        if is_operator_method(func):
            return redispatch_function(func, types, args, kwargs)
        rule = rules.for_function(getattr(func, "__name__", ""))
        if rule is not None and rule.takes(args):
            return rule(*args, **kwargs)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        from rushlight.masked.maskedtensor import rules

        rule = rules.for_operator(func)
        if rule is None:
            raise TypeError(
                f"no implementation found for 'torch._ops.{func}' on types that implement "
                f"__torch_dispatch__: {cls.__name__}; use get_data(), get_mask() or to_tensor(value)"
            )
        return rule(func, args, kwargs or {})


def is_masked_tensor(obj):
    """Whether `obj` is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def _wrapper(cls, data, requires_grad):
    return torch.Tensor._make_wrapper_subclass(
        cls,
        data.size(),
        strides=data.stride() if data.layout is torch.strided else None,
        storage_offset=data.storage_offset() if data.layout is torch.strided else 0,
        dtype=data.dtype,
        device=data.device,
        requires_grad=requires_grad,
    )


def _check_kinds(data, mask):
    """Types, layouts and shapes of what a masked tensor is made of."""
    for name, given in (("data", data), ("mask", mask)):
        if not isinstance(given, torch.Tensor) or is_masked_tensor(given):
            raise TypeError(f"{name} must be a Tensor, got {type(given).__name__}")
    if data.layout is not mask.layout:
        raise TypeError(f"data and mask must have the same layout, got {data.layout} and {mask.layout}")
    if data.layout not in _LAYOUTS:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if mask.dtype != torch.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dtype not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError(f"data.dim() must equal mask.dim(), got {data.dim()} and {mask.dim()}")
    if data.size() != mask.size():
        raise ValueError(
            f"data.size() must equal mask.size(), got {tuple(data.size())} and {tuple(mask.size())}"
        )


def places(t):
    """The tensors that say where the elements of a sparse tensor are; none for a strided one."""
    if t.layout is torch.sparse_coo:
        return (t.indices(),)
    return (t.crow_indices(), t.col_indices()) if t.layout is torch.sparse_csr else ()


def _check_places(data, mask):
    if _all_equal(places(data), places(mask)):
        return
    if data.layout is torch.sparse_coo:
        raise ValueError("data and mask are both sparse COO tensors but do not have the same indices.")
    raise ValueError("data and mask are both sparse CSR tensors but do not share either crow or col indices.")


def _all_equal(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def _elements(t):
    return t if t.layout is torch.strided else t.values()


def _tensors_match(a, b, exact=True, rtol=1e-05, atol=1e-08):
    """Whether two tensors have one layout, one shape, and equal or close elements at the same places."""
    if a.layout is not b.layout:
        raise ValueError(f"tensors have different layouts: {a.layout} and {b.layout}")
    if a.dtype != b.dtype:
        b = b.to(a.dtype)
    if a.shape != b.shape:
        return False
    if a.layout is torch.sparse_coo:
        a, b = a.coalesce(), b.coalesce()
    if a.layout is not torch.strided and (a._nnz() != b._nnz() or not _all_equal(places(a), places(b))):
        return False
    a, b = _elements(a), _elements(b)
    return torch.equal(a, b) if exact else torch.allclose(a, b, rtol=rtol, atol=atol)


def _masks_match(a, b):
    """Whether two masked tensors have equal masks; a plain tensor fits any."""
    if not (is_masked_tensor(a) and is_masked_tensor(b)):
        return True
    a, b = a.get_mask(), b.get_mask()
    return a is b or (a.layout is b.layout and _tensors_match(a, b))


def _element(value, there):
    if not there:
        return "--"
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _lines(values, mask, indent):
    if values.dim() == 1:
        pairs = zip(values.tolist(), mask.tolist(), strict=True)
        return "[" + ", ".join(_element(*p) if p[1] else "      --" for p in pairs) + "]"
    rows = [_lines(v, m, indent + 2) for v, m in zip(values, mask, strict=True)]
    return "[\n" + ",\n".join(" " * (indent + 2) + r for r in rows) + "\n" + " " * indent + "]"
