"""`torch.while_loop`, as a plain loop."""

import rushlight
from rushlight._higher_order_ops._parts import describe
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
