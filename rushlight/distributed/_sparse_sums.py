"""Sums of sparse tensors over the ranks of a group.

Ranks hold different numbers of elements, so they tell these first; then each sends its positions and values,
padded to the longest, and every rank adds up what all sent.
"""

from .. import cat, no_grad, sparse_coo_tensor
from .. import tensor as make_tensor
from ._reduce_op import RedOpType

__all__ = ["check_sparse_sum", "sum_of_all"]


def check_sparse_sum(tensors, operation):
    """Raise unless the tensors can be summed: one tensor of layout COO."""
    if len(tensors) != 1 or not all(tensor.is_sparse for tensor in tensors):
        raise NotImplementedError(
            "all_reduce_coalesced of sparse tensors: reduce them one by one with all_reduce"
        )
    if operation is not RedOpType.SUM:
        raise RuntimeError(
            "ProcessGroupGloo::allreduce: unsupported reduction operation "
            "(allreduce of sparse tensors only works with ReduceOp.SUM)"
        )


def sum_of_all(tensor, gathered):
    """Write the sum of all ranks' tensors into this one; ``gathered(part, index)`` has every rank's part."""
    with no_grad():
        own = tensor.detach().coalesce()
        shape = [own.sparse_dim(), *own.shape]
        facts = gathered(make_tensor([own._nnz(), *shape]), 0)
        for rank, other in enumerate(facts[:, 1:].tolist()):
            if other != shape:
                raise RuntimeError(
                    f"all_reduce: rank {rank} has a sparse tensor of {other[0]} sparse dimensions and shape "
                    f"{other[1:]}, this one {shape[0]} and {shape[1:]}"
                )
        counts = facts[:, 0].tolist()
        longest = max(counts)
        indices = gathered(_padded(own.indices().t(), longest), 1)
        values = gathered(_padded(own.values(), longest), 2)
        total = sparse_coo_tensor(
            cat([part[:count] for part, count in zip(indices, counts, strict=True)]).t(),
            cat([part[:count] for part, count in zip(values, counts, strict=True)]),
            own.shape,
        )
        tensor.copy_(total.coalesce())


def _padded(rows, length):
    return cat([rows, rows.new_zeros((length - rows.shape[0], *rows.shape[1:]))])
