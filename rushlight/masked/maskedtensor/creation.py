"""How masked tensors are made."""

from rushlight.masked.maskedtensor.core import MaskedTensor
from rushlight.masked.maskedtensor.functions import AsMasked

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data, mask, requires_grad=False):
    """A MaskedTensor of copies of `data` and `mask`, a leaf of its own."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data, mask):
    """A MaskedTensor of `data`, to which its gradients go, masked as it is."""
    return AsMasked.apply(data, mask)
