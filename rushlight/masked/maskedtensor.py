"""MaskedTensor: data beside a mask of the elements that are there (True) or not (False)."""

import rushlight as torch
from rushlight.utils._pytree import tree_map_only

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
        with torch._C.DisableTorchFunctionSubclass():
            if self.is_leaf and self.requires_grad:
                return self.as_subclass(torch.Tensor)  # through which gradients come to this leaf
        return self._masked_data

    def get_mask(self):
        """Where elements are."""
        return self._masked_mask

    @property
    def grad(self):
        """The gradient, of which elements are there where this tensor's are."""
        with torch._C.DisableTorchFunctionSubclass():
            found = torch.Tensor.grad.__get__(self)
        return found if found is None else MaskedTensor(found, self._masked_mask)

    @grad.setter
    def grad(self, value):
        with torch._C.DisableTorchFunctionSubclass():
            torch.Tensor.grad.__set__(self, value.get_data() if isinstance(value, MaskedTensor) else value)

    def to_tensor(self, value):
        """A plain tensor with `value` where elements are masked out."""
        return self.get_data().masked_fill(~self._masked_mask, value)

    def is_sparse_coo(self):
        return False

    def is_sparse_csr(self):
        return False

    def __repr__(self):
        def element(value, there):
            if not there:
                return "--"
            return f"{value:8.4f}" if isinstance(value, float) else str(value)

        def lines(values, mask, indent):
            if values.dim() == 1:
                pairs = zip(values.tolist(), mask.tolist(), strict=True)
                return "[" + ", ".join(element(*p) if p[1] else "      --" for p in pairs) + "]"
            rows = [lines(v, m, indent + 2) for v, m in zip(values, mask, strict=True)]
            return "[\n" + ",\n".join(" " * (indent + 2) + r for r in rows) + "\n" + " " * indent + "]"

        values, mask = self._masked_data.detach(), self._masked_mask
        if values.dim() == 0:
            return f"MaskedTensor({element(values.item(), mask)}, {mask.item()})"
        return f"MaskedTensor(\n  {lines(values, mask, 2)}\n)"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        with torch._C.DisableTorchFunctionSubclass():
            if name in _PLAIN:
                return func(*args, **kwargs)
            if name in _REDUCTIONS:
                return _reduce(name, *args, **kwargs)
            if name == "where":
                return _where(*args, **kwargs)
            if name == "backward":
                return func(args[0].get_data(), *args[1:], **kwargs)
            if func is torch.autograd.grad:
                return _gradients(*args, **kwargs)
            return _pointwise(func, name in _SHAPES, args, kwargs)


def _check(data, mask):
    if not isinstance(data, torch.Tensor) or not isinstance(mask, torch.Tensor):
        raise TypeError("MaskedTensor: data and mask must be tensors")
    if mask.dtype != torch.bool:
        raise TypeError("mask must have dtype bool.")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")


def _same_mask(a, b):
    if a.shape != b.shape or a.layout != b.layout:
        return False
    if a.layout is torch.sparse_coo:
        a, b = a.coalesce(), b.coalesce()
        return torch.equal(a.indices(), b.indices()) and torch.equal(a.values(), b.values())
    return torch.equal(a, b) if a.layout is torch.strided else torch.equal(a.to_dense(), b.to_dense())


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
        if not _same_mask(other, masks[0]):
            raise ValueError(
                "Input masks must match. If you need support for this, please open an issue on Github."
            )
    kwargs = {k: v.get_data() if isinstance(v, MaskedTensor) else v for k, v in kwargs.items()}
    return _wrap(func(*plain, **kwargs), masks[0])


def _gradients(outputs, inputs, grad_outputs=None, *args, **kwargs):
    """`torch.autograd.grad` of the data; a gradient has elements where its input has them."""
    data = tree_map_only(MaskedTensor, MaskedTensor.get_data, (outputs, grad_outputs))
    # A leaf is what gradients come to itself; of a result only the data are part of the graph.
    whole = tree_map_only(MaskedTensor, lambda t: t if t.is_leaf else t.get_data(), inputs)
    found = torch.autograd.grad(data[0], whole, data[1], *args, **kwargs)
    inputs = (inputs,) if isinstance(inputs, torch.Tensor) else inputs
    return tuple(_masked_like(g, x) for g, x in zip(found, inputs, strict=True))


def _masked_like(gradient, x):
    if gradient is None or not isinstance(x, MaskedTensor):
        return gradient
    return MaskedTensor(gradient, x.get_mask().expand(gradient.shape))


def _where(condition, input, other):
    """Elements come with their masks, which may differ here; of a plain tensor all are there."""
    pairs = [
        (t.get_data(), t.get_mask())
        if isinstance(t, MaskedTensor)
        else (t, torch.ones_like(t, dtype=torch.bool))
        for t in (input, other)
    ]
    values, masks = zip(*pairs)
    return MaskedTensor(torch.where(condition, *values), torch.where(condition, *masks))


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
