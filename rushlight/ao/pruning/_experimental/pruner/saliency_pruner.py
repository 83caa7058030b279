"""Rows of least norm."""

from .base_structured_sparsifier import BaseStructuredSparsifier


def _row_norms(weight):
    if weight.dim() <= 1:
        raise Exception("Structured pruning can only be applied to a 2+dim weight tensor!")
    return weight.norm(dim=tuple(range(1, weight.dim())), p=1)


class SaliencyPruner(BaseStructuredSparsifier):
    """Prunes the rows of a weight whose elements have the least sum of magnitudes.

    The part of the rows is ``sparsity_level`` of the configuration.
    """

    def update_mask(self, module, tensor_name, **kwargs):
        norms = _row_norms(getattr(module, tensor_name))
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        if norms.shape != mask.shape:
            raise AssertionError(f"saliency shape ({norms.shape}) must match mask shape ({mask.shape})")
        mask.data[(-norms).topk(int(len(mask) * kwargs["sparsity_level"])).indices] = False
