"""The transforms as ``torch.func`` offers them."""

import functools

from rushlight._command.names import show_from
from rushlight._functorch.eager_transforms import grad, grad_and_value
from rushlight._functorch.vmap import _check_randomness, vmap_impl

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that maps `func` over a dimension of its inputs, as one computation of all examples.

    Args:
        func (callable): takes and returns tensors (or trees of them).
        in_dims (int, None or a tree of them): which dimension of each input holds the examples; None for
            inputs that all examples share.
        out_dims (int or a tree of them): where the outputs have the dimension of examples.
        randomness (str): what random operators do: 'error', 'different' numbers for each example, or the
            'same' for all.
        chunk_size (int, optional): how many examples are computed at a time, to need less memory; None: all.

    Raises: ValueError where sizes of mapped dimensions differ or `in_dims` does not fit; RuntimeError for
        data-dependent branches.

    Example:
        >>> torch.func.vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2))
        tensor([2., 2., 2.])
    """
    _check_randomness(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        return vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs)

    return wrapped


def chunk_vmap(func, in_dims=0, out_dims=0, randomness="error", chunks=2):
    """``vmap`` in ``chunks`` parts."""
    _check_randomness(randomness)

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        from rushlight._functorch.vmap import _process_batched_inputs

        size = _process_batched_inputs(in_dims, args, func)[0]
        return vmap_impl(func, in_dims, out_dims, randomness, -(-size // chunks), *args, **kwargs)

    return wrapped


show_from("func", vmap)
