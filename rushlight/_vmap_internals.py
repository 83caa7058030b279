"""The older `vmap`, which packages still import: the one of `torch.func`, without its options."""

import functools
import warnings

from rushlight._functorch.vmap import _flat_vmap, _process_batched_inputs

__capture__ = "through"  # Note [Capture marks]


def vmap(func, in_dims=0, out_dims=0):
    """Please use torch.vmap instead of this API."""
    warnings.warn(
        "Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning, stacklevel=2
    )
    return _vmap(func, in_dims, out_dims)


def _vmap(func, in_dims=0, out_dims=0, allow_none_pass_through=False):
    """`vmap`, and no warning. Results that are None pass through where that is allowed."""

    @functools.wraps(func)
    def wrapped(*args):
        size, dims, flat, spec = _process_batched_inputs(in_dims, args, func)
        return _flat_vmap(func, size, dims, flat, spec, out_dims, "error", {}, allow_none_pass_through)

    return wrapped
