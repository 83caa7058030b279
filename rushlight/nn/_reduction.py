"""The ways to reduce a loss, as text and as the number that operators take."""

import warnings

import rushlight as torch
from rushlight._errors.advice import advised

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction):
    """The number of a reduction."""
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(size_average, reduce, emit_warning=True):
    """What the two old arguments mean as a `reduction`."""
    for value in (size_average, reduce):
        if isinstance(value, torch.Tensor) and value.numel() > 1:  # nn.MSELoss(output, target)
            raise advised(
                RuntimeError(
                    "Boolean value of Tensor with more than one value is ambiguous "
                    "(a loss was given tensors when it was made)"
                )
            )
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = ("mean" if size_average else "sum") if reduce else "none"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=3,
        )
    return reduction


def legacy_get_enum(size_average, reduce, emit_warning=True):
    """The number of the reduction that the two old arguments mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
