"""Reductions of embeddings over bags of indices."""

import rushlight as torch
from rushlight.nn import functional as F


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """The sum, mean or max of the rows of weight that each bag of indices selects."""
    if weight.dtype == torch.long and input.is_floating_point():
        weight, input = input, weight  # the order of the arguments before PyTorch 0.4
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must "
            "have the "
            f"same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
            "mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed "
                "length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        bags = input.size(0)
        bag_of = torch.arange(bags, device=input.device).repeat_interleave(input.size(1))
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
        starts = offsets[:-1] if include_last_offset else offsets
        bags = starts.size(0)
        positions = torch.arange(input.size(0), device=input.device)
        bag_of = torch.bucketize(positions, starts.to(torch.long), right=True) - 1
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if padding_idx is not None:
        if not -weight.size(0) <= padding_idx < weight.size(0):
            raise ValueError("padding_idx must be within num_embeddings")
        kept = input != padding_idx % weight.size(0)
        input, bag_of = input[kept], bag_of[kept]
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights[kept]
    rows = F.embedding(input, weight, None, max_norm, norm_type, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    return _reduce_bags(rows, bag_of, bags, mode)


def _reduce_bags(rows, bag_of, bags, mode):
    out = rows.new_zeros((bags, rows.size(1)))
    if mode == "max":
        index = bag_of.unsqueeze(1).expand_as(rows)
        return out.scatter_reduce(0, index, rows, "amax", include_self=False)
    out = out.index_add(0, bag_of, rows)
    if mode == "mean":
        counts = torch.zeros(bags, dtype=rows.dtype, device=rows.device)
        counts.index_add_(0, bag_of, torch.ones_like(bag_of, dtype=rows.dtype))
        out = out / counts.clamp_min(1).unsqueeze(1)
    return out
