"""Rows near all others."""

import rushlight

from .base_structured_sparsifier import BaseStructuredSparsifier

__all__ = ["FPGMPruner"]


class FPGMPruner(BaseStructuredSparsifier):
    """Prunes the filters that the others can best stand for: those of least distance from all.

    After He et al., "Filter Pruning via Geometric Median for Deep Convolutional Neural Networks
    Acceleration".

    Args:
        sparsity_level: the part of the filters.
        dist: 1, 2 (the default) or a function of a matrix that gives the distances of its rows.
    """

    def __init__(self, sparsity_level=0.5, dist=None):
        dist = 2 if dist is None else dist
        if callable(dist):
            self.dist_fn = dist
        elif dist in (1, 2):
            self.dist_fn = lambda rows: rushlight.cdist(rows, rows, p=dist)
        else:
            raise NotImplementedError(
                "Distance function is not yet implemented. `dist` is 1, 2 or a function of a matrix."
            )
        super().__init__(defaults={"sparsity_level": sparsity_level})

    def _compute_distance(self, t):
        """Of each row, the sum of its distances from the others."""
        return self.dist_fn(t.flatten(1)).abs().sum(1)

    def update_mask(self, module, tensor_name, sparsity_level, **kwargs):
        weight = getattr(module, tensor_name)
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        if 0 < sparsity_level < 1:
            count = round(sparsity_level * len(weight))
            mask[self._compute_distance(weight).topk(count, largest=False).indices] = False
        else:
            mask.data = rushlight.full_like(mask, sparsity_level <= 0)
