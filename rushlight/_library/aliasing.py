"""What custom operators may not return."""

import rushlight as torch

__all__ = ["check_no_aliasing"]


def _leaves(value):
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value] if isinstance(value, torch.Tensor) else []


def check_no_aliasing(name, args, kwargs, result):
    """RuntimeError where a result is an argument or shares its memory."""
    seen = {id(t) for t in _leaves([*args, *kwargs.values()])}
    memory = {
        t.untyped_storage()._cdata
        for t in _leaves([*args, *kwargs.values()])
        if type(t) is torch.Tensor and t.numel()
    }
    for t in _leaves([result]):
        aliases = id(t) in seen or (
            type(t) is torch.Tensor and t.numel() and t.untyped_storage()._cdata in memory
        )
        if aliases:
            raise RuntimeError(
                f"{name} (with implementation in Python): The output of this custom operator (1) must not "
                "also be an input to this custom operator and (2) may not alias any inputs to this custom "
                "operator or other returns. The most common way to trigger this error is if we have "
                "y = custom_op(x) and y and x are the same Tensor. Please instead return a clone of the "
                "offending output tensor(s) (e.g. return x.clone()) or refactor the custom operator to not "
                "return y."
            )
