"""`torch.cond`: one of two functions, by a value; where a trace records it, a node of the graph."""

import warnings

import rushlight
from rushlight._command.names import show_from
from rushlight._higher_order_ops._parts import recorder
from rushlight._subclasses.size_choices import SizeTruth, note_bool
from rushlight.utils import _pytree

__all__ = ["cond"]


def cond(pred, true_fn, false_fn, operands=()):
    """``true_fn(*operands)`` where `pred` is true, else ``false_fn(*operands)``.

    A graph of the program has both as graphs of their own. Under function transforms within a graph, and
    under vmap where each example has a `pred` of its own, both are computed and chosen from.

    Args:
        pred: a bool, or a tensor of one element.
        operands: a tuple or list of what the functions take.
    """
    mode = recorder()
    if mode is not None and isinstance(pred, bool):
        note_bool(mode.fakes.data_numbers)
        _warn_of_constant(mode.fakes.data_numbers)
    if isinstance(pred, SizeTruth):
        pred = pred.for_cond()
    if not isinstance(pred, (bool, rushlight.Tensor, rushlight.SymBool)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, rushlight.Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"Expect operands to be a tuple or list, but got {operands}.")
    if isinstance(pred, rushlight.SymBool):
        known = pred.numbers.answer(pred)
        pred = pred.as_tensor() if known is None else known
    if isinstance(pred, bool):
        return true_fn(*operands) if pred else false_fn(*operands)
    in_transform = rushlight._C._functorch.maybe_current_level() is not None
    if mode is not None and not in_transform:
        return _recorded(pred, true_fn, false_fn, operands)
    if mode is not None or rushlight._C._functorch.is_batchedtensor(pred) or _is_unknown(pred):
        return _both(pred.reshape(()), true_fn(*operands), false_fn(*operands))
    return true_fn(*operands) if pred else false_fn(*operands)


def _warn_of_constant(numbers):
    """Tell that a graph has one of the functions, if its condition may not be one of sizes after all."""
    choices = None if numbers is None else numbers.choices
    if rushlight.compiler.is_exporting() and (choices is None or choices.tracking):
        warnings.warn(
            "Pred is a Python constant. When used with torch.cond, it specializes on one of the branches. If "
            "you want torch.cond to preserve two branches, please make the predicate a boolean tensor or a "
            "SymBool.",
            UserWarning,
            stacklevel=3,
        )


def _is_unknown(pred):
    """Whether a fake tensor stands for a truth."""
    mode = getattr(pred, "fake_mode", None)
    return mode is not None and pred.constant is None and not mode.propagate_real_tensors


def _recorded(pred, true_fn, false_fn, operands):
    from rushlight._higher_order_ops._choice_operator import choice_operator

    leaves, spec = _pytree.tree_flatten(tuple(operands))
    found = {}

    def flat(function):
        def run(*values):
            results, structure = _pytree.tree_flatten(function(*_pytree.tree_unflatten(values, spec)))
            plain = [None if isinstance(r, rushlight.Tensor) else (r,) for r in results]
            found.setdefault(function, (structure, plain))
            return tuple(r for r in results if isinstance(r, rushlight.Tensor))

        return run

    tensors = iter(choice_operator(pred, flat(true_fn), flat(false_fn), leaves))
    (structure, plain), (other, others) = found[true_fn], found[false_fn]
    _same_structure(structure, other)
    if plain != others:
        raise RuntimeError("cond: both branches must return equal numbers and other values beside tensors")
    return _pytree.tree_unflatten([next(tensors) if p is None else p[0] for p in plain], structure)


def _same_structure(spec, same):
    if spec != same:
        raise RuntimeError(f"cond: both branches must return the same structure, but got {spec} and {same}")


def _both(pred, one, other):
    (ones, spec), (others, same) = _pytree.tree_flatten(one), _pytree.tree_flatten(other)
    _same_structure(spec, same)
    for a, b in zip(ones, others):
        if isinstance(a, rushlight.Tensor) and (a.shape != b.shape or a.dtype != b.dtype):
            raise RuntimeError(
                "cond: both branches must return equal shapes and dtypes, but got "
                f"{list(a.shape)} of {a.dtype} and {list(b.shape)} of {b.dtype}"
            )
    return _pytree.tree_unflatten(
        [
            rushlight.where(pred, a, b) if isinstance(a, rushlight.Tensor) else a
            for a, b in zip(ones, others, strict=True)
        ],
        spec,
    )


def __getattr__(name):
    if name == "cond_op":  # the operator behind it
        from rushlight._higher_order_ops._choice_operator import choice_operator

        return choice_operator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


show_from("", cond)
