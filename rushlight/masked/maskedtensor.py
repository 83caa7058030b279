"""MaskedTensor: data beside a mask of the elements that are there (True) or not (False)."""

import rushlight as torch

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]

_SHAPES = frozenset(
    """
    __getitem__ reshape view transpose permute t unsqueeze squeeze expand flatten select narrow contiguous
    clone detach movedim swapaxes unfold as_strided broadcast_to
    """.split()
)
_REDUCTIONS = frozenset("sum mean prod amax amin argmax argmin var std".split())
_PLAIN = frozenset(
    "dim size stride numel is_floating_point is_complex requires_grad_ __get__ __set__ ndim __len__".split()
)


class MaskedTensor(torch.Tensor):
    """`data` with a bool `mask` of its shape.

    Pointwise operations act on the data and keep the mask; reductions leave masked-out elements out; the
    operands of one operation must have equal masks.
    """

    @staticmethod
    def __new__(cls, data, mask, requires_grad=False):
        _check(data, mask)
        self = data.as_subclass(cls)
        if requires_grad:
            self.requires_grad_(True)
        return self

    def __init__(self, data, mask, requires_grad=False):
        self._masked_data = data
        self._masked_mask = mask

    def get_data(self):
        """The values, with those that are masked out."""
        return self._masked_data

    def get_mask(self):
        """Where elements are."""
        return self._masked_mask

    def to_tensor(self, value):
        """A plain tensor with `value` where elements are masked out."""
        return self._masked_data.masked_fill(~self._masked_mask, value)

    def is_sparse_coo(self):
        return False

    def is_sparse_csr(self):
        return False

    def __repr__(self):
        def line(values, mask, indent):
            if values.dim() == 0:
                return f"{values.item():8.4f}" if mask else "      --"
            rows = [line(v, m, indent + 2) for v, m in zip(values, mask, strict=True)]
            if values.dim() == 1:
                return "[" + ", ".join(rows) + "]"
            return "[\n" + ",\n".join(" " * (indent + 2) + r for r in rows) + "\n" + " " * indent + "]"

        return f"MaskedTensor(\n  {line(self._masked_data.detach(), self._masked_mask, 2)}\n)"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        with torch._C.DisableTorchFunctionSubclass():
            if name in _PLAIN:
                return func(*args, **kwargs)
            if name in _REDUCTIONS:
                return _reduce(name, *args, **kwargs)
            return _pointwise(func, name in _SHAPES, args, kwargs)


def _check(data, mask):
    if not isinstance(data, torch.Tensor) or not isinstance(mask, torch.Tensor):
        raise TypeError("MaskedTensor: data and mask must be tensors")
    if mask.dtype != torch.bool:
        raise TypeError("mask must have dtype bool.")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")


def _wrap(result, mask):
    if isinstance(result, torch.Tensor) and result.shape == mask.shape:
        return MaskedTensor(result, mask)
    if isinstance(result, torch.Tensor) and mask.numel() == 1:
        return MaskedTensor(result, mask.expand(result.shape))
    raise NotImplementedError(
        "this operation has no rule for MaskedTensor; use get_data(), get_mask() or to_tensor(value)"
    )


def _pointwise(func, shapes, args, kwargs):
    """Runs `func` on the data; the mask goes with it, or through the same change of shape."""
    masks = [a.get_mask() for a in args if isinstance(a, MaskedTensor)]
    plain = [a.get_data() if isinstance(a, MaskedTensor) else a for a in args]
    if shapes:
        mask = func(masks[0], *plain[1:], **kwargs)
        return _wrap(func(*plain, **kwargs), mask)
    for other in masks[1:]:
        if other.shape != masks[0].shape or not torch.equal(other, masks[0]):
            raise ValueError(
                "Input masks must match. If you need support for this, please open an issue on Github."
            )
    kwargs = {k: v.get_data() if isinstance(v, MaskedTensor) else v for k, v in kwargs.items()}
    return _wrap(func(*plain, **kwargs), masks[0])


def _reduce(name, input, dim=None, keepdim=False, **kwargs):
    from rushlight import masked

    mask = input.get_mask()
    result = getattr(masked, name)(input.get_data(), dim, keepdim=keepdim, mask=mask, **kwargs)
    dims = masked._ops._dims(dim, mask.dim())
    present = mask.any(dims, keepdim) if dims else mask
    return _wrap(result, present)


def masked_tensor(data, mask, requires_grad=False):
    """A MaskedTensor of copies of `data` and `mask`, a leaf of its own."""
    return MaskedTensor(data.detach().clone(), mask.detach().clone(), requires_grad)


def as_masked_tensor(data, mask):
    """A MaskedTensor over `data`; gradients flow to it."""
    return MaskedTensor(data, mask)


def is_masked_tensor(obj):
    """Whether `obj` is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)
