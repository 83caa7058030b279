"""Weights whose blocks of least norm are zero."""

import rushlight

from ._blocks import check_zeros, whole_blocks, within_blocks
from .base_sparsifier import BaseSparsifier

__all__ = ["WeightNormSparsifier"]


class WeightNormSparsifier(BaseSparsifier):
    """Makes the blocks of a matrix zero whose norm is least.

    Args:
        sparsity_level: the part of the blocks that become zero.
        sparse_block_shape: rows and columns of a block; the first lies at the matrix's first element.
        zeros_per_block: how many elements of such a block become zero, those of least norm; all by default.
        norm: 1, 2 (the default) or a function of the weight that gives each element's norm.

    Example::

        >>> model = torch.nn.Sequential(torch.nn.Linear(8, 2))
        >>> sparsifier = torch.ao.pruning.WeightNormSparsifier(sparsity_level=0.5, sparse_block_shape=(1, 4))
        >>> sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}])
        >>> sparsifier.step()
        >>> sparsifier.squash_mask()
        >>> int((model[0].weight == 0).sum())
        8
    """

    def __init__(self, sparsity_level=0.5, sparse_block_shape=(1, 4), zeros_per_block=None, norm=None):
        if zeros_per_block is None:
            zeros_per_block = sparse_block_shape[0] * sparse_block_shape[1]
        norm = 2 if norm is None else norm
        if callable(norm):
            self.norm_fn = norm
        elif norm in (1, 2):
            self.norm_fn = rushlight.abs if norm == 1 else rushlight.square
        else:
            raise NotImplementedError(
                f"L-{norm} is not yet implemented. `norm` is 1, 2 or a function of the weight."
            )
        super().__init__(
            defaults={
                "sparsity_level": sparsity_level,
                "sparse_block_shape": sparse_block_shape,
                "zeros_per_block": zeros_per_block,
            }
        )

    def update_mask(self, module, tensor_name, sparsity_level, sparse_block_shape, zeros_per_block, **kwargs):
        size = check_zeros(zeros_per_block, sparse_block_shape)
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        if sparsity_level <= 0 or zeros_per_block == 0:
            mask.data = rushlight.ones_like(mask)
            return
        if sparsity_level >= 1.0 and zeros_per_block == size:
            mask.data = rushlight.zeros_like(mask)
            return
        norms = self.norm_fn(getattr(module, tensor_name))

        def chosen(blocks):
            # One block stays, but where the level is 1.
            return blocks if sparsity_level >= 1 else min(blocks - 1, round(sparsity_level * blocks))

        kept = whole_blocks(norms, sparse_block_shape, chosen)
        if zeros_per_block != size:
            kept = rushlight.logical_or(kept, within_blocks(norms, sparse_block_shape, zeros_per_block))
        mask.data = kept
