"""Helpers of functions that take expanded weights."""

import rushlight as torch

__all__ = [
    "check_expanded_weight_args",
    "forward_helper",
    "set_grad_sample_if_exists",
    "standard_kwargs",
    "sum_over_all_but_batch_and_last_n",
    "unpack_expanded_weight_or_tensor",
]


def standard_kwargs(kwarg_names, expanded_args):
    """Positional arguments as positional ones and, by these names, the last of them."""
    count = len(expanded_args) - len(kwarg_names)
    return expanded_args[:count], dict(zip(kwarg_names, expanded_args[count:], strict=True))


def forward_helper(func, expanded_args, expanded_kwargs):
    """`func` of the weights as they are, after a look at what it was given."""
    check_expanded_weight_args(func, expanded_args, expanded_kwargs)
    args = [_plain(a) for a in expanded_args]
    return func(*args, **{name: _plain(a) for name, a in expanded_kwargs.items()})


def _is_expanded(a):
    from rushlight.nn.utils._expanded_weights.expanded_weights_impl import ExpandedWeight

    return isinstance(a, ExpandedWeight)


def _plain(a):
    return a.orig_weight if _is_expanded(a) else a


def check_expanded_weight_args(func, expanded_args, expanded_kwargs):
    """Refuse inputs without a batch of the size that the weights were expanded for."""
    name, input = func.__name__, expanded_args[0]
    if _is_expanded(input):
        raise RuntimeError(
            "Expanded Weights do not support inputs that are also ExpandedWeights. "
            f"Input must be a Tensor, got {type(input).__name__} in function {name}"
        )
    if not isinstance(input, torch.Tensor):
        raise RuntimeError(
            "Expanded Weights requires a Tensor as the first input to get the batch dimension, "
            f"got {type(input).__name__} in function {name}"
        )
    if input.dim() == 0:
        raise RuntimeError(
            f"Expanded Weights requires a batch dimension but got an input of size 0 in function {name}"
        )
    if input.shape[0] == 0:
        raise RuntimeError(
            "0 is not a valid batch size for Expanded Weights but got input tensor of size "
            f"{tuple(input.shape)} in function {name}"
        )
    for a in (*expanded_args, *expanded_kwargs.values()):
        if _is_expanded(a) and not _fits(a, input.shape[0]):
            raise RuntimeError(
                "Expected ExpandedWeights to have batch size matching input but got input batch size of "
                f"{input.shape[0]} with ExpandedWeight of batch size {a.batch_size}"
            )


def _fits(weight, size):
    return size <= weight.batch_size if weight.allow_smaller_batches else size == weight.batch_size


def set_grad_sample_if_exists(maybe_expanded_weight, per_sample_grad_fn):
    """Add what the function gives for the weight to its ``grad_sample``; nothing for what is no weight."""
    weight = unpack_expanded_weight_or_tensor(maybe_expanded_weight)
    if not _is_expanded(maybe_expanded_weight):
        return
    found = per_sample_grad_fn(weight)
    if maybe_expanded_weight.loss_reduction == "mean":
        found = found * maybe_expanded_weight.batch_size
    before = getattr(weight, "grad_sample", None)
    weight.grad_sample = found if before is None else before + found


def unpack_expanded_weight_or_tensor(maybe_expanded_weight, func=lambda x: x):
    """`func` of the weight below, or of a tensor without gradient; None for what is no tensor."""
    if _is_expanded(maybe_expanded_weight):
        return func(maybe_expanded_weight.orig_weight)
    if not isinstance(maybe_expanded_weight, torch.Tensor):
        return None
    if maybe_expanded_weight.requires_grad:
        raise RuntimeError(
            "ExpandedWeights currently does not support a mixture of ExpandedWeight parameters and normal "
            "Parameters. Please file and issue with pytorch/pytorch"
        )
    return func(maybe_expanded_weight)


def sum_over_all_but_batch_and_last_n(tensor, n_dims):
    """The sum over all dimensions but the first and the last `n_dims`."""
    dims = tuple(range(1, tensor.dim() - n_dims))
    return tensor.sum(dims) if dims else tensor
