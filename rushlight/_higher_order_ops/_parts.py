"""What the scans share: looking at the leaves of nested values."""

import rushlight
from rushlight.utils import _pytree


def mapped_leaves(name, xs, dim=0):
    """The tensors of `xs` with `dim` in front, and the structure; all must be equally long."""
    leaves, spec = _pytree.tree_flatten(xs)
    if not leaves:
        raise RuntimeError(f"{name}: expected xs with at least one tensor, got none")
    for leaf in leaves:
        if not isinstance(leaf, rushlight.Tensor):
            raise RuntimeError(f"{name}: all xs must be tensors, but got a {type(leaf).__name__}")
        if leaf.dim() == 0 or not -leaf.dim() <= dim < leaf.dim():
            raise RuntimeError(
                f"{name}: all xs leaves must have dimension {dim}, but got shape {tuple(leaf.shape)}"
            )
    moved = [leaf.movedim(dim, 0) if dim else leaf for leaf in leaves]
    lengths = [leaf.shape[0] for leaf in moved]
    if len(set(lengths)) > 1:
        raise RuntimeError(
            f"{name}: all xs leaves must have the same length in the mapped dimension, got {lengths}"
        )
    if lengths[0] == 0:
        raise RuntimeError(f"{name}: all xs leaves must at least have 1 element in the mapped dimension")
    return moved, spec


def describe(leaves):
    """What two values must have in common for one to take the other's place."""
    return [
        (tuple(leaf.shape), leaf.dtype, leaf.device) if isinstance(leaf, rushlight.Tensor) else type(leaf)
        for leaf in leaves
    ]


def stacked(name, results):
    """The values of all steps, stacked leaf by leaf in front."""
    flat = [_pytree.tree_flatten(result) for result in results]
    first, spec = flat[0]
    for leaves, other in flat:
        if other != spec or describe(leaves) != describe(first):
            raise RuntimeError(
                f"{name}: every step must return the same structure, shapes and dtypes, but one returned "
                f"{describe(first)} and another {describe(leaves)}"
            )
    columns = zip(*(leaves for leaves, _ in flat), strict=True)
    stacks = [rushlight.stack(c) if isinstance(c[0], rushlight.Tensor) else c[0] for c in columns]
    return _pytree.tree_unflatten(stacks, spec)


def recorder():
    """The mode that makes a graph of the program, among modes that know operators of functions, or None."""
    from rushlight.utils._python_dispatch import _all_modes

    modes = _all_modes()
    if not modes:
        return None
    from rushlight._functorch.functionalization import FunctionalizeMode
    from rushlight._subclasses.fake_tensor import FakeTensorMode
    from rushlight.fx.experimental.proxy_tensor import ProxyTorchDispatchMode

    if not all(isinstance(m, (FunctionalizeMode, FakeTensorMode, ProxyTorchDispatchMode)) for m in modes):
        return None
    found = [mode for mode in modes if isinstance(mode, ProxyTorchDispatchMode)]
    return found[-1] if found else None
