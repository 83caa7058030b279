"""How far two tensors are apart."""

import functools

import rushlight

__all__ = ["compute_cosine_similarity", "compute_normalized_l2_error", "compute_sqnr"]


def _of_all_tensors(function):
    """A measure of two tensors that also takes lists, tuples and dictionaries of them."""

    @functools.wraps(function)
    def measure(x, y):
        if isinstance(x, (list, tuple)):
            return type(x)([measure(one, other) for one, other in zip(x, y)])
        if isinstance(x, dict):
            return {name: measure(value, y[name]) for name, value in x.items()}
        if not isinstance(x, rushlight.Tensor):
            return None
        x, y = (one.dequantize() if one.is_quantized else one for one in (x, y))
        return function(x, y)

    return measure


@_of_all_tensors
def compute_sqnr(x, y):
    """The signal's strength over that of the difference, in decibels."""
    return 20 * rushlight.log10(rushlight.norm(x) / rushlight.norm(x - y))


@_of_all_tensors
def compute_normalized_l2_error(x, y):
    """The root of the sum of squared differences over that of squares."""
    return rushlight.sqrt(((x - y) ** 2).sum() / (x**2).sum())


@_of_all_tensors
def compute_cosine_similarity(x, y):
    """The cosine of the angle between both, as vectors."""
    return rushlight.nn.functional.cosine_similarity(x.reshape(1, -1), y.reshape(1, -1))
