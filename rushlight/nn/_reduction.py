"""The ways to reduce a loss, as text and as the number that operators take."""

from .functional._loss import legacy_reduction as legacy_get_string  # noqa: F401

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction):
    """The number of a reduction."""
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_enum(size_average, reduce, emit_warning=True):
    """The number of the reduction that the two old arguments mean."""
    return get_enum(legacy_get_string(size_average, reduce))
