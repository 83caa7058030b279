"""``vmap``: a function of single examples made a function of batches."""

import functools
import types

import rushlight
from rushlight._C import _functorch
from rushlight._errors.advice import advised
from rushlight.utils._pytree import (
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_map,
    tree_structure,
    tree_unflatten,
)

Tensor, _add_batch_dim = rushlight.Tensor, _functorch._add_batch_dim
_RANDOMNESS = ("error", "different", "same")


def get_name(func):
    if hasattr(func, "__name__"):
        return func.__name__
    if isinstance(func, functools.partial):
        return f"functools.partial({get_name(func.func)}, ...)"
    return repr(func)


_get_name = get_name


def _check_randomness(randomness):
    if randomness not in _RANDOMNESS:
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )


# --- inputs


def _check_in_dim(arg, in_dim, prefix):
    if in_dim is None:
        return None
    if not isinstance(in_dim, int):
        raise ValueError(
            f"{prefix()}: Got in_dim={in_dim} for an input but in_dim must be either an integer dimension or "
            "None."
        )
    if not isinstance(arg, rushlight.Tensor):
        raise ValueError(
            f"{prefix()}: Got in_dim={in_dim} for an input but the input is of type {type(arg)}. We cannot "
            "vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    if not -arg.dim() <= in_dim < arg.dim():
        raise ValueError(
            f"{prefix()}: Got in_dim={in_dim} for some input, but that input is a Tensor of dimensionality "
            f"{arg.dim()} so expected in_dim to satisfy -{arg.dim()} <= in_dim < {arg.dim()}."
        )
    return in_dim % arg.dim()


def _process_batched_inputs(in_dims, args, func):
    """The number of examples, and the arguments taken apart with their dimensions."""

    def prefix():
        return f"vmap({get_name(func)}, in_dims={in_dims}, ...)(<inputs>)"

    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{prefix()}: expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({get_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are "
            "trying to vmap over a function with no inputs. The latter is unsupported."
        )
    flat_args, spec = tree_flatten(args)
    flat_dims = _broadcast_to_and_flatten(in_dims, spec)
    if flat_dims is None:
        raise ValueError(
            f"{prefix()}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_structure(in_dims)} but inputs has structure {spec}."
        )
    flat_dims = [_check_in_dim(arg, dim, prefix) for arg, dim in zip(flat_args, flat_dims)]
    return _validate_and_get_batch_size(flat_dims, flat_args), flat_dims, flat_args, spec


def _validate_and_get_batch_size(flat_dims, flat_args):
    sizes = [arg.size(dim) for dim, arg in zip(flat_dims, flat_args) if dim is not None]
    if not sizes:
        raise ValueError("vmap: at least one tensor must be mapped over: all in_dims are None")
    if any(size != sizes[0] for size in sizes):
        text = "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
        raise advised(ValueError(f"{text}{sizes} for the mapped dimension"))
    return sizes[0]


# --- outputs


def _flat_out_dims(out_dims, outputs, spec, func):
    if type(out_dims) is int and spec.is_leaf():
        return [out_dims]

    def prefix():
        return f"vmap({get_name(func)}, ..., out_dims={out_dims})"

    def incompatible():
        raise ValueError(
            f"{prefix()}(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has "
            f"structure {tree_structure(out_dims)} but outputs has structure {spec}."
        )

    for dim in tree_flatten(out_dims)[0]:
        if not (dim is None or isinstance(dim, int)):
            raise ValueError(
                f"{prefix()}: `out_dims` must be an int, None or a python collection of ints representing "
                "where in the outputs the vmapped dimension should appear."
            )
    if spec.is_leaf():
        if isinstance(out_dims, tuple) and len(out_dims) == 1:
            return [out_dims[0]]
        if not (out_dims is None or isinstance(out_dims, int)):
            incompatible()
        return [out_dims]
    flat = _broadcast_to_and_flatten(out_dims, spec)
    if flat is None:
        incompatible()
    return flat


def _leave_level(output, out_dim, level, size, func):
    if out_dim is None:
        if (
            isinstance(output, rushlight.Tensor)
            and _functorch.is_batchedtensor(output)
            and (_functorch.maybe_get_level(output) == level)
        ):
            raise ValueError(
                f"vmap({get_name(func)}, ...): `{get_name(func)}` can not return a BatchedTensor when "
                "out_dim is None"
            )
        return output
    if not isinstance(output, rushlight.Tensor):
        raise ValueError(
            f"vmap({get_name(func)}, ...): `{get_name(func)}` must only return Tensors, got type "
            f"{type(output)}. Did you mean to set out_dims= to None for output?"
        )
    return _functorch._remove_batch_dim(output, level, size, out_dim)


def _maybe_remove_batch_dim(name, batched_output, vmap_level, batch_size, out_dim):
    """PyTorch's form of the same, which packages call."""
    return _leave_level(batched_output, out_dim, vmap_level, batch_size, types.SimpleNamespace(__name__=name))


def _unwrap_batched(outputs, out_dims, level, size, func, allow_none=False):
    flat, spec = tree_flatten(outputs)
    dims = _flat_out_dims(out_dims, outputs, spec, func)
    results = [
        None if allow_none and x is None else _leave_level(x, dim, level, size, func)
        for x, dim in zip(flat, dims)
    ]
    return tree_unflatten(results, spec)


# Packages with batches of their own kind replace this, _process_batched_inputs and _unwrap_batched.
def _create_batched_inputs(flat_in_dims, flat_args, vmap_level, args_spec):
    """The arguments as one level sees them: examples."""
    batched = [
        arg if dim is None else _add_batch_dim(arg, dim, vmap_level)
        for arg, dim in zip(flat_args, flat_in_dims)
    ]
    return tree_unflatten(batched, args_spec)


class _Level:
    """The extent of one vmap level."""

    def __init__(self, size, randomness):
        self.size, self.randomness = size, randomness

    def __enter__(self):
        return _functorch._vmap_increment_nesting(self.size, self.randomness)

    def __exit__(self, *error):
        _functorch._vmap_decrement_nesting()


def _flat_vmap(func, size, flat_dims, flat_args, spec, out_dims, randomness, kwargs, allow_none=False):
    with _Level(size, randomness) as level:
        outputs = func(*_create_batched_inputs(flat_dims, flat_args, level, spec), **kwargs)
        if allow_none:
            return _unwrap_batched(outputs, out_dims, level, size, func, allow_none)
        return _unwrap_batched(outputs, out_dims, level, size, func)


def vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs):
    _check_randomness(randomness)
    size, flat_dims, flat_args, spec = _process_batched_inputs(in_dims, args, func)
    if chunk_size is None:
        return _flat_vmap(func, size, flat_dims, flat_args, spec, out_dims, randomness, kwargs)
    return _chunked_vmap(func, flat_dims, flat_args, spec, out_dims, randomness, chunk_size, kwargs)


def _chunked_vmap(func, flat_dims, flat_args, spec, out_dims, randomness, chunk_size, kwargs):
    """Several calls on parts of the examples. With ``randomness='same'`` all see the same random numbers."""
    columns = [None if dim is None else arg.split(chunk_size, dim) for arg, dim in zip(flat_args, flat_dims)]
    count = next(len(c) for c in columns if c is not None)
    state = rushlight.get_rng_state() if randomness == "same" else None
    parts = []
    for i in range(count):
        if state is not None:
            rushlight.set_rng_state(state)
        args = [arg if c is None else c[i] for arg, c in zip(flat_args, columns)]
        size = next(a.size(dim) for a, dim in zip(args, flat_dims) if dim is not None)
        parts.append(_flat_vmap(func, size, flat_dims, args, spec, out_dims, randomness, kwargs))
    flat, out_spec = zip(*(tree_flatten(p) for p in parts))
    dims = _flat_out_dims(out_dims, parts[0], out_spec[0], func)
    joined = [
        column[0] if dim is None else rushlight.cat(column, dim) for dim, column in zip(dims, zip(*flat))
    ]
    return tree_unflatten(joined, out_spec[0])


def restore_vmap(func, in_dims, batch_size, randomness):
    """``func`` under vmap with given dimensions; also returns the dimensions of its outputs, None where an
    output does not depend on the example."""

    def inner(*args, **kwargs):
        with _Level(batch_size, randomness) as level:
            batched = wrap_batched(args, in_dims, level)
            return unwrap_batched(func(*batched, **kwargs), level)

    return inner


def wrap_batched(args, in_dims, level):
    flat, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError("vmap: in_dims is not compatible with the structure of the inputs")
    return tree_unflatten(
        [x if d is None else _functorch._add_batch_dim(x, d, level) for x, d in zip(flat, dims)], spec
    )


def unwrap_batched(outputs, level):
    """Tensors of a level as what they wrap, and the dimensions of examples (None: not batched there)."""

    def dim_of(x):
        here = isinstance(x, rushlight.Tensor) and _functorch.is_batchedtensor(x)
        return _functorch.maybe_get_bdim(x) if here and _functorch.maybe_get_level(x) == level else None

    dims = tree_map(dim_of, outputs)
    return tree_map(lambda x: x if dim_of(x) is None else _functorch.get_unwrapped(x), outputs), dims


def batched_gradients(run, grads):
    """``run(grads)`` for a batch of gradients at once; entries that are None stay None."""
    size = next(len(g) for g in grads if g is not None)
    with _Level(size, "different") as level:
        wrapped = tuple(None if g is None else _functorch._add_batch_dim(g, 0, level) for g in grads)
        results = run(wrapped)
        return tuple(None if r is None else _functorch._remove_batch_dim(r, level, size, 0) for r in results)


__all__ = ["batched_gradients", "restore_vmap", "unwrap_batched", "vmap_impl", "wrap_batched"]
