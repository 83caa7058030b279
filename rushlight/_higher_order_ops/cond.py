"""`torch.cond`: one of two functions, by a value."""

import rushlight
from rushlight.utils import _pytree

__all__ = ["cond"]


def cond(pred, true_fn, false_fn, operands=()):
    """``true_fn(*operands)`` where `pred` is true, else ``false_fn(*operands)``.

    Under vmap, where each example has a `pred` of its own, and in an export, where `pred` is not known, both
    are computed and chosen from.

    Args:
        pred: a bool, or a tensor of one element.
        operands: a tuple or list of what the functions take.
    """
    if not isinstance(pred, (bool, rushlight.Tensor, rushlight.SymBool)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, rushlight.Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"Expect operands to be a tuple or list, but got {operands}.")
    if isinstance(pred, rushlight.Tensor) and rushlight._C._functorch.is_batchedtensor(pred):
        return _both(pred.reshape(()), true_fn(*operands), false_fn(*operands))
    if _is_unknown(pred):
        given = pred.as_tensor() if isinstance(pred, rushlight.SymBool) else rushlight.as_tensor(pred)
        chosen = given.reshape(())
        return _both(chosen, true_fn(*operands), false_fn(*operands))
    return true_fn(*operands) if pred else false_fn(*operands)


def _is_unknown(pred):
    """Whether a truth depends on data that a trace does not have."""
    if isinstance(pred, rushlight.SymBool):
        return pred.numbers.answer(pred) is None
    mode = getattr(pred, "fake_mode", None)
    return mode is not None and mode.data_numbers is not None and pred.constant is None


def _both(pred, one, other):
    (ones, spec), (others, same) = _pytree.tree_flatten(one), _pytree.tree_flatten(other)
    if spec != same:
        raise RuntimeError(f"cond: both branches must return the same structure, but got {spec} and {same}")
    for a, b in zip(ones, others):
        if isinstance(a, rushlight.Tensor) and (a.shape != b.shape or a.dtype != b.dtype):
            raise RuntimeError(
                "cond: both branches must return equal shapes and dtypes, but got "
                f"{list(a.shape)} of {a.dtype} and {list(b.shape)} of {b.dtype}"
            )
    return _pytree.tree_unflatten(
        [rushlight.where(pred, a, b) for a, b in zip(ones, others, strict=True)], spec
    )


cond_op = cond  # the operator behind it, which is the function itself here
