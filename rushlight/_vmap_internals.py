"""The older `vmap`, which packages still import: dimensions are not negative, results tensors or tuples of
them, with one dimension each."""

import functools
import warnings

import rushlight
from rushlight._functorch.vmap import (
    _create_batched_inputs,
    _leave_level,
    _Level,
    _process_batched_inputs,
    get_name,
)
from rushlight.utils._pytree import _broadcast_to_and_flatten

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
        _check_out_dims(out_dims, func)
        size, dims, flat, spec = _process_batched_inputs(in_dims, args, func)
        _check_in_dims(in_dims, flat, spec, func)
        with _Level(size, "error") as level:
            outputs = _run(func, _create_batched_inputs(dims, flat, level, spec))
            _check_outputs(outputs, func, allow_none_pass_through)
            if not isinstance(outputs, tuple):
                return _unbatched(outputs, _dims_of(out_dims, 1, func)[0], level, size, func)
            each = zip(outputs, _dims_of(out_dims, len(outputs), func), strict=True)
            return tuple(_unbatched(x, dim, level, size, func) for x, dim in each)

    return wrapped


# What the newer vmap refuses in other words, by what those have in common.
_OLDER_WORDS = {
    "in randomness error mode": (
        "vmap: We do not yet support calling random operations inside of vmap. Please perform random "
        "operations outside of vmap as a workaround"
    ),
    "backward() called inside a functorch transform": (
        "backward() called inside torch.vmap. This is not supported, please call backward() outside "
        "torch.vmap"
    ),
}


def _run(func, inputs):
    try:
        return func(*inputs)
    except RuntimeError as error:
        for newer, older in _OLDER_WORDS.items():
            if newer in str(error):
                raise RuntimeError(older) from error
        raise


def _unbatched(output, dim, level, size, func):
    return None if output is None else _leave_level(output, dim, level, size, func)


def _check_in_dims(in_dims, flat, spec, func):
    for arg, dim in zip(flat, _broadcast_to_and_flatten(in_dims, spec), strict=True):
        if dim is not None and dim < 0:
            raise ValueError(
                f"vmap({get_name(func)}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some input, "
                f"but that input is a Tensor of dimensionality {arg.dim()} so expected in_dim to satisfy "
                f"0 <= in_dim < {arg.dim()}."
            )


def _check_out_dims(out_dims, func):
    if isinstance(out_dims, int) or (
        isinstance(out_dims, tuple) and all(isinstance(dim, int) for dim in out_dims)
    ):
        return
    raise ValueError(
        f"vmap({get_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int or a tuple of int "
        "representing where in the outputs the vmapped dimension should appear."
    )


def _check_outputs(outputs, func, allow_none):
    def check(output, which):
        if not isinstance(output, rushlight.Tensor) and not (allow_none and output is None):
            raise ValueError(
                f"vmap({get_name(func)}, ...): `{get_name(func)}` must only return Tensors, got type "
                f"{type(output)} {which}."
            )

    if not isinstance(outputs, tuple):
        check(outputs, "as the return")
        return
    for i, output in enumerate(outputs):
        check(output, f"for return {i}")


def _dims_of(out_dims, count, func):
    """One dimension for each of the results."""
    if not isinstance(out_dims, tuple):
        return (out_dims,) * count
    if len(out_dims) != count:
        raise ValueError(
            f"vmap({get_name(func)}, ..., out_dims={out_dims}): `out_dims` must have one dim per output "
            f"(got {count} outputs) of {get_name(func)}."
        )
    return out_dims
