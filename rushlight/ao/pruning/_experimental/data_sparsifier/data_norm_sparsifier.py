"""Data whose blocks of least norm are zero."""

import rushlight
from rushlight.ao.pruning.sparsifier._blocks import check_zeros, whole_blocks, within_blocks

from .base_data_sparsifier import BaseDataSparsifier

__all__ = ["DataNormSparsifier"]


class DataNormSparsifier(BaseDataSparsifier):
    """Makes the blocks of tensors of one or two dimensions zero whose norm is least.

    Args:
        data_list: pairs of a name and a tensor or embedding.
        sparsity_level: the part of the blocks that become zero.
        sparse_block_shape: rows and columns of a block.
        zeros_per_block: how many elements of such a block become zero; all by default.
        norm: "L1" or "L2".
    """

    def __init__(
        self, data_list=None, sparsity_level=0.5, sparse_block_shape=(1, 4), zeros_per_block=None, norm="L1"
    ):
        if zeros_per_block is None:
            zeros_per_block = sparse_block_shape[0] * sparse_block_shape[1]
        if norm not in ("L1", "L2"):
            raise AssertionError("only L1 and L2 norm supported at the moment")
        self.norm = norm
        super().__init__(
            data_list=data_list,
            sparsity_level=sparsity_level,
            sparse_block_shape=sparse_block_shape,
            zeros_per_block=zeros_per_block,
        )

    def update_mask(self, name, data, sparsity_level, sparse_block_shape, zeros_per_block, **kwargs):
        size = check_zeros(zeros_per_block, sparse_block_shape)
        norms = (data.abs() if self.norm == "L1" else data * data).squeeze()
        if norms.dim() > 2:
            raise ValueError("only supports 2-D at the moment")
        if norms.dim() == 1:
            norms = norms[None, :]

        def chosen(blocks):
            return max(0, min(blocks, round(sparsity_level * blocks)))

        kept = whole_blocks(norms, sparse_block_shape, chosen)
        if zeros_per_block != size:
            kept = rushlight.logical_or(kept, within_blocks(norms, sparse_block_shape, zeros_per_block))
        self.get_mask(name).data = kept.reshape(data.shape).to(rushlight.int8)
