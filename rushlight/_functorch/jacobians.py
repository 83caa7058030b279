"""Jacobians and Hessians: products with a basis."""

import functools

import rushlight
from rushlight._command.names import show_from
from rushlight._functorch.vmap import vmap_impl
from rushlight.utils._pytree import tree_flatten, tree_unflatten

from .products import _jvp_with_argnums, _slice_argnums, _vjp_with_argnums


def _refuse_complex(tensors, who, what):
    for i, t in enumerate(tensors):
        if t.is_complex():
            raise RuntimeError(
                f"{who}: Expected all {what} to be real but received complex tensor at flattened input "
                f"idx: {i}"
            )


def _basis(tensors, start, stop):
    """Rows ``start`` to ``stop`` of the identity, cut up into the shapes of ``tensors``."""
    parts, at = [], 0
    count = stop - start
    for t in tensors:
        n = t.numel()
        low, high = max(start, at), min(stop, at + n)
        part = t.new_zeros(count, n)  # for each example of a vmap around: results can be written to
        if low < high:
            rows, columns = part[low - start : high - start], slice(low - at, high - at)
            rows[:, columns].fill_diagonal_(1)
        parts.append(part.view((count, *t.shape)))
        at += n
    return parts


def _of_its_own(rows):
    """What no row depends on came out expanded; results can be written to."""
    return rows.contiguous() if 0 in rows.stride() else rows


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that gives the Jacobian of `func` by reverse mode: a pass for each element of the output.

    Args:
        func (callable): takes and returns tensors (or trees of them), without side effects.
        argnums (int or tuple): by which arguments it is differentiated.
        has_aux (bool): whether func returns (what is differentiated, something else).
        chunk_size (int, optional): how many rows are computed at once; None: all.

    Returns: a tensor of the output's shape followed by the argument's.

    Raises: ValueError where `chunk_size` is not above 0.

    Example:
        >>> torch.func.jacrev(lambda x: x**2)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        inputs, in_spec = tree_flatten(_slice_argnums(args, argnums, False))
        _refuse_complex(inputs, "jacrev", "inputs")
        found = _vjp_with_argnums(functools.partial(func, **kwargs), *args, argnums=argnums, has_aux=has_aux)
        output, vjp_fn, aux = found if has_aux else (*found, None)
        flat, out_spec = tree_flatten(output)
        _refuse_complex(flat, "jacrev", "outputs")
        total = sum(o.numel() for o in flat)
        step = total if chunk_size is None else chunk_size

        def rows(*cotangents):
            return tuple(tree_flatten(vjp_fn(tree_unflatten(cotangents, out_spec)))[0])

        def chunk(a):
            basis = _basis(flat, a, min(a + step, total))
            if step == 1:  # as it is, without the bounds of vmap
                return tuple(row.unsqueeze(0) for row in rows(*(b.squeeze(0) for b in basis)))
            return vmap_impl(rows, 0, 0, "error", None, *basis)

        chunks = [chunk(a) for a in range(0, total, max(step, 1))]
        columns = [
            rushlight.cat(c) if len(c) > 1 else _of_its_own(c[0]) for c in zip(*chunks)
        ] if chunks else [x.new_zeros(0, *x.shape) for x in inputs]  # fmt: skip
        sizes = [o.numel() for o in flat]
        by_input = [
            [part.view((*o.shape, *x.shape)) for o, part in zip(flat, c.split(sizes))]
            for x, c in zip(inputs, columns)
        ]
        by_output = [tree_unflatten(list(parts), in_spec) for parts in zip(*by_input)]
        result = tree_unflatten(by_output, out_spec)
        return (result, aux) if has_aux else result

    return wrapper


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """A function that gives the Jacobian of `func` by forward mode: a pass for each element of the input.

    Args:
        func (callable): takes and returns tensors (or trees of them), without side effects.
        argnums (int or tuple): by which arguments it is differentiated.
        has_aux (bool): whether func returns (what is differentiated, something else).
        randomness (str): 'error', 'same' or 'different', see `vmap`.

    Returns: a tensor of the output's shape followed by the argument's.

    Example:
        >>> torch.func.jacfwd(lambda x: x**2)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        bound = functools.partial(func, **kwargs)
        inputs, in_spec = tree_flatten(_slice_argnums(args, argnums, False))
        _refuse_complex(inputs, "jacfwd", "inputs")
        total = sum(x.numel() for x in inputs)

        def push(*tangents):
            tree = tree_unflatten(tangents, in_spec)
            output, products, *rest = _jvp_with_argnums(bound, args, tree, argnums, has_aux=has_aux)
            return (products, output, rest[0]) if has_aux else (products, output)

        dims = (0, None, None) if has_aux else (0, None)
        found = vmap_impl(push, 0, dims, randomness, None, *_basis(inputs, 0, total))
        products, output = found[:2]
        flat, out_spec = tree_flatten(output)
        _refuse_complex(flat, "jacfwd", "outputs")
        sizes = [x.numel() for x in inputs]
        by_output = []
        for o, p in zip(flat, tree_flatten(products)[0]):
            parts = [
                part.movedim(0, -1).reshape((*o.shape, *x.shape))
                for x, part in zip(inputs, _of_its_own(p).split(sizes))
            ]
            by_output.append(tree_unflatten(parts, in_spec))
        result = tree_unflatten(by_output, out_spec)
        return (result, found[2]) if has_aux else result

    return wrapper


def hessian(func, argnums=0):
    """A function that gives the second derivatives of `func`: forward mode over reverse mode.

    Args:
        func (callable): takes and returns tensors (or trees of them), without side effects.
        argnums (int or tuple): by which arguments it is differentiated.

    Returns: a tensor of the output's shape followed twice by the argument's.

    Example:
        >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


show_from("func", jacrev, jacfwd, hessian)
