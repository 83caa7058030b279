"""`torch.while_loop`: a plain loop, and where a trace records it, a node of the graph."""

import rushlight
from rushlight._higher_order_ops._parts import describe, recorder
from rushlight.utils import _pytree

__all__ = ["while_loop"]


def while_loop(cond_fn, body_fn, carried_inputs):
    """While ``cond_fn(*carried)`` is true, let ``carried`` be ``body_fn(*carried)``; returns the last one.

    The body returns as many values as it takes, of the same kinds, shapes and dtypes.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("while_loop: cond_fn and body_fn must be callable")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"carried_inputs must be a tuple or list but got {type(carried_inputs)}")
    carried = tuple(carried_inputs)
    leaves, spec = _pytree.tree_flatten(carried)
    mode = recorder()
    if (
        mode is not None
        and not mode.pre_dispatch
        and all(isinstance(leaf, rushlight.Tensor) for leaf in leaves)
    ):
        return _recorded(cond_fn, body_fn, leaves, spec)
    kinds = describe(leaves)
    while True:
        more = cond_fn(*carried)
        if isinstance(more, rushlight.Tensor):
            if more.numel() != 1 or more.dtype != rushlight.bool:
                raise RuntimeError(
                    f"while_loop: cond_fn must return a bool or a boolean tensor of one element, but got "
                    f"a {more.dtype} tensor of shape {tuple(more.shape)}"
                )
            more = bool(more)
        if not isinstance(more, bool):
            raise RuntimeError(f"while_loop: cond_fn must return a bool, but got {more!r}")
        if not more:
            return carried
        result = body_fn(*carried)
        carried = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        leaves, now = _pytree.tree_flatten(carried)
        if now != spec or describe(leaves) != kinds:
            raise RuntimeError(
                f"while_loop: body_fn must return what it takes, {kinds}, but returned {describe(leaves)}"
            )


def _recorded(cond_fn, body_fn, leaves, spec):
    from rushlight._higher_order_ops._loop_operator import loop_operator

    def condition(*values):
        return cond_fn(*_pytree.tree_unflatten(list(values), spec))

    def body(*values):
        result = body_fn(*_pytree.tree_unflatten(list(values), spec))
        found, now = _pytree.tree_flatten(tuple(result) if isinstance(result, (tuple, list)) else (result,))
        if now != spec:
            raise RuntimeError(f"while_loop: body_fn must return what it takes, {spec}, but returned {now}")
        return tuple(found)

    return _pytree.tree_unflatten(list(loop_operator(condition, body, leaves)), spec)
